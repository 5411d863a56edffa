"""Transfers: what belongs to a date, one by one and many in one query."""

from datetime import date, timedelta

import pytest

from refill.domain.errors import Invalid, SourceChanged
from refill.domain.slice import Dated
from refill.domain.spec import DatedRead, QueryRead
from tests.integration.postgres_source.conftest import Bed

NEW_YEAR = date(2024, 1, 1)


def days(count: int, first: date = NEW_YEAR) -> list[date]:
    return [first + timedelta(days=day) for day in range(count)]


def dated_read(bed: Bed, column: str, timezone: str = "UTC") -> DatedRead:
    return DatedRead(
        table=bed.reading("events").table,
        columns=("id",),
        date_column=column,
        timezone=timezone,
    )


def read_dates(bed: Bed, read: DatedRead | QueryRead, dates: list[date]) -> dict[date, list[int]]:
    found = {
        day: [row["id"] for batch in batches for row in batch.to_pylist()]
        for day, batches in bed.source.read_dates(read, dates)
    }
    assert list(found) == dates
    return {day: sorted(numbers) for day, numbers in found.items()}


@pytest.fixture
def events(bed: Bed) -> Bed:
    """An event an hour for ten days, and some that have no date."""
    bed.sql.execute(
        "CREATE TABLE events (id integer PRIMARY KEY, at timestamptz, local timestamp, day date)"
    )
    bed.sql.execute(
        "INSERT INTO events SELECT n, at, at AT TIME ZONE 'UTC', (at AT TIME ZONE 'UTC')::date "
        "FROM generate_series(0, 239) n, "
        "LATERAL (SELECT timestamptz '2024-01-01 00:00+00' + n * interval '1 hour') AS t(at)"
    )
    bed.sql.execute("INSERT INTO events VALUES (-1), (-4)")
    for number, end in ((-2, "infinity"), (-3, "-infinity")):
        bed.sql.execute(f"INSERT INTO events VALUES ({number}, '{end}', '{end}', '{end}')")
    return bed


@pytest.mark.parametrize("column", ["at", "local", "day"])
def test_a_date_has_its_hours_and_no_others(events: Bed, column: str) -> None:
    read = dated_read(events, column)
    one_by_one = {
        day: sorted(row["id"] for row in events.rows(read, Dated(date=day))) for day in days(11)
    }
    assert one_by_one[NEW_YEAR] == list(range(24))
    assert one_by_one[date(2024, 1, 11)] == []
    assert read_dates(events, read, days(11)) == one_by_one
    assert read_dates(events, read, days(11)[::-1]) == one_by_one


def test_the_time_zone_says_which_instant_begins_a_date(events: Bed) -> None:
    read = dated_read(events, "at", "Asia/Kathmandu")  # 5:45 ahead
    found = read_dates(events, read, days(3))
    assert found[date(2024, 1, 2)] == list(range(19, 43))
    read = dated_read(events, "local", "Asia/Kathmandu")  # a timestamp has no zone
    assert read_dates(events, read, days(3))[date(2024, 1, 2)] == list(range(24, 48))


def test_dates_round_a_clock_change_meet_without_gap_or_overlap(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE events (id integer PRIMARY KEY, at timestamptz)")
    bed.sql.execute(
        "INSERT INTO events SELECT n, timestamptz '2018-02-16 00:00+00' + n * interval '10 min' "
        "FROM generate_series(0, 999) n"
    )
    read = dated_read(bed, "at", "America/Sao_Paulo")  # midnight came twice on 2018-02-18
    dates = days(9, date(2018, 2, 15))
    found = read_dates(bed, read, dates)
    alone = {d: sorted(r["id"] for r in bed.rows(read, Dated(date=d))) for d in dates}
    assert found == alone
    assert sorted(n for numbers in found.values() for n in numbers) == list(range(1000))


def test_dates_come_in_the_order_asked_with_gaps_and_repeats_of_direction(events: Bed) -> None:
    read = dated_read(events, "day")
    dates = [NEW_YEAR + timedelta(days=day) for day in (3, 2, 1, 5, 6, 7, 20, 0)]
    found = read_dates(events, read, dates)
    assert [len(found[day]) for day in dates] == [24, 24, 24, 24, 24, 24, 0, 24]


def test_a_date_that_nobody_reads_does_not_run_into_the_next(events: Bed) -> None:
    read = dated_read(events, "day")
    found = []
    for day, batches in events.source.read_dates(read, days(4)):
        if day.day % 2 == 0:
            found += [row["id"] for batch in batches for row in batch.to_pylist()]
    assert sorted(found) == [*range(24, 48), *range(72, 96)]


def test_many_batches_a_date_and_many_dates_a_batch(events: Bed) -> None:
    small = events.open()
    small._batch_bytes = 200
    read = dated_read(events, "at")
    counts = {
        day: sum(batch.num_rows for batch in batches)
        for day, batches in small.read_dates(read, days(10))
    }
    small.close()
    assert set(counts.values()) == {24}


def test_an_index_on_the_date_is_used(events: Bed) -> None:
    from refill.connectors.postgres.read import slice_query

    events.sql.execute("CREATE INDEX ON events (at)")
    events.sql.execute("SET enable_seqscan = off")
    query = slice_query(dated_read(events, "at", "Europe/Vienna"), Dated(date=NEW_YEAR))
    plan = "\n".join(row[0] for row in events.sql.execute(b"EXPLAIN " + query.encode()))
    assert "Index Cond" in plan


def query_read(bed: Bed, query: str) -> QueryRead:
    return QueryRead(query=query, fields=bed.source.describe_query(query))


def test_a_query_is_read_with_its_date_bound(events: Bed) -> None:
    query = """
        -- of :date, it's only a comment
        SELECT id, ':date' AS "a :date", day::date AS d, 1.10::numeric(4,2) AS n /* :date /* */ */
        FROM events WHERE day = :date OR day = CAST(:date AS date) - 1;  -- the end
    """
    read = query_read(events, query)
    events.source.check(read)
    found = read_dates(events, read, [NEW_YEAR, date(2024, 1, 2)])
    assert [len(numbers) for numbers in found.values()] == [24, 48]
    (row, *_) = events.rows(read, Dated(date=NEW_YEAR))
    assert row["a :date"] == ":date"
    assert str(events.source.schema(read).field("n").type) == "decimal128(5, 2)"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT * FROM nothing WHERE d = :date", "nothing"),
        ("SELECT 1 AS a, 2 AS a", "two columns named 'a'"),
        ("SELECT 1; DROP TABLE x", "multiple commands"),
        ("", "must be a SELECT"),
        ("SELECT", "must be a SELECT"),
    ],
)
def test_a_query_that_cannot_be_is_said_at_once(bed: Bed, query: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        bed.source.describe_query(query)


def test_a_query_that_returns_something_else_now(events: Bed) -> None:
    read = query_read(events, "SELECT * FROM events WHERE day = :date")
    events.sql.execute("ALTER TABLE events ALTER id TYPE bigint")
    with pytest.raises(SourceChanged, match="'id'"):
        events.source.check(read)
    with pytest.raises(SourceChanged, match="'id'"):
        events.rows(read, Dated(date=NEW_YEAR))


def test_a_query_cannot_write(events: Bed) -> None:
    read = query_read(events, "SELECT id FROM events WHERE day = :date")
    writing = read.model_copy(update={"query": "DELETE FROM events RETURNING id"})
    with pytest.raises(Exception, match=r"refused|syntax"):
        events.rows(writing, Dated(date=NEW_YEAR))
