"""What the driver delivers made what the schema promises: whole columns at a time, never a row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from refill.connectors.kit.fields import FieldNote
from refill.connectors.kit.instants import FAR_FIRST
from refill.connectors.postgres.native import SYSTEM, NativeType
from refill.connectors.postgres.types import TypeForm, form_of, nan_value
from refill.domain.errors import SourceChanged
from refill.domain.table import Column

# PostgreSQL counts from 2000 and the driver adds the difference to 1970 without looking: ±infinity,
# and what lies beyond Arrow's range, wrap around to values before PostgreSQL's first date.
_FIRST_DAY = -2_440_588
_DAY_INFINITY = -(2**31) + 10_956
_DAY_MINUS_INFINITY = -(2**31) + 10_957
_FIRST_INSTANT = _FIRST_DAY * 86_400_000_000
_INSTANT_INFINITY = -(2**63) + 946_684_799_999_999
_INSTANT_MINUS_INFINITY = -(2**63) + 946_684_800_000_000

_ARROW: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date32[day]": pa.date32(),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[us, tz=UTC]": pa.timestamp("us", tz="UTC"),
}
_Convert = Callable[[Any, Column, TypeForm], Any]
pc: Any = pyarrow.compute  # its stubs know fewer forms of these functions than it has
_buffer: Any = pa.py_buffer


def field_of(column: Column) -> "pa.Field[Any]":
    """A column's field, with the note that sinks go by."""
    form = form_of(column)
    is_decimal = form.arrow == "decimal128"
    nan = nan_value(form) if is_decimal else None
    note = FieldNote.of(column, SYSTEM, form.form, nan, NativeType.of(column).shape)
    kind: Any = pa.decimal128(form.precision, form.scale) if is_decimal else _ARROW[form.arrow]
    return pa.field(column.name, kind, metadata=note.metadata())


def schema_of(columns: Sequence[Column]) -> "pa.Schema":
    return pa.schema([field_of(column) for column in columns])


