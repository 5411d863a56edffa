"""The outermost layer: what reaches the routes, and what does not."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from refill.api.transport import Transport

Message = MutableMapping[str, Any]
HALF: list[Message] = [
    {"type": "http.request", "body": b'{"dry_run"', "more_body": True},
    {"type": "http.disconnect"},
]


@pytest.mark.parametrize(
    ("messages", "reached"),
    [
        ([{"type": "http.disconnect"}], False),
        (HALF, False),
        ([{"type": "http.request", "body": b"", "more_body": False}], True),
    ],
)
def test_half_a_request_does_nothing(messages: list[Message], reached: bool) -> None:
    """A body that never came must not be taken for an empty one: that asks for a backfill."""
    seen: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(await scope["state"]["read_body"]())

    waiting = iter(messages)

    async def receive() -> Message:
        return next(waiting)

    async def send(message: Message) -> None:
        raise AssertionError("nobody is there to answer")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/sinks/orders/backfills",
        "query_string": b"",
        "headers": [(b"content-length", b"80")],
    }
    transport = Transport(app, body_limit_bytes=1000, body_seconds=5.0, rate_limit=10)
    asyncio.run(transport(scope, receive, send))
    assert seen == ([b""] if reached else [])
