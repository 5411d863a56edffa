"""What reading costs, type by type: the figures of docs/explanation/reading-postgres.md.

python -m tests.integration.postgres_source.measure [rows]
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psutil

from refill.connectors.postgres import values
from refill.connectors.postgres.connection import ArrowSession
from refill.domain.slice import Whole
from refill.domain.table import Column
from tests.integration.postgres_source.conftest import Bed
from tests.servers.postgres import running_postgres
from tests.specs import pg_column

_TABLE = """
CREATE TABLE bench AS SELECT i::bigint AS id, i::bigint * 7919 % 100000 AS customer,
    'customer ' || i AS name, 'user' || i || '@example.com' AS email,
    ((i % 1000000) / 100.0)::numeric(12,2) AS amount, i % 100 AS quantity,
    jsonb_build_object('k', i, 'tags', jsonb_build_array('a', 'b')) AS attributes,
    timestamptz '2024-01-01' + i * interval '1 second' AS created,
    timestamp '2024-01-01' + i * interval '1 second' AS updated,
    date '2024-01-01' + i % 365 AS day, md5(i::text)::uuid AS ref
FROM generate_series(1, {rows}) i
"""
_AMOUNT = pg_column(name="amount", type="numeric(12,2)", oid=1700, typmod=786438)
_REF = pg_column(name="ref", type="uuid", oid=2950)
_CREATED = pg_column(name="created", type="timestamptz", oid=1184)
_ALL = "id, customer, name, email, amount, quantity, attributes, created, updated, day, ref"

# (what, select list, columns that the converter makes of it; None: as the driver delivers)
CASES: tuple[tuple[str, str, tuple[Column, ...] | None], ...] = (
    ("bigint", "id", None),
    ("text", "name", None),
    ("numeric by the driver, as text", "amount", None),
    ("numeric::text", "amount::text", None),
    ("numeric::text made decimal in the task", "amount::text AS amount", (_AMOUNT,)),
    ("numeric::float8, inexact", "amount::float8", None),
    ("(numeric * 100)::int8", "(amount * 100)::int8", None),
    ("uuid, 16 bytes", "ref", None),
    ("uuid made text in the task", "ref", (_REF,)),
    ("uuid::text", "ref::text", None),
    ("jsonb", "attributes", None),
    ("jsonb::text", "attributes::text", None),
    ("timestamptz", "created", None),
    ("timestamptz, infinity looked for in the task", "created", (_CREATED,)),
    ("timestamptz, CASE isfinite", "CASE WHEN isfinite(created) THEN created END", None),
)


def main(rows: int) -> None:
    with running_postgres() as server:
        bed = Bed(server.create_database())
        bed.sql.execute(_TABLE.format(rows=rows).encode())
        bed.sql.execute("VACUUM ANALYZE bench")
        session = ArrowSession(bed.options, "measure", 8 * 1024 * 1024)
        _print("", "client", "server", "both")
        for what, select, columns in CASES:
            query = f"SELECT {select} FROM bench"
            _measure(bed, {what: ("refill measure", partial(_rows, session, query, columns))})
        read = bed.reading("bench")
        list(bed.source.read(read, Whole()))  # its connection is there when it is looked for
        query = f"SELECT {_ALL} FROM bench"
        _measure(
            bed,
            {
                "all eleven columns by the driver, inexact": (
                    "refill measure",
                    partial(_rows, session, query, None),
                ),
                "all eleven columns as refill reads them, exact": (
                    "refill reading",
                    lambda: (batch.num_rows for batch in bed.source.read(read, Whole())),
                ),
            },
        )
        session.close()
        bed.close()


def _rows(session: ArrowSession, query: str, columns: tuple[Column, ...] | None) -> Iterator[int]:
    converter = values.Converter(columns, "bench") if columns else None
    stream = session.query(query)
    for batch in stream.reader:
        yield (converter.convert(batch) if converter else batch).num_rows
    stream.close()


def _measure(bed: Bed, ways: dict[str, tuple[str, Callable[[], Any]]]) -> None:
    """The least of five passes, the ways in turn: CPU seconds here and in the server's process."""
    least: dict[str, tuple[float, float, float]] = {}
    for _ in range(5):
        for what, (application, read) in ways.items():
            backend = _backend(bed, application)
            server, client = _seconds(backend), time.process_time()
            sum(read())
            client, server = time.process_time() - client, _seconds(backend) - server
            found = (client + server, client, server)
            least[what] = min(least.get(what, found), found)
    for what, (both, client, server) in least.items():
        _print(what, f"{client:.2f}", f"{server:.2f}", f"{both:.2f}")


def _backend(bed: Bed, application: str) -> psutil.Process:
    found = bed.sql.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name = %s "
        "AND datname = current_database()",
        (application,),
    ).fetchone()
    assert found is not None
    return psutil.Process(found[0])


def _seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _print(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
