"""Databases, endpoints, destinations, sinks and transfers."""

import dataclasses
import json
from datetime import timedelta

import pytest
import sqlalchemy as sa

from refill.domain.backfill import Status
from refill.domain.errors import Conflict, Invalid, Misconfigured, NotFound
from refill.store.port import Store
from refill.store.records import StoredCatalogue
from refill.store.tables import sinks
from tests.contract.store.conftest import Opener
from tests.contract.store.factories import (
    NOW,
    make_database,
    make_destination,
    make_endpoint,
    make_sink,
    make_table,
    make_transfer,
    new_sink_backfill,
    new_transfer_backfill,
)


def test_what_is_inserted_comes_back_equal_by_id_and_by_name(store: Store) -> None:
    database = store.insert_database(make_database())
    endpoint = store.insert_endpoint(make_endpoint())
    sink = store.insert_sink(make_sink(database.id))
    assert store.get_database(1, database.id) == store.get_database(1, "shop") == database
    assert store.get_endpoint(1, endpoint.id) == store.get_endpoint(1, "hook") == endpoint
    assert store.get_sink(1, sink.id) == store.get_sink(1, "orders-out") == sink
    assert store.list_sinks(1) == (sink,)
    assert store.list_endpoints(1) == (endpoint,)


def test_destinations_and_transfers_are_given_an_id(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    assert destination.id > 0
    assert transfer.id > 0
    assert store.get_destination(1, destination.id) == destination
    assert destination.options["password"] == "s3cret"
    assert store.get_transfer(1, transfer.id) == transfer
    assert transfer == make_transfer(database.id, destination.id, id=transfer.id)
    assert store.list_transfers(1) == (transfer,)
    assert store.list_destinations(1) == (destination,)


def test_an_id_wins_over_a_name_that_looks_like_it(store: Store) -> None:
    first = store.insert_database(make_database())
    store.insert_database(make_database(name=first.id))
    assert store.get_database(1, first.id) == first


def test_a_second_of_the_same_name_is_a_conflict_on_name(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    store.insert_endpoint(make_endpoint())
    store.insert_sink(make_sink(database.id))
    store.insert_transfer(make_transfer(database.id, destination.id))
    again = [
        lambda: store.insert_database(make_database()),
        lambda: store.insert_destination(make_destination()),
        lambda: store.insert_endpoint(make_endpoint()),
        lambda: store.insert_sink(make_sink(database.id)),
        lambda: store.insert_transfer(
            make_transfer(database.id, destination.id, destination_table="other")
        ),
    ]
    for insert in again:
        with pytest.raises(Conflict) as caught:
            insert()
        assert caught.value.field == "name"


def test_the_same_name_in_another_team_is_fine(store: Store) -> None:
    team = store.create_team("second")
    store.insert_database(make_database())
    other = store.insert_database(make_database(team_id=team.id))
    assert store.get_database(team.id, "shop") == other


def test_renaming_to_a_taken_name_is_a_conflict(store: Store) -> None:
    store.insert_database(make_database(name="a"))
    second = store.insert_database(make_database(name="b"))
    with pytest.raises(Conflict) as caught:
        store.update_database(dataclasses.replace(second, name="a"))
    assert caught.value.field == "name"


def test_another_teams_records_are_not_found(store: Store) -> None:
    team = store.create_team("second").id
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    sink = store.insert_sink(make_sink(database.id))
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    endpoint = store.insert_endpoint(make_endpoint())
    looks = [
        lambda: store.get_database(team, database.id),
        lambda: store.update_database(dataclasses.replace(database, team_id=team)),
        lambda: store.delete_database(team, database.id),
        lambda: store.get_destination(team, destination.id),
        lambda: store.update_destination(dataclasses.replace(destination, team_id=team)),
        lambda: store.delete_destination(team, destination.id),
        lambda: store.get_sink(team, sink.name),
        lambda: store.update_sink(dataclasses.replace(sink, team_id=team)),
        lambda: store.delete_sink(team, sink.id),
        lambda: store.get_transfer(team, transfer.id),
        lambda: store.update_transfer(dataclasses.replace(transfer, team_id=team)),
        lambda: store.delete_transfer(team, transfer.id),
        lambda: store.get_endpoint(team, endpoint.id),
        lambda: store.update_endpoint(dataclasses.replace(endpoint, team_id=team)),
        lambda: store.delete_endpoint(team, endpoint.id),
    ]
    for look in looks:
        with pytest.raises(NotFound):
            look()
    assert store.list_databases(team) == ()


def test_updates_are_kept(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    sink = store.insert_sink(make_sink(database.id))
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    endpoint = store.insert_endpoint(make_endpoint())
    later = NOW + timedelta(hours=1)
    changed = dataclasses.replace(sink, status="paused", transform="select 1", updated_at=later)
    assert store.update_sink(changed) == changed == store.get_sink(1, sink.id)
    moved = dataclasses.replace(transfer, paused=True, schedule=(), updated_at=later)
    assert store.update_transfer(moved) == moved
    mended = dataclasses.replace(destination, options={"password": "new"}, updated_at=later)
    assert store.update_destination(mended) == mended
    headed = dataclasses.replace(endpoint, encrypted_headers={}, updated_at=later)
    assert store.update_endpoint(headed) == headed


def test_a_sink_takes_its_backfills_along_to_its_new_name(store: Store) -> None:
    database = store.insert_database(make_database())
    sink = store.insert_sink(make_sink(database.id))
    other = store.insert_sink(make_sink(database.id, name="other"))
    own = store.insert_backfill(new_sink_backfill(pipeline_id=sink.id))
    others = store.insert_backfill(new_sink_backfill(pipeline_id=other.id, pipeline_name="other"))
    store.update_sink(dataclasses.replace(sink, name="renamed"))
    assert store.get_backfill(1, own.id).pipeline_name == "renamed"
    assert store.get_backfill(1, others.id) == others


def test_a_database_is_the_same_in_a_list_and_alone(store: Store) -> None:
    first = store.insert_database(make_database(name="a"))
    second = store.insert_database(make_database(name="b"))
    store.save_catalogue(second.id, [make_table("x"), make_table("y")], NOW)
    listed = store.list_databases(1)
    assert {database.name: database.tables_count for database in listed} == {"a": 0, "b": 2}
    for database in (first, second):
        assert store.get_database(1, database.id) in listed


def test_a_new_database_has_no_catalogue(store: Store) -> None:
    made = store.insert_database(make_database(tables_count=5, catalogue_at=NOW))
    assert (made.tables_count, made.catalogue_at) == (0, None)
    assert store.get_catalogue(made.id) == StoredCatalogue(tables=(), at=None)


def test_a_catalogue_is_read_as_it_was_saved(store: Store) -> None:
    database = store.insert_database(make_database())
    tables = (make_table("a"), make_table("b"))
    store.save_catalogue(database.id, tables, NOW)
    kept = store.get_database(1, database.id)
    assert (kept.tables_count, kept.catalogue_at) == (2, NOW)
    # whoever read the record before the catalogue was saved does not undo that
    renamed = store.update_database(dataclasses.replace(database, name="new"))
    assert (renamed.name, renamed.tables_count, renamed.catalogue_at) == ("new", 2, NOW)
    assert store.get_catalogue(database.id) == StoredCatalogue(tables=tables, at=NOW)
    store.save_catalogue(database.id, tables[:1], NOW)
    assert store.get_database(1, database.id).tables_count == 1


def test_a_database_that_is_not_there_has_no_catalogue(store: Store) -> None:
    with pytest.raises(NotFound):
        store.save_catalogue("nowhere", (), NOW)
    with pytest.raises(NotFound):
        store.get_catalogue("nowhere")


def test_a_database_in_use_cannot_be_deleted(store: Store) -> None:
    database = store.insert_database(make_database())
    sink = store.insert_sink(make_sink(database.id))
    with pytest.raises(Conflict):
        store.delete_database(1, database.id)
    store.delete_sink(1, sink.id)
    store.delete_database(1, database.id)
    with pytest.raises(NotFound):
        store.get_database(1, database.id)


def test_a_destination_in_use_cannot_be_deleted(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    with pytest.raises(Conflict):
        store.delete_destination(1, destination.id)
    store.delete_transfer(1, transfer.id)
    store.delete_destination(1, destination.id)
    assert store.list_destinations(1) == ()


def test_deleting_a_pipeline_cancels_its_active_backfills_and_keeps_them(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    sink = store.insert_sink(make_sink(database.id))
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    of_sink = store.insert_backfill(new_sink_backfill(pipeline_id=sink.id))
    of_transfer = store.insert_backfill(new_transfer_backfill(pipeline_id=str(transfer.id)))
    untouched = store.insert_backfill(new_sink_backfill(pipeline_id="another"))
    store.delete_sink(1, sink.id)
    store.delete_transfer(1, transfer.id)
    assert store.get_backfill(1, of_sink.id).status is Status.CANCELLED
    assert store.get_backfill(1, of_transfer.id).status is Status.CANCELLED
    assert store.get_backfill(1, untouched.id).status is Status.CREATED


def test_two_transfers_may_not_share_a_target_table(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    store.insert_transfer(make_transfer(database.id, destination.id))
    with pytest.raises(Conflict) as caught:
        store.insert_transfer(make_transfer(database.id, destination.id, name="other"))
    assert caught.value.field == "destination_table"


def test_a_pipeline_on_something_that_is_gone_is_a_conflict(store: Store) -> None:
    with pytest.raises(Conflict):
        store.insert_sink(make_sink("nowhere"))


def test_only_scheduled_transfers_that_are_not_paused_are_listed_for_firing(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())

    def insert(name: str, **changes: object) -> int:
        made = make_transfer(
            database.id, destination.id, name=name, destination_table=name, **changes
        )
        return store.insert_transfer(made).id

    fires = insert("fires")
    insert("paused", paused=True)
    insert("unscheduled", schedule=())
    assert [transfer.id for transfer in store.list_scheduled_transfers()] == [fires]


def test_a_schedule_fires_once(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    later = NOW + timedelta(days=1)
    assert store.mark_schedule_fired(transfer.id, NOW, None)
    assert not store.mark_schedule_fired(transfer.id, NOW, None)
    assert store.mark_schedule_fired(transfer.id, later, NOW)
    assert not store.mark_schedule_fired(transfer.id, later, NOW)
    assert store.get_transfer(1, transfer.id).schedule_fired_at == later


def test_a_schedule_that_is_another_one_counts_from_then_on(store: Store) -> None:
    database = store.insert_database(make_database())
    destination = store.insert_destination(make_destination())
    transfer = store.insert_transfer(make_transfer(database.id, destination.id))
    assert store.mark_schedule_fired(transfer.id, NOW, None)
    # somebody else's older copy does not undo that it fired
    assert store.update_transfer(transfer).schedule_fired_at == NOW
    later = NOW + timedelta(days=1)
    assert store.update_transfer(transfer, schedule_from=later).schedule_fired_at == later


def test_secrets_are_not_to_be_read_off_the_store(store: Store) -> None:
    database = store.insert_database(make_database())
    store.insert_destination(make_destination())
    store.insert_sink(make_sink(database.id))
    store.insert_endpoint(make_endpoint())
    with store._backend.read() as connection:  # type: ignore[attr-defined]
        for table in ("databases", "destinations", "sinks", "endpoints"):
            for row in connection.execute(sa.text(f"SELECT * FROM {table}")):
                assert "s3cret" not in repr(row)


def test_a_wrong_key_is_said_so(store: Store, opener: Opener) -> None:
    store.insert_database(make_database())
    with pytest.raises(Misconfigured, match="REFILL_SECRET_KEY"):
        opener(key="another key").get_database(1, "shop")


def test_a_sealed_value_copied_to_another_row_is_refused(store: Store) -> None:
    store.insert_database(make_database(name="a"))
    store.insert_database(make_database(name="b", options={"password": "other"}))
    with store._backend.write() as connection:  # type: ignore[attr-defined]
        connection.execute(
            sa.text(
                "UPDATE databases SET options = (SELECT options FROM databases WHERE name = 'a') "
                "WHERE name = 'b'"
            )
        )
    with pytest.raises(Misconfigured):
        store.get_database(1, "b")


def test_what_cannot_be_stored_is_invalid(store: Store) -> None:
    with pytest.raises(Invalid):
        store.get_transfer(1, 2**70)


def test_a_sink_from_before_there_was_a_choice_keeps_numbers(opener: Opener) -> None:
    store = opener()
    database = store.insert_database(make_database())
    sink = store.insert_sink(make_sink(database.id, routing="select 1 as key from source"))
    assert store.get_sink(1, sink.id).numeric_format == "string"
    with store._backend.write() as connection:  # type: ignore[attr-defined]
        (text,) = connection.execute(sa.select(sinks.c.definition)).one()
        before = {
            name: value
            for name, value in json.loads(text).items()
            if name not in ("numeric_format", "routing", "enrichment", "filter_sql", "message_path")
        }
        connection.execute(sinks.update().values(definition=json.dumps(before)))
    found = store.get_sink(1, sink.id)
    assert (found.numeric_format, found.routing, found.message_path) == ("number", None, None)
