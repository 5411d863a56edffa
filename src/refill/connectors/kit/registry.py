"""Finds the connectors: the built-in ones by a table, those of other packages by entry points.

A package brings a connector with an entry point in the group `refill.connectors`, whose name is the
connector's type. The API imports all of them at its start, so none may pull in a driver: they
import pyarrow and their drivers when they are used.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, TypeVar

from refill.connectors import BUILT_IN
from refill.connectors.kit.contract import Connector, Context
from refill.domain.errors import Misconfigured

T = TypeVar("T")

GROUP = "refill.connectors"


@cache
def load_connectors() -> Mapping[str, Connector]:
    """Every connector by its type, in the order of their names."""
    found: dict[str, Connector] = {}
    for entry in _entries():
        connector = _load(entry)
        if entry.name in found:
            raise Misconfigured(
                f"Two connectors call themselves {entry.name!r}; one is {entry.value}: uninstall "
                "the package that brings it."
            )
        found[connector.type] = _with_driver_checked(connector)
    return MappingProxyType(dict(sorted(found.items())))


def get_connector(type_name: str) -> Connector:
    """The connector of that type, or a sentence that names those there are."""
    connectors = load_connectors()
    if type_name not in connectors:
        raise Misconfigured(
            f"There is no connector {type_name!r}; there are: {', '.join(connectors)}."
        )
    return connectors[type_name]


def _entries() -> Iterator[EntryPoint]:
    """The built-in ones first: another package cannot take their place."""
    for name, value in BUILT_IN.items():
        yield EntryPoint(name, value, GROUP)
    yield from sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))


def _load(entry: EntryPoint) -> Connector:
    try:
        connector = entry.load()
    except (ImportError, AttributeError) as exc:
        raise Misconfigured(
            f"The connector {entry.name!r} cannot be loaded from {entry.value} ({exc}): mend the "
            "package that brings it, or uninstall it."
        ) from exc
    if not isinstance(connector, Connector) or connector.type != entry.name:
        raise Misconfigured(
            f"{entry.value} is no connector of the type {entry.name!r}: mend the package that "
            "brings it, or uninstall it."
        )
    return connector


def _with_driver_checked(connector: Connector) -> Connector:
    """Opening it without its driver says what to install, instead of an ImportError later."""
    if connector.driver is None:
        return connector
    return dataclasses.replace(
        connector,
        open_source=connector.open_source and _checked(connector, connector.open_source),
        open_sink=connector.open_sink and _checked(connector, connector.open_sink),
    )


def _checked(
    connector: Connector, opener: Callable[[Any, Context], T]
) -> Callable[[Any, Context], T]:
    def open_checked(options: Any, context: Context) -> T:
        if connector.driver is not None and find_spec(connector.driver) is None:
            raise Misconfigured(
                f"The {connector.type} connector needs the package {connector.driver!r}, which is "
                f"not installed; install it with: "
                f"pip install 'refill-backfills[{connector.extra or connector.type}]'"
            )
        return opener(options, context)

    return open_checked
