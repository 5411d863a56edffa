"""The message around each record: what it says beside the row, and the keys it is known by.

Importing this costs nothing: polars and pyarrow come with the first use.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from refill.connectors.kit.contract import Job
from refill.domain.slice import NativeExtent, Reject, Ticket
from refill.domain.spec import HIDDEN

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from refill.connectors.kit.json_form.records import Piece

# a portion is what is encoded at once: large enough for whole columns to pay, small enough that
# the rows, their texts and the driver's copies of them stay a bounded part of the machine
PORTION_ROWS = 16_384
PORTION_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of one portion; every series has one text per row."""

    key: "pl.Series | None"  # the primary key; None where the table has none
    idempotency_key: "pl.Series"
    key_parts: "list[pl.Series]"  # of the primary key
    record: "list[Piece]"
    metadata: "list[Piece]"
    rows: int
    alone: "list[Piece] | None"  # what is sent instead of record and metadata
    routes: "dict[str, pl.Series]"  # where each message goes, by the names that the system has

    def values(self) -> "pl.Series":
        """The whole message, as JSON."""
        from refill.connectors.kit.json_form.records import assemble

        if self.alone is not None:
            return assemble(self.alone, self.rows)
        head, tail = ['{"record":'], ["}"]
        middle = [',"changes":null,"action":"read","metadata":']
        return assemble([*head, *self.record, *middle, *self.metadata, *tail], self.rows)

    def parts(self) -> "tuple[pl.Series, pl.Series]":
        """(record, metadata), for systems that keep the two apart."""
        from refill.connectors.kit.json_form.records import assemble

        return assemble(self.record, self.rows), assemble(self.metadata, self.rows)


class Envelope:
    """Makes the messages of one slice. One object per execution: it numbers the rows."""

    def __init__(
        self,
        job: Job,
        ticket: Ticket,
        schema: "pa.Schema",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        spec = job.sink_spec
        table = spec.read.table
        names = set(schema.names)
        key = table.key
        self._key = key if all(name in names for name in key) else ()
        self._uid = job.backfill_uid
        # where rows do not come in the same order again, a row's place is this attempt's
        stable = isinstance(ticket.extent, NativeExtent) and ticket.extent.same_order
        self._place = f"{ticket.index}:" if stable else f"{ticket.index}:{ticket.attempt}:"
        self._spec = spec
        self._groups = spec.group_columns if set(spec.group_columns) <= names else ()
        self._hidden = [name for name in schema.names if name.startswith(HIDDEN)]
        self._now = now
        self._rows = 0
        self._head = {
            "table_schema": table.schema_name,
            "table_name": table.name,
        }
        self._middle = {
            "commit_lsn": None,
            "commit_idx": None,
            "database_name": spec.database_name,
            "transaction_annotations": None,
        }
        self._tail = {
            "consumer": dict(spec.message.get("consumer", {})),
            "database": dict(spec.message.get("database", {})),
        }

    def portions(self, batch: "pa.RecordBatch") -> Iterator["pa.RecordBatch"]:
        """The batch in parts that are encoded one at a time."""
        width = max(1, batch.nbytes // max(1, batch.num_rows))
        rows = max(1, min(PORTION_ROWS, PORTION_BYTES // width))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

    def wrap(self, batch: "pa.RecordBatch") -> Messages:
        """The messages of a portion, in its order."""
        from refill.connectors.kit import message_parts as parts
        from refill.connectors.kit.json_form.records import record_pieces

        style = parts.style_of(self._spec)
        keys = [self._key_texts(batch, name) for name in self._key]
        groups = [self._key_texts(batch, name) for name in self._groups] or keys
        known_as = self._known_as(keys, batch.num_rows)
        self._rows += batch.num_rows
        visible = batch.drop_columns(self._hidden) if self._hidden else batch
        record = record_pieces(visible, style)
        about = self._metadata(known_as, keys, parts.enrichment_of(batch))
        return Messages(
            key=_joined(groups) if groups else None,
            idempotency_key=known_as,
            key_parts=keys,
            record=record,
            metadata=parts.object_pieces(about),
            rows=batch.num_rows,
            alone=parts.alone(self._spec, visible, record, about),
            routes=parts.routes_of(batch),
        )

    def reject(self, batch: "pa.RecordBatch", row: int, reason: str, detail: str) -> Reject:
        """A row of a portion that the sink did not take."""
        part = batch.slice(row, 1)
        key = tuple(self._key_texts(part, name)[0] for name in self._key)
        return Reject(key=key, reason=reason, detail=detail)

    def _key_texts(self, batch: "pa.RecordBatch", name: str) -> "pl.Series":
        from refill.connectors.kit.json_form.values import bare_texts

        index = batch.schema.get_field_index(name)
        return bare_texts(batch.column(index), batch.schema.field(index))

    def _known_as(self, keys: "list[pl.Series]", rows: int) -> "pl.Series":
        """base64 of `backfill:key…`: the same row has the same on every attempt.

        Where a table without a key is always read in the same order, a row is known by its slice
        and its place in it. Where neither holds (a view, a keyless
        table by a sort column) the attempt is part of it: a repeat is better than a row that is
        taken for another one and dropped.
        """
        import polars as pl

        if keys:
            row = _joined([*keys], always_escape=True)
        else:
            numbers = pl.int_range(self._rows, self._rows + rows, eager=True)
            row = self._place + numbers.cast(pl.String)
        return (f"{self._uid}:" + row).cast(pl.Binary).bin.encode("base64")

    def _metadata(
        self, known_as: "pl.Series", keys: "list[pl.Series]", enrichment: "list[Piece]"
    ) -> "dict[str, Any]":
        """What is a list is pieces of JSON that differ by row; all else is the same in all."""
        from refill.connectors.kit.json_form.values import text_json

        read_at = self._now().astimezone(UTC).replace(tzinfo=None)
        commit_timestamp = read_at.isoformat(timespec="microseconds") + "Z"
        pks: list[Piece] = ["["]
        for index, texts in enumerate(keys):
            pks.append("," if index else "")
            pks.extend(text_json(texts))
        return {
            **self._head,
            "commit_timestamp": commit_timestamp,
            **self._middle,
            "enrichment": enrichment,
            "idempotency_key": ['"', known_as, '"'],
            "record_pks": [*pks, "]"],
            **self._tail,
        }


def _joined(keys: "list[pl.Series]", always_escape: bool = False) -> "pl.Series":
    """One text for a key of any number of parts; two different keys never have the same."""
    if len(keys) == 1 and not always_escape:
        return keys[0]
    import polars as pl

    parts = [_escaped(texts).alias(str(index)) for index, texts in enumerate(keys)]
    return pl.DataFrame(parts).select(pl.concat_str(pl.all(), separator=":")).to_series()


def _escaped(texts: "pl.Series") -> "pl.Series":
    """`:` and `\\` with a backslash before them; NULL, which no key has, as `\\N`."""
    if texts.str.contains(r"[:\\]").any():
        texts = texts.str.replace_many(["\\", ":"], ["\\\\", "\\:"])
    return texts.fill_null("\\N")
