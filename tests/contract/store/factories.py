"""Records with defaults, to be varied where a test cares."""

from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

from refill.domain.backfill import CountedBackfill
from refill.domain.pipeline import (
    Condition,
    Database,
    Destination,
    HttpEndpoint,
    Kind,
    Schedule,
    Selection,
    Sink,
    SinkTable,
    Transfer,
)
from refill.domain.retry import RetryPolicy
from refill.domain.slice import Dated, Fault, KeyRange, Outcome, Receipt
from refill.domain.spec import Spec
from refill.domain.table import Table
from refill.store.port import Store
from refill.store.records import ClaimedSlice, Finished, NewBackfill, Pack, PackLimits, PlannedSlice
from tests.specs import build_spec, pg_column

NOW = datetime(2026, 3, 4, 5, 6, 7, 891011, tzinfo=UTC)
FIRST = date(2026, 1, 1)


def make_table(name: str = "orders", columns: int = 3) -> Table:
    return Table(
        schema_name="public",
        name=name,
        columns=tuple(
            pg_column(name=f"c{number}", type="bigint", oid=20, not_null=True)
            for number in range(columns)
        ),
        primary_key=("c0",),
    )


def make_database(**changes: Any) -> Database:
    values: dict[str, Any] = {
        "id": str(uuid4()),
        "team_id": 1,
        "name": "shop",
        "type": "postgres",
        "options": {"hostname": "localhost", "password": "s3cret"},
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Database(**values | changes)


def make_endpoint(**changes: Any) -> HttpEndpoint:
    values: dict[str, Any] = {
        "id": str(uuid4()),
        "team_id": 1,
        "name": "hook",
        "url": "https://example.com/hook",
        "headers": {"X-Plain": "1"},
        "encrypted_headers": {"Authorization": "Bearer s3cret"},
        "created_at": NOW,
        "updated_at": NOW,
    }
    return HttpEndpoint(**values | changes)


def make_destination(**changes: Any) -> Destination:
    values: dict[str, Any] = {
        "id": 0,
        "team_id": 1,
        "name": "warehouse",
        "type": "postgres",
        "auth_method": "password",
        "options": {"hostname": "localhost", "password": "s3cret"},
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Destination(**values | changes)


def make_sink(database_id: str, **changes: Any) -> Sink:
    values: dict[str, Any] = {
        "id": str(uuid4()),
        "team_id": 1,
        "name": "orders-out",
        "database_id": database_id,
        "selection": Selection(include_tables=("public.orders",)),
        "tables": (SinkTable(name="public.orders", group_column_names=("c0",)),),
        "destination_type": "kafka",
        "destination_options": {"hosts": "localhost:9092", "password": "s3cret"},
        "filter": ({"column_name": "c1", "operator": ">", "comparison_value": 3},),
        "created_at": NOW,
        "updated_at": NOW,
    }
    values |= changes
    values["filter"] = tuple(Condition.model_validate(one) for one in values["filter"])
    return Sink(**values)


def make_transfer(database_id: str, destination_id: int, **changes: Any) -> Transfer:
    values: dict[str, Any] = {
        "id": 0,
        "team_id": 1,
        "name": "daily orders",
        "database_id": database_id,
        "destination_id": destination_id,
        "destination_table": "orders",
        "table": "public.orders",
        "date_column": "c1",
        "columns": ("c0", "c1"),
        "schedule": (Schedule(run_interval="daily", run_hour=4),),
        "extra": {"accounts": [{"id": "1"}]},
        "created_at": NOW,
        "created_user_id": 1,
        "updated_at": NOW,
    }
    return Transfer(**values | changes)


def make_spec(kind: Kind = Kind.SINK, **changes: Any) -> Spec:
    values: dict[str, Any] = {
        "kind": kind,
        "database_id": "d",
        "database_type": "postgres",
        "database_name": "shop",
        "table": make_table(columns=11),
        "columns": tuple(f"c{number}" for number in range(11)),
        "sink_type": "files",
        "sink_options": {"path": "out", "format": "parquet"},
    }
    return build_spec(**values | changes)


def new_sink_backfill(**changes: Any) -> NewBackfill:
    values: dict[str, Any] = {
        "uid": str(uuid4()),
        "team_id": 1,
        "kind": Kind.SINK,
        "pipeline_id": "sink-1",
        "pipeline_name": "orders-out",
        "spec": make_spec(),
        "holds": ("public.orders",),
        "created_user_id": 1,
    }
    return NewBackfill(**values | changes)


def new_transfer_backfill(days: int = 3, first: date = FIRST, **changes: Any) -> NewBackfill:
    dates = dates_from(first, days)
    values: dict[str, Any] = {
        "uid": str(uuid4()),
        "team_id": 1,
        "kind": Kind.TRANSFER,
        "pipeline_id": "7",
        "pipeline_name": "daily orders",
        "spec": make_spec(Kind.TRANSFER, dates=dates, transfer_id=7, destination_id=3),
        "range_start": dates[0],
        "range_end": dates[-1],
        "slices_planned": days,
        "holds": tuple(day.isoformat() for day in dates),
        "created_user_id": 1,
    }
    return NewBackfill(**values | changes)


def dates_from(first: date, days: int) -> tuple[date, ...]:
    return tuple(first + timedelta(days=number) for number in range(days))


def key_slices(
    count: int, target: str = "sink:1/public.orders", **changes: Any
) -> list[PlannedSlice]:
    return [
        PlannedSlice(
            **{
                "extent": KeyRange(lower=(str(number),), upper=(str(number + 1),)),
                "target": target,
                **changes,
            }
        )
        for number in range(count)
    ]


def dated_slices(days: Iterable[date], target: str = "destination:3/orders") -> list[PlannedSlice]:
    return [PlannedSlice(extent=Dated(date=day), target=f"{target}/{day}") for day in days]


def plan(store: Store, new: NewBackfill, slices: list[PlannedSlice]) -> CountedBackfill:
    """A backfill that is there and planned."""
    made = store.insert_backfill(new)
    claim = store.claim_plan("planner", 30)
    assert claim is not None
    assert claim.backfill.id == made.id
    return store.save_plan(claim, slices, rows_estimated=sum(s.rows_estimated for s in slices))


TRANSIENT = Fault(code="source_unavailable", message="it went away", transient=True)
TERMINAL = Fault(code="source_refused", message="it broke", transient=False)
AT_ONCE = RetryPolicy(max_failures=2, base_seconds=0.0, cap_seconds=0.0)

Outcomes = Callable[[ClaimedSlice], Receipt]


def done(claimed: ClaimedSlice, **changes: Any) -> Receipt:
    """Ten rows read and delivered."""
    return receipt(claimed, Outcome.DONE, rows_read=10, rows_delivered=10, seconds=0.5, **changes)


def failed(claimed: ClaimedSlice, **changes: Any) -> Receipt:
    return receipt(claimed, Outcome.FAILED, **{"fault": TERMINAL, **changes})


def stumbled(claimed: ClaimedSlice) -> Receipt:
    return receipt(claimed, Outcome.FAILED, fault=TRANSIENT)


def unstarted(claimed: ClaimedSlice) -> Receipt:
    return receipt(claimed, Outcome.UNSTARTED)


def receipt(claimed: ClaimedSlice, outcome: Outcome, **changes: Any) -> Receipt:
    part = claimed.slice
    return Receipt(slice_id=part.id, attempt=part.attempt, outcome=outcome, **changes)


def finish(store: Store, pack: Pack, outcome: Outcomes, policy: RetryPolicy = AT_ONCE) -> Finished:
    receipts = [outcome(claimed) for claimed in pack.slices]
    return store.finish_slices(pack.backfill.id, receipts, policy)


def run_all(store: Store, outcome: Outcomes = done, skip: Collection[int] = ()) -> None:
    """Claims and finishes until there is nothing more to claim."""
    while (pack := store.claim_pack("w", PackLimits(slots=1), 30)) is not None:
        assert pack.backfill.id not in skip
        finish(store, pack, outcome)
