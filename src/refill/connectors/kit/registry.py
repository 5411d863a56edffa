"""Finds the connectors: the built-in ones by a table, those of other packages by entry points.

A package brings a connector with an entry point in the group `refill.connectors`, whose name is the
connector's type. The API imports all of them at its start, so none may pull in a driver: they
import pyarrow and their drivers when they are used.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, TypeVar

from refill.connectors import BUILT_IN
from refill.connectors.kit.contract import OURS, Connector, Context, Options
from refill.connectors.kit.drivers import require_driver, requirement
from refill.domain.errors import Misconfigured

T = TypeVar("T")

GROUP = "refill.connectors"


class Connectors(dict[str, Connector]):
    """By type. One that is not there, since a pipeline may outlive its connector's package, is a
    sentence that names those there are."""

    def __missing__(self, type_name: str) -> Connector:
        raise Misconfigured(
            f"There is no connector {type_name!r}; there are: {', '.join(self)}. Install the "
            "package that brings it."
        )


@cache
def load_connectors() -> Mapping[str, Connector]:
    """Every connector by its type, in the order of their names. Misconfigured when one of them
    cannot be had: a pipeline of its type would be lost without a word."""
    found: dict[str, Connector] = {}
    for entry in _entries():
        connector = _load(entry)
        if entry.name in found:
            raise Misconfigured(
                f"Two connectors call themselves {entry.name!r}; one is {entry.value}: uninstall "
                f"{_bringer(entry)}."
            )
        found[connector.type] = _with_driver_checked(connector)
    return MappingProxyType(Connectors(sorted(found.items())))


def requirement_of(module: str) -> str | None:
    """What pip installs to bring a module that a connector is in, or that it drives its system
    with; None where no connector says so."""
    package = _package(module)
    for entry in _entries():
        if _package(entry.module) == package:
            return entry.dist.name if entry.dist else OURS
    for connector in load_connectors().values():
        if connector.driver is not None and _package(connector.driver) == package:
            return requirement(connector)
    return None


def _package(module: str) -> str:
    return module.partition(".")[0]


def _entries() -> Iterator[EntryPoint]:
    """The built-in ones first: another package cannot take their place."""
    for name, value in BUILT_IN.items():
        yield EntryPoint(name, value, GROUP)
    yield from sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))


def _load(entry: EntryPoint) -> Connector:
    try:
        connector = entry.load()
    except Exception as exc:  # whatever somebody's module does while it is imported
        said = f"{type(exc).__name__}: {exc}".splitlines()[0]
        raise Misconfigured(
            f"The connector {entry.name!r} cannot be loaded from {entry.value} ({said}): mend "
            f"{_bringer(entry)}, or uninstall it."
        ) from exc
    if not isinstance(connector, Connector) or connector.type != entry.name:
        raise Misconfigured(
            f"{entry.value} is no connector of the type {entry.name!r}: mend {_bringer(entry)}, "
            "or uninstall it."
        )
    if (gap := _gap(connector)) is not None:
        raise Misconfigured(
            f"The connector {entry.name!r} of {entry.value} {gap}: mend {_bringer(entry)}, or "
            "uninstall it."
        )
    return replace(connector, distribution=entry.dist.name) if entry.dist else connector


def _gap(connector: Connector) -> str | None:
    """What it says of itself and does not keep, so that it shows now and not in a slice."""
    model = connector.options_model
    if not isinstance(model, type) or not issubclass(model, Options):
        return "has an options_model that is not made from Options"
    if connector.is_source and connector.open_source is None:
        return "is a source and has no open_source"
    if (connector.is_sink or connector.is_destination) and connector.open_sink is None:
        return "is a sink and has no open_sink"
    unknown = sorted((model.live | connector.references.keys()) - model.model_fields.keys())
    return f"has no option {', '.join(unknown)}" if unknown else None


def _bringer(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist else "the package that brings it"


def _with_driver_checked(connector: Connector) -> Connector:
    """Opening it without its driver says what to install, instead of an ImportError later."""
    if connector.driver is None:
        return connector
    return replace(
        connector,
        open_source=connector.open_source and _checked(connector, connector.open_source),
        open_sink=connector.open_sink and _checked(connector, connector.open_sink),
    )


def _checked(
    connector: Connector, opener: Callable[[Any, Context], T]
) -> Callable[[Any, Context], T]:
    def open_checked(options: Any, context: Context) -> T:
        require_driver(connector)
        return opener(options, context)

    return open_checked
