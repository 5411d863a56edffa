"""What the source adds to the metadata of messages: one query per batch, joined by the key."""

from typing import Any

import polars as pl
import pyarrow as pa

from refill.connectors.kit.contract import Source
from refill.connectors.kit.fields import FieldNote, Form
from refill.connectors.kit.json_form import record_texts
from refill.connectors.kit.json_form.texts import to_arrow
from refill.connectors.kit.json_form.values import bare_texts
from refill.domain.errors import Invalid
from refill.domain.spec import ENRICHMENT, SinkSpec
from refill.domain.table import Family

_FIELD: Any = pa.field(
    ENRICHMENT, pa.string(), metadata=FieldNote(family=Family.JSON, form=Form.JSON).metadata()
)


class Enricher:
    """Adds a column of JSON texts to each batch, which messages put into their metadata."""

    def __init__(self, spec: SinkSpec, source: Source) -> None:
        self._spec = spec
        self._source = source
        key = spec.read.table.key
        if len(key) != 1:
            raise Invalid.of("enrichment", f"{spec.read.name} has no key of one column to go by")
        self._key = key[0]

    def schema(self, schema: pa.Schema) -> pa.Schema:
        return schema.append(_FIELD)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        keys = self._texts(batch)
        found = self._looked_up(keys.unique().drop_nulls().to_list())
        texts = keys.replace_strict(*found, default=None, return_dtype=pl.String)
        return batch.append_column(_FIELD, to_arrow(texts).cast(pa.string()))

    def _looked_up(self, keys: list[str]) -> tuple[pl.Series, pl.Series]:
        """(keys, what was found for them as JSON); of several rows for a key, the first."""
        spec = self._spec
        key = spec.read.table.column(self._key)
        assert key is not None
        assert spec.enrichment is not None
        rows = self._source.look_up(spec.enrichment, key, keys).combine_chunks().to_batches()
        if not rows:
            return pl.Series([], dtype=pl.String), pl.Series([], dtype=pl.String)
        texts = record_texts(rows[0], spec.timestamp_format, spec.numeric_format, nested=True)
        frame = pl.DataFrame({"key": self._texts(rows[0]), "text": texts})
        once = frame.drop_nulls("key").unique("key", keep="first", maintain_order=True)
        return once["key"], once["text"]

    def _texts(self, batch: pa.RecordBatch) -> pl.Series:
        place = batch.schema.get_field_index(self._key)
        if place < 0:
            raise Invalid.of(
                "enrichment",
                f"must select {self._key}, by which its rows are joined to the table's",
            )
        return bare_texts(batch.column(place), batch.schema.field(place))
