"""Migrating: from nothing, again, by many at once, and always to what the tables say."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from refill.domain.access import Role
from refill.domain.errors import Misconfigured
from refill.store import schema
from refill.store.indexes import metadata
from refill.store.port import Store
from tests.contract.store.conftest import Opener


def test_an_empty_store_gets_team_1_and_its_owner(empty_opener: Opener) -> None:
    store = empty_opener()
    store.migrate()
    assert [team.id for team in store.list_teams()] == [1]
    assert [(user.id, user.team_id, user.role) for user in store.list_users()] == [
        (1, 1, Role.OWNER)
    ]


def test_migrating_again_changes_nothing(store: Store) -> None:
    store.create_team("second")
    store.migrate()
    assert [team.name for team in store.list_teams()] == ["default", "second"]


def test_many_may_migrate_at_once(empty_opener: Opener) -> None:
    stores = [empty_opener() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda store: store.migrate(), stores))
    assert len(stores[0].list_teams()) == 1


def test_the_migrations_lead_to_what_an_empty_store_gets(empty_opener: Opener) -> None:
    """An empty store is made from the tables at once; one that has lived comes by migrations."""
    store = empty_opener()
    backend = store._backend  # type: ignore[attr-defined]
    with backend.engine.connect() as connection, connection.begin() as transaction:
        schema.upgrade(connection, "nothing")
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        by_migrations = _definitions(connection)
        transaction.rollback()
    store.migrate()
    with backend.read() as connection:
        assert _definitions(connection) == by_migrations
    assert {"backfills", "ix_slices_running_target", "alembic_version"} <= set(by_migrations)


def test_a_database_of_somebody_else_is_left_alone(empty_opener: Opener) -> None:
    store = empty_opener()
    backend = store._backend  # type: ignore[attr-defined]
    with backend.write() as connection:
        connection.execute(sa.text("CREATE TABLE teams (id BIGINT PRIMARY KEY, coach TEXT)"))
    with pytest.raises(Misconfigured, match="a table teams that is not refill's"):
        store.migrate()
    with backend.read() as connection:
        assert sa.inspect(connection).get_table_names() == ["teams"]


def test_the_newest_migration_is_the_one_that_is_looked_for() -> None:
    from pathlib import Path

    folder = Path(schema.__file__).parent / "migrations"
    assert ScriptDirectory(str(folder)).get_current_head() == schema.HEAD


def test_a_schema_of_a_newer_version_is_refused_with_a_sentence(empty_opener: Opener) -> None:
    store = empty_opener()
    store.migrate()
    with store._backend.write() as connection:  # type: ignore[attr-defined]
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Misconfigured, match="newer"):
        store.migrate()


def test_check_names_the_backend_and_the_schema(store: Store) -> None:
    answer = store.check()
    assert answer["backend"] in ("sqlite", "postgresql")
    assert answer["schema"] == schema.HEAD
    assert answer["version"]


def _definitions(connection: sa.Connection) -> dict[str, list[str]]:
    """Every table, constraint and index, as the database itself writes it down."""
    if connection.dialect.name == "sqlite":
        asked = "SELECT name, coalesce(sql, 'implied') FROM sqlite_master"
    else:
        asked = """
            SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()
            UNION ALL
            SELECT table_name, string_agg(concat_ws(' ', column_name, data_type, is_nullable,
                column_default, is_identity), ', ' ORDER BY ordinal_position)
            FROM information_schema.columns WHERE table_schema = current_schema() GROUP BY 1
            UNION ALL
            SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
            FROM pg_constraint WHERE connamespace = current_schema()::regnamespace"""
    found = connection.exec_driver_sql(asked)
    # the order of a table's constraints says nothing, nor does where its lines end
    return {name: sorted(re.findall(r"[()]|[^\s,()]+", text)) for name, text in found}
