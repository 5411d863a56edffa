"""Destinations: where transfers write."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from refill.clock import Clock
from refill.connectors.kit.contract import Connector
from refill.connectors.kit.drivers import require_driver
from refill.domain.errors import (
    Conflict,
    InUse,
    Invalid,
    NotFound,
    RateLimited,
    RefillError,
)
from refill.domain.pipeline import Destination, Transfer
from refill.service.catalogue import Catalogue
from refill.service.options import (
    frozen,
    parse_options,
    refuse_moved_secrets,
    reveal,
    secret_fields,
)
from refill.service.probes import NoAnswer, Probes
from refill.service.references import References
from refill.store.port import PipelineStore


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationDraft:
    """A destination as somebody wishes it. `new_secret` replaces the one secret that it has."""

    type: str
    name: str
    auth_method: str | None = None
    fields: Mapping[str, Any]
    new_secret: str | None = None

    def __repr__(self) -> str:
        return f"DestinationDraft(type={self.type!r}, name={self.name!r})"


class Destinations:
    """What can be done to destinations."""

    def __init__(
        self,
        *,
        store: PipelineStore,
        connectors: Mapping[str, Connector],
        catalogue: Catalogue,
        references: References,
        clock: Clock,
        probes: Probes,
    ) -> None:
        self._store = store
        self._connectors = connectors
        self._catalogue = catalogue
        self._probes = probes
        self._references = references
        self._clock = clock

    def types(self) -> tuple[Connector, ...]:
        return tuple(item for item in self._connectors.values() if item.is_destination)

    def connector(self, type_name: str) -> Connector:
        found = self._connectors.get(type_name)
        if found is None or not found.is_destination:
            there = ", ".join(item.type for item in self.types())
            raise Invalid.of(
                "type", f"there is no destination type {type_name}; use one of: {there}."
            )
        return found

    def create(
        self, team_id: int, draft: DestinationDraft, *, repeated: bool = False
    ) -> Destination:
        """`repeated`: the same request came before, and may have made it."""
        if repeated:
            for made in self._store.list_destinations(team_id):
                if made.name == draft.name:
                    return made
        options = self._options(team_id, draft)
        now = self._clock()
        destination = Destination(
            id=0,
            team_id=team_id,
            name=draft.name,
            type=draft.type,
            auth_method=draft.auth_method,
            options=options,
            created_at=now,
            updated_at=now,
        )
        return self._named(lambda: self._store.insert_destination(destination), draft.name)

    def list_all(self, team_id: int) -> tuple[Destination, ...]:
        return self._store.list_destinations(team_id)

    def get(self, team_id: int, destination_id: int) -> Destination:
        return self._store.get_destination(team_id, destination_id)

    def update(self, team_id: int, destination_id: int, draft: DestinationDraft) -> Destination:
        """Secrets that the draft leaves out stay as they are. Running backfills go on writing
        where they began; how to reach it is read anew."""
        stored = self._store.get_destination(team_id, destination_id)
        changed = replace(
            stored,
            name=draft.name,
            auth_method=draft.auth_method or stored.auth_method,
            options=self._options(team_id, draft, stored),
            updated_at=self._clock(),
        )
        self._check_place(changed)
        return self._named(lambda: self._store.update_destination(changed), draft.name)

    def delete(self, team_id: int, destination_id: int) -> None:
        try:
            self._store.delete_destination(team_id, destination_id)
        except Conflict as error:
            names = ", ".join(str(transfer.id) for transfer in self.usage(team_id, destination_id))
            raise InUse(
                f"Transfers write into this destination; delete them first: {names}."
            ) from error

    def usage(self, team_id: int, destination_id: int) -> tuple[Transfer, ...]:
        """The transfers that write into it."""
        self._store.get_destination(team_id, destination_id)
        return tuple(
            transfer
            for transfer in self._store.list_transfers(team_id)
            if transfer.destination_id == destination_id
        )

    def test(
        self, team_id: int, draft: DestinationDraft, destination_id: int | None = None
    ) -> str | None:
        """None when it can be used, else the reason why not."""
        stored = (
            None if destination_id is None else self._store.get_destination(team_id, destination_id)
        )
        kept = self._options(team_id, draft, stored)
        connector = self.connector(draft.type)
        options = parse_options(connector, self._references.resolved(team_id, connector, kept))
        opener = connector.open_sink
        if opener is None:
            return f"{draft.type} cannot be written to."
        context = self._catalogue.context(team_id)
        try:
            self._probes.ask(team_id, lambda: opener(options, context), lambda sink: sink.test())
        except NoAnswer:
            return (
                f"It did not answer in {self._probes.seconds:g} seconds; see that it runs and is "
                "not busy, then try again."
            )
        except RateLimited:
            raise  # nothing is said of it
        except RefillError as error:
            return error.message
        return None

    def shown_options(self, destination: Destination) -> dict[str, Any]:
        """As they were sent; what is secret among them is for the form to hide."""
        names = self._references.names(destination.team_id)
        connector = self.connector(destination.type)
        return self._references.shown(connector, destination.options, names)

    def frozen_options(self, destination: Destination) -> dict[str, Any]:
        """What a backfill freezes: all but how to reach the system."""
        return frozen(self.connector(destination.type), destination.options)

    def target(self, destination: Destination, table: str) -> tuple[object, ...]:
        """Two transfers with the same target would write into one table."""
        connector = self.connector(destination.type)
        if connector.target_of is not None:
            options = parse_options(connector, destination.options)
            return (destination.type, *connector.target_of(options, table))
        secrets = secret_fields(connector.options_model)
        return (
            destination.type,
            table,
            *sorted(
                (name, repr(value))
                for name, value in destination.options.items()
                if name not in secrets and name not in _HOW_NOT_WHERE
            ),
        )

    def _check_place(self, moved: Destination) -> None:
        """A destination must not move to where another one's transfers write the same table."""
        targets = {
            self.target(moved, transfer.destination_table)
            for transfer in self.usage(moved.team_id, moved.id)
        }
        for other in self._store.list_destinations(moved.team_id):
            if other.id == moved.id:
                continue
            for transfer in self.usage(moved.team_id, other.id):
                if self.target(other, transfer.destination_table) in targets:
                    raise Invalid.of(
                        "fields",
                        f"transfer {transfer.id} writes the table {transfer.destination_table} "
                        "there already; choose another place.",
                    )

    def _options(
        self, team_id: int, draft: DestinationDraft, stored: Destination | None = None
    ) -> dict[str, Any]:
        """In clear, as the store gets them."""
        if stored is not None and stored.type != draft.type:
            raise Invalid.of(
                "type",
                f"the destination is of type {stored.type}, which cannot change; make another one.",
            )
        connector = self.connector(draft.type)
        require_driver(connector)
        secrets = secret_fields(connector.options_model)
        fields = dict(draft.fields)
        for name in secrets:
            if stored is not None and fields.get(name) is None and name in stored.options:
                fields[name] = stored.options[name]
        if draft.new_secret is not None and secrets:
            fields[secrets[0]] = draft.new_secret
        options = reveal(parse_options(connector, fields, prefix="fields."))
        try:
            kept = self._references.kept(team_id, connector, options, "fields.")
        except NotFound as exc:
            # of a destination it is a field that is wrong: a 404 would mean the destination
            option, to = next(
                (option, reference.to)
                for option, reference in connector.references.items()
                if options.get(option) == exc.identity
            )
            message = f"there is no {to} {exc.identity}"
            raise Invalid.of(f"fields.{option}", message) from exc
        if stored is not None:
            given = dict(draft.fields)
            if draft.new_secret is not None and secrets:
                given[secrets[0]] = draft.new_secret
            refuse_moved_secrets(connector, stored.options, kept, given, "fields.")
        return kept

    def _named(self, write: Any, name: str) -> Destination:
        try:
            destination: Destination = write()
        except Conflict as error:
            if error.field != "name":
                raise
            raise Conflict(
                f"There is a destination called {name} already; choose another display_name.",
                field="display_name",
            ) from error
        return destination


# what two roads to the same place may differ in
_HOW_NOT_WHERE = frozenset({"username", "ssl", "format"})
