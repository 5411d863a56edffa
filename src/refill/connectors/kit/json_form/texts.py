"""Texts of whole columns: what every form of value is made with."""

from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from refill.connectors.kit.json_form.instants import Arrow

UNIX_MICROSECOND = "unix_microsecond"
NUMBER, STRING = "number", "string"


class Style(NamedTuple):
    """What a reader may choose. The default is what files of JSON lines hold."""

    timestamp_format: str = "iso8601"
    numeric_format: str = NUMBER
    # whether arrays, composites and the like, which a source prints as text, are written as JSON
    nested: bool = False


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


def escaped(array: Arrow) -> Texts:
    """Text as the inside of a JSON string; most columns need nothing done, and one look tells."""
    array = array.cast(pa.large_string())
    if not holds(array, b'"\\', below=0x20):
        return Texts(to_series(array), True)
    frame = to_series(array).alias("").to_frame()
    objects = frame.select(pl.struct("").struct.json_encode()).to_series()
    # {"":"…"} and, for NULL, {"":null}: what lies between is the text
    binary = to_arrow(objects).cast(pa.large_binary())
    texts = to_series(pc.binary_slice(binary, 5, -2).cast(pa.large_string()))
    if array.null_count:
        texts = texts.zip_with(to_series(array.is_valid()), pl.Series([None], dtype=pl.String))
    return Texts(texts, True)


def embedded(array: Arrow) -> Texts:
    """JSON as it stands. The type json keeps the line breaks it was given, and there are none
    inside a JSON string: as blanks they mean the same, and a line stays a line."""
    texts = to_series(array.cast(pa.large_string()))
    if holds(array, b"\n\r"):
        texts = texts.str.replace_many(["\n", "\r"], [" ", " "])
    return Texts(texts, False)


def holds(array: Arrow, characters: bytes, below: int = 0) -> bool:
    """Whether any of the characters, or one below the given code, is anywhere in the column."""
    run = bytes_of(array.cast(pa.large_string()))
    if run.size == 0:
        return False
    return bool((below and run.min() < below) or any((run == code).any() for code in characters))


def bytes_of(array: Arrow) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """The texts of a large string column behind one another, without a copy."""
    if len(array) == 0 or array.buffers()[2] is None:
        return np.zeros(0, dtype=np.uint8)
    ends = np.frombuffer(array.buffers()[1], dtype=np.int64)
    begin, end = ends[array.offset], ends[array.offset + len(array)]
    return np.frombuffer(array.buffers()[2], dtype=np.uint8)[begin:end]


def with_quoted(texts: pl.Series, which: pl.Series) -> pl.Series:
    if not which.any():
        return texts
    frame = pl.DataFrame([texts.alias("text"), which.alias("which")])
    quotes = pl.concat_str(pl.lit('"'), pl.col("text"), pl.lit('"'))
    return frame.select(pl.when("which").then(quotes).otherwise(pl.col("text"))).to_series()


def decimal_texts(texts: pl.Series, style: Style) -> Texts:
    """Numbers that are text already; those that JSON has no number for are words."""
    if style.numeric_format == STRING:
        return Texts(texts, True)
    return Texts(with_quoted(texts, texts.is_in(["NaN", "Infinity", "-Infinity"])), False)


def to_series(array: Arrow) -> pl.Series:
    return pl.Series(pl.from_arrow(array))


def to_arrow(texts: pl.Series) -> Arrow:
    return texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
