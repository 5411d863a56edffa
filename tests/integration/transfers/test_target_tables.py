"""A table of a destination is one transfer's, and no other's."""

from typing import Any

import httpx

from tests.integration.transfers.stage import SETTINGS, Stage, answer, problems


def test_two_transfers_may_not_share_a_table(shared_stage: Stage, shared_api: httpx.Client) -> None:
    first = shared_stage.transfer_body()
    answer(shared_api.post("/transfers", json=first), 201)
    same = shared_stage.transfer_body(destination_id=first["destination_id"])
    assert problems(shared_api, same) == {"destination_table": "notUnique"}
    place = shared_stage.store.get_destination(1, first["destination_id"]).options["path"]
    twin = shared_stage.make_destination(fields={"path": place})
    through_a_twin = shared_stage.transfer_body(destination_id=twin)
    assert problems(shared_api, through_a_twin) == {"destination_table": "notUnique"}
    other_table = shared_stage.transfer_body(
        destination_id=twin, settings={**SETTINGS, "destination_table": "other"}
    )
    assert problems(shared_api, other_table) == {}


def test_two_transfers_may_not_share_a_table_by_two_names(
    shared_stage: Stage, shared_api: httpx.Client
) -> None:
    def to(table: str, **fields: Any) -> dict[str, Any]:
        reach = {"hostname": "db.example", "database": "copies", "username": "writer"}
        destination = shared_stage.make_destination(type="postgres", fields={**reach, **fields})
        return shared_stage.transfer_body(
            destination_id=destination, settings={**SETTINGS, "destination_table": table}
        )

    answer(shared_api.post("/transfers", json=to("visits")), 201)
    taken = {"destination_table": "notUnique"}
    assert problems(shared_api, to("visits", schema="public")) == taken
    assert problems(shared_api, to("public.visits", username="other")) == taken
    assert problems(shared_api, to("visits", schema="other")) == {}
    assert problems(shared_api, to("visits", database="elsewhere")) == {}


def test_a_table_that_a_backfill_still_writes_is_not_given_to_another_transfer(
    stage: Stage, api: httpx.Client
) -> None:
    body = stage.transfer_body()
    first = answer(api.post("/transfers", json=body), 201)["data"]["transfer_id"]
    backfill = stage.make_backfill(first)["transfer_backfill_id"]
    elsewhere = stage.transfer_body(
        destination_id=body["destination_id"],
        settings={**SETTINGS, "destination_table": "elsewhere"},
    )
    answer(api.put(f"/transfers/{first}", json=elsewhere))
    heir = stage.transfer_body(destination_id=body["destination_id"])
    refusal = answer(api.post("/transfers", json=heir), 422)
    assert f"backfill {backfill} of transfer {first} still writes" in str(refusal)

    stage.fail_plan("PostgreSQL refused the password.")
    answer(api.post("/transfers", json=heir), 201)
    refusal = answer(api.post(f"/backfills/{backfill}/retries"), 422)
    assert "by now" in refusal["error"]["description"]


def test_a_failed_backfill_of_a_deleted_transfer_is_over(stage: Stage, api: httpx.Client) -> None:
    transfer = stage.make_transfer()
    backfill = stage.make_backfill(transfer)["transfer_backfill_id"]
    stage.fail_plan("PostgreSQL refused the password.")
    api.delete(f"/transfers/{transfer}")
    assert answer(api.get(f"/backfills/{backfill}"))["data"]["status"] == "CANCELLED"
    answer(api.post(f"/backfills/{backfill}/retries"), 422)
