"""Webhooks: what a receiver that goes by the idempotency key ends up with."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tests.contract.sinks.bed import Seen, SinkBed
from tests.servers.postgres import free_port
from tests.servers.receiver import Receiver, running_receiver


class WebhookBed(SinkBed):
    name = "webhook"
    connector_type = "webhook"
    receiver: Receiver

    def start(self) -> None:
        self._stack = ExitStack()
        self.receiver = self._stack.enter_context(running_receiver())

    def stop(self) -> None:
        self._stack.close()

    def options(self) -> Mapping[str, Any]:
        return {"url": self.receiver.url, "http_endpoint_path": "/orders"}

    def unreachable(self) -> Mapping[str, Any]:
        return {"url": f"http://127.0.0.1:{free_port()}"}

    def refused(self) -> Mapping[str, Any]:
        self.receiver.answer = lambda request: (422, {})
        return self.options()

    def rows(self) -> list[Seen]:
        records = [message["record"] for message in self.receiver.kept()]
        return [(record["id"], record["note"]) for record in records]


class SingleMessageWebhookBed(WebhookBed):
    name = "webhook-single"

    def options(self) -> Mapping[str, Any]:
        return {**super().options(), "batch": False}
