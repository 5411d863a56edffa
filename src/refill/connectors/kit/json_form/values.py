"""One column of any type as the texts of JSON values."""

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from refill.connectors.kit.fields import Form, note_of
from refill.connectors.kit.json_form.instants import Arrow, date_texts, timestamp_texts, unix_texts
from refill.connectors.kit.json_form.nested import shaped_texts
from refill.connectors.kit.json_form.texts import (
    STRING,
    UNIX_MICROSECOND,
    Style,
    Texts,
    decimal_texts,
    embedded,
    escaped,
    to_arrow,
    to_series,
)
from refill.domain.table import Family

PLAIN = Style()


def value_texts(array: Arrow, field: Arrow, style: Style = PLAIN) -> Texts:
    """The JSON values of a column, by its Arrow type and the source's word on its form."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if _is_string(kind):
        return _string_texts(array, field, style)
    if pa.types.is_decimal(kind):
        return _number_texts(array, field, style)
    for matches, texts in _PLAIN:
        if matches(kind):
            return texts(array)
    if pa.types.is_timestamp(kind):
        if style.timestamp_format == UNIX_MICROSECOND:
            return Texts(unix_texts(array), False)
        return Texts(timestamp_texts(array, "Z" if kind.tz else ""), True)
    if pa.types.is_map(kind):
        return _map_texts(array, style)
    if _is_list(kind):
        return _list_texts(array, style)
    if pa.types.is_struct(kind):
        return _struct_texts(array, style)
    # an Arrow type that no source of ours yields: its own text, as a string
    return escaped(pc.cast(array, pa.large_string()))


def text_json(texts: pl.Series) -> list[str | pl.Series]:
    """Bare texts as the pieces of JSON strings."""
    found = escaped(to_arrow(texts))
    if found.series.null_count():
        return [found.json()]
    return ['"', found.series, '"']


def bare_texts(array: Arrow, field: Arrow) -> pl.Series:
    """The values of a column of any type as bare text: what a JSON value says, without quotes and
    with nothing escaped; null for NULL. For keys, and for systems that hold texts."""
    if _is_string(array.type):
        return to_series(array.cast(pa.large_string()))
    texts = value_texts(array, field).series
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        return texts.str.strip_chars('"')
    if _is_binary(array.type):
        return texts.str.strip_prefix("\\")
    return texts


def _string_texts(array: Arrow, field: Arrow, style: Style) -> Texts:
    note = note_of(field)
    if note.form is Form.JSON:
        return embedded(array)
    if note.form is Form.TEXT and note.family is Family.DECIMAL:
        return decimal_texts(to_series(array.cast(pa.large_string())), style)
    if style.nested and note.shape is not None:
        return shaped_texts(array, json.loads(note.shape), style)
    return escaped(array)


def _boolean_texts(array: Arrow) -> Texts:
    return Texts(to_series(array).cast(pl.String), False)


def _float_texts(array: Arrow) -> Texts:
    """The shortest digits that read back as the same number; what JSON has no number for is
    a string."""
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    values = to_series(array)
    texts = values.cast(pl.String)
    if values.is_finite().all():
        return Texts(texts, False)
    named = {"NaN": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
    return Texts(texts.replace(named), False)


def _number_texts(array: Arrow, field: Arrow, style: Style) -> Texts:
    """A decimal column holds NaN as a number that it cannot hold else; the field names it."""
    texts = _decimal_texts(array).series
    nan = note_of(field).nan
    is_text = style.numeric_format == STRING
    if nan is not None and (texts == nan).any():
        texts = texts.replace({nan: "NaN" if is_text else '"NaN"'})
    return Texts(texts, is_text)


def _decimal_texts(array: Arrow) -> Texts:
    """Every digit, trailing zeros too, never an exponent."""
    scale = array.type.scale
    if pa.types.is_decimal128(array.type) and scale >= 0:
        return Texts(to_series(array).cast(pl.String), False)
    if scale < 0:
        array = array.cast(pa.decimal256(76, 0))
        scale = 0
    # polars has no such wide decimals, and Arrow prints small ones with an exponent: the digits
    # alone come from the same bytes read as whole numbers, and the point is put in afterwards
    array = array.cast(pa.decimal256(76, scale))
    whole = pa.Array.from_buffers(
        pa.decimal256(76, 0), len(array), array.buffers(), array.null_count, array.offset
    )
    texts = to_series(pc.cast(whole, pa.large_string()))
    if scale == 0:
        return Texts(texts, False)
    minus = texts.str.starts_with("-")
    digits = texts.str.strip_prefix("-").str.zfill(scale + 1).alias("digits")
    frame = pl.DataFrame([digits, minus.alias("minus")])
    sign = pl.when("minus").then(pl.lit("-")).otherwise(pl.lit(""))
    head, tail = pl.col("digits").str.head(-scale), pl.col("digits").str.tail(scale)
    return Texts(frame.select(pl.concat_str(sign, head, pl.lit("."), tail)).to_series(), False)


def _binary_texts(array: Arrow) -> Texts:
    """PostgreSQL's hex form, `\\x` and two digits a byte; the backslash is escaped as JSON asks."""
    digits = to_series(array.cast(pa.large_binary())).bin.encode("hex")
    return Texts("\\\\x" + digits, True)


