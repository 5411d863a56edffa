"""Notebooks: a line per message, at the end of a file below the team's root."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from refill.connectors.kit.contract import Connector, Context, Guarantee, Job, Options
from refill.connectors.kit.message_sink import MessageSink
from refill.domain.errors import SinkRefused

if TYPE_CHECKING:
    from refill.connectors.kit.message_sink import Outgoing


class NotebookOptions(Options):
    title: str = Field(description="name of the notebook", pattern=r"^[a-z]{1,40}$")


class NotebookSink(MessageSink):
    def __init__(self, options: NotebookOptions, context: Context) -> None:
        self._file = Path(context.files_root, str(context.team_id), f"{options.title}.jsonl")

    def test(self) -> None:
        if self._file.is_dir():
            raise SinkRefused(f"{self._file} is a folder; choose another title.")

    def send(self, job: Job, outgoing: "Outgoing") -> None:
        self.test()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        lines = b"".join(value + b"\n" for value in outgoing.value_bytes())
        # one write to the end of it: slices that run side by side do not cut each other's lines
        page = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            assert os.write(page, lines) == len(lines)
        finally:
            os.close(page)

    def close(self) -> None: ...


def open_sink(options: NotebookOptions, context: Context) -> Any:
    return NotebookSink(options, context)


CONNECTOR = Connector(
    type="notebook",
    title="Notebook",
    options_model=NotebookOptions,
    is_sink=True,
    guarantee=Guarantee.AT_LEAST_ONCE,
    guarantee_note="every line carries its idempotency key",
    open_sink=open_sink,
)
