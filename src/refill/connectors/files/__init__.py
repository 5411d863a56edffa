"""Files: Parquet or JSON lines below the team's own root, one file per slice, replaced whole."""

from typing import Literal

from pydantic import Field, field_validator

from refill.connectors.kit.contract import Connector, Context, Guarantee, Options, Sink
from refill.domain.pipeline import Kind


class FilesOptions(Options):
    path: str = Field(description="folder below the team's root; made when it is not there")
    format: Literal["parquet", "jsonl"] = Field("parquet", description="parquet or jsonl")

    @field_validator("path")
    @classmethod
    def stays_inside(cls, path: str) -> str:
        """Relative, without a way up, and without what readers of such folders pass over."""
        parts = path.rstrip("/").split("/")
        if not parts[0]:
            raise ValueError("must be a relative path, such as exports/orders")
        for part in parts:
            if part in ("", ".", ".."):
                raise ValueError("must not contain '..', '.' or '//'")
            if part.startswith(("_", ".")):
                raise ValueError("no part of it may start with '_' or '.': readers pass over those")
            if any(ord(letter) < 32 for letter in part) or len(part.encode()) > 200:
                raise ValueError("each part must be printable and at most 200 bytes long")
        return "/".join(parts)


def _open_sink(options: FilesOptions, context: Context) -> Sink:
    from refill.connectors.files.sink import FilesSink

    return FilesSink(options, context)


CONNECTOR = Connector(
    type="files",
    title="Files",
    options_model=FilesOptions,
    is_sink=True,
    is_destination=True,
    guarantee=Guarantee.REPLACE,
    guarantee_note=(
        "one file per slice; a date is swapped by a rename, a table's set of files by one pointer "
        "once all of them are there"
    ),
    seals=frozenset(Kind),
    heavy_modules=(
        "pyarrow.parquet",
        "refill.connectors.files.formats",
        "refill.connectors.files.sink",
    ),
    alone_at="path",
    open_sink=_open_sink,
)
