"""People hear of the end: real receivers, a store, and the courier that the worker runs."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from refill.domain.retry import RetryPolicy
from refill.domain.slice import Fault, Outcome, Receipt
from refill.notices import courier as courier_module
from refill.notices.courier import MAX_ATTEMPTS, Courier, retry_seconds
from refill.store.records import PackLimits
from tests.integration.api.running import Running, answer, running_server
from tests.servers.mail import MailServer, running_mail_server
from tests.servers.postgres import free_port
from tests.servers.receiver import Receiver, running_receiver
from tests.waiting import until

PATH = "/api/notifications"
BROKEN = Fault(code="sink_refused", message="The disk is full.", transient=False)


@pytest.fixture
def mails() -> Iterator[MailServer]:
    with running_mail_server() as server:
        yield server


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture
def server(tmp_path: Path, mails: MailServer) -> Iterator[Running]:
    settings = {"smtp_url": mails.url, "mail_from": "refill@example.com"}
    with running_server(tmp_path, allow_private_hosts=True, **settings) as running:
        yield running


@pytest.fixture
def api(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def courier(server: Running) -> Iterator[Courier]:
    found = Courier(server.store, server.settings)
    yield found
    found.close()


def states(api: httpx.Client) -> list[str]:
    return [one["state"] for one in answer(api.get("/api/notification_deliveries"), 200)["data"]]


def bring(courier: Courier, api: httpx.Client, count: int) -> list[dict[str, Any]]:
    """Ticks as the worker does until so many are delivered."""

    def brought() -> bool:
        courier.tick()
        return states(api).count("delivered") >= count

    until(brought, f"{count} deliveries", 20, 0.05)
    found: list[dict[str, Any]] = answer(api.get("/api/notification_deliveries"), 200)["data"]
    return found


def complete(server: Running, rows: int = 3, fault: Fault | None = None) -> None:
    server.plan()
    server.run(rows=rows, fault=fault)


def test_a_completed_backfill_is_told_once_signed_and_listed(
    server: Running, api: httpx.Client, courier: Courier, hook: Receiver
) -> None:
    body = {"type": "webhook", "url": f"{hook.url}/told", "secret": "s3cret"}
    made = api.post(PATH, json=body)
    assert answer(made, 201)["secret"] == "**********"
    _, backfill = server.make_backfill(api)
    complete(server)
    delivered = bring(courier, api, 1)[0]
    assert delivered["state"] == "delivered"
    assert delivered["attempts"] == 1
    courier.tick()
    (request,) = hook.requests
    event = json.loads(request.body)
    assert event["type"] == "backfill.completed"
    assert event["backfill"]["id"] == backfill["id"]
    assert event["backfill"]["rows_delivered"] == 3
    assert "3 rows delivered" in event["message"]
    stamp, _, digest = request.headers["Refill-Signature"].partition(",v1=")
    signed = stamp.removeprefix("t=").encode() + b"." + request.body
    assert digest == hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()


def test_only_what_was_asked_for_is_told(
    server: Running, api: httpx.Client, courier: Courier, hook: Receiver
) -> None:
    path, _ = server.make_backfill(api)
    server.make_backfill(api)
    sink = path.split("/")[3]
    body = {"type": "slack", "url": hook.url, "events": ["failed"], "sink": sink}
    answer(api.post(PATH, json=body), 201)
    complete(server, fault=BROKEN)
    bring(courier, api, 1)
    courier.tick()
    assert len(states(api)) == 1
    (request,) = hook.requests
    said = json.loads(request.body)
    assert list(said) == ["text"]
    assert sink in said["text"]
    assert "The disk is full." in said["text"]


def test_a_transfers_recipients_get_a_mail(
    server: Running, api: httpx.Client, courier: Courier, mails: MailServer
) -> None:
    ids = server.make_transfer_backfill(api, server.make_database(api)["name"])
    transfer = server.store.get_transfer(1, int(ids["transfer_id"]))
    transfer_path = f"/v1/teams/1/transfers/{transfer.id}"
    shown = answer(api.get(transfer_path), 200)
    settings = [dict(setting) for setting in shown["data_source"]["settings"]]
    body = {
        "display_name": shown["display_name"],
        "data_source_id": shown["data_source"]["data_source_id"],
        "destination_id": shown["destination_id"],
        "data_source_settings": settings,
        "notification_recipients": ["ops@example.com", "data@example.com"],
    }
    answer(api.put(transfer_path, json=body), 200)
    complete(server, fault=BROKEN)
    bring(courier, api, 1)
    (mail,) = mails.mails
    assert mail["To"] == "ops@example.com, data@example.com"
    assert mail["From"] == "refill@example.com"
    assert "has failed" in mail["Subject"]
    assert "The disk is full." in str(mail.get_payload())


def test_a_dead_receiver_holds_up_nothing_and_is_tried_again(
    server: Running,
    api: httpx.Client,
    courier: Courier,
    hook: Receiver,
    mails: MailServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(courier_module, "FIRST_RETRY_SECONDS", 0.1)
    dead = f"http://127.0.0.1:{free_port()}"
    answer(api.post(PATH, json={"type": "webhook", "url": dead}), 201)
    answer(api.post(PATH, json={"type": "webhook", "url": hook.url}), 201)
    answer(api.post(PATH, json={"type": "email", "recipients": ["ops@example.com"]}), 201)
    refusals = iter([(500, {})])
    hook.answer = lambda request: next(refusals, (200, {}))
    for _ in range(3):
        server.make_backfill(api)
    complete(server)

    def told() -> bool:
        courier.tick()
        return states(api).count("delivered") == 6

    until(told, "the others to be told", 20, 0.05)
    assert (len(mails.mails), len(hook.requests)) == (3, 4)
    found = answer(api.get("/api/notification_deliveries"), 200)["data"]
    assert [one["state"] for one in found].count("pending") == 3
    waiting = [one for one in found if one["state"] == "pending"]
    assert any("could not be reached" in (one["error"] or "") for one in waiting)


def test_what_a_dead_worker_had_claimed_is_delivered_by_the_next(
    server: Running, api: httpx.Client, courier: Courier, hook: Receiver
) -> None:
    answer(api.post(PATH, json={"type": "webhook", "url": hook.url}), 201)
    server.make_backfill(api)
    complete(server)
    server.store.spread_events()
    ((claimed, _),) = server.store.claim_deliveries(5, 0.2, ())
    assert server.store.claim_deliveries(5, 0.2, ()) == ()
    bring(courier, api, 1)  # once the lease is over
    assert len(hook.requests) == 1
    assert answer(api.get("/api/notification_deliveries"), 200)["data"][0]["attempts"] == 2
    assert claimed.event.type.value == "completed"


def test_a_backfill_that_does_not_move_is_told_once(server: Running, api: httpx.Client) -> None:
    server.make_backfill(api)
    assert server.store.note_troubles(3600, 3) == 0
    until(lambda: server.store.note_troubles(0.01, 3) == 1, "a stall", 5, 0.02)
    assert server.store.note_troubles(0.01, 3) == 0


def test_a_backfill_that_keeps_failing_needs_somebody(server: Running, api: httpx.Client) -> None:
    server.make_backfill(api)
    server.plan()
    again = Fault(code="sink_unavailable", message="Nobody answers.", transient=True)
    policy = RetryPolicy(max_failures=50)
    for _ in range(3):
        pack = server.store.claim_pack("tester", PackLimits(), 30)
        if pack is None:
            break
        receipts = [
            Receipt(
                slice_id=each.slice.id,
                attempt=each.slice.attempt,
                outcome=Outcome.FAILED,
                fault=again,
            )
            for each in pack.slices
        ]
        server.store.finish_slices(pack.backfill.id, receipts, policy)
    told = server.store.note_troubles(3600, 1)
    assert told == 1
    assert server.store.note_troubles(3600, 1) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"type": "webhook"}, "url"),
        ({"type": "slack", "url": "ftp://x"}, "url"),
        ({"type": "email"}, "recipients"),
        ({"type": "email", "recipients": ["nobody"]}, "recipients"),
        ({"type": "webhook", "url": "https://h/", "recipients": ["a@b.c"]}, "recipients"),
        ({"type": "webhook", "url": "https://h/", "sink": "a", "transfer": 1}, "transfer"),
        ({"type": "pigeon", "url": "https://h/"}, "type"),
    ],
)
def test_a_receiver_that_cannot_be_told_is_422(
    api: httpx.Client, body: dict[str, Any], field: str
) -> None:
    assert field in answer(api.post(PATH, json=body), 422)["validation_errors"]


def test_a_receiver_is_changed_and_goes(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api)
    body = {"type": "webhook", "url": "https://hooks.example/", "secret": "x", "sink": sink["id"]}
    made = answer(api.post(PATH, json=body), 201)
    assert made["sink"] == sink["name"]
    back = answer(api.put(f"{PATH}/{made['id']}", json=made), 200)
    assert {**back, "updated_at": ""} == {**made, "updated_at": ""}
    assert server.store.get_receiver(1, made["id"]).secret == "x"
    assert answer(api.get(PATH), 200)["data"] == [back]
    other = server.make_token(team_id=server.make_team())
    with server.client(other) as elsewhere:
        answer(elsewhere.get(f"{PATH}/{made['id']}"), 404)
    answer(api.delete(f"{PATH}/{made['id']}"), 200)
    answer(api.get(f"{PATH}/{made['id']}"), 404)


def test_each_try_waits_longer_and_there_is_a_last_one() -> None:
    waits = [retry_seconds(attempts) or 0 for attempts in range(1, MAX_ATTEMPTS)]
    assert waits[0] == 5.0
    assert waits == sorted(waits)
    assert retry_seconds(MAX_ATTEMPTS) is None