def _list_texts(array: Arrow, style: Style) -> Texts:
    array = array.cast(pa.large_list(array.type.value_field))
    inner = value_texts(array.flatten(), array.type.value_field, style).json()
    return _bracketed(array, inner, "[", "]")


def _map_texts(array: Arrow, style: Style) -> Texts:
    """A JSON object; keys that are no strings are written as their text."""
    kind = array.type
    entries: Arrow = array.cast(pa.large_list(pa.struct([kind.key_field, kind.item_field])))
    keys, items = entries.flatten().flatten()
    names = escaped(to_arrow(bare_texts(keys, kind.key_field))).json()
    values = value_texts(items, kind.item_field, style).json()
    frame = pl.DataFrame([names.alias("name"), values.alias("value")])
    pairs = frame.select(pl.concat_str("name", pl.lit(":"), "value")).to_series()
    return _bracketed(entries, pairs, "{", "}")


def _bracketed(array: Arrow, inner: pl.Series, opening: str, closing: str) -> Texts:
    """The texts of all elements back in their lists, each list joined by commas."""
    lengths: Arrow = array.value_lengths().fill_null(0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), to_arrow(inner))
    frame = to_series(lists).list.join(",").alias("text").to_frame()
    frame = frame.with_columns(to_series(array.is_valid()).alias("valid"))
    whole = pl.concat_str(pl.lit(opening), pl.col("text"), pl.lit(closing))
    return Texts(frame.select(pl.when("valid").then(whole)).to_series(), False)


def _struct_texts(array: Arrow, style: Style) -> Texts:
    columns: list[pl.Series] = [to_series(array.is_valid()).alias("valid")]
    parts: list[pl.Expr] = []
    for index, (field, child) in enumerate(zip(array.type, array.flatten(), strict=True)):
        columns.append(value_texts(child, field, style).json().alias(str(index)))
        name = json.dumps(field.name, ensure_ascii=False)
        parts += [pl.lit(f"{',' if index else '{'}{name}:"), pl.col(str(index))]
    parts.append(pl.lit("}" if parts else "{}"))
    whole = pl.when("valid").then(pl.concat_str(parts))
    return Texts(pl.DataFrame(columns).select(whole.alias("text")).to_series(), False)


def _integer_texts(array: Arrow) -> Texts:
    return Texts(to_series(array).cast(pl.String), False)


def _date_texts(array: Arrow) -> Texts:
    return Texts(date_texts(array.cast(pa.date32())), True)


def _time_texts(array: Arrow) -> Texts:
    return Texts(to_series(pc.cast(array.cast(pa.time64("us")), pa.large_string())), True)


def _null_texts(array: Arrow) -> Texts:
    return Texts(pl.Series([None], dtype=pl.String).new_from_index(0, len(array)), False)


def _is_string(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Arrow], Texts]], ...] = (
    (pa.types.is_integer, _integer_texts),
    (pa.types.is_boolean, _boolean_texts),
    (pa.types.is_floating, _float_texts),
    (pa.types.is_date, _date_texts),
    (pa.types.is_time, _time_texts),
    (_is_binary, _binary_texts),
    (pa.types.is_null, _null_texts),
)
