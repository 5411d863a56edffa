"""Size and keys of a table before anything is read: the catalogue and a sample, never a scan."""

import json
import math
from dataclasses import dataclass
from typing import Any

from refill.connectors.postgres import read as sql
from refill.connectors.postgres.native import NativeType, Pages
from refill.connectors.postgres.quoting import names, qualified
from refill.domain.errors import SourceRefused
from refill.domain.slice import KeyRange
from refill.domain.spec import KeyedRead
from refill.domain.table import Record, TableKind
from refill.planning.bounds import Bounds
from refill.planning.plan import PlannedExtent

PAGE_BYTES = 8192
SAMPLE_PAGES = 400  # a page of a table in key order is one key, not a hundred: pages count
SAMPLE_ROWS = 10_000
SAMPLED_KINDS = (TableKind.TABLE, TableKind.MATERIALIZED_VIEW)
GUESSED_KINDS = (TableKind.VIEW, TableKind.FOREIGN_TABLE)
CHEAP_COST = 5_000.0  # of an EXPLAIN: a few index probes, not a scan
SAMPLE_ENOUGH = 64  # keys; of a narrow range fewer may be met by chance
_INTEGER_STRIDE = "trunc(low + (high::numeric - low) * i / n)"
_INSTANT_STRIDE = "low + (high - low) * (i::float8 / n)"
# type → the i-th of n equal strides from low to high; infinities have none
STRIDES = {
    **dict.fromkeys((20, 21, 23), (_INTEGER_STRIDE, "low IS NOT NULL")),
    **dict.fromkeys((1114, 1184), (_INSTANT_STRIDE, "isfinite(low) AND isfinite(high)")),
    1082: ("low + ((high - low)::int8 * i / n)::int4", "isfinite(low) AND isfinite(high)"),
}

_LEAVES = """
WITH RECURSIVE tree(oid) AS (
    SELECT %(relation)s::regclass::oid
    UNION
    SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.oid
)
SELECT n.nspname::text, c.relname::text, c.relkind::text,
       c.reltuples::float8, c.relpages,
       CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid) ELSE 0 END,
       CASE WHEN c.relkind IN ('r', 'm') THEN pg_table_size(c.oid) ELSE 0 END
FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind NOT IN ('p', 'I')
ORDER BY c.oid
"""


class PageRange(Record):
    """A relation that is read by its pages: the table itself, or one of its partitions."""

    relation: str
    pages: int
    rows_estimated: int


