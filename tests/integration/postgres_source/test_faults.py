"""What a person reads when it does not work; and no slice ends early as if it were whole."""

from datetime import date
from threading import Thread

import psycopg
import pytest

from refill.domain.errors import SourceRefused, SourceUnavailable
from refill.domain.slice import Whole
from refill.domain.spec import DatedRead
from tests.integration.postgres_source.conftest import Bed, options_of
from tests.servers.postgres import PostgresServer, free_port, running_postgres
from tests.specs import slices_of
from tests.waiting import until


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"password": "wrong"}, SourceRefused, "password authentication failed"),
        ({"username": "nobody"}, SourceRefused, "password authentication failed"),
        ({"database": "nowhere"}, SourceRefused, 'database "nowhere" does not exist'),
        ({"port": free_port()}, SourceUnavailable, "refused"),
        ({"hostname": "no-such-host.invalid"}, SourceUnavailable, "could not be resolved"),
        ({"hostname": "169.254.169.254"}, SourceRefused, "no server can be"),
        ({"ssl": True}, SourceRefused, "SSL"),
    ],
)
def test_one_sentence_for_each_way_a_connection_fails(
    bed: Bed, changes: dict[str, object], error: type[Exception], text: str
) -> None:
    source = bed.open(**changes)
    with pytest.raises(error, match=text) as caught:
        source.test()
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    first_error = caught.value
    bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    with pytest.raises(type(first_error)) as caught:
        list(source.read(bed.reading("t"), Whole()))
    assert "\n" not in str(caught.value)
    source.close()


def test_every_address_of_a_name_is_tried(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(None, None, None, "", (address, 0)) for address in ("127.0.0.9", "127.0.0.1")]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    source = bed.open(hostname="a-name", ssl=False)
    source.test()
    assert list(source.read(bed.reading("t"), Whole())) == []
    source.close()


def test_a_table_that_may_not_be_read_is_not_listed_and_is_refused(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE hidden (id integer PRIMARY KEY)")
    bed.sql.execute("CREATE TABLE half (id integer PRIMARY KEY, secret text)")
    role = f"reader_{bed.options.database}"
    bed.sql.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    bed.sql.execute(f"GRANT SELECT (id) ON half TO {role}")
    read = bed.reading("hidden")
    source = bed.open(username=role)
    assert [table.name for table in source.catalogue()] == ["half"]
    half = source.find_table("public", "half")
    assert half is not None
    assert [column.name for column in half.columns] == ["id"]
    assert source.find_table("public", "hidden") is None
    with pytest.raises(SourceRefused, match="permission denied"):
        list(source.read(read, Whole()))
    source.close()


def test_a_backend_that_is_terminated_in_mid_read_is_an_error_and_never_the_end(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY, t text)")
    bed.sql.execute("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) i")
    read = bed.reading("t")
    batches = bed.source.read(read, Whole())
    next(batches)
    bed.sql.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'refill reading' AND datname = current_database()"
    )
    with pytest.raises(SourceUnavailable, match=r"Could not read public\.t"):
        list(batches)
    assert sum(batch.num_rows for batch in bed.source.read(read, Whole())) == 100_000


def test_a_connection_cut_between_two_slices_is_opened_again(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY)")
    read = bed.reading("t")
    assert bed.rows(read, Whole()) == []
    bed.sql.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'refill reading' AND datname = current_database()"
    )
    assert bed.rows(read, Whole()) == []


def test_a_source_that_restarts_is_unavailable_and_then_works_again() -> None:
    with running_postgres() as server:
        bed = Bed(server.create_database())
        bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY)")
        bed.sql.execute("INSERT INTO t VALUES (1)")
        read = bed.reading("t")
        assert bed.rows(read, Whole()) == [{"id": 1}]
        server.stop()
        with pytest.raises(SourceUnavailable):
            bed.rows(read, Whole())
        with pytest.raises(SourceUnavailable):
            bed.source.bounds(read, 10)
        server.start()
        assert bed.rows(read, Whole()) == [{"id": 1}]
        bed.close()


def test_reading_no_further_stops_the_query_at_the_source(bed: Bed) -> None:
    bed.sql.execute(
        "CREATE VIEW endless AS SELECT generate_series(1, 2000000000) AS id, repeat('x', 1000) AS t"
    )
    batches = bed.source.read(bed.reading("endless"), Whole())
    next(batches)
    # whoever read to the end first would not come back
    closing = Thread(target=batches.close, daemon=True)  # type: ignore[attr-defined]
    closing.start()
    closing.join(30)
    assert not closing.is_alive()
    asked = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'refill reading' "
        "AND datname = current_database() AND state = 'active'"
    )
    until(lambda: bed.sql.execute(asked).fetchone() == (0,), "the end of the query", 5)


def backends_gone(bed: Bed) -> bool:
    found = bed.sql.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'refill reading' "
        "AND datname = current_database()"
    ).fetchone()
    return found == (0,)


