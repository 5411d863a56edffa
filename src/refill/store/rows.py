"""Rows to records and back: times, JSON, counters."""

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any

import orjson
import sqlalchemy as sa
from pydantic import Field, TypeAdapter

from refill.domain.backfill import Backfill, CountedBackfill, Counters, Order, Origin, Status
from refill.domain.pipeline import Kind
from refill.domain.slice import Extent, Slice, SliceState
from refill.domain.spec import Spec
from refill.domain.table import Record, Table

AnyRow = sa.RowMapping | Mapping[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONG_INTEGER = re.compile(r"[0-9]{19}")
_EXTENT: TypeAdapter[Extent] = TypeAdapter(Annotated[Extent, Field(discriminator="kind")])
_SPEC: TypeAdapter[Spec] = TypeAdapter(Annotated[Spec, Field(discriminator="kind")])
_TABLES: TypeAdapter[tuple[Table, ...]] = TypeAdapter(tuple[Table, ...])


def dicts(result: sa.CursorResult[Any]) -> list[dict[str, Any]]:
    """Rows as plain dictionaries: several times faster to read than row mappings."""
    names = tuple(result.keys())
    return [dict(zip(names, row, strict=True)) for row in result]


def to_micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def to_micros_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def to_datetime(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def to_datetime_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def to_json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=_plain).decode()
    except orjson.JSONEncodeError as exc:
        if "64-bit" not in str(exc):
            raise
        # orjson knows no longer integers; json does, and is slower
        return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    # orjson reads an integer beyond 64 bits as the float nearest to it
    return json.loads(text) if _LONG_INTEGER.search(text) else orjson.loads(text)


def tables_to_json(tables: Iterable[Table]) -> str:
    return _TABLES.dump_json(tuple(tables), exclude_defaults=True).decode()


@lru_cache(maxsize=16)
def tables_of(text: str) -> tuple[Table, ...]:
    return _TABLES.validate_json(text)


def spec_to_json(spec: Spec) -> str:
    """With its defaults: a default that changes later must not reach into it."""
    return spec.model_dump_json()


@lru_cache(maxsize=2048)
def spec_of(text: str) -> Spec:
    """Frozen, so that all readers may share one: a list of backfills is read again and again."""
    return _SPEC.validate_json(text)


@lru_cache(maxsize=4096)
def extent_of(text: str) -> Extent:
    return _EXTENT.validate_json(text)


def counters_to_json(counters: Counters) -> str:
    return to_json(dataclasses.asdict(counters))


def counters_of(text: str) -> Counters:
    return Counters(**orjson.loads(text))


def backfill_of(row: AnyRow) -> Backfill:
    return Backfill(**_backfill_fields(row))


def counted_of(row: AnyRow, counters: Counters) -> CountedBackfill:
    return CountedBackfill(**_backfill_fields(row), counters=counters)


def slice_of(row: AnyRow) -> Slice:
    return Slice(
        id=row["id"],
        backfill_id=row["backfill_id"],
        index=row["index"],
        extent=extent_of(row["extent"]),
        target=row["target"],
        state=SliceState(row["state"]),
        attempt=row["attempt"],
        failures=row["failures"],
        pack=row["pack"],
        worker=row["worker"],
        lease_until=to_datetime_or_none(row["lease_until"]),
        not_before=to_datetime_or_none(row["not_before"] or None),
        rows_estimated=row["rows_estimated"],
        rows_read=row["rows_read"],
        rows_delivered=row["rows_delivered"],
        rows_filtered=row["rows_filtered"],
        rows_rejected=row["rows_rejected"],
        bytes_written=row["bytes_written"],
        seconds=row["seconds"],
        error=row["error"],
        error_code=row["error_code"],
        queued_at=to_datetime(row["queued_at"]),
        started_at=to_datetime_or_none(row["started_at"]),
        ended_at=to_datetime_or_none(row["ended_at"]),
    )


def _backfill_fields(row: AnyRow) -> dict[str, Any]:
    return dict(
        id=row["id"],
        uid=row["uid"],
        team_id=row["team_id"],
        kind=Kind(row["kind"]),
        pipeline_id=row["pipeline_id"],
        pipeline_name=row["pipeline_name"],
        origin=Origin(row["origin"]),
        status=Status(row["status"]),
        spec=spec_of(row["spec"]),
        range_start=_date_or_none(row["range_start"]),
        range_end=_date_or_none(row["range_end"]),
        order=Order(row["order"]),
        max_concurrent=row["max_concurrent"],
        reason=row["reason"],
        slices_planned=row["slices_planned"],
        planned=row["planned"],
        rows_estimated=row["rows_estimated"],
        error=row["error"],
        error_code=row["error_code"],
        created_at=to_datetime(row["created_at"]),
        created_user_id=row["created_user_id"],
        updated_at=to_datetime(row["updated_at"]),
        started_at=to_datetime_or_none(row["started_at"]),
        ended_at=to_datetime_or_none(row["ended_at"]),
        paused_at=to_datetime_or_none(row["paused_at"]),
        completed_at=to_datetime_or_none(row["completed_at"]),
        failed_at=to_datetime_or_none(row["failed_at"]),
        cancelled_at=to_datetime_or_none(row["cancelled_at"]),
        cancelled_user_id=row["cancelled_user_id"],
        idle_seconds=row["idle"] / 1_000_000,
    )


def _date_or_none(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
