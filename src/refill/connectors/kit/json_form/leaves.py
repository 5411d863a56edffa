"""Single values that come as text (inside an array, or because nothing else holds them) as JSON."""

from collections.abc import Callable

import polars as pl

from refill.connectors.kit.json_form.instants import Arrow
from refill.connectors.kit.json_form.texts import (
    UNIX_MICROSECOND,
    Style,
    Texts,
    decimal_texts,
    embedded,
    escaped,
    to_series,
    with_quoted,
)

_WORDS = ["NaN", "Infinity", "-Infinity"]
# 2024-01-31 12:00:00.5+00 BC
_MOMENT = (
    r"^(?<date>\d+-\d\d-\d\d) (?<clock>\d\d:\d\d:\d\d)(?:\.(?<part>\d+))?"
    r"(?<zone>\+00)?(?<era> BC)?$"
)
_COUNTS = {
    "years": r"([+-]?\d+) years?",
    "months": r"([+-]?\d+) mons?",
    "days": r"([+-]?\d+) days?",
}
_CLOCK = r"(?<sign>[+-]?)(?<hours>\d+):(?<minutes>\d\d):(?<seconds>\d\d)(?:\.(?<part>\d+))?$"


def leaf_texts(array: Arrow, word: str, style: Style) -> Texts:
    """The JSON of texts of one kind; a kind that is not known is text."""
    made = _LEAVES.get(word)
    return escaped(array) if made is None else made(array, style)


def _boolean(array: Arrow, style: Style) -> Texts:
    return Texts(to_series(array).replace({"t": "true", "f": "false"}), False)


def _as_it_stands(array: Arrow, style: Style) -> Texts:
    return Texts(to_series(array), False)


def _float(array: Arrow, style: Style) -> Texts:
    texts = to_series(array)
    return Texts(with_quoted(texts, texts.is_in(_WORDS)), False)


def _decimal(array: Arrow, style: Style) -> Texts:
    return decimal_texts(to_series(array), style)


def _json(array: Arrow, style: Style) -> Texts:
    return embedded(array)


def _moment(array: Arrow, style: Style) -> Texts:
    """As a column of timestamps is written: `T`, six digits of a second, `Z` where there is a zone;
    the infinities are no moments and stay words."""
    texts = to_series(array).alias("text")
    parts = texts.to_frame().with_columns(pl.col("text").str.extract_groups(_MOMENT).alias("m"))
    if style.timestamp_format == UNIX_MICROSECOND:
        return Texts(_unix(parts.unnest("m")), False)
    found = parts.unnest("m").with_columns(
        pl.col("part").fill_null("").str.pad_end(6, "0"),
        pl.when(pl.col("zone").is_not_null()).then(pl.lit("Z")).otherwise(pl.lit("")).alias("zone"),
        pl.col("era").fill_null(""),
    )
    whole = pl.concat_str("date", pl.lit("T"), "clock", pl.lit("."), "part", "zone", "era")
    return Texts(found.select(pl.coalesce(whole, "text")).to_series(), True)


def _unix(found: pl.DataFrame) -> pl.Series:
    """Microseconds since 1970 in the years 1 to 9999; all others as they print."""
    plain = pl.col("era").is_null() & (pl.col("date").str.len_bytes() == 10)
    text = pl.concat_str(
        "date", pl.lit("T"), "clock", pl.lit("."), pl.col("part").fill_null("").str.pad_end(6, "0")
    )
    moment = pl.when(plain).then(text).str.to_datetime("%Y-%m-%dT%H:%M:%S%.6f", time_unit="us")
    number = moment.cast(pl.Int64).cast(pl.String)
    word = pl.concat_str(pl.lit('"'), "text", pl.lit('"'))
    return found.select(pl.coalesce(number, word)).to_series()


def _interval(array: Arrow, style: Style) -> Texts:
    """`1 year 2 mons -3 days +04:05:06.7` as its three numbers. An infinite one is a word."""
    texts = to_series(array).alias("text")
    number = pl.Int64
    frame = (
        texts.to_frame()
        .with_columns(
            pl.col("text").str.extract_groups(_CLOCK).alias("c"),
            *(
                pl.col("text")
                .str.extract(pattern)
                .str.strip_prefix("+")
                .cast(number)
                .fill_null(0)
                .alias(name)
                for name, pattern in _COUNTS.items()
            ),
        )
        .unnest("c")
    )
    clock = (
        (pl.col("hours").cast(number) * 3600 + pl.col("minutes").cast(number) * 60) * 1_000_000
        + pl.col("seconds").cast(number) * 1_000_000
        + pl.col("part").fill_null("").str.pad_end(6, "0").cast(number)
    )
    signed = pl.when(pl.col("sign") == "-").then(-clock).otherwise(clock).fill_null(0)
    whole = pl.concat_str(
        pl.lit('{"months":'),
        pl.col("years") * 12 + pl.col("months"),
        pl.lit(',"days":'),
        "days",
        pl.lit(',"microseconds":'),
        signed,
        pl.lit("}"),
    )
    endless = pl.col("text").str.ends_with("infinity")
    word = pl.concat_str(pl.lit('"'), "text", pl.lit('"'))
    made = frame.select(
        pl.when(pl.col("text").is_not_null()).then(pl.when(endless).then(word).otherwise(whole))
    )
    return Texts(made.to_series(), False)


_LEAVES: dict[str, Callable[[Arrow, Style], Texts]] = {
    "boolean": _boolean,
    "integer": _as_it_stands,
    "float": _float,
    "decimal": _decimal,
    "json": _json,
    "moment": _moment,
    "interval": _interval,
    "vector": _as_it_stands,  # [1,2.5]: what it prints is JSON
}
