"""Records as JSON text, exactly and by whole columns: what files of JSON lines and messages share.

Importing this package costs nothing: polars and pyarrow come with the first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def record_texts(
    batch: "pa.RecordBatch",
    timestamp_format: str = "iso8601",
    numeric_format: str = "number",
    nested: bool = False,
) -> "pl.Series":
    """One JSON object per row, its keys in the order of the columns."""
    from refill.connectors.kit.json_form import records, texts

    style = texts.Style(timestamp_format, numeric_format, nested)
    return records.assemble(records.record_pieces(batch, style), batch.num_rows)


def json_lines(batch: "pa.RecordBatch", timestamp_format: str = "iso8601") -> "pa.Buffer":
    """One JSON object per row, its keys in the order of the columns, each ended by a line feed, as
    one run of bytes."""
    from refill.connectors.kit.json_form import records, texts

    pieces = [*records.record_pieces(batch, texts.Style(timestamp_format)), "\n"]
    return records.joined(records.assemble(pieces, batch.num_rows))
