"""The parts of a message as pieces of JSON: its metadata, what is sent alone, where it goes."""

import json
from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from refill.connectors.kit.json_form.records import Piece, assemble, value_pieces
from refill.connectors.kit.json_form.texts import Style, embedded
from refill.connectors.kit.json_form.values import bare_texts
from refill.domain.spec import ENRICHMENT, MESSAGE, ROUTE, SinkSpec

HEADERS = "headers"


def style_of(spec: SinkSpec) -> Style:
    return Style(spec.timestamp_format, spec.numeric_format, nested=True)


def object_pieces(values: Mapping[str, Any]) -> list[Piece]:
    """An object; a list among the values is pieces of JSON already."""
    pieces: list[Piece] = []
    for name, value in values.items():
        pieces.append(f"{',' if pieces else '{'}{_json(name)}:")
        pieces.extend(value if isinstance(value, list) else [_json(value)])
    return [*pieces, "}"]


def enrichment_of(batch: pa.RecordBatch) -> list[Piece]:
    place = batch.schema.get_field_index(ENRICHMENT)
    return ["null"] if place < 0 else [embedded(batch.column(place)).json()]


def alone(
    spec: SinkSpec, batch: pa.RecordBatch, record: list[Piece], metadata: Mapping[str, Any]
) -> list[Piece] | None:
    """What is sent instead of the whole message; None: the whole message is."""
    if spec.message_column is not None:
        place = batch.schema.get_field_index(MESSAGE)
        if place < 0:
            return ["null"]
        if spec.message_column == "json":
            return [embedded(batch.column(place)).json()]
        return _column(spec, batch, place)
    if spec.message_path is None:
        return None
    head, *rest = spec.message_path.split(".")
    if head == "record":
        return record if not rest else _field(spec, batch, ".".join(rest))
    if head == "metadata":
        return _within(metadata, rest)
    return ['"read"'] if head == "action" else ["null"]


def routes_of(batch: pa.RecordBatch) -> dict[str, pl.Series]:
    """By field; headers are the text of a JSON object. NULL: as it is without routing."""
    found = {}
    for place, field in enumerate(batch.schema):
        if field.name.startswith(ROUTE):
            column: Any = batch.column(place)
            name = field.name.removeprefix(ROUTE)
            if name == HEADERS and not pa.types.is_string(column.type):
                pieces = list(value_pieces(column, field, Style()))
                texts = assemble(pieces, batch.num_rows)
                found[name] = texts.set(texts == "null", None)
            else:
                found[name] = bare_texts(column, field)
    return found


def _field(spec: SinkSpec, batch: pa.RecordBatch, name: str) -> list[Piece]:
    place = batch.schema.get_field_index(name)
    return ["null"] if place < 0 else _column(spec, batch, place)


def _column(spec: SinkSpec, batch: pa.RecordBatch, place: int) -> list[Piece]:
    return list(value_pieces(batch.column(place), batch.schema.field(place), style_of(spec)))


def _within(values: Mapping[str, Any], path: list[str]) -> list[Piece]:
    found: Any = values
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    if isinstance(found, list):
        return found
    return object_pieces(found) if found is values else [_json(found)]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
