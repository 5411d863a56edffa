"""What a worker makes of a claimed backfill; planning that fails leaves nothing behind."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pytest

from refill.connectors.kit.contract import Connector, Context, Options, Source
from refill.domain.backfill import Backfill
from refill.domain.errors import Invalid, SinkRefused, SourceChanged
from refill.domain.pipeline import Kind
from refill.domain.slice import Dated, Extent, KeyRange, NativeExtent
from refill.domain.spec import KeyedRead, Read, Spec
from refill.domain.table import Column, Keyless, Table
from refill.packs.pool import Pool
from refill.planning.bounds import Bounds
from refill.planning.plan import PlannedExtent, PlanSettings
from refill.store.records import BackfillClaim, PlannedSlice
from refill.worker.ends import Ends
from refill.worker.planner import Planner
from refill.worker.snapshots import Snapshots
from tests.specs import NO_TABLE, build_spec, pg_column

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = (date(2026, 1, 2), date(2026, 1, 1))
COLUMNS = (
    pg_column(name="id", type="bigint", oid=20, not_null=True),
    pg_column(name="day", type="date", oid=1082),
)
KEYED = Table(schema_name="public", name="t", columns=COLUMNS, primary_key=("id",))
HEAP = Table(schema_name="public", name="t", columns=COLUMNS, keyless=Keyless.CUT)
DOCUMENT = HEAP.model_copy(update={"keyless": Keyless.WHOLE})


class ShopOptions(Options):
    host: str


class Shop(Source):
    """A source of one table, public.t, with a thousand rows."""

    def __init__(self, table: Table | None = None, gone: bool = False) -> None:
        self._table = table
        self._gone = gone
        self.closed = False

    def test(self) -> None: ...

    def catalogue(self) -> tuple[Table, ...]:
        return ()

    def find_table(self, schema: str, name: str) -> Table | None:
        return self._table if (schema, name) == ("public", "t") else None

    def describe_query(self, query: str) -> tuple[Column, ...]:
        return COLUMNS

    def check(self, read: Read) -> None:
        if self._gone:
            raise SourceChanged("A column of public.t is gone.")

    def bounds(self, read: KeyedRead, boundaries_wanted: int) -> Bounds:
        return Bounds(rows_estimated=1000, boundaries=(("10",), ("20",), ("30",)))

    def cut(
        self, read: KeyedRead, bounds: Bounds, slices: int, snapshot: str | None
    ) -> tuple[PlannedExtent, ...]:
        part = NativeExtent(label="part", native={"of": slices, "snapshot": snapshot})
        return (PlannedExtent(extent=part, rows_estimated=bounds.rows_estimated),)

    def schema(self, read: Read) -> Any: ...

    def read(self, read: Read, extent: Extent) -> Iterator[Any]:
        raise AssertionError("nothing is read while it is planned")

    def hold_snapshot(self, read: KeyedRead) -> str | None:
        return "00000003-1"

    def close(self) -> None:
        self.closed = True


class Office:
    """A planner with its source beside it, and what came of its work, in order."""

    def __init__(self, source: Shop, settings: PlanSettings | None = None) -> None:
        self.source = source
        self.snapshots = Snapshots()
        self.hosts: list[str] = []
        self.prepared: list[Spec] = []
        self.saved: list[tuple[list[PlannedSlice], int, Spec | None]] = []
        self.refuses = False
        self._settings = settings or PlanSettings(slots=1, smallest_slice_rows=250)

    def plan(self, spec: Spec) -> int:
        """As a worker would, of a backfill with this spec."""
        backfill = Backfill(
            id=7,
            uid="u",
            team_id=1,
            kind=spec.kind,
            pipeline_id="s",
            pipeline_name="s",
            spec=spec,
            created_at=NOW,
            updated_at=NOW,
        )
        claim = BackfillClaim(backfill=backfill, attempt=1, failures=0)
        pool = Pool()
        itself: Any = self
        planner = Planner(
            store=itself,
            ends=itself,
            pool=pool,
            prepared=itself,
            snapshots=self.snapshots,
            settings=self._settings,
        )
        try:
            return planner.plan(claim, lambda save: save())
        finally:
            pool.close()

    def find(self, backfill: Backfill) -> Ends:
        def open_source(options: ShopOptions, context: Context) -> Source:
            self.hosts.append(options.host)
            return self.source

        shop = Connector(
            type="shop", title="Shop", options_model=ShopOptions, open_source=open_source
        )
        return Ends(
            source=shop,
            source_options={"host": "h"},
            sink=shop,
            sink_options={},
            context=Context(team_id=1, files_root="/nowhere"),
        )

    def ensure(self, backfill: Backfill, ends: Ends) -> None:
        if self.refuses:
            raise SinkRefused("There is no such topic.")
        self.prepared.append(backfill.spec)

    def save_plan(
        self,
        claim: BackfillClaim,
        slices: list[PlannedSlice],
        *,
        rows_estimated: int,
        spec: Spec | None,
    ) -> Backfill:
        assert self.prepared, "the sink comes first: nothing is claimed of what it refuses"
        self.saved.append((slices, rows_estimated, spec))
        return claim.backfill


def keyed(table: Table = KEYED, **changes: Any) -> Spec:
    sort_columns = () if table.columns == () else table.key
    return build_spec(**{"table": table, "sort_columns": sort_columns, **changes})


def dated(**changes: Any) -> Spec:
    return build_spec(
        Kind.TRANSFER, **{"dates": DAYS, "destination_id": 3, "destination_table": "out", **changes}
    )


def test_a_table_becomes_slices_that_write_to_one_target() -> None:
    office = Office(Shop(KEYED))
    assert office.plan(keyed()) == 4
    ((slices, rows_estimated, spec),) = office.saved
    assert [part.extent for part in slices] == [
        KeyRange(upper=("10",)),
        KeyRange(lower=("10",), upper=("20",)),
        KeyRange(lower=("20",), upper=("30",)),
        KeyRange(lower=("30",)),
    ]
    assert {(part.target, part.rows_estimated) for part in slices} == {("sink:s/public.t", 250)}
    assert rows_estimated == 1000
    assert spec is None  # as it was frozen
    assert office.prepared == [keyed()]


def test_dates_become_slices_with_a_target_each() -> None:
    office = Office(Shop())
    assert office.plan(dated(table=KEYED)) == 2
    ((slices, rows_estimated, _),) = office.saved
    assert slices == [
        PlannedSlice(extent=Dated(date=day), target=f"destination:3/out/{day}") for day in DAYS
    ]
    assert rows_estimated == 0


def test_a_backfill_that_is_held_back_is_planned_in_shorter_slices() -> None:
    office = Office(Shop(KEYED), PlanSettings(slots=1))
    assert office.plan(keyed()) == 1
    assert office.plan(keyed(max_rows_per_second=100)) == 2


def test_what_has_no_key_is_cut_under_a_snapshot_that_is_kept() -> None:
    office = Office(Shop(HEAP))
    office.plan(keyed(HEAP))
    (((part,), _, _),) = office.saved
    assert part.extent == NativeExtent(label="part", native={"of": 4, "snapshot": "00000003-1"})
    assert office.snapshots.held() == [7]
    assert office.hosts == ["h", "h"]  # a connection of its own, which stays open


@pytest.mark.parametrize(
    ("table", "changes"), [(KEYED, {}), (DOCUMENT, {}), (HEAP, {"sort_columns": ("id",)})]
)
def test_what_is_read_by_a_key_or_whole_holds_no_snapshot(
    table: Table, changes: dict[str, Any]
) -> None:
    office = Office(Shop(table))
    office.plan(keyed(table, **changes))
    assert office.snapshots.held() == []
    assert len(office.hosts) == 1


def test_a_snapshot_is_let_go_when_the_plan_fails_after_it() -> None:
    office = Office(Shop(HEAP))
    office.refuses = True
    with pytest.raises(SinkRefused):
        office.plan(keyed(HEAP))
    assert office.snapshots.held() == []
    assert office.source.closed
    assert office.saved == []


def test_what_is_no_longer_as_it_was_frozen_is_not_planned() -> None:
    office = Office(Shop(KEYED, gone=True))
    with pytest.raises(SourceChanged):
        office.plan(keyed())
    assert office.saved == []


@pytest.mark.parametrize(
    ("spec", "update"),
    [
        (keyed(NO_TABLE), {"table": KEYED, "columns": ("id", "day"), "sort_columns": ("id",)}),
        (dated(), {"table": KEYED, "columns": ("id", "day")}),
        (dated(query="select 1"), {"fields": COLUMNS}),
    ],
)
def test_what_could_not_be_frozen_at_submission_is_frozen_by_the_plan(
    spec: Spec, update: dict[str, Any]
) -> None:
    office = Office(Shop(KEYED))
    office.plan(spec)
    frozen = spec.model_copy(update={"read": spec.read.model_copy(update=update)})
    ((_, _, saved),) = office.saved
    assert saved == frozen
    assert office.prepared == [frozen]


def test_a_table_that_is_not_there_is_not_planned() -> None:
    with pytest.raises(SourceChanged, match=r"no table public\.t"):
        Office(Shop(None)).plan(keyed(NO_TABLE))


def test_a_filter_that_could_not_be_checked_at_submission_is_checked_by_the_plan() -> None:
    condition = {"column_name": "nope", "operator": "is null"}
    with pytest.raises(Invalid, match="no column 'nope'"):
        Office(Shop(KEYED)).plan(keyed(NO_TABLE, filter=(condition,)))


def test_a_date_column_that_is_not_there_is_told() -> None:
    with pytest.raises(SourceChanged, match="no column at"):
        Office(Shop(KEYED)).plan(dated(date_column="at"))
