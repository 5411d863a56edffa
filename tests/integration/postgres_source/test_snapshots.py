"""A table without a key is read by its pages: under one snapshot, and held still meanwhile."""

from threading import Thread

import psycopg
import pytest

from refill.connectors.postgres import source
from refill.domain.errors import SnapshotLost, SourceUnavailable
from refill.domain.slice import Extent
from refill.domain.spec import KeyedRead
from refill.planning.plan import PlanSettings
from tests.integration.postgres_source.conftest import Bed
from tests.waiting import until

_SMALL = PlanSettings(slots=2, smallest_slice_rows=100)


def pages_under(bed: Bed, read: KeyedRead, snapshot: str) -> list[Extent]:
    bounds = bed.source.bounds(read, 10)
    planned = bed.source.cut(read, bounds, _SMALL.slices_wanted(bounds), snapshot)
    return [part.extent for part in planned]


def test_a_table_without_a_key_is_read_as_it_was_when_the_snapshot_was_taken(bed: Bed) -> None:
    bed.sql.execute("CREATE TABLE heap (id integer)")
    bed.sql.execute("INSERT INTO heap SELECT generate_series(1, 5000)")
    read = bed.reading("heap")
    snapshot = bed.source.hold_snapshot(read)
    assert snapshot is not None
    bed.sql.execute("UPDATE heap SET id = -id")
    bed.sql.execute("DELETE FROM heap WHERE id < -4000")
    extents = pages_under(bed, read, snapshot)
    rows = [row for extent in extents for row in bed.rows(read, extent)]
    assert sorted(row["id"] for row in rows) == list(range(1, 5001))
    other = bed.open()
    bed.source.close()
    with pytest.raises(SnapshotLost, match="Start a new backfill"):
        list(other.read(read, extents[0]))
    other.close()


@pytest.mark.parametrize("statement", ["TRUNCATE {}", "VACUUM FULL {}"])
@pytest.mark.parametrize("held", ["heap", "parts"])
def test_a_table_that_is_read_by_its_pages_cannot_be_rewritten_meanwhile(
    bed: Bed, statement: str, held: str
) -> None:
    bed.sql.execute("CREATE TABLE heap (id integer)")
    bed.sql.execute("CREATE TABLE parts (id integer) PARTITION BY RANGE (id)")
    bed.sql.execute("CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10)")
    rewrite = statement.format({"heap": "heap", "parts": "part"}[held])
    bed.source.hold_snapshot(bed.reading(held))
    bed.sql.execute("SET lock_timeout = '200ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        bed.sql.execute(rewrite)
    bed.source.close()
    bed.sql.execute("SET lock_timeout = '10s'")
    bed.sql.execute(rewrite)


def test_a_table_that_is_being_rewritten_is_worth_another_try(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LOCK_TIMEOUT", "200ms")
    bed.sql.execute("CREATE TABLE heap (id integer)")
    read = bed.reading("heap")
    bed.sql.execute("BEGIN")
    bed.sql.execute("TRUNCATE heap")
    with pytest.raises(SourceUnavailable, match=r"a snapshot of public\.heap: .*lock timeout"):
        bed.source.hold_snapshot(read)
    bed.sql.execute("COMMIT")
    assert bed.source.hold_snapshot(read) is not None


def test_a_slice_does_not_wait_for_ever_behind_somebody_who_waits_for_the_table(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LOCK_TIMEOUT", "200ms")
    bed.sql.execute("CREATE TABLE heap (id integer)")
    bed.sql.execute("INSERT INTO heap VALUES (1)")
    read = bed.reading("heap")
    snapshot = bed.source.hold_snapshot(read)
    assert snapshot is not None
    (extent,) = pages_under(bed, read, snapshot)

    def rewrite() -> None:
        with psycopg.connect(bed.url, autocommit=True) as connection:
            connection.execute("TRUNCATE heap")

    waiter = Thread(target=rewrite, daemon=True)
    waiter.start()
    asked = "SELECT count(*) FROM pg_locks WHERE relation = 'heap'::regclass AND NOT granted"
    until(lambda: bed.sql.execute(asked).fetchone() == (1,), "somebody who waits", 10)
    with pytest.raises(SourceUnavailable, match=r"Could not read public\.heap: .*lock timeout"):
        bed.rows(read, extent)
    bed.source.close()
    waiter.join(10)
    assert not waiter.is_alive()
