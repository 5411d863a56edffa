"""What a fresh Python worker of Spark's does before its first pack: importing takes a second."""

import gc
import importlib
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from refill.connectors.kit.contract import Connector

if TYPE_CHECKING:
    import pyarrow as pa

_OURS = ("pyarrow.compute", "polars", "refill.spark.lane_sql")


class WarmUp:
    """The function that Spark carries to each core."""

    def __init__(self, connectors: Iterable[Connector]) -> None:
        named = (module for connector in connectors for module in connector.heavy_modules)
        self._modules = tuple(dict.fromkeys((*_OURS, *named)))

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        for _ in batches:
            pass
        for name in self._modules:
            try:
                importlib.import_module(name)
            except ImportError:  # an extra that is not installed
                continue
        # what was imported stays: the collector need not walk it again and again under the data
        gc.freeze()
        # so that each of these tasks lands in a process of its own
        time.sleep(0.05)
        yield pa.RecordBatch.from_pydict({"done": [True]})
