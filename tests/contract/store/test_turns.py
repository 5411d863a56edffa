"""Whose turn it is: teams first, then their backfills. Counted in claims, not in seconds."""

import pytest

from refill.store.port import Store
from refill.store.records import Pack, PackLimits
from tests.contract.store.factories import done, finish, key_slices, new_sink_backfill, plan

SLOTS = 2
ONE = PackLimits(max_slices=1, slots=SLOTS)


def queue(store: Store, team_id: int, backfills: int, slices: int = 2) -> None:
    for number in range(backfills):
        name = f"{team_id}-{number}"
        new = new_sink_backfill(team_id=team_id, pipeline_id=name)
        plan(store, new, key_slices(slices, target=name))


def claim(store: Store, limits: PackLimits = ONE) -> Pack:
    pack = store.claim_pack("w", limits, 30)
    assert pack is not None
    return pack


def end(store: Store, pack: Pack) -> None:
    finish(store, pack, done)


@pytest.fixture
def teams(store: Store) -> list[int]:
    return [1, *(store.create_team(f"team {number}").id for number in range(2, 11))]


def test_a_newcomers_first_slice_begins_within_two_slice_times_whatever_others_queued(
    store: Store, teams: list[int]
) -> None:
    *others, newcomer = teams
    for team in others:
        queue(store, team, backfills=8)
    running = [claim(store) for _ in range(SLOTS)]
    for _ in range(30):  # they are well under way
        end(store, running.pop(0))
        running.append(claim(store))
    queue(store, newcomer, backfills=1)

    claims = 0
    while all(pack.backfill.team_id != newcomer for pack in running):
        end(store, running.pop(0))
        running.append(claim(store))
        claims += 1
    assert claims <= 2 * SLOTS


def test_one_team_with_hundreds_of_backfills_gets_as_much_as_one_with_a_single_one(
    store: Store, teams: list[int]
) -> None:
    queue(store, teams[0], backfills=100, slices=1)
    queue(store, teams[1], backfills=1, slices=6)
    served = []
    for _ in range(12):
        pack = claim(store, PackLimits(max_slices=1, slots=1))
        served.append(pack.backfill.team_id)
        end(store, pack)
    assert served.count(teams[0]) == served.count(teams[1]) == 6


def test_no_team_gets_another_slot_while_one_waits_that_has_fewer(
    store: Store, teams: list[int]
) -> None:
    for team in teams[:3]:
        queue(store, team, backfills=6)
    served = [claim(store).backfill.team_id for _ in range(6)]
    assert {team: served.count(team) for team in teams[:3]} == dict.fromkeys(teams[:3], 2)


def test_a_team_of_weight_two_gets_twice_as_many_slots(store: Store, teams: list[int]) -> None:
    for team in teams[:2]:
        queue(store, team, backfills=9)
    weighed = PackLimits(max_slices=1, slots=SLOTS, weights={teams[1]: 2.0})
    served = [claim(store, weighed).backfill.team_id for _ in range(9)]
    assert (served.count(teams[0]), served.count(teams[1])) == (3, 6)


def test_teams_take_turns_at_planning(store: Store, teams: list[int]) -> None:
    for number in range(5):
        store.insert_backfill(new_sink_backfill(pipeline_id=str(number)))
    late = store.insert_backfill(new_sink_backfill(team_id=teams[1], pipeline_id="late"))
    first, second = (store.claim_plan("w", 30) for _ in range(2))
    assert first is not None
    assert second is not None
    assert second.backfill.id == late.id


def test_a_team_that_has_no_seat_left_is_passed_over(store: Store, teams: list[int]) -> None:
    store.insert_backfill(new_sink_backfill())
    assert store.claim_plan("w", 30, [1]) is None
    late = store.insert_backfill(new_sink_backfill(team_id=teams[1], pipeline_id="late"))
    claimed = store.claim_plan("w", 30, [1])
    assert claimed is not None
    assert claimed.backfill.id == late.id
