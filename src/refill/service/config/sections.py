"""The sections of a file, each over one kind of thing."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import SecretStr

from refill.connectors.kit.contract import Connector
from refill.domain.access import Caller
from refill.domain.errors import Invalid
from refill.service.config.changes import Form, Secret, Wish, hidden
from refill.service.databases import Databases
from refill.service.endpoints import Endpoints
from refill.service.identity import new_uid
from refill.service.sinks import Sinks

Shown = Callable[[str, Any], dict[str, Any]]
Wishes = Mapping[str, tuple[Wish, ...]]


class Section:
    """`current`, `put` and `delete` are each section's own."""

    name: ClassVar[str]
    kind: ClassVar[str]
    exported: ClassVar[bool] = True
    pruned: ClassVar[bool] = True

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        """What is there, by name, as a file would write it."""
        raise NotImplementedError

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        raise NotImplementedError

    def delete(self, caller: Caller, name: str) -> None:
        raise NotImplementedError

    def check(self, caller: Caller, wish: Wish, wishes: Wishes) -> None:
        """Invalid where it refers to what neither the file nor the team has."""

    def wished(self, wish: Wish) -> Form:
        """What will be made, with its secrets marked."""
        return wish.given


def check_known(wish: Wish, name: str, there: bool, wishes: Wishes, section: str) -> None:
    """Invalid where a name is neither there nor in the file's section."""
    if not there and name not in {other.name for other in wishes.get(section, ())}:
        raise Invalid.of(section, f"{wish.name} names {name}, which is not there")


class DatabaseSection(Section):
    name, kind = "databases", "database"

    def __init__(self, databases: Databases) -> None:
        self._databases = databases

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        found = self._databases.list_all(caller.team_id, limit=None, cursor=None).items
        forms: dict[str, Form] = {}
        for each in found:
            form = hidden(shown(self.kind, each), each.options)
            if primary := each.extra.get("primary"):
                form["primary"] = {**form["primary"], "password": Secret(primary.get("password"))}
            forms[each.name] = form
        return forms

    def wished(self, wish: Wish) -> Form:
        form = marked(wish.given, {"password"})
        if form.get("primary"):
            form["primary"] = marked(form["primary"], {"password"})
        return form

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        if there:
            self._databases.update(team_id=caller.team_id, id_or_name=wish.name, **wish.draft)
        else:
            self._databases.create(
                team_id=caller.team_id, uid=new_uid(), **wish.draft, test=bool(wish.once)
            )

    def delete(self, caller: Caller, name: str) -> None:
        self._databases.delete(caller.team_id, name)


class EndpointSection(Section):
    name, kind = "http_endpoints", "http_endpoint"

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        found = self._endpoints.list_all(caller.team_id, limit=None, cursor=None).items
        clear = {each.name: {"encrypted_headers": each.encrypted_headers} for each in found}
        return {each.name: hidden(shown(self.kind, each), clear[each.name]) for each in found}

    def wished(self, wish: Wish) -> Form:
        return marked(wish.given, {"encrypted_headers"})

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        if there:
            self._endpoints.update(team_id=caller.team_id, id_or_name=wish.name, **wish.draft)
        else:
            given = {"headers": {}, "encrypted_headers": {}, **wish.draft}
            self._endpoints.create(team_id=caller.team_id, uid=new_uid(), **given)

    def delete(self, caller: Caller, name: str) -> None:
        self._endpoints.delete(caller.team_id, name)


class SinkSection(Section):
    name, kind = "sinks", "sink"

    def __init__(self, sinks: Sinks, databases: Databases, endpoints: Endpoints) -> None:
        self._sinks = sinks
        self._databases = databases
        self._endpoints = endpoints

    def current(self, caller: Caller, shown: Shown) -> dict[str, Form]:
        views = self._sinks.list_views(caller.team_id, limit=None, cursor=None).items
        return {
            view.sink.name: hidden(
                shown(self.kind, view), {"destination": view.sink.destination_options}
            )
            for view in views
        }

    def wished(self, wish: Wish) -> Form:
        sent = wish.given.get("destination", {})
        known = {connector.type: connector for connector in self._sinks.types()}
        secrets = secret_fields(known.get(sent.get("type")))
        return {**wish.given, "destination": marked(sent, secrets)}

    def check(self, caller: Caller, wish: Wish, wishes: Wishes) -> None:
        there = _names(self._databases, caller)
        if (database := wish.given.get("database")) is not None:
            known = database in there
            check_known(wish, database, known, wishes, "databases")
        if (endpoint := wish.given.get("destination", {}).get("http_endpoint")) is not None:
            known = endpoint in _names(self._endpoints, caller)
            check_known(wish, endpoint, known, wishes, "http_endpoints")

    def put(self, caller: Caller, wish: Wish, *, there: bool) -> None:
        if there:
            self._sinks.update(team_id=caller.team_id, id_or_name=wish.name, draft=wish.draft)
            return
        self._sinks.create(
            team_id=caller.team_id,
            uid=new_uid(),
            draft=wish.draft,
            initial_backfill=wish.once or False,
            user_id=caller.user_id,
        )

    def delete(self, caller: Caller, name: str) -> None:
        self._sinks.delete(caller.team_id, name)


def _names(of: Databases | Endpoints, caller: Caller) -> set[str]:
    found = of.list_all(caller.team_id, limit=None, cursor=None).items
    return {each.name for each in found} | {each.id for each in found}


def secret_fields(connector: Connector | None) -> set[str]:
    fields = connector.options_model.model_fields if connector else {}
    return {name for name, field in fields.items() if SecretStr.__name__ in str(field.annotation)}


def marked(form: Form, secrets: set[str]) -> dict[str, Any]:
    """The form with these fields as secrets; of an object each value is one."""
    return {name: _mark(value) if name in secrets else value for name, value in form.items()}


def _mark(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: Secret(inner) for name, inner in value.items()}
    return value if value is None else Secret(value)
