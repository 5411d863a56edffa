"""A task that is killed with -9 in the middle of its slice, in a process of its own."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from refill.connectors.kit.contract import Context, Job
from refill.domain.slice import Ticket

_SCRIPT = "from tests.contract.sinks.death import main; main()"


def die_while_writing(
    connector_type: str,
    options: Mapping[str, Any],
    context: Context,
    job: Job,
    ticket: Ticket,
    batches: list[pa.RecordBatch],
) -> None:
    """The process takes all batches and is killed when the sink asks for one more."""
    order = pickle.dumps((connector_type, dict(options), context, job, ticket, batches))
    done = subprocess.run([sys.executable, "-c", _SCRIPT], input=order, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


def main() -> None:
    from refill.connectors.kit.registry import load_connectors

    connector_type, options, context, job, ticket, batches = pickle.load(sys.stdin.buffer)
    connector = load_connectors()[connector_type]
    assert connector.open_sink is not None
    sink = connector.open_sink(connector.options_model.model_validate(options), context)

    def then_killed() -> Iterator[pa.RecordBatch]:
        yield from batches
        os.kill(os.getpid(), signal.SIGKILL)

    sink.write(job, ticket, batches[0].schema, then_killed())
