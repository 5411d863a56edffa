"""Migrating: from nothing, again, by many at once, and always to what the tables say."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from refill.domain.access import Role
from refill.domain.errors import Misconfigured
from refill.store import schema
from refill.store.port import Store
from refill.store.tables import metadata
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


def test_the_migrations_lead_to_what_the_tables_say(store: Store) -> None:
    with store._backend.read() as connection:  # type: ignore[attr-defined]
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


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