def test_a_source_that_is_closed_in_mid_read_leaves_no_connection_behind(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY, day date, t text)")
    bed.sql.execute(
        "INSERT INTO t SELECT i, date '2024-01-01' + i % 2, repeat('x', 1000) "
        "FROM generate_series(1, 100000) i"
    )
    read = bed.reading("t")
    batches = bed.source.read(read, Whole())
    next(batches)
    bed.source.close()
    until(lambda: backends_gone(bed), "the end of a slice's connection", 5)

    dated = DatedRead(table=read.table, date_column="day")
    days = bed.source.read_dates(dated, [date(2024, 1, 1), date(2024, 1, 2)])
    next(next(days)[1])
    bed.source.close()
    until(lambda: backends_gone(bed), "the end of the dates' connection", 5)

    # what was left in the middle has no hold on a connection that was opened since
    again = bed.source.read(read, Whole())
    rows = next(again).num_rows
    batches.close()  # type: ignore[attr-defined]
    days.close()  # type: ignore[attr-defined]
    assert rows + sum(batch.num_rows for batch in again) == 100_000


def test_an_error_in_a_row_is_refused_with_what_the_database_says(bed: Bed) -> None:
    bed.sql.execute("CREATE VIEW v AS SELECT 1 / (5000 - i) AS id FROM generate_series(1, 9999) i")
    with pytest.raises(SourceRefused, match="division by zero"):
        bed.rows(bed.reading("v"), Whole())


def test_no_setting_of_the_role_or_the_database_reaches_into_a_value(bed: Bed) -> None:
    database = bed.options.database
    for name, value in [
        ("DateStyle", "SQL, DMY"),
        ("TimeZone", "Asia/Tokyo"),
        ("IntervalStyle", "iso_8601"),
        ("bytea_output", "escape"),
        ("extra_float_digits", "-10"),
        ("standard_conforming_strings", "off"),
        ("xmloption", "document"),
        ("default_transaction_isolation", "serializable"),
    ]:
        bed.sql.execute(f"ALTER DATABASE {database} SET {name} = '{value}'")
    bed.sql.execute("CREATE TABLE t (k text PRIMARY KEY, a text[], b timestamptz[], c float8[])")
    bed.sql.execute(
        "INSERT INTO t VALUES ('a\\b''c', '{x}', '{2024-02-01 00:00+00}', '{0.1234567890123456}')"
    )
    read = bed.reading("t")
    assert bed.source.bounds(read, 10).boundaries == (("a\\b'c",),)
    (row,) = bed.rows(read.model_copy(update={"start_position": "a\\b'c"}), Whole())
    assert row["b"] == '{"2024-02-01 00:00:00+00"}'
    assert row["c"] == "{0.1234567890123456}"


def test_rows_that_existed_throughout_are_never_missed_while_writers_write(bed: Bed) -> None:
    from refill.planning.plan import PlanSettings

    bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY, v integer NOT NULL)")
    bed.sql.execute("INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i")
    read = bed.reading("t")
    stop: list[bool] = []
    failures: list[BaseException] = []

    def write() -> None:
        try:
            with psycopg.connect(bed.url, autocommit=True) as connection:
                number = 0
                while not stop:
                    number += 1
                    connection.execute("UPDATE t SET v = v + 1 WHERE id %% 97 = %s", (number % 97,))
                    connection.execute("INSERT INTO t VALUES (%s, 0)", (20_005 + number,))
                    connection.execute("DELETE FROM t WHERE id = %s", (20_000 + number,))
        except BaseException as exc:
            failures.append(exc)

    writer = Thread(target=write)
    writer.start()
    try:
        extents = slices_of(bed.source, read, PlanSettings(smallest_slice_rows=500))
        rows = [row for extent in extents for row in bed.rows(read, extent)]
    finally:
        stop.append(True)
        writer.join()
    assert failures == []
    kept = [row["id"] for row in rows if row["id"] <= 20_000]
    assert sorted(kept) == list(range(1, 20_001))
    now = dict(bed.sql.execute("SELECT id, v FROM t").fetchall())
    assert all(0 <= row["v"] <= now[row["id"]] for row in rows if row["id"] <= 20_000)


def test_no_scan_begins_in_the_middle_of_a_table(bed: Bed) -> None:
    bed.sql.execute("CREATE VIEW v AS SELECT current_setting('synchronize_seqscans') AS joins")
    assert bed.rows(bed.reading("v"), Whole()) == [{"joins": "off"}]


def test_the_server_sees_who_reads(bed: Bed, postgres: PostgresServer) -> None:
    bed.sql.execute("CREATE VIEW me AS SELECT current_setting('application_name') AS name")
    assert bed.rows(bed.reading("me"), Whole()) == [{"name": "refill reading"}]
    assert options_of(bed.url).password.get_secret_value() == "secret"
    assert "secret" not in repr(options_of(bed.url))


def test_text_that_is_not_utf8_in_a_database_without_an_encoding_is_refused(
    postgres: PostgresServer,
) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE raw_bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        )
    bed = Bed(postgres.url("raw_bytes"))
    bed.sql.execute("CREATE TABLE t (id integer PRIMARY KEY, t text)")
    bed.sql.execute("INSERT INTO t VALUES (1, convert_from('\\xc5be', 'SQL_ASCII'))")
    assert bed.rows(bed.reading("t"), Whole()) == [{"id": 1, "t": "ž"}]
    bed.sql.execute("INSERT INTO t VALUES (2, convert_from('\\xe9', 'SQL_ASCII'))")
    with pytest.raises(SourceRefused, match="invalid byte sequence"):
        bed.rows(bed.reading("t"), Whole())
    bed.close()
