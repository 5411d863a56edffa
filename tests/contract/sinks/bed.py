"""What the contract suite needs to know of a system: how to open a sink on it, and what its
consumers see. A bed is a subclass in `beds/`; the suite runs over every one of them."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date, timedelta
from typing import Any, ClassVar, TypeAlias
from uuid import uuid4

import pyarrow as pa

from refill.connectors.kit.contract import Guarantee, Job, Sink, Written
from refill.connectors.kit.registry import load_connectors
from refill.connectors.postgres.values import schema_of
from refill.domain.pipeline import Kind
from refill.domain.slice import Dated, KeyRange, Outcome, Receipt, Ticket
from refill.domain.table import Table
from tests.contract.beds import Bed
from tests.specs import build_spec, pg_column

# what a consumer sees of a row: its key, and which version of it
Seen: TypeAlias = tuple[int, str]

FIRST_DAY = date(2024, 2, 28)
ORDERS = Table(
    schema_name="public",
    name="orders",
    columns=(
        pg_column(name="id", type="bigint", oid=20, not_null=True),
        pg_column(name="note", type="text", oid=25),
        pg_column(name="day", type="date", oid=1082),
    ),
    primary_key=("id",),
)
SCHEMA = schema_of(ORDERS.columns)
SINK: dict[str, Any] = {
    "sort_columns": ("id",),
    "sink_id": "22222222-2222-4222-8222-222222222222",
    "message": {
        "consumer": {"id": "22222222", "name": "orders", "annotations": {}},
        "database": {
            "id": "11111111",
            "name": "shop",
            "annotations": {},
            "database": "shop",
            "hostname": "localhost",
        },
    },
}
TRANSFER: dict[str, Any] = {
    "date_column": "day",
    "dates": tuple(FIRST_DAY + timedelta(days=number) for number in range(3)),
    "destination_table": "orders",
}


def promise_of(bed: "type[SinkBed]") -> Guarantee:
    declared = bed.guarantee or load_connectors()[bed.connector_type].guarantee
    assert declared is not None
    return declared


def fences(bed: "type[SinkBed]") -> bool:
    return promise_of(bed) in (Guarantee.REPLACE, Guarantee.EXACTLY_ONCE)


def replaces(bed: "type[SinkBed]") -> bool:
    """What an earlier backfill delivered is replaced by a later one, not joined."""
    return promise_of(bed) is Guarantee.REPLACE


def takes_dates(bed: "type[SinkBed]") -> bool:
    return bed.kind is Kind.TRANSFER


def can_be_unreachable(bed: "type[SinkBed]") -> bool:
    return bed.unreachable is not SinkBed.unreachable


def can_refuse(bed: "type[SinkBed]") -> bool:
    return bed.refused is not SinkBed.refused


class SinkBed(Bed):
    """One sink on a real system, empty when the test begins."""

    kind: ClassVar[Kind] = Kind.SINK
    # an endpoint that cannot tell a repeat from a row may let the suite ask for less
    guarantee: ClassVar[Guarantee | None] = None  # None: what the connector declares

    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """Every option of the connector, live ones too."""

    @abstractmethod
    def rows(self) -> list[Seen]:
        """What a consumer of the system sees now, repeats included, after whatever the system
        itself (or a receiver that goes by the idempotency key) drops."""

    def unreachable(self) -> Mapping[str, Any]:
        """Options that lead nowhere: SinkUnavailable. Overridden where there is such a thing."""
        raise NotImplementedError

    def refused(self) -> Mapping[str, Any]:
        """Options that the system refuses: SinkRefused. Overridden where there is such a thing."""
        raise NotImplementedError

    def slowed(self) -> AbstractContextManager[None]:
        """While it is entered, the system takes what it gets slowly, where that can be had."""
        return nullcontext()

    # from here on nothing is meant to be overridden

    @property
    def promise(self) -> Guarantee:
        return promise_of(type(self))

    @property
    def fences(self) -> bool:
        """Whether a stale attempt must not change anything."""
        return fences(type(self))

    def open(self, options: Mapping[str, Any] | None = None) -> Sink:
        connector = load_connectors()[self.connector_type]
        assert connector.open_sink is not None
        model = connector.options_model.model_validate(
            self.options() if options is None else options
        )
        return connector.open_sink(model, self.context)

    def job(self, backfill_id: int = 1, **changes: Any) -> Job:
        connector = load_connectors()[self.connector_type]
        frozen = {k: v for k, v in self.options().items() if k not in connector.options_model.live}
        fields: dict[str, Any] = {
            "database_id": "11111111-1111-4111-8111-111111111111",
            "database_name": "shop",
            "table": ORDERS,
            "columns": ("id", "note", "day"),
            "sink_type": self.connector_type,
            "sink_options": frozen,
            **(TRANSFER if self.kind is Kind.TRANSFER else SINK),
        }
        spec = build_spec(self.kind, **fields | changes)
        return Job(
            backfill_id=backfill_id,
            backfill_uid=f"00000000-0000-4000-8000-{backfill_id:012d}",
            spec=spec,
        )

    def ticket(self, index: int = 0, *, attempt: int = 1, fence: int = 1) -> Ticket:
        """A claim of the index-th slice: its keys are 1000 * index + 1 … 1000 * (index + 1)."""
        day = FIRST_DAY + timedelta(days=index)
        if self.kind is Kind.TRANSFER:
            extent: Dated | KeyRange = Dated(date=day)
            target = f"destination:1/orders/{day.isoformat()}"
        else:
            lower, upper = str(1000 * index), str(1000 * (index + 1))
            extent = KeyRange(lower=(lower,), upper=(upper,))
            target = "sink:22222222-2222-4222-8222-222222222222/public.orders"
        return Ticket(
            slice_id=100 + index,
            index=index,
            extent=extent,
            attempt=attempt,
            target=target,
            fence=fence,
            nonce=uuid4().hex[:12],
        )


def batch_of(index: int, count: int, note: str, first: int = 1) -> pa.RecordBatch:
    """Rows of the index-th slice."""
    ids = range(1000 * index + first, 1000 * index + first + count)
    day = FIRST_DAY + timedelta(days=index)
    return pa.RecordBatch.from_pydict(
        {"id": list(ids), "note": [note] * count, "day": [day] * count}, schema=SCHEMA
    )


def seen(index: int, count: int, note: str) -> list[Seen]:
    return [(1000 * index + n + 1, note) for n in range(count)]


def stage(sink: Sink, job: Job, ticket: Ticket) -> Ticket:
    sink.prepare(job, SCHEMA)
    (place,) = sink.stage(job, [ticket])
    return ticket.model_copy(update={"staging": place})


def receipt_of(ticket: Ticket, written: Written) -> Receipt:
    return Receipt(
        slice_id=ticket.slice_id,
        attempt=ticket.attempt,
        outcome=Outcome.DONE,
        rows_read=written.rows_delivered + written.rows_rejected,
        rows_delivered=written.rows_delivered,
        rows_rejected=written.rows_rejected,
        bytes_written=written.bytes_written,
        staged=written.staged,
        rejects=written.rejects,
        extra=dict(written.extra),
    )


def deliver(
    sink: Sink, job: Job, ticket: Ticket, batches: Sequence[pa.RecordBatch] | Iterator[Any]
) -> Written:
    """What worker and task do with one slice, all the way to visible."""
    staged = stage(sink, job, ticket)
    written = sink.write(job, staged, SCHEMA, iter(batches))
    sink.publish(job, [(staged, receipt_of(staged, written))])
    return written
