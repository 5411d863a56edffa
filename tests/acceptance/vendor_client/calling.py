"""The vendor's client in both colours: `call("backfills.create", …)`."""

import asyncio
import datetime
from collections.abc import Callable
from typing import Any

from supermetrics import SupermetricsAsyncClient, SupermetricsClient

from tests.integration.transfers.stage import Stage

TEAM = 1
SHORT = (datetime.date(2024, 1, 1), datetime.date(2024, 1, 3))

Call = Callable[..., Any]


def caller(stage: Stage, colour: str, token: str | None = None) -> Call:
    """Each call with a client of its own, so that the asynchronous one has a loop of its own."""
    options = {"api_key": token or stage.token, "base_url": stage.url, "timeout": 60}

    def call(name: str, *args: Any, **more: Any) -> Any:
        noun, verb = name.split(".")
        with SupermetricsClient(**options) as client:
            return getattr(getattr(client, noun), verb)(*args, **more)

    def call_async(name: str, *args: Any, **more: Any) -> Any:
        noun, verb = name.split(".")

        async def run() -> Any:
            async with SupermetricsAsyncClient(**options) as client:
                return await getattr(getattr(client, noun), verb)(*args, **more)

        return asyncio.run(run())

    return call if colour == "sync" else call_async
