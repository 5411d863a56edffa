"""Finds the connectors: every module or package here that declares a `CONNECTOR`.

The API imports this at its start, so nothing here may pull in a driver: only modules whose text
declares a connector are imported, and those import pyarrow and their drivers when they are used.
"""

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, TypeVar

import refill.connectors
from refill.connectors.contract import Connector, Context
from refill.domain.errors import Misconfigured

T = TypeVar("T")

# `CONNECTOR = Connector(…)`, or `CONNECTORS = (…)` where one module has several of a kind
_DECLARATION = re.compile(r"^CONNECTORS?\s*[:=]", re.MULTILINE)


@cache
def load_connectors() -> Mapping[str, Connector]:
    """Every connector by its type, in the order of their names."""
    found: dict[str, Connector] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(refill.connectors.__path__)):
        for connector in _declared_in(f"{refill.connectors.__name__}.{name}"):
            if connector.type in found:
                raise Misconfigured(f"Two connectors call themselves {connector.type!r}.")
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


def _declared_in(name: str) -> tuple[Connector, ...]:
    spec = find_spec(name)
    loader = spec.loader if spec else None
    source = loader.get_source(name) if isinstance(loader, InspectLoader) else None
    if not source or not _DECLARATION.search(source):
        return ()
    module = importlib.import_module(name)
    several: tuple[Connector, ...] = getattr(module, "CONNECTORS", ())
    return several or (module.CONNECTOR,)


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
