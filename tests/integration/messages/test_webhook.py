"""Webhooks, beyond the contract: keys, signatures, patience, and where they may not go."""

import hashlib
import hmac
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from refill.connectors.kit.contract import Context
from refill.connectors.webhook import WebhookOptions, with_endpoint
from refill.connectors.webhook.sink import WebhookSink
from refill.domain.errors import SinkRefused, SinkUnavailable
from tests.contract.store.factories import make_endpoint
from tests.integration.messages.orders import SCHEMA, make_job, make_ticket, rows_of
from tests.servers.receiver import Answer, Receiver, Request, running_receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def open_sink(receiver: Receiver, *, private: bool = True, **more: Any) -> WebhookSink:
    options = WebhookOptions.model_validate({"url": receiver.url, **more})
    context = Context(team_id=1, files_root="/nowhere", allow_private_hosts=private)
    return WebhookSink(options, context)


def answering(*answers: Answer) -> Any:
    """One after the other, then 200 for ever."""
    left = list(answers)
    return lambda request: left.pop(0) if left else (200, {})


def test_requests_carry_the_endpoints_headers_and_path(receiver: Receiver) -> None:
    endpoint = make_endpoint(url=f"{receiver.url}/v1/", encrypted_headers={"X-Key": "s3"})
    resolved = with_endpoint({"http_endpoint_path": "in"}, endpoint)
    sink = open_sink(receiver, **resolved)
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    (request,) = receiver.requests
    assert request.path == "/v1/in"
    assert (request.headers["X-Plain"], request.headers["X-Key"]) == ("1", "s3")
    assert request.headers["Content-Type"] == "application/json"
    sink.close()


def test_batches_follow_the_sinks_size_and_one_message_goes_bare(receiver: Receiver) -> None:
    sink = open_sink(receiver, concurrency=1)
    sink.write(make_job(batch_size=4), make_ticket(), SCHEMA, rows_of(0, 10))
    assert [len(request.messages) for request in receiver.requests] == [4, 4, 2]
    receiver.requests.clear()
    bare = open_sink(receiver, batch=False)
    bare.write(make_job(batch_size=4), make_ticket(), SCHEMA, rows_of(0, 2))
    assert len(receiver.requests) == 2
    assert all(request.body.startswith(b'{"record":') for request in receiver.requests)
    sink.close()
    bare.close()


def test_the_key_of_a_request_is_a_hash_of_its_messages_keys(receiver: Receiver) -> None:
    job, sink = make_job(batch_size=3), open_sink(receiver, concurrency=1)
    sink.write(job, make_ticket(), SCHEMA, rows_of(0, 6))
    sink.write(job, make_ticket(attempt=2), SCHEMA, rows_of(0, 6))
    keys = [request.headers["Idempotency-Key"] for request in receiver.requests]
    assert keys[:2] == keys[2:]
    assert keys[0] != keys[1]
    known = [m["metadata"]["idempotency_key"] for m in receiver.requests[0].messages]
    assert keys[0] == hashlib.sha256("\n".join(known).encode()).hexdigest()
    sink.close()


def test_a_signed_request_can_be_checked(receiver: Receiver) -> None:
    sink = open_sink(receiver, signing_secret="hush")
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    (request,) = receiver.requests
    seconds, _, digest = request.headers["Refill-Signature"].partition(",v1=")
    stamp = seconds.removeprefix("t=")
    assert abs(int(stamp) - time.time()) < 60
    expected = hmac.new(b"hush", stamp.encode() + b"." + request.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(digest, expected)
    sink.close()


@pytest.mark.parametrize("first", [(500, {}), (429, {"Retry-After": "0"}), (409, {}), None])
def test_what_may_pass_is_tried_again_under_the_same_key(receiver: Receiver, first: Answer) -> None:
    receiver.answer = answering(first)
    sink = open_sink(receiver)
    written = sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 3))
    assert written.rows_delivered == 3
    one, two = receiver.requests
    assert one.headers["Idempotency-Key"] == two.headers["Idempotency-Key"]
    assert one.body == two.body
    sink.close()


def test_a_receiver_that_times_out_after_processing_gets_the_same_request_again(
    receiver: Receiver,
) -> None:
    receiver.delay_seconds = 0.4
    receiver.answer = lambda request: setattr(receiver, "delay_seconds", 0.0) or (200, {})
    sink = open_sink(receiver, timeout_seconds=0.2)
    sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 2))
    keys = {request.headers["Idempotency-Key"] for request in receiver.requests}
    assert len(keys) == 1
    assert len(receiver.kept()) == 2
    sink.close()


def test_a_receiver_that_asks_for_patience_gets_it_from_the_worker(receiver: Receiver) -> None:
    receiver.answer = lambda request: (429, {"Retry-After": "120"})
    sink = open_sink(receiver)
    with pytest.raises(SinkUnavailable) as caught:
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    assert caught.value.retry_after_seconds == 120
    assert len(receiver.requests) == 1
    sink.close()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422])
def test_a_refusal_is_final(receiver: Receiver, status: int) -> None:
    receiver.answer = lambda request: (status, {})
    sink = open_sink(receiver)
    with pytest.raises(SinkRefused, match=str(status)):
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    assert len(receiver.requests) == 1
    sink.close()


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    receiver.answer = lambda request: (307, {"Location": "http://169.254.169.254/latest"})
    sink = open_sink(receiver)
    with pytest.raises(SinkRefused, match="redirects are not followed"):
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    sink.close()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "http://[::1]/", "http://169.254.169.254/latest/meta-data"]
)
def test_private_and_metadata_addresses_are_refused(receiver: Receiver, url: str) -> None:
    sink = open_sink(receiver, private=False, url=url)
    with pytest.raises(SinkRefused, match="may not reach"):
        sink.test()
    with pytest.raises(SinkRefused, match="may not reach"):
        sink.write(make_job(), make_ticket(), SCHEMA, rows_of(0, 1))
    sink.close()


def test_no_more_requests_are_on_their_way_than_allowed(receiver: Receiver) -> None:
    receiver.delay_seconds = 0.02
    sink = open_sink(receiver, concurrency=3)
    sink.write(make_job(batch_size=1), make_ticket(), SCHEMA, rows_of(0, 40))
    assert 2 <= receiver.most_at_once <= 3
    sink.close()


def test_a_slow_receiver_holds_the_reader_back(receiver: Receiver) -> None:
    """A hundred messages a second: the reader is never more than a batch ahead."""
    taken = 0
    furthest = 0

    def counted(request: Request) -> Answer:
        nonlocal furthest
        furthest = max(furthest, taken - sum(len(r.messages) for r in receiver.requests))
        return (200, {})

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for batch in rows_of(0, 100, batch=10):
            taken += batch.num_rows
            yield batch

    receiver.delay_seconds = 0.1
    receiver.answer = counted
    sink = open_sink(receiver, concurrency=1)
    written = sink.write(make_job(batch_size=10), make_ticket(), SCHEMA, batches())
    assert written.rows_delivered == 100
    assert furthest <= 30
    sink.close()
