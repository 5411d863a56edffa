"""Between Arrow and Spark: the schema that Spark can hold, and back without losing what we know.

The note on an Arrow field travels as the Spark column's metadata, which Spark itself keeps for a
column that passes through unchanged (renamed too) and drops from everything computed.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from refill.connectors.kit.fields import Form, note_of, read_note
from refill.domain.errors import TransformFailed

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_safe(schema: pa.Schema) -> pa.Schema:
    """The same columns in types that Spark has; what it has not becomes text."""
    return pa.schema([_safe_field(field) for field in schema])


def to_spark(schema: pa.Schema) -> "StructType":
    """`schema` is safe already."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in schema:
        try:
            kind = from_arrow_type(field.type, prefer_timestamp_ntz=True)
        except Exception as exc:
            raise TransformFailed(
                f"The column {field.name} has a type that Spark SQL cannot hold ({field.type}); "
                "leave it out of the columns, or leave out the transform."
            ) from exc
        fields.append(StructField(field.name, kind, True, dict(note_of(field).texts())))
    return StructType(fields)


def from_spark(struct: "StructType") -> pa.Schema:
    """What a sink gets to see of the result of the SQL."""
    from pyspark.sql.pandas.types import to_arrow_type

    fields = []
    for column in struct.fields:
        try:
            kind: Any = to_arrow_type(column.dataType, timezone="UTC")
        except Exception as exc:
            raise _undeliverable(column.name, column.dataType.simpleString()) from exc
        if not _deliverable(kind):
            raise _undeliverable(column.name, column.dataType.simpleString())
        texts = {name: str(value) for name, value in (column.metadata or {}).items()}
        fields.append(pa.field(column.name, kind, metadata=read_note(texts, kind).metadata()))
    return pa.schema(fields)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in exactly this schema, copied only where a type differs."""
    columns = [_column(batch.column(position), field.type) for position, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(column: Any, kind: Any) -> Any:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column if column.type == kind else column.cast(kind)


def _safe_field(field: Any) -> Any:
    kind: Any = _safe_type(field.type)
    note = note_of(field)
    if kind != field.type and pa.types.is_string(kind) and _is_number_or_time(field.type):
        note = replace(note, form=Form.TEXT)
    return pa.field(field.name, kind, metadata=note.metadata())


def _safe_type(kind: Any) -> Any:
    if isinstance(kind, pa.ExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or kind == pa.string_view():
        return pa.string()
    if pa.types.is_decimal256(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.string()
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64() if kind.bit_width < 64 else pa.decimal128(20, 0)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    return kind


def _is_number_or_time(kind: Any) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind))


def _deliverable(kind: Any) -> bool:
    if pa.types.is_list(kind):
        return _deliverable(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_deliverable(kind.field(position).type) for position in range(kind.num_fields))
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )


def _undeliverable(name: str, type_name: str) -> TransformFailed:
    return TransformFailed(
        f"The SQL's column {name} has the type {type_name}, which no destination takes; "
        "cast it to string, or use to_json."
    )
