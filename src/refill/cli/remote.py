"""The backfills of a server, spoken to in the dialect that each of them came through.

A UUID is a sink's backfill, a number is a transfer's: the id says which dialect to speak.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from refill.cli.client import Client, Refusal
from refill.cli.output import Stopped
from refill.cli.view import View, view_sink_backfill, view_transfer_backfill

_ACTIVE = ("created", "scheduled", "running")
STATES = ("active", "paused", "completed", "failed", "cancelled", *_ACTIVE)
_TRANSFER_WORDS = {"active": "RUNNING", "paused": "PAUSED", "cancelled": "CANCELLED"}


class RemoteBackfills:
    def __init__(self, client: Client) -> None:
        self._client = client

    def create_for_sink(self, sink: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The server's own answer: a backfill, or with `dry_run` its plan."""
        return self._client.post(f"/api/sinks/{sink}/backfills", body)

    def create_for_transfer(self, transfer: int, body: Mapping[str, Any]) -> Mapping[str, Any]:
        path = f"/v1/teams/{self._client.team}/transfers/{transfer}/backfills"
        answer: Mapping[str, Any] = self._client.post(path, body)["data"]
        return answer

    def list_all(self, state: str | None) -> list[View]:
        """Both dialects', as far as the key may read them; of transfers, those not yet done."""
        found: list[View] = []
        refusals: list[Refusal] = []
        for part in (self._sink_backfills, self._transfer_backfills):
            try:
                found.extend(part())
            except Refusal as refusal:
                if refusal.status != 403:
                    raise
                refusals.append(refusal)
        if len(refusals) == 2:
            raise refusals[0]
        return [view for view in found if state is None or _is_in(view, state)]

    def show(self, backfill_id: str) -> View:
        of_sink = _is_sink(backfill_id)
        path = f"/api/backfills/{UUID(backfill_id)}" if of_sink else self._path(backfill_id)
        try:
            answer = self._client.get(path)
        except Refusal as refusal:
            if refusal.status != 404:
                raise
            raise Stopped(
                f"No backfill {backfill_id} was found; `refill backfills list` shows them."
            ) from None
        return view_sink_backfill(answer) if of_sink else view_transfer_backfill(answer["data"])

    def set_state(self, backfill_id: str, state: str) -> View:
        path = self._path(backfill_id)
        if _is_sink(backfill_id):
            return view_sink_backfill(self._client.patch(path, {"state": state}))
        answer = self._client.patch(path, {"status": _TRANSFER_WORDS[state]})
        return view_transfer_backfill(answer["data"])

    def retry(self, backfill_id: str, dates: list[str]) -> View:
        if _is_sink(backfill_id):
            if dates:
                raise Stopped("Only a transfer's backfill has dates to retry; leave --date out.")
            return self.set_state(backfill_id, "active")
        body = {"dates": dates} if dates else {}
        answer = self._client.post(f"{self._path(backfill_id)}/retries", body)
        return view_transfer_backfill(answer["data"])

    def parts(self, backfill_id: str, noun: str) -> Iterator[Mapping[str, Any]]:
        """Its `slices`, or its `rejects`."""
        path = f"{self._path(backfill_id)}/{noun}"
        if _is_sink(backfill_id):
            return self._client.pages(path)
        if noun == "rejects":
            return self._client.pages(path, items=noun)
        raise Stopped(
            f"A transfer's backfill has runs, and no {noun} to list: `refill backfills show "
            f"{backfill_id}` says why dates failed, and GET /v1/teams/{self._client.team}"
            "/transfers/ID/runs lists the runs."
        )

    def _sink_backfills(self) -> Iterator[View]:
        return map(view_sink_backfill, self._client.pages("/api/backfills"))

    def _transfer_backfills(self) -> Iterator[View]:
        answer = self._client.get(f"/v1/teams/{self._client.team}/backfills")
        return map(view_transfer_backfill, answer["data"])

    def _path(self, backfill_id: str) -> str:
        """Where it is steered: a sink's below its sink, which it names itself."""
        if not _is_sink(backfill_id):
            return f"/v1/teams/{self._client.team}/backfills/{int(backfill_id)}"
        view = self.show(backfill_id)
        return f"/api/sinks/{view.pipeline}/backfills/{view.id}"


def _is_in(view: View, state: str) -> bool:
    """A transfer's dialect has three words for what a sink's calls active."""
    return view.state == state or (state == "active" and view.state in _ACTIVE)


def _is_sink(backfill_id: str) -> bool:
    if backfill_id.isdecimal():
        return False
    try:
        UUID(backfill_id)
    except ValueError:
        raise Stopped(
            f"{backfill_id!r} is no backfill's id: a sink's is a UUID, a transfer's a number."
        ) from None
    return True
