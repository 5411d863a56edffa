"""Every kind of table: partitions, views, foreign tables, names of all sorts, no key, no rows."""

from typing import Any

import pytest

from refill.domain.errors import SourceChanged, SourceRefused
from refill.domain.slice import KeyRange, NullKeys, Whole
from refill.domain.spec import KeyedRead
from refill.domain.table import TableKind
from refill.planning.plan import PlanSettings
from tests.integration.postgres_source.conftest import Bed
from tests.servers.postgres import PostgresServer
from tests.specs import slices_of

_SMALL = PlanSettings(slots=2, smallest_slice_rows=100)


def read_all(bed: Bed, read: KeyedRead) -> tuple[int, list[dict[str, Any]]]:
    """(slices, rows), planned and read as a backfill does."""
    extents = slices_of(bed.source, read, _SMALL)
    return len(extents), [row for extent in extents for row in bed.rows(read, extent)]


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def test_partitions_are_sized_and_sampled_from_the_children(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE p (id bigint PRIMARY KEY, t text) PARTITION BY RANGE (id)")
    bed.sql.execute("CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (1000)")
    bed.sql.execute("CREATE TABLE p2 (t text, dropped int, id bigint NOT NULL)")
    bed.sql.execute("ALTER TABLE p2 DROP COLUMN dropped")
    bed.sql.execute("ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (1000) TO (MAXVALUE)")
    bed.sql.execute("INSERT INTO p SELECT i, i FROM generate_series(-500, 4499) i")
    read = bed.reading("p")
    assert (read.table.kind, read.sort_columns) == (TableKind.TABLE, ("id",))
    bounds = bed.source.bounds(read, 4096)
    assert 2500 < bounds.rows_estimated < 10_000
    assert bounds.bytes_estimated > 100_000
    slices, rows = read_all(bed, read)
    assert slices > 3
    assert numbers(rows) == list(range(-500, 4500))
    _, rows = read_all(bed, read.model_copy(update={"sort_columns": ()}))
    assert numbers(rows) == list(range(-500, 4500))


def test_a_parent_is_read_with_its_children_and_none_twice(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE parent (id integer)")
    bed.sql.execute("CREATE TABLE child (extra text) INHERITS (parent)")
    bed.sql.execute("INSERT INTO parent SELECT generate_series(0, 99)")
    bed.sql.execute("INSERT INTO child SELECT generate_series(100, 199)")
    _, rows = read_all(bed, bed.reading("parent"))
    assert numbers(rows) == list(range(200))


def test_the_key_of_a_parent_is_not_that_of_its_children(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE parent (id integer PRIMARY KEY, t text NOT NULL)")
    bed.sql.execute("CREATE TABLE child (extra text) INHERITS (parent)")
    bed.sql.execute("INSERT INTO parent SELECT i, 'own' FROM generate_series(0, 99) i")
    bed.sql.execute("INSERT INTO child SELECT i, 'below' FROM generate_series(50, 149) i")
    read = bed.reading("parent")
    assert read.table.key == ()
    assert all(column.nullable for column in read.table.columns)
    _, rows = read_all(bed, read)
    assert numbers(rows) == sorted([*range(100), *range(50, 150)])
    assert bed.source.bounds(bed.reading("parent", sort_columns=("t",)), 10).may_have_nulls
    bed.source.close()  # it holds the tables as they are
    bed.sql.execute("DROP TABLE child")
    assert bed.reading("parent").sort_columns == ("id",)


def test_a_view_is_sliced_by_a_sort_column_with_its_nulls(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE base (id integer PRIMARY KEY, t text)")
    bed.sql.execute("INSERT INTO base SELECT i, i FROM generate_series(1, 20000) i")
    bed.sql.execute("ANALYZE base")
    bed.sql.execute("CREATE VIEW v AS SELECT nullif(id, 0) AS odd, * FROM base WHERE id > 1")
    read = bed.reading("v", sort_columns=("id",))
    slices, rows = read_all(bed, read)
    assert slices > 2
    assert numbers(rows) == list(range(2, 20001))
    with pytest.raises(SourceRefused, match="give the backfill a sort_column"):
        read_all(bed, bed.reading("v"))


def test_a_materialized_view_is_read_by_its_unique_index_or_its_pages(bed: Bed) -> None:
    bed.sql.execute("CREATE MATERIALIZED VIEW m AS SELECT i AS id FROM generate_series(1, 999) i")
    _, rows = read_all(bed, bed.reading("m"))
    assert numbers(rows) == list(range(1, 1000))
    _, rows = read_all(bed, bed.reading("m", sort_columns=("id",)))
    assert numbers(rows) == list(range(1, 1000))
    bed.sql.execute("REFRESH MATERIALIZED VIEW m WITH NO DATA")
    with pytest.raises(SourceRefused, match="has not been populated"):
        bed.rows(bed.reading("m"), Whole())


@pytest.mark.usefixtures("with_contrib")
def test_a_foreign_table_alone_and_as_a_partition(bed: Bed, postgres: PostgresServer) -> None:
    bed.sql.execute("CREATE EXTENSION postgres_fdw")
    database = bed.options.database
    bed.sql.execute(
        "CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
        f"(host '{postgres.host}', port '{postgres.port}', dbname '{database}')"
    )
    bed.sql.execute(
        "CREATE USER MAPPING FOR postgres SERVER here OPTIONS (user 'postgres', password 'secret')"
    )
    bed.sql.execute("CREATE TABLE far (id integer PRIMARY KEY)")
    bed.sql.execute("INSERT INTO far SELECT generate_series(1, 500)")
    bed.sql.execute("CREATE FOREIGN TABLE near (id integer) SERVER here OPTIONS (table_name 'far')")
    _, rows = read_all(bed, bed.reading("near", sort_columns=("id",)))
    assert numbers(rows) == list(range(1, 501))
    bed.sql.execute("CREATE TABLE far_nulls (id integer)")
    bed.sql.execute("INSERT INTO far_nulls VALUES (1), (NULL)")
    bed.sql.execute(
        "CREATE FOREIGN TABLE declared (id integer NOT NULL) SERVER here "
        "OPTIONS (table_name 'far_nulls')"
    )
    declared = bed.reading("declared", sort_columns=("id",))
    assert bed.source.bounds(declared, 10).may_have_nulls
    if bed.sql.info.server_version < 170_000:  # later ones take what was declared for a fact
        _, rows = read_all(bed, declared)
        assert [row["id"] for row in rows] == [1, None]
    bed.sql.execute("CREATE TABLE mixed (id integer NOT NULL) PARTITION BY RANGE (id)")
    bed.sql.execute("CREATE TABLE low PARTITION OF mixed FOR VALUES FROM (MINVALUE) TO (1)")
    bed.sql.execute("INSERT INTO mixed VALUES (-1), (-2)")
    bed.sql.execute("ALTER FOREIGN TABLE near ALTER id SET NOT NULL")
    assert not bed.source.bounds(bed.reading("mixed", sort_columns=("id",)), 10).may_have_nulls
    bed.sql.execute("ALTER TABLE mixed ATTACH PARTITION near FOR VALUES FROM (1) TO (MAXVALUE)")
    assert bed.source.bounds(bed.reading("mixed", sort_columns=("id",)), 10).may_have_nulls
    _, rows = read_all(bed, bed.reading("mixed", sort_columns=("id",)))
    assert numbers(rows) == [-2, -1, *range(1, 501)]


def test_partitions_are_found_by_name_and_not_listed(bed: Bed) -> None:
    bed.sql.execute("CREATE SCHEMA parts")
    bed.sql.execute("CREATE TABLE logs (id integer, day date) PARTITION BY RANGE (day)")
    bed.sql.execute(
        "CREATE TABLE parts.logs_2026 PARTITION OF logs FOR VALUES FROM ('2026-01-01') "
        "TO ('2027-01-01') PARTITION BY RANGE (day)"
    )
    bed.sql.execute(
        "CREATE TABLE logs_2026_01 PARTITION OF parts.logs_2026 "
        "FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')"
    )
    assert [table.full_name for table in bed.source.catalogue()] == ["public.logs"]
    found = bed.source.find_table("public", "logs_2026_01")
    assert found is not None
    assert found.parents == ("parts.logs_2026", "public.logs")


def test_a_table_that_inherits_is_listed_with_those_above_it(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE places (id integer)")
    bed.sql.execute("CREATE TABLE cities (mayor text) INHERITS (places)")
    bed.sql.execute("CREATE TABLE capitals (country text) INHERITS (cities)")
    parents = {table.name: table.parents for table in bed.source.catalogue()}
    assert parents == {
        "places": (),
        "cities": ("public.places",),
        "capitals": ("public.cities", "public.places"),
    }


def test_names_of_every_sort(bed: Bed) -> None:
    names = [
        "select",
        'a"b',
        "Mixed Case",
        "ž 😀",
        "x" * 63,
        "a.b",
        "a'b",
        "%s",
        "{}",
        "n",
        ":date",
    ]
    bed.sql.execute('CREATE SCHEMA "Odd ""schema"', prepare=False)
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    columns = ", ".join(f"{name} integer NOT NULL DEFAULT 7" for name in quoted)
    for table in names:
        target = '"Odd ""schema".' + '"' + table.replace('"', '""') + '"'
        bed.sql.execute(
            f"CREATE TABLE {target} ({columns}, PRIMARY KEY ({quoted[0]}, {quoted[9]}))"
        )
        bed.sql.execute(f"INSERT INTO {target} DEFAULT VALUES")
        read = bed.reading(table, 'Odd "schema')
        assert read.sort_columns == ("select", "n")
        _, rows = read_all(bed, read)
        assert rows == [dict.fromkeys(names, 7)]
    found = bed.source.catalogue()
    assert {table.name for table in found} == set(names)


def test_sixteen_hundred_columns(bed: Bed) -> None:
    columns = ", ".join(f"c{number} smallint" for number in range(1600))
    bed.sql.execute(f"CREATE TABLE wide ({columns})")
    bed.sql.execute("INSERT INTO wide (c0, c1599) VALUES (1, 2)")
    (row,) = bed.rows(bed.reading("wide"), Whole())
    assert (len(row), row["c0"], row["c1"], row["c1599"]) == (1600, 1, None, 2)


def test_rows_of_sixteen_megabytes_come_in_batches_of_few(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE big (id integer PRIMARY KEY, t text, b bytea)")
    bed.sql.execute(
        "INSERT INTO big SELECT i, repeat(chr(96 + i), 16000000), decode(repeat('ff', 100), 'hex') "
        "FROM generate_series(1, 5) i"
    )
    batches = list(bed.source.read(bed.reading("big"), Whole()))
    assert [batch.num_rows for batch in batches] == [1] * 5
    texts = [batch.column("t")[0].as_py() for batch in batches]
    assert sorted(text[0] for text in texts) == list("abcde")
    assert {len(text) for text in texts} == {16_000_000}


def test_batches_are_bounded_however_many_rows_there_are(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE long (id integer PRIMARY KEY, t text)")
    bed.sql.execute("INSERT INTO long SELECT i, repeat('x', 1000) FROM generate_series(1, 30000) i")
    batches = list(bed.source.read(bed.reading("long"), Whole()))
    assert sum(batch.num_rows for batch in batches) == 30_000
    assert max(batch.nbytes for batch in batches) < 10_000_000


def test_an_empty_table_a_table_of_one_row_and_one_without_columns(bed: Bed) -> None:
    bed.sql.execute("CREATE UNLOGGED TABLE empty (id integer PRIMARY KEY)")
    assert read_all(bed, bed.reading("empty")) == (1, [])
    assert bed.source.bounds(bed.reading("empty"), 10).rows_estimated == 0
    bed.sql.execute("INSERT INTO empty VALUES (1)")
    assert read_all(bed, bed.reading("empty")) == (1, [{"id": 1}])
    bed.sql.execute("CREATE TABLE keyless (id integer)")
    assert read_all(bed, bed.reading("keyless")) == (1, [])


def test_generated_columns_are_read_and_dropped_ones_are_not(bed: Bed) -> None:
    bed.sql.execute(
        "CREATE TABLE made (id integer PRIMARY KEY, gone text, "
        "twice integer GENERATED ALWAYS AS (id * 2) STORED)"
    )
    bed.sql.execute("ALTER TABLE made DROP COLUMN gone")
    bed.sql.execute("INSERT INTO made VALUES (1)")
    assert bed.rows(bed.reading("made"), Whole()) == [{"id": 1, "twice": 2}]


@pytest.mark.parametrize("analyzed", [True, False])
def test_the_size_is_known_before_anyone_analyzed(bed: Bed, analyzed: bool) -> None:
    bed.sql.execute("CREATE TABLE young (id integer PRIMARY KEY, t text)")
    bed.sql.execute("ALTER TABLE young SET (autovacuum_enabled = false)")
    bed.sql.execute(
        "INSERT INTO young SELECT i, repeat('x', i % 50) FROM generate_series(1, 9999) i"
    )
    if analyzed:
        bed.sql.execute("ANALYZE young")
    bounds = bed.source.bounds(bed.reading("young"), 4096)
    assert 7000 < bounds.rows_estimated < 14_000


def test_skewed_keys_are_cut_where_the_rows_are(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE skewed (id bigint PRIMARY KEY)")
    bed.sql.execute("INSERT INTO skewed SELECT generate_series(1, 20000)")
    bed.sql.execute("INSERT INTO skewed VALUES (9223372036854775807), (-9223372036854775808)")
    read = bed.reading("skewed")
    sizes = [len(bed.rows(read, extent)) for extent in slices_of(bed.source, read, _SMALL)]
    assert sum(sizes) == 20_002
    assert len(sizes) > 4
    assert max(sizes) < 3 * (sum(sizes) / len(sizes))


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("bigint", "i - 300"),
        ("date", "date '2024-01-01' + i"),
        ("timestamptz", "timestamptz '2024-01-01' + i * interval '1 hour'"),
        ("timestamp", "timestamp '2024-01-01' + i * interval '1 hour'"),
    ],
)
def test_where_pages_cannot_be_sampled_numbers_and_times_are_cut_in_strides(
    bed: Bed, type_name: str, value: str
) -> None:
    bed.sql.execute(f"CREATE TABLE base (id integer, at {type_name} PRIMARY KEY)")
    bed.sql.execute(f"INSERT INTO base SELECT i, {value} FROM generate_series(1, 2000) i")
    bed.sql.execute("ANALYZE base")
    bed.sql.execute("CREATE VIEW v AS SELECT * FROM base")
    read = bed.reading("v", sort_columns=("at",), columns=("id",))
    assert len(bed.source.bounds(read, 100).boundaries) > 90
    _, rows = read_all(bed, read)
    assert numbers(rows) == list(range(1, 2001))


def test_a_narrow_range_of_a_large_table_is_still_cut(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE large (id integer PRIMARY KEY, t text)")
    bed.sql.execute("ALTER TABLE large ALTER t SET STORAGE PLAIN")
    bed.sql.execute("INSERT INTO large SELECT i, repeat('x', 2000) FROM generate_series(1, 8000) i")
    read = bed.reading("large", columns=("id",), start_position="4000", end_position="4400")
    bounds = bed.source.bounds(read, 4096)
    assert len(bounds.boundaries) >= 64
    _, rows = read_all(bed, read)
    assert numbers(rows) == list(range(4000, 4401))


def test_the_key_is_the_primary_key_else_a_whole_unique_index_over_not_null_columns(
    bed: Bed,
) -> None:
    bed.sql.execute("CREATE TABLE k (a integer, b integer NOT NULL, c integer NOT NULL, d text)")
    assert bed.reading("k").table.key == ()
    bed.sql.execute("CREATE UNIQUE INDEX ON k (a)")
    bed.sql.execute("CREATE UNIQUE INDEX ON k (b) WHERE c > 0")
    bed.sql.execute("CREATE UNIQUE INDEX ON k ((b + c))")
    bed.sql.execute("CREATE INDEX ON k (b)")
    assert bed.reading("k").table.key == ()
    bed.sql.execute("CREATE UNIQUE INDEX ON k (c, b) INCLUDE (d)")
    assert bed.reading("k").table.unique_key == ("c", "b")
    bed.sql.execute("ALTER TABLE k ADD PRIMARY KEY (b, a)")
    assert bed.reading("k").table.key == ("b", "a")
    assert bed.reading("k").table.unique_key == ()


def test_nulls_in_a_sort_column_are_in_the_rest_slice(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE s (id integer, at timestamptz)")
    bed.sql.execute("INSERT INTO s VALUES (1, 'infinity'), (2, NULL), (3, now())")
    read = bed.reading("s", sort_columns=("at",), columns=("id",))
    assert bed.source.bounds(read, 10).may_have_nulls
    assert numbers(bed.rows(read, KeyRange())) == [1, 3]
    assert numbers(bed.rows(read, NullKeys())) == [2]


def test_what_was_frozen_and_is_no_longer_so_is_said(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE c (id integer PRIMARY KEY, n numeric(12,2), t text)")
    bed.sql.execute("INSERT INTO c VALUES (1, 2, 'x')")
    read = bed.reading("c")
    bed.source.check(read)
    bed.sql.execute("ALTER TABLE c ADD COLUMN more integer")
    bed.source.check(read)
    assert bed.rows(read, Whole())[0].keys() == {"id", "n", "t"}
    bed.sql.execute("ALTER TABLE c ALTER n TYPE numeric(14,4)")
    for use in (bed.source.check, lambda read: bed.rows(read, Whole())):
        with pytest.raises(SourceChanged, match=r"Column 'n' of public\.c"):
            use(read)
    bed.sql.execute("ALTER TABLE c ALTER n TYPE numeric(12,2), ALTER id TYPE bigint")
    for use in (bed.source.check, lambda read: bed.rows(read, Whole())):
        with pytest.raises(SourceChanged, match=r"Column 'id' of public\.c"):
            use(read)
    bed.sql.execute("ALTER TABLE c ALTER id TYPE integer")
    bed.sql.execute("ALTER TABLE c RENAME t TO u")
    for use in (bed.source.check, lambda read: bed.rows(read, Whole())):
        with pytest.raises(SourceChanged, match="start a new backfill"):
            use(read)
    bed.sql.execute("DROP TABLE c")
    for use in (bed.source.check, lambda read: bed.rows(read, Whole())):
        with pytest.raises(SourceChanged, match=r"public\.c"):
            use(read)
