"""Destinations and transfers, in a file known by their names."""

from dataclasses import replace

from refill.domain.access import Caller
from refill.domain.pipeline import Destination, Transfer
from refill.service.config.changes import Form, Wish, hidden
from refill.service.config.sections import (
    Section,
    Shown,
    Wishes,
    check_known,
    marked,
    secret_fields,
)
from refill.service.databases import Databases
from refill.service.destinations import Destinations
from refill.service.transfer_views import TransferViews
from refill.service.transfers import Transfers


class DestinationSection(Section):
    name, kind = "destinations", "destination"

    def __init__(self, destinations: Destinations) -> None:
        self._destinations = destinations

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        return {
            each.name: hidden(shown(self.kind, each), {"fields": each.options})
            for each in self._destinations.list_all(caller.team_id)
        }

    def wished(self, wish: Wish) -> Form:
        fields = wish.given.get("fields", {})
        known = {connector.type: connector for connector in self._destinations.types()}
        secrets = secret_fields(known.get(wish.given.get("type", "")))
        return {**wish.given, "fields": marked(fields, secrets)}

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        if not there:
            self._destinations.create(caller.team_id, wish.draft)
            return
        stored = self._stored(caller, wish.name)
        # what the file leaves out stays, as for every other section
        kept = self._destinations.shown_options(stored)
        draft = replace(wish.draft, fields={**kept, **wish.draft.fields})
        self._destinations.update(caller.team_id, stored.id, draft)

    def delete(self, caller: Caller, name: str) -> None:
        self._destinations.delete(caller.team_id, self._stored(caller, name).id)

    def _stored(self, caller: Caller, name: str) -> Destination:
        found = self._destinations.list_all(caller.team_id)
        return next(each for each in found if each.name == name)


class TransferSection(Section):
    name, kind = "transfers", "transfer"

    def __init__(
        self,
        transfers: Transfers,
        views: TransferViews,
        databases: Databases,
        destinations: Destinations,
    ) -> None:
        self._transfers = transfers
        self._views = views
        self._databases = databases
        self._destinations = destinations

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        return {
            each.transfer.name: shown(self.kind, each)
            for each in self._views.list_all(caller.team_id)
        }

    def check(self, caller: Caller, wish: Wish, wishes: Wishes) -> None:
        source, place = wish.given["database"], wish.given["destination"]
        found = self._databases.list_all(caller.team_id, limit=None, cursor=None).items
        known = source in {each.name for each in found} | {each.id for each in found}
        check_known(wish, source, known, wishes, "databases")
        known = place in {each.name for each in self._destinations.list_all(caller.team_id)}
        check_known(wish, place, known, wishes, "destinations")

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        places = self._destinations.list_all(caller.team_id)
        place = next(each for each in places if each.name == wish.given["destination"])
        draft = replace(wish.draft, destination_id=place.id)
        if there:
            made = self._transfers.update(caller.team_id, self._stored(caller, wish.name).id, draft)
        else:
            made = self._transfers.create(caller.team_id, caller.user_id, draft)
        self._transfers.set_paused(caller.team_id, made.id, wish.given["state"] == "paused")

    def delete(self, caller: Caller, name: str) -> None:
        self._transfers.delete(caller.team_id, self._stored(caller, name).id)

    def _stored(self, caller: Caller, name: str) -> Transfer:
        found = self._views.list_all(caller.team_id)
        return next(each.transfer for each in found if each.transfer.name == name)
