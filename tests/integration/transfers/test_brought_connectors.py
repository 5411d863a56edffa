"""Destinations of a connector that is none of ours: what it declares is all that is known of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from refill.connectors.kit.contract import Connector, Context, Options, Reference, Sink
from refill.domain.errors import SinkRefused
from refill.domain.stored import Stored
from tests.contract.store.factories import make_destination
from tests.integration.transfers.stage import Stage, answer, running_stage

ENDPOINTS = "/api/destinations/http_endpoints"


class PigeonOptions(Options):
    loft: str | None = None
    address: str | None = None
    rings: str = ""


class PigeonSink(Sink):
    def __init__(self, options: PigeonOptions, context: Context) -> None:
        self._options = options

    def test(self) -> None:
        raise SinkRefused(f"No pigeon flies to {self._options.address}.")

    def write(self, *_: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None: ...


PIGEON = Connector(
    type="pigeon",
    title="Pigeon",
    options_model=PigeonOptions,
    is_destination=True,
    references={
        "loft": Reference(
            to=Stored.HTTP_ENDPOINT,
            merge=lambda options, loft: {**options, "address": loft.url},
            instead="address",
        )
    },
    open_sink=PigeonSink,
)
UNFLEDGED = replace(
    PIGEON,
    type="unfledged",
    references={},
    distribution="refill-pigeons",
    extra="feathers",
    driver="a_driver_of_nobody",
)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with running_stage(tmp_path, brought=[PIGEON, UNFLEDGED]) as running:
        yield running


def make_loft(api: httpx.Client, name: str) -> str:
    root = str(api.base_url).split("/v1")[0]
    made = api.post(f"{root}{ENDPOINTS}", json={"name": name, "url": f"https://{name}.example/"})
    return f"{root}{ENDPOINTS}/{answer(made, 200)['id']}"


def body(**fields: str) -> dict[str, Any]:
    return {"type": "pigeon", "display_name": "pigeons", "fields": fields}


def loft_of(destination: dict[str, Any]) -> str:
    (found,) = [item["value"] for item in destination["edit_settings"] if item["id"] == "loft"]
    return str(found)


def test_what_a_destination_refers_to_is_kept_by_id_and_shown_by_name(
    stage: Stage, api: httpx.Client
) -> None:
    loft = make_loft(api, "roof")
    made = answer(api.post("/destinations", json=body(loft="roof")), 201)["data"]
    assert loft_of(made) == "roof"
    kept = stage.store.get_destination(1, made["id"]).options["loft"]
    assert kept == loft.rpartition("/")[2]
    answer(api.patch(loft, json={"name": "tower"}))
    assert loft_of(answer(api.get(f"/destinations/{made['id']}"))["data"]) == "tower"
    refused = answer(api.delete(loft), 422)
    assert refused["summary"].startswith("The destination pigeons sends to this endpoint")
    answer(api.put(f"/destinations/{made['id']}", json=body(address="x")))
    answer(api.delete(loft))


def test_what_a_destination_refers_to_must_be_there(stage: Stage, api: httpx.Client) -> None:
    nobody = answer(api.post("/destinations", json=body(loft="nobody")), 422)
    assert nobody["error"]["description"] == "fields.loft: there is no HTTP endpoint nobody"
    nowhere = answer(api.post("/destinations", json=body()), 422)
    assert nowhere["error"]["description"] == "fields.loft: is required"


def test_a_test_opens_it_with_what_it_refers_to(stage: Stage, api: httpx.Client) -> None:
    make_loft(api, "roof")
    tested = answer(api.post("/destinations/test-connection", json=body(loft="roof")))["data"]
    assert tested == {"success": False, "error": "No pigeon flies to https://roof.example/."}


def test_a_destination_without_its_driver_is_neither_made_nor_changed_nor_tested(
    stage: Stage, api: httpx.Client
) -> None:
    asked = {**body(), "type": "unfledged"}
    kept = stage.store.insert_destination(make_destination(type="unfledged", options={}))
    for refused in (
        api.post("/destinations", json=asked),
        api.put(f"/destinations/{kept.id}", json=asked),
        api.post("/destinations/test-connection", json=asked),
    ):
        error = answer(refused, 422)["error"]
        assert error["code"] == "UNPROCESSABLE_ENTITY"
        assert "needs the package 'a_driver_of_nobody'" in error["description"]
        assert "pip install 'refill-pigeons[feathers]'" in error["description"]
    assert stage.store.list_destinations(1) == (kept,)
