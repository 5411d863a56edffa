"""One Spark for the whole test run. Import `spark_engine` into a conftest to use it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from refill.connectors.kit.registry import load_connectors
from refill.settings import Settings
from refill.spark.engine import SparkEngine
from tests.sheets import SHEETS


@pytest.fixture(scope="session")
def spark_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """A warm engine on two local cores that knows every connector and the tests' own."""
    root = str(Path(__file__).parent.parent)
    # so that Python workers can import the tests' own connectors
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    settings = Settings(home=tmp_path_factory.mktemp("spark-home"), spark_master="local[2]")
    engine = SparkEngine(settings, {**load_connectors(), SHEETS.type: SHEETS})
    engine.start()
    yield engine
    engine.stop()
