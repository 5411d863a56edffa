"""One column of any type as the texts of JSON values."""

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from refill.connectors.kit.fields import Form, note_of
from refill.connectors.kit.json_form.instants import Arrow, date_texts, timestamp_texts, unix_texts
from refill.domain.table import Family

UNIX_MICROSECOND = "unix_microsecond"


class Texts(NamedTuple):
    """One text per row, null where the value is NULL. `quoted`: a JSON string, escaped, that
    still lacks its quotes; otherwise JSON as it stands."""

    series: pl.Series
    quoted: bool

    def json(self) -> pl.Series:
        """With quotes, and `null` for NULL."""
        if not self.quoted:
            return self.series.fill_null("null")
        frame = self.series.alias("text").to_frame()
        quotes = pl.concat_str(pl.lit('"'), pl.col("text"), pl.lit('"'))
        return frame.select(quotes.fill_null("null")).to_series()


def value_texts(array: Arrow, field: Arrow, timestamp_format: str = "iso8601") -> Texts:
    """The JSON values of a column, by its Arrow type and the source's word on its form."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if _is_string(kind):
        return _string_texts(array, field)
    if pa.types.is_decimal(kind):
        return _number_texts(array, field)
    for matches, texts in _PLAIN:
        if matches(kind):
            return texts(array)
    if pa.types.is_timestamp(kind):
        if timestamp_format == UNIX_MICROSECOND:
            return Texts(unix_texts(array), False)
        return Texts(timestamp_texts(array, "Z" if kind.tz else ""), True)
    if pa.types.is_map(kind):
        return _map_texts(array, timestamp_format)
    if _is_list(kind):
        return _list_texts(array, timestamp_format)
    if pa.types.is_struct(kind):
        return _struct_texts(array, timestamp_format)
    # an Arrow type that no source of ours yields: its own text, as a string
    return _escaped(pc.cast(array, pa.large_string()))


def text_json(texts: pl.Series) -> list[str | pl.Series]:
    """Bare texts as the pieces of JSON strings."""
    escaped = _escaped(_arrow(texts))
    if escaped.series.null_count():
        return [escaped.json()]
    return ['"', escaped.series, '"']


def bare_texts(array: Arrow, field: Arrow) -> pl.Series:
    """The values of a column of any type as bare text: what a JSON value says, without quotes and
    with nothing escaped; null for NULL. For keys, and for systems that hold texts."""
    if _is_string(array.type):
        return _series(array.cast(pa.large_string()))
    texts = value_texts(array, field).series
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        return texts.str.strip_chars('"')
    if _is_binary(array.type):
        return texts.str.strip_prefix("\\")
    return texts


def _string_texts(array: Arrow, field: Arrow) -> Texts:
    note = note_of(field)
    if note.form is Form.JSON:
        texts = _series(array.cast(pa.large_string()))
        # the type json keeps the line breaks it was given, and there are none inside a JSON
        # string: as blanks they mean the same, and a line stays a line
        if _holds(array, b"\n\r"):
            texts = texts.str.replace_many(["\n", "\r"], [" ", " "])
        return Texts(texts, False)
    if note.form is Form.TEXT and note.family is Family.DECIMAL:
        texts = _series(array.cast(pa.large_string()))
        return Texts(_with_quoted(texts, texts.is_in(["NaN", "Infinity", "-Infinity"])), False)
    return _escaped(array)


def _escaped(array: Arrow) -> Texts:
    """Text as the inside of a JSON string; most columns need nothing done, and one look tells."""
    array = array.cast(pa.large_string())
    if not _holds(array, b'"\\', below=0x20):
        return Texts(_series(array), True)
    frame = _series(array).alias("").to_frame()
    objects = frame.select(pl.struct("").struct.json_encode()).to_series()
    # {"":"…"} and, for NULL, {"":null}: what lies between is the text
    inner = pc.binary_slice(_large_binary(objects), 5, -2).cast(pa.large_string())
    texts = _series(inner)
    if array.null_count:
        texts = texts.zip_with(_series(array.is_valid()), pl.Series([None], dtype=pl.String))
    return Texts(texts, True)


def _holds(array: Arrow, characters: bytes, below: int = 0) -> bool:
    """Whether any of the characters, or one below the given code, is anywhere in the column."""
    if len(array) == 0:
        return False
    array = array.cast(pa.large_string())
    _, offsets, data = array.buffers()
    if data is None:
        return False
    ends = np.frombuffer(offsets, dtype=np.int64)
    begin, end = ends[array.offset], ends[array.offset + len(array)]
    run = np.frombuffer(data, dtype=np.uint8)[begin:end]
    if run.size == 0:
        return False
    return bool((below and run.min() < below) or any((run == code).any() for code in characters))


def _boolean_texts(array: Arrow) -> Texts:
    return Texts(_series(array).cast(pl.String), False)


def _float_texts(array: Arrow) -> Texts:
    """The shortest digits that read back as the same number; what JSON has no number for is
    a string."""
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    values = _series(array)
    texts = values.cast(pl.String)
    if values.is_finite().all():
        return Texts(texts, False)
    named = {"NaN": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
    return Texts(texts.replace(named), False)


def _number_texts(array: Arrow, field: Arrow) -> Texts:
    """A decimal column holds NaN as a number that it cannot hold else; the field names it."""
    texts = _decimal_texts(array)
    nan = note_of(field).nan
    if nan is not None and (texts.series == nan).any():
        return Texts(texts.series.replace({nan: '"NaN"'}), False)
    return texts


def _decimal_texts(array: Arrow) -> Texts:
    """Every digit, trailing zeros too, never an exponent."""
    scale = array.type.scale
    if pa.types.is_decimal128(array.type) and scale >= 0:
        return Texts(_series(array).cast(pl.String), False)
    if scale < 0:
        array = array.cast(pa.decimal256(76, 0))
        scale = 0
    # polars has no such wide decimals, and Arrow prints small ones with an exponent: the digits
    # alone come from the same bytes read as whole numbers, and the point is put in afterwards
    array = array.cast(pa.decimal256(76, scale))
    whole = pa.Array.from_buffers(
        pa.decimal256(76, 0), len(array), array.buffers(), array.null_count, array.offset
    )
    texts = _series(pc.cast(whole, pa.large_string()))
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
    digits = _series(array.cast(pa.large_binary())).bin.encode("hex")
    return Texts("\\\\x" + digits, True)


def _list_texts(array: Arrow, timestamp_format: str) -> Texts:
    array = array.cast(pa.large_list(array.type.value_field))
    inner = value_texts(array.flatten(), array.type.value_field, timestamp_format).json()
    return _bracketed(array, inner, "[", "]")


def _map_texts(array: Arrow, timestamp_format: str) -> Texts:
    """A JSON object; keys that are no strings are written as their text."""
    kind = array.type
    entries: Arrow = array.cast(pa.large_list(pa.struct([kind.key_field, kind.item_field])))
    keys, items = entries.flatten().flatten()
    names = _escaped(_arrow(bare_texts(keys, kind.key_field))).json()
    values = value_texts(items, kind.item_field, timestamp_format).json()
    frame = pl.DataFrame([names.alias("name"), values.alias("value")])
    pairs = frame.select(pl.concat_str("name", pl.lit(":"), "value")).to_series()
    return _bracketed(entries, pairs, "{", "}")


def _bracketed(array: Arrow, inner: pl.Series, opening: str, closing: str) -> Texts:
    """The texts of all elements back in their lists, each list joined by commas."""
    lengths: Arrow = array.value_lengths().fill_null(0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), _arrow(inner))
    frame = _series(lists).list.join(",").alias("text").to_frame()
    frame = frame.with_columns(_series(array.is_valid()).alias("valid"))
    whole = pl.concat_str(pl.lit(opening), pl.col("text"), pl.lit(closing))
    return Texts(frame.select(pl.when("valid").then(whole)).to_series(), False)


def _struct_texts(array: Arrow, timestamp_format: str) -> Texts:
    columns: list[pl.Series] = [_series(array.is_valid()).alias("valid")]
    parts: list[pl.Expr] = []
    for index, (field, child) in enumerate(zip(array.type, array.flatten(), strict=True)):
        columns.append(value_texts(child, field, timestamp_format).json().alias(str(index)))
        name = json.dumps(field.name, ensure_ascii=False)
        parts += [pl.lit(f"{',' if index else '{'}{name}:"), pl.col(str(index))]
    parts.append(pl.lit("}" if parts else "{}"))
    whole = pl.when("valid").then(pl.concat_str(parts))
    return Texts(pl.DataFrame(columns).select(whole.alias("text")).to_series(), False)


def _with_quoted(texts: pl.Series, which: pl.Series) -> pl.Series:
    if not which.any():
        return texts
    frame = pl.DataFrame([texts.alias("text"), which.alias("which")])
    quotes = pl.concat_str(pl.lit('"'), pl.col("text"), pl.lit('"'))
    return frame.select(pl.when("which").then(quotes).otherwise(pl.col("text"))).to_series()


def _integer_texts(array: Arrow) -> Texts:
    return Texts(_series(array).cast(pl.String), False)


def _date_texts(array: Arrow) -> Texts:
    return Texts(date_texts(array.cast(pa.date32())), True)


def _time_texts(array: Arrow) -> Texts:
    return Texts(_series(pc.cast(array.cast(pa.time64("us")), pa.large_string())), True)


def _null_texts(array: Arrow) -> Texts:
    return Texts(pl.Series([None], dtype=pl.String).new_from_index(0, len(array)), False)


def _series(array: Arrow) -> pl.Series:
    return pl.Series(pl.from_arrow(array))


def _arrow(texts: pl.Series) -> Arrow:
    return texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())


def _large_binary(texts: pl.Series) -> Arrow:
    return _arrow(texts).cast(pa.large_binary())


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
