"""Bringing a store to the newest schema, from whatever is there."""

from pathlib import Path

import sqlalchemy as sa

from refill.domain.access import Role
from refill.domain.errors import Misconfigured
from refill.store.backend import Backend
from refill.store.tables import tallies, teams, users

HEAD = "0005"
LOCK = 0x7265_6669_6C6C  # the advisory lock that migrating processes queue for


def current(connection: sa.Connection) -> str | None:
    """The revision of the schema that is there; None: an empty store."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def migrate(backend: Backend) -> None:
    """One process does it; the others wait, and find it done."""
    with backend.read() as connection:
        if current(connection) == HEAD:
            return
    with backend.write() as connection:
        if backend.name == "postgresql":
            connection.execute(sa.text("SET LOCAL lock_timeout = '60s'"))
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        found = current(connection)
        if found is None:
            _create(connection)
        elif found != HEAD:
            upgrade(connection, found)
        if connection.execute(sa.select(teams.c.id).limit(1)).first() is None:
            _furnish(connection, backend.now(connection))


def _create(connection: sa.Connection) -> None:
    """An empty store gets the tables as they are now: what the migrations lead to, and sooner."""
    from refill.store.indexes import metadata

    there = set(sa.inspect(connection).get_table_names()) & set(metadata.tables)
    if there:
        raise Misconfigured(
            f"The store's database has a table {min(there)} that is not refill's; name an empty "
            "database, or a schema of its own by the user's search_path."
        )
    metadata.create_all(connection, checkfirst=False)
    version = sa.Table(
        "alembic_version",
        sa.MetaData(),
        sa.Column("version_num", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
    )
    version.create(connection)
    connection.execute(version.insert().values(version_num=HEAD))


def upgrade(connection: sa.Connection, found: str, to: str = HEAD) -> None:
    """By migrations; `found` is what is there."""
    # imported late: most starts find the schema as it should be, and need no alembic
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, to)
    except CommandError as error:
        raise Misconfigured(
            f"The store's schema is {found}, which this version of refill does not know: it was "
            "made by a newer one. Install that version."
        ) from error


def _furnish(connection: sa.Connection, now: int) -> None:
    team = connection.execute(
        teams.insert().values(name="default", created_at=now).returning(teams.c.id)
    ).scalar_one()
    connection.execute(
        users.insert().values(team_id=team, name="owner", role=Role.OWNER, created_at=now)
    )
    connection.execute(tallies.insert(), [{"name": "claims"}, {"name": "leases_lost"}])
