"""Drivers that extras bring: every extra has its connectors, and they say what they need."""

import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from refill.connectors.kit.contract import Connector, Options
from refill.connectors.kit.drivers import has_driver, install_command, require_driver, requirement
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import Misconfigured

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
# a PostgreSQL to show refill with; what signs for a Kafka of AWS, beside the driver
NO_CONNECTOR = {"demo", "msk"}


def extras() -> dict[str, list[str]]:
    """extra → the distributions that it brings."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    return {
        extra: [Requirement(text).name for text in required]
        for extra, required in declared.items()
        if extra not in NO_CONNECTOR
    }


@pytest.mark.parametrize("extra", sorted(extras()))
def test_an_extra_brings_the_driver_of_a_connector(extra: str) -> None:
    drivers = {each.driver for each in load_connectors().values() if each.extra == extra}
    assert drivers
    assert None not in drivers
    brought = {name for driver in drivers for name in packages_distributions()[str(driver)]}
    assert brought == set(extras()[extra])


def test_a_driver_comes_with_an_extra_that_there_is() -> None:
    for connector in load_connectors().values():
        assert (connector.driver is None) == (connector.extra is None), connector.type
        assert connector.extra is None or connector.extra in extras()


def make_pigeon(driver: str | None, **changes: str) -> Connector:
    return Connector(type="pigeon", title="Pigeon", options_model=Options, driver=driver, **changes)


def test_a_missing_driver_is_a_sentence_with_the_command() -> None:
    pigeon = make_pigeon("no_such_loft.pigeons", extra="pigeons")
    assert not has_driver(pigeon)
    with pytest.raises(Misconfigured) as refused:
        require_driver(pigeon)
    assert refused.value.message == (
        "The pigeon connector needs the package 'no_such_loft.pigeons', which is not installed; "
        "install it with: pip install 'refill-backfills[pigeons]'"
    )


def test_a_driver_that_is_here_or_not_needed_is_no_hindrance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_driver(make_pigeon(None))
    require_driver(make_pigeon("json"))
    monkeypatch.setitem(sys.modules, "json", None)
    assert not has_driver(make_pigeon("json"))


def test_the_package_of_somebody_else_is_the_one_to_install() -> None:
    alone = make_pigeon("json", distribution="refill-pigeons")
    assert install_command(requirement(alone)) == "pip install refill-pigeons"
