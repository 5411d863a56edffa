"""What goes wrong arrives as the vendor's client's own exceptions, with their fields."""

from pathlib import Path
from typing import Any

import pytest
from supermetrics.exceptions import (
    SupermetricsAPIError,
    SupermetricsAuthError,
    SupermetricsForbiddenError,
    SupermetricsNotFoundError,
    SupermetricsRateLimitError,
    SupermetricsServerError,
    SupermetricsValidationError,
)

from refill.domain.access import Scope
from refill.domain.errors import StoreBusy
from tests.acceptance.vendor_client.calling import SHORT, TEAM, Call, caller
from tests.integration.transfers.stage import Stage, running_stage


def test_errors_are_the_clients_own(
    stage: Stage, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    transfer = stage.make_transfer()

    def raised(kind: type[SupermetricsAPIError], name: str, *args: Any) -> SupermetricsAPIError:
        with pytest.raises(kind) as caught:
            call(name, *args)
        assert caught.value.request_id
        return caught.value

    error = raised(
        SupermetricsValidationError, "backfills.create", TEAM, transfer, *reversed(SHORT)
    )
    assert (error.status_code, error.error_code) == (422, "UNPROCESSABLE_ENTITY")
    assert "swap them" in error.message
    error = raised(SupermetricsNotFoundError, "backfills.create", TEAM, 999_999, *SHORT)
    assert (error.status_code, error.error_code) == (404, "NOT_FOUND")
    error = raised(SupermetricsNotFoundError, "backfills.get", TEAM, 999_999)
    assert error.error_code == "NOT_FOUND"
    error = raised(SupermetricsNotFoundError, "backfills.get", 2, 1)
    assert error.error_code == "NOT_FOUND"
    error = raised(SupermetricsNotFoundError, "backfills.get_latest", TEAM, transfer)
    assert error.error_code == "NOT_FOUND"
    error = raised(SupermetricsValidationError, "backfills.get", TEAM, 2**63)
    assert (error.status_code, error.error_code) == (400, "BAD_REQUEST")
    made = call("backfills.create", TEAM, transfer, *SHORT)
    error = raised(SupermetricsValidationError, "backfills.create", TEAM, transfer, *SHORT)
    assert f"Backfill {made.transfer_backfill_id} " in error.message
    call("backfills.cancel", TEAM, made.transfer_backfill_id)
    error = raised(SupermetricsValidationError, "backfills.cancel", TEAM, made.transfer_backfill_id)
    assert (error.status_code, error.error_code) == (422, "UNPROCESSABLE_ENTITY")

    def busy(*args: object, **options: object) -> None:
        raise StoreBusy("The store is locked; try again.")

    monkeypatch.setattr(stage.store, "list_backfills", busy)
    error = raised(SupermetricsServerError, "backfills.list_incomplete", TEAM)
    assert (error.status_code, error.error_code) == (503, "SERVICE_UNAVAILABLE")
    assert error.retry_after is not None


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_errors_of_keys(stage: Stage, colour: str) -> None:
    wrong = caller(stage, colour, "rf_0123456789ab_" + "a" * 43)
    with pytest.raises(SupermetricsAuthError) as unauthenticated:
        wrong("backfills.list_incomplete", TEAM)
    assert unauthenticated.value.error_code == "API_KEY_INVALID"
    reader = caller(stage, colour, stage.make_token(Scope.TRANSFERS_READ))
    assert reader("backfills.list_incomplete", TEAM) == []
    with pytest.raises(SupermetricsForbiddenError) as forbidden:
        reader("backfills.create", TEAM, 1, *SHORT)
    assert forbidden.value.error_code == "FORBIDDEN"


@pytest.mark.parametrize("colour", ["sync", "async"])
def test_the_rate_is_limited(tmp_path: Path, colour: str) -> None:
    with running_stage(tmp_path, rate_limit_per_hour=1) as stage:
        call = caller(stage, colour)
        call("backfills.list_incomplete", TEAM)
        with pytest.raises(SupermetricsRateLimitError) as limited:
            call("backfills.list_incomplete", TEAM)
        assert limited.value.error_code == "TOO_MANY_REQUESTS"
        assert limited.value.retry_after is not None
        assert 1 <= limited.value.retry_after <= 3600
