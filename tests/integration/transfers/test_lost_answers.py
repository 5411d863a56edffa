"""A POST whose answer never came, made again under its key."""

import httpx
import pytest

from tests.integration.transfers.stage import Stage, answer


def _die(*_: object) -> None:
    raise RuntimeError("killed")


@pytest.mark.parametrize("what", ["transfers", "destinations"])
def test_what_was_made_before_its_answer_was_lost_is_found_by_the_key(
    stage: Stage, api: httpx.Client, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    files = {"type": "files", "display_name": "lake", "fields": {"path": "lake"}}
    body = stage.transfer_body() if what == "transfers" else {**files, "auth_method": "none"}
    headers = {"Idempotency-Key": "once"}
    before = len(answer(api.get(f"/{what}"))["data"])
    with monkeypatch.context() as patched:
        patched.setattr(stage.store, "save_answer", _die)
        answer(api.post(f"/{what}", json=body, headers=headers), 500)
    another = {**body, "display_name": "another"}
    answer(api.post(f"/{what}", json=another, headers=headers), 422)
    made = answer(api.post(f"/{what}", json=body, headers=headers), 201)
    assert answer(api.post(f"/{what}", json=body, headers=headers), 201) == made
    assert len(answer(api.get(f"/{what}"))["data"]) == before + 1


def test_a_retry_whose_answer_was_lost_is_answered_again(
    stage: Stage, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    backfill = stage.make_backfill(stage.make_transfer())["transfer_backfill_id"]
    stage.fail_plan("PostgreSQL refused the password.")
    path, headers = f"/backfills/{backfill}/retries", {"Idempotency-Key": "once"}
    with monkeypatch.context() as patched:
        patched.setattr(stage.store, "save_answer", _die)
        answer(api.post(path, headers=headers), 500)
    assert answer(api.post(path, headers=headers))["data"]["status"] == "CREATED"
    answer(api.post(path, headers={"Idempotency-Key": "twice"}), 422)
