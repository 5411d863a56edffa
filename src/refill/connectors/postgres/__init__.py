"""PostgreSQL: a source, a sink and a destination. Cheap to import: drivers load when opened."""

from typing import TYPE_CHECKING

from refill.connectors.kit.contract import Connector, Context, Guarantee
from refill.connectors.postgres.options import PostgresOptions, transfer_target
from refill.domain.pipeline import Kind

if TYPE_CHECKING:
    from refill.connectors.kit.contract import Sink, Source


def open_source(options: PostgresOptions, context: Context) -> "Source":
    from refill.connectors.postgres.source import PostgresSource

    return PostgresSource(options, context)


def open_sink(options: PostgresOptions, context: Context) -> "Sink":
    from refill.connectors.postgres.sink import PostgresSink

    return PostgresSink(options, context)


def target_of(options: PostgresOptions, table: str) -> tuple[object, ...]:
    """`orders` without a schema and `orders` in the schema `public` are one table."""
    where = (options.hostname.lower(), options.port, options.database)
    return (*where, *transfer_target(options, table))


CONNECTOR = Connector(
    type="postgres",
    title="PostgreSQL",
    options_model=PostgresOptions,
    is_source=True,
    is_sink=True,
    is_destination=True,
    target_of=target_of,
    guarantee=Guarantee.REPLACE,
    guarantee_note="a slice is one transaction together with its receipt row",
    seals=frozenset(Kind),
    heavy_modules=(
        "adbc_driver_postgresql.dbapi",
        "refill.connectors.postgres.source",
        "refill.connectors.postgres.values",
    ),
    query_dialect="postgres",
    open_source=open_source,
    open_sink=open_sink,
)
