from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refill.spark.engine import SparkEngine
from tests.integration.worker.bed import Bed
from tests.spark import spark_engine

__all__ = ["spark_engine"]


@pytest.fixture
def make_bed(spark_engine: SparkEngine, tmp_path: Path) -> Callable[..., Bed]:
    def make(**settings: Any) -> Bed:
        return Bed(spark_engine, tmp_path / "home", **settings)

    return make


@pytest.fixture
def bed(make_bed: Callable[..., Bed]) -> Bed:
    return make_bed()
