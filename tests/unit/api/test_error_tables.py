"""Every error of ours has an answer in both dialects."""

import inspect
import json

import pytest

from refill.api.errors import SINK_STATUSES, TRANSFER_ANSWERS, answer_error
from refill.domain import errors
from refill.domain.errors import Conflict, InUse, Invalid, Malformed, NotFound, RefillError

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, RefillError) and kind not in (RefillError, errors.Superseded)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_error_of_ours_is_unforeseen(kind: type[RefillError]) -> None:
    """Superseded is the worker's alone."""
    for table in (SINK_STATUSES, TRANSFER_ANSWERS):
        assert any(base in table for base in kind.__mro__[: kind.__mro__.index(RefillError)])


def test_a_conflict_stands_on_its_field() -> None:
    answer = answer_error("/api/sinks", Conflict("Taken.", field="name"))
    assert answer.status_code == 422
    assert json.loads(answer.body) == {
        "summary": "Taken.",
        "validation_errors": {"name": ["Taken."]},
        "code": "conflict",
    }


def test_what_is_in_use_is_409_for_transfers_and_422_for_sinks() -> None:
    assert answer_error("/v1/x", InUse("Used.")).status_code == 409
    assert answer_error("/api/x", InUse("Used.")).status_code == 422


def test_a_wrong_field_is_422_for_sinks_and_400_for_transfers() -> None:
    wrong = Malformed("n: is required", {"n": ["is required"]})
    assert answer_error("/api/x", wrong).status_code == 422
    assert answer_error("/v1/x", wrong).status_code == 400
    assert answer_error("/v1/x", Invalid("x: is not a known key")).status_code == 422


def test_long_descriptions_are_cut_for_transfers() -> None:
    body = json.loads(answer_error("/v1/x", Invalid("x" * 1000)).body)
    assert len(body["error"]["description"]) == 255


def test_nothing_of_what_was_looked_for_shows_in_a_404_of_transfers() -> None:
    one = json.loads(answer_error("/v1/x", NotFound("transfer", 5)).body)
    other = json.loads(answer_error("/v1/y", NotFound("backfill", 6)).body)
    assert one == other


def test_a_404_of_transfers_is_the_originals_own() -> None:
    path = "/v1/teams/1/transfers/7/backfills"
    for absent in (NotFound("transfer", 7), NotFound("team", 1)):
        assert json.loads(answer_error(path, absent).body)["error"] == {
            "code": "NOT_FOUND",
            "message": "Not Found",
            "description": (
                "The requested transfer could not be found or you do not have access to it."
            ),
        }
