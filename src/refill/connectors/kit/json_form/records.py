"""From columns to one text per row: literals and columns in turn, joined in a single pass."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from refill.connectors.kit.json_form.instants import Arrow
from refill.connectors.kit.json_form.texts import Style
from refill.connectors.kit.json_form.values import PLAIN, value_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

# what a row's text is made of, in order: a str stands in every row, a Series has one text per row
Piece = str | pl.Series


def record_pieces(batch: pa.RecordBatch, style: Style = PLAIN) -> list[Piece]:
    """The pieces of `{"column":value,…}`."""
    pieces: list[Piece] = []
    for index, field in enumerate(batch.schema):
        name = json.dumps(field.name, ensure_ascii=False)
        pieces.append(f"{',' if index else '{'}{name}:")
        pieces.extend(value_pieces(batch.column(index), field, style))
    pieces.append("}" if pieces else "{}")
    return pieces


def value_pieces(array: Arrow, field: Arrow, style: Style) -> "Iterator[Piece]":
    """One column as JSON values. Where nothing is NULL the quotes cost nothing: they join the
    literals beside the column instead of being written into every value first."""
    texts = value_texts(array, field, style)
    if not texts.quoted:
        yield texts.json()
    elif texts.series.null_count() == 0:
        yield '"'
        yield texts.series
        yield '"'
    else:
        yield texts.json()


def assemble(pieces: Sequence[Piece], rows: int) -> pl.Series:
    """One text per row. Two literals in a row become one, so that each costs a single copy."""
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if rows == 0:
        return pl.Series("text", [], dtype=pl.String)
    if len(merged) == 1 and isinstance(merged[0], str):
        return pl.Series("text", [merged[0]], dtype=pl.String).new_from_index(0, rows)
    columns = {
        str(index): piece for index, piece in enumerate(merged) if isinstance(piece, pl.Series)
    }
    parts = [
        pl.lit(piece) if isinstance(piece, str) else pl.col(str(index))
        for index, piece in enumerate(merged)
    ]
    return pl.DataFrame(columns).select(text=pl.concat_str(parts)).to_series()


def joined(texts: pl.Series) -> pa.Buffer:
    """All texts behind one another, without a copy: Arrow keeps them so."""
    array: Arrow = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    if len(array) == 0:
        return pa.py_buffer(b"")
    _, offsets, data = array.buffers()
    first, last = array.offset * 8, (array.offset + len(array)) * 8
    ends = memoryview(offsets).cast("B")
    begin = int.from_bytes(ends[first : first + 8], "little")
    end = int.from_bytes(ends[last : last + 8], "little")
    run: pa.Buffer = data.slice(begin, end - begin)
    return run
