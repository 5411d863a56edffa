"""Ids."""

import uuid

from refill.service.identity import is_repeatable, is_uid, new_uid, repeatable_uid


def test_new_ids_are_version_seven_and_sort_by_time() -> None:
    made = [new_uid() for _ in range(3)]
    assert len(set(made)) == 3
    assert all(uuid.UUID(uid).version == 7 for uid in made)
    assert all(uuid.UUID(uid).variant == uuid.RFC_4122 for uid in made)
    assert made[0][:8] <= made[2][:8]


def test_the_same_request_gives_the_same_id() -> None:
    first = repeatable_uid(1, "POST /api/sinks", "key")
    assert first == repeatable_uid(1, "POST /api/sinks", "key")
    assert first != repeatable_uid(2, "POST /api/sinks", "key")
    assert first != repeatable_uid(1, "POST /api/sinks", "other")
    assert is_repeatable(first)
    assert not is_repeatable(new_uid())


def test_what_is_no_uuid_is_told_apart() -> None:
    assert is_uid("01A1E13F-585f-7f58-98a6-ea13c0675731")
    assert not is_uid("{01a1e13f-585f-7f58-98a6-ea13c0675731}")
    assert not is_uid("01a1e13f585f7f5898a6ea13c0675731")
    assert not is_uid("orders")
