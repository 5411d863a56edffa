"""What the contract suite needs to know of a system that is read: how to open it, and what is in
it. A bed is a subclass in `beds/`; the suite runs over every one of them."""

import pickle
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any, ClassVar

from refill.connectors.kit.contract import Connector, Source
from refill.connectors.kit.registry import load_connectors
from refill.domain.slice import Extent
from refill.domain.spec import KeyedRead
from refill.domain.table import Keyless
from refill.planning.freeze import freeze_keyed
from refill.planning.plan import PlanSettings, plan_table
from tests.contract.beds import Bed

ROWS = 1000
FIRST = date(2024, 1, 1)
SETTINGS = PlanSettings(smallest_slice_rows=100)

Row = tuple[int, date, str | None]  # id, day, extra


def rows_of(ids: Iterator[int] | range = range(ROWS)) -> Iterator[Row]:
    """What the table `rows` holds: a hundred rows a day, and a NULL here and there."""
    for number in ids:
        yield number, FIRST + timedelta(days=number // 100), None if number % 10 == 9 else "x"


def is_dated(bed: "type[SourceBed]") -> bool:
    return bed.dated


def is_keyed(bed: "type[SourceBed]") -> bool:
    return bed.keyed


def has_keyless(bed: "type[SourceBed]") -> bool:
    return bed.keyless_name is not None


def takes_queries(bed: "type[SourceBed]") -> bool:
    return bed.connector().query_dialect is not None


def takes_no_queries(bed: "type[SourceBed]") -> bool:
    return not takes_queries(bed)


def can_be_unreachable(bed: "type[SourceBed]") -> bool:
    return bed.unreachable is not SourceBed.unreachable


def can_refuse(bed: "type[SourceBed]") -> bool:
    return bed.refused is not SourceBed.refused


class SourceBed(Bed):
    """One source on a real system. Once started, it has a table `rows` with what `rows_of` says:
    `id`, an integer; `day`, a date; `extra`, a text that may be NULL."""

    schema_name: ClassVar[str] = "public"
    keyed: ClassVar[bool] = True  # `id` is the key of `rows`
    dated: ClassVar[bool] = True  # `day` is a date to the source too, not just a text
    # a table with the same rows and no key, where the system has such tables
    keyless_name: ClassVar[str | None] = None
    # for sources that take queries: id and extra of the rows of :date
    query: ClassVar[str] = ""

    @abstractmethod
    def start(self) -> None:
        """Makes the table, before the test."""

    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """Every option of the connector."""

    @abstractmethod
    def drop_column(self) -> None:
        """`rows` has no column `extra` any more."""

    @abstractmethod
    def drop_table(self) -> None:
        """There is no table `rows` any more."""

    def unreachable(self) -> Mapping[str, Any]:
        """Options that lead nowhere: SourceUnavailable. Overridden where there is such a thing."""
        raise NotImplementedError

    def refused(self) -> Mapping[str, Any]:
        """Options that the system refuses: SourceRefused. Overridden where it can refuse."""
        raise NotImplementedError

    @classmethod
    def connector(cls) -> Connector:
        return load_connectors()[cls.connector_type]

    # from here on nothing is meant to be overridden

    def open(self, options: Mapping[str, Any] | None = None) -> Source:
        connector = self.connector()
        assert connector.open_source is not None
        parsed = connector.options_model(**(self.options() if options is None else options))
        # as they travel to a task
        return connector.open_source(*pickle.loads(pickle.dumps((parsed, self.context))))

    def read(self, source: Source, name: str = "rows", **changes: Any) -> KeyedRead:
        """A table as a backfill freezes it, and as a worker gets it back from the store."""
        table = source.find_table(self.schema_name, name)
        assert table is not None
        frozen = freeze_keyed(KeyedRead(table=table, **changes), table)
        return KeyedRead.model_validate_json(frozen.model_dump_json())


def planned(source: Source, read: KeyedRead) -> list[Extent]:
    """The extents that a worker plans, as it gets them back from the store."""
    cut = not read.sort_columns and read.table.keyless is Keyless.CUT
    snapshot = source.hold_snapshot(read) if cut else None
    bounds = source.bounds(read, SETTINGS.boundaries_wanted)
    parts = plan_table(
        read, bounds, SETTINGS, lambda slices: source.cut(read, bounds, slices, snapshot)
    )
    return [type(part.extent).model_validate_json(part.extent.model_dump_json()) for part in parts]


def ids(batches: Iterator[Any]) -> list[int]:
    return [number for batch in batches for number in batch.column("id").to_pylist()]
