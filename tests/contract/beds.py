"""How the contract suites find their beds: files that are just there, and tests that say for which
of them they are."""

import importlib
import importlib.util
import pkgutil
from abc import ABC
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypeVar

import pytest

from refill.connectors.kit.contract import Context
from tests.marks import NEEDS

Kind = TypeVar("Kind", bound="Bed")
Test = TypeVar("Test", bound=Callable[..., None])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--beds",
        type=Path,
        metavar="FOLDER",
        help="contract suites: the beds of another package's connectors, instead of ours",
    )


class Bed(ABC):
    """One system, as a test needs it. One that is a server names its `fixture`; `server_of` is
    what that gives."""

    name: ClassVar[str]
    connector_type: ClassVar[str]
    fixture: ClassVar[str | None] = None  # of the server that it needs

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self.request = request
        self.folder = folder
        self.context = Context(
            team_id=1, files_root=str(folder / "files"), allow_private_hosts=True
        )

    def start(self) -> None:  # noqa: B027
        """Before the test."""

    def stop(self) -> None:  # noqa: B027
        """After the test."""

    def server_of(self) -> Any:
        assert self.fixture is not None
        return self.request.getfixturevalue(self.fixture)


def for_beds(applies: Callable[[Any], bool]) -> Callable[[Test], Test]:
    """Marks a test as one for some beds only: it does not exist for the others. `applies` is given
    the bed's class."""

    def mark(test: Test) -> Test:
        test.applies_to = applies  # type: ignore[attr-defined]
        return test

    return mark


def find_beds(
    kind: type[Kind], package: ModuleType, folder: Path | None = None
) -> list[type[Kind]]:
    """Every bed of that kind in the package, or in somebody else's folder, by name."""
    modules = _below(folder) if folder else _inside(package)
    found = [
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, kind)
        and "name" in vars(thing)
        and thing.__module__ == module.__name__
    ]
    return sorted(found, key=lambda bed: bed.name)


def spread(metafunc: pytest.Metafunc, kind: type[Kind], package: ModuleType) -> None:
    """Every test runs over every bed, or over those that it says it is for (`for_beds`)."""
    if "bed" in metafunc.fixturenames:
        applies = getattr(metafunc.function, "applies_to", lambda bed: True)
        beds = find_beds(kind, package, metafunc.config.getoption("--beds"))
        chosen = [_param(bed) for bed in beds if applies(bed)]
        metafunc.parametrize("bed", chosen, indirect=True)


def _param(bed: type[Bed]) -> Any:
    marks = [getattr(pytest.mark, NEEDS[bed.fixture])] if bed.fixture else []
    return pytest.param(bed, id=bed.name, marks=marks)


def _inside(package: ModuleType) -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(package.__path__):
        yield importlib.import_module(f"{package.__name__}.{module.name}")


@cache
def _below(folder: Path) -> list[ModuleType]:
    files = sorted(folder.glob("*.py"))
    if not files:
        raise pytest.UsageError(f"--beds: there is no bed in {folder}.")
    modules = []
    for file in files:
        spec = importlib.util.spec_from_file_location(f"beds_of_others_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        modules.append(module)
    return modules
