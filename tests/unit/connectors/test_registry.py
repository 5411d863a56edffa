"""The registry finds connectors without loading what they drive."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from refill.connectors.kit import registry
from refill.connectors.kit.contract import Connector, Context, Options, Sink
from refill.domain.errors import Misconfigured

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


def test_an_unknown_type_names_those_there_are() -> None:
    with pytest.raises(Misconfigured, match="no connector 'carrier_pigeon'; there are: "):
        registry.get_connector("carrier_pigeon")


def test_a_missing_driver_says_what_to_install() -> None:
    def never(options: Options, context: Context) -> Sink:
        raise AssertionError

    assert find_spec("a_driver_that_is_not_there") is None
    connector = registry._with_driver_checked(
        Connector(
            type="pigeon",
            title="Pigeon",
            options_model=Options,
            is_sink=True,
            extra="pigeons",
            driver="a_driver_that_is_not_there",
            open_sink=never,
        )
    )
    assert connector.open_sink is not None
    with pytest.raises(Misconfigured, match=r"pip install 'refill-backfills\[pigeons\]'"):
        connector.open_sink(Options(), Context(team_id=1, files_root="/nowhere"))
