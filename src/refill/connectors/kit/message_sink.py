"""What sinks that deliver messages share: a slice goes out portion by portion, and is counted.

Importing this costs nothing: polars and pyarrow come with the first use.
"""

import json
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refill.connectors.kit.contract import Job, Sink, Written
from refill.connectors.kit.envelope import Envelope, Messages
from refill.domain.errors import SinkRefused
from refill.domain.slice import REJECTS_KEPT, Reject, Ticket

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Messages that the system will take; the series have one entry per message."""

    values: "pl.Series"
    keys: "pl.Series | None"
    idempotency_keys: "pl.Series"
    messages: Messages  # all of the portion, also those that were set aside
    routes: "dict[str, pl.Series]"

    @property
    def bare(self) -> bool:
        """Whether the messages do not say themselves what they are known by."""
        return self.messages.alone is not None

    def only(self, which: "pl.Series") -> "Outgoing":
        """Those of them for which it is true, in their order."""
        return replace(
            self,
            values=self.values.filter(which),
            keys=None if self.keys is None else self.keys.filter(which),
            idempotency_keys=self.idempotency_keys.filter(which),
            routes={name: texts.filter(which) for name, texts in self.routes.items()},
        )

    def route(self, name: str) -> list[str | None] | None:
        """Where each goes; None in it, and without routing: where the sink sends them."""
        return self.routes[name].to_list() if name in self.routes else None

    def headers(self) -> list[dict[str, str]] | None:
        """What routing gives beside each message."""
        texts = self.route("headers")
        return None if texts is None else [headers_of(text) for text in texts]

    def value_bytes(self) -> list[bytes]:
        import polars as pl

        return self.values.cast(pl.Binary).to_list()

    def key_bytes(self) -> list[bytes] | None:
        import polars as pl

        return None if self.keys is None else self.keys.cast(pl.Binary).to_list()


class Tally:
    """Counts what goes out and sets aside what is too large for the system."""

    def __init__(self, limit_bytes: int | None = None, limited_by: str = "the system") -> None:
        self._limit_bytes = limit_bytes
        self._limited_by = limited_by
        self.rows = 0
        self.bytes = 0
        self.rejected = 0
        self.rejects: list[Reject] = []

    def sift(self, envelope: Envelope, portion: "pa.RecordBatch") -> Outgoing:
        messages = envelope.wrap(portion)
        values, keys, known_as = messages.values(), messages.key, messages.idempotency_key
        routes = messages.routes
        if (chosen := routes.get("key")) is not None:
            keys = chosen if keys is None else chosen.fill_null(keys)
        sizes = values.str.len_bytes()
        if keys is not None:
            sizes = sizes + keys.str.len_bytes().fill_null(0)
        if messages.alone is not None:
            sizes = sizes + known_as.str.len_bytes()  # it travels beside the message
        if (headers := routes.get("headers")) is not None:
            sizes = sizes + headers.str.len_bytes().fill_null(0)
        if self._limit_bytes is not None:
            fits = sizes <= self._limit_bytes
            if not fits.all():
                self._set_aside(envelope, portion, sizes, fits)
                values, sizes, known_as = (s.filter(fits) for s in (values, sizes, known_as))
                keys = keys.filter(fits) if keys is not None else None
                routes = {name: texts.filter(fits) for name, texts in routes.items()}
        self.rows += len(values)
        self.bytes += int(sizes.sum())
        return Outgoing(values, keys, known_as, messages, routes)

    def _set_aside(
        self, envelope: Envelope, portion: "pa.RecordBatch", sizes: "pl.Series", fits: "pl.Series"
    ) -> None:
        rows = (~fits).arg_true().to_list()
        self.rejected += len(rows)
        for row in rows[: REJECTS_KEPT - len(self.rejects)]:
            detail = f"{sizes[row]} bytes; {self._limited_by} takes {self._limit_bytes}"
            self.rejects.append(envelope.reject(portion, row, "message too large", detail))

    def written(self) -> Written:
        return Written(
            rows_delivered=self.rows,
            bytes_written=self.bytes,
            rows_rejected=self.rejected,
            rejects=tuple(self.rejects),
        )


class MessageSink(Sink):
    """Sends portion after portion; `send` returns when the system has room for the next."""

    def write(
        self, job: Job, ticket: Ticket, schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]
    ) -> Written:
        envelope = Envelope(job, ticket, schema)
        tally = self.begin(job)
        for batch in batches:
            for portion in envelope.portions(batch):
                self.send(job, tally.sift(envelope, portion))
        self.finish(job)
        return tally.written()

    def begin(self, job: Job) -> Tally:
        """Connects, where that is still to be done; a tally with the system's limit."""
        return Tally()

    @abstractmethod
    def send(self, job: Job, outgoing: Outgoing) -> None: ...

    def finish(self, job: Job) -> None:
        """Returns when the system has taken all of it."""


def headers_of(text: str | None) -> dict[str, str]:
    """Of the JSON object that a routing's SQL made; a header is text, and one that is NULL none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SinkRefused(
            "The routing's headers are no JSON object; make them with named_struct or to_json."
        )
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
        if value is not None
    }


def subject_of(job: Job) -> str:
    """`sequin.<database>.<schema>.<table>.read`: what subjects and routing keys are made of."""
    table = job.sink_spec.read.table
    names = (job.spec.database_name, table.schema_name, table.name)
    return ".".join(["sequin", *(_token(name) for name in names), "read"])


def _token(name: str) -> str:
    """One token: what separates tokens, or stands for any of them, is no part of one."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)