class PageBounds(Bounds):
    pages: tuple[PageRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A relation that holds rows: the table itself, a partition, a child."""

    relation: str
    kind: str
    tuples: float  # -1: never analyzed
    pages_known: int
    bytes_main: int
    bytes_all: int

    @property
    def pages(self) -> int:
        return -(-self.bytes_main // PAGE_BYTES)

    def rows(self, rows_per_page: float | None) -> int:
        """The planner's way: the density it knew, times the pages there are now."""
        if self.kind == "f":
            return max(0, round(self.tuples))
        if self.tuples >= 0 and self.pages_known > 0:
            return round(self.tuples / self.pages_known * self.pages)
        return round((rows_per_page or 0) * self.pages)


def read_bounds(connection: Any, read: KeyedRead, boundaries_wanted: int) -> PageBounds:
    """Estimates, and a sample of keys in the database's own order."""
    relation = sql.relation_name(read)
    found = connection.execute(_LEAVES, {"relation": relation}).fetchall()
    leaves = [Leaf(qualified(schema, name), *values) for schema, name, *values in found]
    if not read.sort_columns and any(leaf.kind not in ("r", "m") for leaf in leaves):
        raise SourceRefused(
            f"{read.table.full_name} has no key and no pages of its own to read it by: "
            "give the backfill a sort_column."
        )
    per_page = _rows_per_page(connection, leaves)
    rows = sum(leaf.rows(per_page) for leaf in leaves)
    pages = sum(leaf.pages for leaf in leaves)
    size = sum(leaf.bytes_all for leaf in leaves)
    if read.table.kind in GUESSED_KINDS or read.start_position or read.end_position:
        planned, width = _explain(connection, _ranged(read, relation))
        if read.table.kind in GUESSED_KINDS:
            rows, size = planned, planned * width
        elif rows:
            size = round(size * min(1.0, planned / rows))
            rows = min(rows, planned)
    boundaries: tuple[tuple[str, ...], ...] = ()
    if read.sort_columns:
        boundaries = _boundaries(connection, read, relation, leaves, pages, boundaries_wanted)
    return PageBounds(
        rows_estimated=rows,
        bytes_estimated=size,
        boundaries=boundaries,
        may_have_nulls=_may_have_nulls(read),
        pages=tuple(
            PageRange(relation=leaf.relation, pages=leaf.pages, rows_estimated=leaf.rows(per_page))
            for leaf in leaves
            if leaf.kind in ("r", "m")
        ),
    )


def _rows_per_page(connection: Any, leaves: list[Leaf]) -> float | None:
    """How full a page is where nobody analyzed: counted in a few pages of the largest such leaf."""
    unknown = [
        leaf
        for leaf in leaves
        if leaf.pages and leaf.kind in ("r", "m") and (leaf.tuples < 0 or not leaf.pages_known)
    ]
    if not unknown:
        return None
    largest = max(unknown, key=lambda leaf: leaf.pages)
    probe = min(largest.pages, 8)
    # the last pages may be half empty, the first of a young table are its fullest
    count: int = connection.execute(
        f"SELECT count(*) FROM {largest.relation} WHERE ctid < '({probe},0)'::tid"
    ).fetchone()[0]
    return max(count, 1) / probe


def _boundaries(
    connection: Any,
    read: KeyedRead,
    relation: str,
    leaves: list[Leaf],
    pages: int,
    wanted: int,
) -> tuple[tuple[str, ...], ...]:
    if read.table.kind not in SAMPLED_KINDS or any(leaf.kind == "f" for leaf in leaves):
        return _strides(connection, read, relation, wanted)
    percent = min(100.0, 100.0 * SAMPLE_PAGES / max(pages, 1))
    sampled = _sample(connection, read, relation, percent, wanted)
    if percent < 100.0 and len(sampled) < SAMPLE_ENOUGH:
        return max(sampled, _strides(connection, read, relation, wanted), key=len)
    return sampled


def _sample(
    connection: Any, read: KeyedRead, relation: str, percent: float, wanted: int
) -> tuple[tuple[str, ...], ...]:
    """Quantiles of a random set of pages, sorted and made distinct where collations are known."""
    # names of our own, all through: a key column may be called `n`, and a text called like its
    # column would be what ORDER BY sorts by
    chosen = ", ".join(f"{name} AS k{i}" for i, name in enumerate(names(read.sort_columns)))
    keys = ", ".join(f"k{i}" for i in range(len(read.sort_columns)))
    texts = ", ".join(f"k{i}::text AS t{i}" for i in range(len(read.sort_columns)))
    rows = connection.execute(
        f"""
        WITH sample AS MATERIALIZED (
            SELECT {chosen} FROM {relation} TABLESAMPLE SYSTEM ({percent:.6f})
            {sql.where(_position_conditions(read))}
        ), thinned AS MATERIALIZED (
            SELECT {keys} FROM sample
            WHERE random() < {float(SAMPLE_ROWS)} / (SELECT count(*) + 1 FROM sample)
        ), numbered AS (
            SELECT {keys}, row_number() OVER (ORDER BY {keys}) AS n, count(*) OVER () AS total
            FROM thinned
        ), distinct_keys AS (
            SELECT DISTINCT ON ({keys}) {keys}
            FROM numbered WHERE n * {wanted} / total > (n - 1) * {wanted} / total
            ORDER BY {keys}
        )
        SELECT {texts} FROM distinct_keys ORDER BY {keys}
        """
    ).fetchall()
    return tuple(tuple(values) for values in rows)


def _strides(
    connection: Any, read: KeyedRead, relation: str, wanted: int
) -> tuple[tuple[str, ...], ...]:
    """Where pages cannot be sampled: equal strides of a number or a time, if its ends are cheap."""
    column = read.table.column(read.sort_columns[0])
    if len(read.sort_columns) != 1 or column is None or NativeType.of(column).oid not in STRIDES:
        return ()
    stride, has_ends = STRIDES[NativeType.of(column).oid]
    name = names(read.sort_columns)[0]
    within = sql.where(_position_conditions(read))
    ends = f"SELECT min({name}) AS low, max({name}) AS high FROM {relation}{within}"
    if _cost(connection, ends) > CHEAP_COST:
        return ()
    rows = connection.execute(
        f"""
        WITH ends AS ({ends}), strides AS (
            SELECT DISTINCT {stride} AS value
            FROM ends, (VALUES ({min(wanted, 1000)})) AS steps(n), generate_series(1, n - 1) AS i
            WHERE {has_ends}
        )
        SELECT value::text AS boundary FROM strides ORDER BY value
        """
    ).fetchall()
    return tuple((value,) for (value,) in rows)


def _position_conditions(read: KeyedRead) -> list[str]:
    """The key is not null, and within the start and the end that the backfill has."""
    start = None if read.start_position is None else (read.start_position,)
    end = None if read.end_position is None else (read.end_position,)
    extent = KeyRange(lower=start, upper=end, lower_inclusive=True)
    return sql.key_conditions(read, extent)


def _ranged(read: KeyedRead, relation: str) -> str:
    found = _position_conditions(read) if read.start_position or read.end_position else []
    return f"SELECT * FROM {relation}{sql.where(found)}"


def _may_have_nulls(read: KeyedRead) -> bool:
    columns = [read.table.column(name) for name in read.sort_columns]
    return any(column is None or column.nullable for column in columns)


def _plan(connection: Any, query: str) -> dict[str, Any]:
    found = connection.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchone()[0]
    plan: dict[str, Any] = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


def _explain(connection: Any, query: str) -> tuple[int, int]:
    """(rows, bytes per row) as the planner guesses them."""
    plan = _plan(connection, query)
    return int(plan["Plan Rows"]), int(plan["Plan Width"])


def _cost(connection: Any, query: str) -> float:
    return float(_plan(connection, query)["Total Cost"])


def cut_pages(bounds: PageBounds, wanted: int, snapshot: str | None) -> tuple[PlannedExtent, ...]:
    """Ranges of pages, for a table with no key: only under one snapshot that all slices share."""
    rows_total = sum(part.rows_estimated for part in bounds.pages)
    planned: list[PlannedExtent] = []
    for part in bounds.pages:
        share = part.rows_estimated / rows_total if rows_total else 0.0
        cuts = max(1, min(round(wanted * share), part.pages))
        edges = [part.pages * cut // cuts for cut in range(cuts)]
        for first, end in zip(edges, [*edges[1:], None], strict=True):
            pages = Pages(relation=part.relation, first_page=first, end_page=end, snapshot=snapshot)
            rows = math.ceil(part.rows_estimated / cuts)
            planned.append(PlannedExtent(extent=pages.extent(), rows_estimated=rows))
    return tuple(planned)