class Converter:
    """Turns the driver's batches into batches of the schema of `columns`."""

    def __init__(self, columns: Sequence[Column], what: str) -> None:
        self.schema = schema_of(columns)
        self._what = what
        self._columns = [(column, form_of(column)) for column in columns]

    def check(self, schema: "pa.Schema") -> None:
        """The first columns of the driver's result are of the types that were frozen."""
        for (column, form), field in zip(self._columns, schema, strict=False):
            wire = getattr(field.type, "storage_type", field.type)
            if str(wire) != form.wire:
                raise SourceChanged(
                    f"Column {column.name!r} of {self._what} is no longer {column.type}: refresh "
                    "the database's tables and start a new backfill."
                )

    def convert(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        arrays = [
            _CONVERT[form.convert](_storage(batch.column(position)), column, form)
            for position, (column, form) in enumerate(self._columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def split_days(
    batches: Iterable["pa.RecordBatch"], converter: Converter, numbers: Iterable[int]
) -> Iterator[Iterator["pa.RecordBatch"]]:
    """Rows that come in the order of their days, cut into one iterator per number wanted.

    The last column is the number of the row's day; a number that never comes is an empty day.
    """
    parts = _parts(batches, converter)
    waiting: list[tuple[int, pa.RecordBatch]] = []  # at most one: the first of the day to come

    def day(number: int) -> Iterator["pa.RecordBatch"]:
        while part := waiting.pop() if waiting else next(parts, None):
            if part[0] != number:
                waiting.append(part)
                return
            yield part[1]

    for number in numbers:
        wanted = day(number)
        yield wanted
        for _ in wanted:  # what nobody wanted must not be taken for the next day's
            pass


def _parts(
    batches: Iterable["pa.RecordBatch"], converter: Converter
) -> Iterator[tuple[int, "pa.RecordBatch"]]:
    """(number of a day, its rows within one batch)."""
    for batch in batches:
        # by its buffer: to_numpy would import pandas, which takes a second
        numbers: Any = batch.column(batch.num_columns - 1).buffers()[1]
        days = np.frombuffer(numbers, np.int32, batch.num_rows)
        edges = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(days)]
        converted = converter.convert(batch)
        for start, end in pairwise(edges):
            yield int(days[start]), converted.slice(start, end - start)


def _storage(array: Any) -> Any:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _take(array: Any, column: Column, form: TypeForm) -> Any:
    return array


def _bytes_text(array: Any, column: Column, form: TypeForm) -> Any:
    # the server sent it in UTF-8, as it does with text: nothing to check or copy
    return array.view(pa.string())


def _date(array: Any, column: Column, form: TypeForm) -> Any:
    days = array.view(pa.int32())
    smallest = pc.min(days).as_py()
    if smallest is None or smallest >= _FIRST_DAY:
        return array
    return _replaced(
        days,
        {_DAY_INFINITY: 2**31 - 1, _DAY_MINUS_INFINITY: -(2**31)},
    ).view(array.type)


def _timestamp(array: Any, column: Column, form: TypeForm) -> Any:
    instants = array.view(pa.int64())
    ends = pc.min_max(instants).as_py()
    if ends["min"] is None or (ends["min"] >= _FIRST_INSTANT and ends["max"] < 2**63 - 1):
        return array
    named = {_INSTANT_INFINITY: 2**63 - 1, _INSTANT_MINUS_INFINITY: -(2**63)}
    # what wrapped around, from -2^63 on, and the largest itself, which here is infinity
    wrapped = pc.less(instants, pa.scalar(_INSTANT_INFINITY, pa.int64()))
    far = pc.add(instants, pa.scalar(2**63 + 1 + FAR_FIRST, pa.int64()))
    found = pc.if_else(wrapped, far, _replaced(instants, named))
    largest = pc.equal(instants, pa.scalar(2**63 - 1, pa.int64()))
    return pc.if_else(largest, pa.scalar(FAR_FIRST, pa.int64()), found).view(array.type)


def _replaced(array: Any, mapping: dict[int, int]) -> Any:
    """The integers with some of them replaced, all at once: a replacement is not replaced again."""
    result = array
    for old, new in mapping.items():
        result = pc.if_else(
            pc.equal(array, pa.scalar(old, array.type)), pa.scalar(new, array.type), result
        )
    return result


def _decimal(array: Any, column: Column, form: TypeForm) -> Any:
    kind = pa.decimal128(form.precision, form.scale)
    try:
        if _has_letters(array):
            array = pc.if_else(pc.equal(array, "NaN"), nan_value(form), array)
        return array.cast(kind)
    except pa.ArrowInvalid as exc:
        raise SourceChanged(
            f"Column {column.name!r} holds a number that does not fit {column.type}: its type "
            "changed. Refresh the database's tables and start a new backfill."
        ) from exc


def _has_letters(array: Any) -> bool:
    """Whether any text in the column has a letter; digits, point and sign all lie below."""
    data = array.buffers()[2]
    return data is not None and bool((np.frombuffer(data, np.uint8) > ord("9")).any())


_HEX = np.frombuffer(
    b"".join(b"%02x" % value for value in range(256)), dtype=np.uint16
)  # two characters a byte
_UUID_PARTS = ((0, 0, 8), (9, 8, 12), (14, 12, 16), (19, 16, 20), (24, 20, 32))


def _uuid_text(array: Any, column: Column, form: TypeForm) -> Any:
    count = len(array)
    raw = np.frombuffer(array.buffers()[1], np.uint8, count * 16, array.offset * 16)
    digits = _HEX[raw].view(np.uint8).reshape(count, 32)
    text = np.full((count, 36), ord("-"), np.uint8)
    for at, start, end in _UUID_PARTS:
        text[:, at : at + end - start] = digits[:, start:end]
    offsets = np.arange(0, 36 * (count + 1), 36, dtype=np.int32)
    validity = pc.is_valid(array).buffers()[1] if array.null_count else None
    return pa.StringArray.from_buffers(
        count, _buffer(offsets), _buffer(text), validity, array.null_count
    )


_CONVERT: dict[str, _Convert] = {
    "take": _take,
    "date": _date,
    "timestamp": _timestamp,
    "decimal": _decimal,
    "uuid_text": _uuid_text,
    "bytes_text": _bytes_text,
}
