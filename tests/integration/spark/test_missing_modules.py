"""A Python worker that cannot import a connector: said once, by name, and not tried again."""

import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from refill.connectors.kit.contract import Connector
from refill.domain.errors import Misconfigured
from refill.packs.faults import fault_of
from refill.spark.engine import SparkEngine
from tests.integration.spark.assignments import make_assignment, make_spec, make_ticket
from tests.sheets import SHEETS

pytestmark = pytest.mark.spark

MODULE = "refill_left_at_home"
SOURCE = """
from tests.sheets import SheetSink

def open_sink(options, context):
    return SheetSink(options, context)
"""


@pytest.fixture
def left_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connector]:
    """A connector whose package is on the worker's path and on no executor's."""
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    # not by syspath_prepend: it walks importlib's caches, which another thread may be filling
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    opener = importlib.import_module(MODULE).open_sink
    yield dataclasses.replace(SHEETS, type="left", open_sink=opener)
    del sys.modules[MODULE]


@pytest.mark.parametrize("transform", [None, "select id, doc as body from source"])
def test_a_package_that_executors_lack_is_terminal_and_named(
    spark_engine: SparkEngine, left_at_home: Connector, tmp_path: Path, transform: str | None
) -> None:
    engine = SparkEngine(spark_engine._settings, {"sheets": SHEETS, "left": left_at_home})
    engine._link = spark_engine._link
    assignment = make_assignment(
        tmp_path / "out",
        [make_ticket(1)],
        spec=make_spec(transform=transform, sink_type="left"),
        sink_type="left",
    )
    with pytest.raises(Misconfigured, match=f"The Python module '{MODULE}' is not installed") as e:
        engine.run(assignment)
    fault = fault_of(e.value)
    assert (fault.code, fault.transient) == ("misconfigured", False)
