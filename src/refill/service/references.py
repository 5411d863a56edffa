"""Options that name stored objects: kept by id, shown by name, looked up where they are used."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from refill.connectors.kit.contract import Connector
from refill.domain.errors import Invalid
from refill.domain.stored import Stored, StoredObject
from refill.service.options import secret_fields
from refill.store.port import PipelineStore
from refill.store.stored import find_stored, list_stored

Names: TypeAlias = Mapping[Stored, Mapping[str, str]]  # kind → id → name


@dataclass(frozen=True, slots=True)
class User:
    """A pipeline's end that refers to an object, and by which option."""

    kind: str
    id: str | int
    name: str
    option: str
    has_secrets: bool  # of its own, which go to the object's address


class References:
    """What connectors declare in `references`, for whichever of them do."""

    def __init__(self, *, store: PipelineStore, connectors: Mapping[str, Connector]) -> None:
        self._store = store
        self._connectors = connectors

    def kept(
        self, team_id: int, connector: Connector, options: Mapping[str, Any], prefix: str
    ) -> dict[str, Any]:
        """The options as they are stored: objects by their ids, since they may be renamed.
        NotFound where there is no such object."""
        found = dict(options)
        for option, reference in connector.references.items():
            other = reference.instead
            if not found.get(option) and other is not None and not found.get(other):
                raise Invalid.of(prefix + option, "is required")
            if (name := found.get(option)) is not None:
                found[option] = find_stored(self._store, reference.to, team_id, name).id
        return found

    def resolved(
        self, team_id: int, connector: Connector, kept: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The options as the system is opened with them."""
        return connector.resolved(
            kept, lambda kind, name: find_stored(self._store, kind, team_id, name)
        )

    def names(self, team_id: int) -> Names:
        return {
            kind: {each.id: each.name for each in list_stored(self._store, kind, team_id)}
            for kind in Stored
        }

    def shown(
        self, connector: Connector | None, options: Mapping[str, Any], names: Names
    ) -> dict[str, Any]:
        """The options as they were sent: objects by their names of today."""
        found = dict(options)
        for option, reference in connector.references.items() if connector else ():
            if (kept := found.get(option)) is not None:
                found[option] = names[reference.to].get(kept, kept)
        return found

    def users(self, kind: Stored, referred: StoredObject) -> Iterator[User]:
        """Who refers to the object."""
        known = (referred.id, referred.name)
        for sink in self._store.list_sinks(referred.team_id):
            for option in self._options_to(kind, sink.destination_type):
                if sink.destination_options.get(option) in known:
                    secret = self._has_secrets(sink.destination_type, sink.destination_options)
                    yield User("sink", sink.id, sink.name, option, secret)
        for place in self._store.list_destinations(referred.team_id):
            for option in self._options_to(kind, place.type):
                if place.options.get(option) in known:
                    secret = self._has_secrets(place.type, place.options)
                    yield User("destination", place.id, place.name, option, secret)

    def _has_secrets(self, type_name: str, options: Mapping[str, Any]) -> bool:
        model = self._connectors[type_name].options_model
        return any(options.get(name) for name in secret_fields(model))

    def _options_to(self, kind: Stored, type_name: str) -> list[str]:
        connector = self._connectors.get(type_name)
        declared = connector.references.items() if connector else ()
        return [option for option, reference in declared if reference.to is kind]
