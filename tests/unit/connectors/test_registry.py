"""The registry finds connectors without loading what they drive."""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from refill.connectors import BUILT_IN
from refill.connectors.kit import registry
from refill.connectors.kit.contract import Context, Options
from refill.domain.errors import Misconfigured
from tests.distributions import CONNECTOR, make_distribution

PIGEON = CONNECTOR.format(type="pigeon")

HEAVY = {"pyarrow", "polars", "adbc_driver_manager", "confluent_kafka", "pyspark", "pandas"}


def test_connectors_are_found_by_their_type() -> None:
    for type_name, connector in registry.load_connectors().items():
        assert connector.type == type_name
        assert connector.is_source == (connector.open_source is not None)
        assert (connector.is_sink or connector.is_destination) == (connector.open_sink is not None)
        assert connector.options_model.live <= set(connector.options_model.model_fields)


def test_loading_the_connectors_loads_no_driver() -> None:
    script = (
        "import sys; from refill.connectors.kit.registry import load_connectors; load_connectors();"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_import_linter_keeps_every_system_apart() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    systems = {".".join(value.split(":")[0].split(".")[:3]) for value in BUILT_IN.values()}
    named = [
        set(rule.get("forbidden_modules") or rule["modules"])
        for rule in project["tool"]["importlinter"]["contracts"]
        if "refill.connectors.files" in (rule.get("forbidden_modules") or rule.get("modules") or ())
    ]
    assert named == [systems] * 3


def test_an_unknown_type_names_those_there_are() -> None:
    with pytest.raises(Misconfigured, match="no connector 'carrier_pigeon'; there are: "):
        registry.load_connectors()["carrier_pigeon"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, for distributions that are installed while the test lasts."""
    before = set(sys.modules)
    # not by syspath_prepend: it walks importlib's caches, which another thread may be filling
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    registry.load_connectors.cache_clear()
    yield tmp_path
    registry.load_connectors.cache_clear()
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]


def install(folder: Path, name: str = "refill-pigeons", module: str = PIGEON) -> None:
    make_distribution(folder, name, module=module, entry_points={"pigeon": "CONNECTOR"})


def refusal() -> str:
    with pytest.raises(Misconfigured) as refused:
        registry.load_connectors()
    assert "\n" not in refused.value.message
    return refused.value.message


def test_another_packages_connector_stands_beside_ours(installed: Path) -> None:
    ours = set(registry.load_connectors())
    registry.load_connectors.cache_clear()
    install(installed)
    assert set(registry.load_connectors()) == {*ours, "pigeon"}
    assert registry.load_connectors()["pigeon"].distribution == "refill-pigeons"
    assert registry.load_connectors()["files"].distribution == "refill-backfills"
    assert registry.requirement_of("refill_pigeons.loft") == "refill-pigeons"


def test_two_packages_may_not_bring_the_same_type(installed: Path) -> None:
    install(installed)
    install(installed, "refill-squabs")
    assert refusal() == (
        "Two connectors call themselves 'pigeon'; one is refill_squabs:CONNECTOR: uninstall the "
        "package refill-squabs."
    )


def test_another_package_cannot_take_the_place_of_ours(installed: Path) -> None:
    files = CONNECTOR.format(type="files")
    make_distribution(installed, "a-thief", module=files, entry_points={"files": "CONNECTOR"})
    assert "Two connectors call themselves 'files'; one is a_thief:CONNECTOR" in refusal()


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("import a_driver_of_nobody", "No module named 'a_driver_of_nobody'"),
        ("PIGEON = 1", "has no attribute 'CONNECTOR'"),
        ("def broken(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        (PIGEON.replace("is_sink", "flies"), "unexpected keyword argument 'flies'"),
    ],
)
def test_a_connector_that_cannot_be_loaded_is_a_sentence(
    installed: Path, module: str, said: str
) -> None:
    install(installed, module=module)
    sentence = refusal()
    assert "The connector 'pigeon' cannot be loaded from refill_pigeons:CONNECTOR (" in sentence
    assert said in sentence
    assert "mend the package refill-pigeons, or uninstall it." in sentence


@pytest.mark.parametrize("module", ["CONNECTOR = 'pigeon'", CONNECTOR.format(type="dove")])
def test_what_is_no_connector_of_its_name_is_refused(installed: Path, module: str) -> None:
    install(installed, module=module)
    assert "refill_pigeons:CONNECTOR is no connector of the type 'pigeon'" in refusal()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("open_sink=open_sink", "open_sink=None", "is a sink and has no open_sink"),
        ("is_sink=True", "is_source=True", "is a source and has no open_source"),
        ("=Options", "=dict", "has an options_model that is not made from Options"),
        ("is_sink", "references={'loft': None}, is_sink", "has no option loft"),
    ],
)
def test_a_connector_that_does_not_keep_its_word_is_refused(
    installed: Path, old: str, new: str, said: str
) -> None:
    assert old in PIGEON
    install(installed, module=PIGEON.replace(old, new))
    assert f"The connector 'pigeon' of refill_pigeons:CONNECTOR {said}: mend" in refusal()


def test_a_missing_driver_says_what_to_install_and_whose_it_is(installed: Path) -> None:
    needy = PIGEON.replace("is_sink", "driver='a_driver_of_nobody', extra='wings', is_sink")
    install(installed, module=needy)
    connector = registry.load_connectors()["pigeon"]
    assert connector.open_sink is not None
    with pytest.raises(Misconfigured, match=r"pip install 'refill-pigeons\[wings\]'"):
        connector.open_sink(Options(), Context(team_id=1, files_root="/nowhere"))
    assert registry.requirement_of("a_driver_of_nobody") == "refill-pigeons[wings]"
