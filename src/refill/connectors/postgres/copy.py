"""Arrow columns as binary COPY takes them: whole columns at a time, never a row.

The driver writes integers, texts and bytes as they are; what PostgreSQL's own binary form needs
beyond that (days since 2000, the version byte of jsonb, the 16 bytes of a uuid) is made here.
A type without such a form goes to a staging table as text, and PostgreSQL itself reads it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from refill.connectors.kit.fields import Form, note_of
from refill.connectors.kit.instants import FAR_FIRST, is_far
from refill.connectors.postgres.ddl import Target, TargetColumn, column_type
from refill.connectors.postgres.quoting import identifier, literal
from refill.connectors.postgres.type_names import type_sql
from refill.domain.errors import SinkRefused

_DAYS_TO_2000 = 10_957
_MICROSECONDS_TO_2000 = _DAYS_TO_2000 * 86_400_000_000
_TEXTS = {"text", "varchar", "bpchar", "name"}
_INTEGERS = {"int2": 1, "int4": 2, "int8": 3}
_NUMBERS = r"\((-?\d+(?:,-?\d+)*)\)"
_Encode = Callable[[Any], Any]

# (typname of the source's type) → how its Arrow column becomes PostgreSQL's binary form
_SAME = {
    "boolean": "bool",
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "real": "float4",
    "double precision": "float8",
    "text": "text",
    "character varying": "varchar",
    "character": "bpchar",
    "name": "name",
    "bytea": "bytea",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "numeric": "numeric",
    "json": "json",
    "jsonb": "jsonb",
    "uuid": "uuid",
}


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    name: str
    encode: _Encode
    staged_as: str  # its type in the staging table
    select: str  # from there to the target
    direct: bool  # COPY may write it into the target itself
    not_a_number: Any | None = None  # what stands for NaN in a decimal column


def plan_columns(schema: pa.Schema, target: Target) -> list[ColumnPlan]:
    return [_plan(field, target.columns[field.name], target) for field in schema]


def encode_batch(batch: pa.RecordBatch, plans: Sequence[ColumnPlan]) -> pa.RecordBatch:
    columns = [plan.encode(batch.column(n)) for n, plan in enumerate(plans)]
    return pa.RecordBatch.from_arrays(columns, names=[plan.name for plan in plans])


def holds_nan(batch: pa.RecordBatch, plans: Sequence[ColumnPlan]) -> bool:
    """A decimal has no binary NaN here: such a batch goes through the staging table."""
    return any(
        plan.not_a_number is not None
        and bool(pc.any(pc.equal(batch.column(n), plan.not_a_number)).as_py())
        for n, plan in enumerate(plans)
    )


def _plan(field: Any, column: TargetColumn, target: Target) -> ColumnPlan:
    note = note_of(field)
    source = column_type(field)
    base = _SAME.get(_base_name(source))
    name = identifier(field.name)
    _refuse_loss(field.name, source, base, column, target)
    same = base == column.type_name
    if note.form is Form.PLAIN:
        encode, natural = _plain(field.type)
        if note.nan:
            value = literal(note.nan)
            select = f"CASE WHEN {name} = {value} THEN 'NaN' ELSE {name} END"
            scalar = pa.scalar(note.nan).cast(field.type)
            return ColumnPlan(field.name, encode, "numeric", select, same, scalar)
        # text is put into a shorter column by assignment, which complains; a cast would cut it
        texts = natural == "text" and column.type_name in _TEXTS
        direct = same or texts
        select = name if direct or natural == column.type_name else _cast(name, column)
        return ColumnPlan(field.name, encode, natural, select, direct)
    if same and base == "json":
        return ColumnPlan(field.name, _as_is, "json", name, True)
    if same and base == "jsonb":
        return ColumnPlan(field.name, _jsonb, "jsonb", name, True)
    if same and base == "uuid":
        return ColumnPlan(field.name, _uuid, "uuid", name, True)
    if source == column.type and column.kind == "e":
        return ColumnPlan(field.name, _as_is, "text", _cast(name, column), True)
    return ColumnPlan(field.name, _as_is, "text", _cast(name, column), False)


def _cast(name: str, column: TargetColumn) -> str:
    return name if column.type_name in _TEXTS else f"{name}::{type_sql(column.type)}"


def _base_name(type_text: str) -> str:
    """`timestamp(3) without time zone` → `timestamp without time zone`."""
    return re.sub(_NUMBERS, "", type_text)


def _modifier(type_text: str) -> tuple[int, ...] | None:
    found = re.search(_NUMBERS, type_text)
    return tuple(int(part) for part in found[1].split(",")) if found else None


def _refuse_loss(
    name: str, source: str, base: str | None, column: TargetColumn, target: Target
) -> None:
    """PostgreSQL rounds and truncates in silence when it assigns: never let it come to that. What
    it refuses aloud (a number out of range, a text too long) is a matter of the row."""
    if source == column.type or column.type_name in _TEXTS or _widens(source, base, column):
        return
    raise SinkRefused(
        f"Column {name} of {target.shown} is {column.type}, which does not hold every value of the "
        f"source's {source}: change its type there, or leave the column out."
    )


def _widens(source: str, base: str | None, column: TargetColumn) -> bool:
    if base in _INTEGERS:
        # a narrower integer complains about what it cannot hold
        return column.type_name in {*_INTEGERS, "numeric"}
    if (base, column.type_name) in {("float4", "float8"), ("json", "jsonb"), ("jsonb", "json")}:
        return True
    if base in _TEXTS:
        # read by the target's own input, which complains; lengths of bits would be cut
        return column.kind in "be" and column.type_name not in {"bit", "varbit"}
    if _base_name(source) != _base_name(column.type):
        return False
    ours, theirs = _modifier(source), _modifier(column.type)
    if theirs is None:
        return True
    if base == "numeric":
        return ours is not None and ours[1] <= theirs[1]
    return ours is not None and ours[0] <= theirs[0]


def _plain(kind: pa.DataType) -> tuple[_Encode, str]:
    if kind == pa.date32():
        return _date, "date"
    if pa.types.is_timestamp(kind):
        return _timestamp, "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_decimal(kind):
        return _as_is, "numeric"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _as_is, "bytea"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _as_is, "text"
    natural = {"bool": "bool", "int16": "int2", "int32": "int4", "int64": "int8"}
    natural |= {"float": "float4", "double": "float8"}
    if kind == pa.int8():
        return lambda array: array.cast(pa.int16()), "int2"
    if str(kind) not in natural:
        raise SinkRefused(f"The Arrow type {kind} cannot be written to PostgreSQL: cast it first.")
    return _as_is, natural[str(kind)]


def _as_is(array: Any) -> Any:
    return array


def _date(array: Any) -> Any:
    return _rebased(array.view(pa.int32()), _DAYS_TO_2000, 31)


def _timestamp(array: Any) -> Any:
    if array.type.unit != "us":
        array = array.cast(pa.timestamp("us", tz=array.type.tz))
    instants = array.view(pa.int64())
    based = _rebased(instants, _MICROSECONDS_TO_2000, 63)
    far = is_far(instants)
    if far is None:
        return based
    # counted from 2000 they fit; the sum runs over the end of 64 bits, and ends where it should
    shift = pa.scalar(-FAR_FIRST - 1 - _MICROSECONDS_TO_2000, pa.int64())
    codes = pc.if_else(far, instants, pa.scalar(0, pa.int64()))
    most = pa.scalar(-(2**63), pa.int64())
    return pc.if_else(far, pc.add(pc.add(codes, shift), most), based)


def _rebased(array: Any, shift: int, bits: int) -> Any:
    """PostgreSQL counts from 2000, and its ±infinity are the ends of the integer, as they are in
    our Arrow columns."""
    ends: Any = pc.min_max(array).as_py()
    if ends["min"] is None:
        return array
    low, high = -(2**bits), 2**bits - 1
    if ends["min"] != low and ends["max"] != high:
        return pc.subtract(array, pa.scalar(shift, array.type))
    infinite = pc.or_(pc.equal(array, low), pc.equal(array, high))
    shifted = pc.subtract(array, pa.scalar(shift, array.type))
    return pc.if_else(infinite, array, shifted)


_VERSION = pa.scalar(b"\x01", pa.binary())
_NOTHING = pa.scalar(b"", pa.binary())


def _jsonb(array: Any) -> Any:
    return pc.binary_join_element_wise(_VERSION, array.cast(pa.binary()), _NOTHING)


_NIBBLE = np.zeros(256, np.uint8)
for _digit in range(16):
    _NIBBLE[ord(f"{_digit:x}")] = _NIBBLE[ord(f"{_digit:X}")] = _digit
_UUID_DIGITS = np.array([n for n in range(36) if n not in (8, 13, 18, 23)])


def _uuid(array: Any) -> Any:
    """Texts of 36 characters as 16 bytes each."""
    if array.null_count:
        valid = pc.is_valid(array)
        array = pc.fill_null(array, "0" * 8 + "-0000-0000-0000-" + "0" * 12)
    else:
        valid = None
    count = len(array)
    data = np.frombuffer(array.buffers()[2], np.uint8, count * 36, _first_offset(array))
    digits = _NIBBLE[data.reshape(count, 36)[:, _UUID_DIGITS]]
    raw: Any = np.ascontiguousarray((digits[:, 0::2] << 4) | digits[:, 1::2])
    made = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(raw)])
    return made if valid is None else pc.if_else(valid, made, pa.scalar(None, pa.binary(16)))


def _first_offset(array: Any) -> int:
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    return int(np.frombuffer(array.buffers()[1], width)[array.offset])
