"""Dates and timestamps as text, the whole range of PostgreSQL and its two infinities included."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from refill.connectors.kit.instants import FAR_FIRST, FAR_LAST, is_far

Arrow = Any  # the stubs of pyarrow know less than pyarrow does
Integers = np.ndarray[Any, np.dtype[np.int64]]

# Arrow's own formatting is right, and cheap, between these two: the years 1 to 9999
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_MICROSECONDS = 86_400_000_000
DATE_INFINITY = (2**31 - 1, -(2**31))
TIMESTAMP_INFINITY = (2**63 - 1, -(2**63))


def date_texts(array: Arrow) -> pl.Series:
    """`2024-02-29`; `0044-03-15 BC` and `12024-01-01` as PostgreSQL prints them; `infinity`."""
    days = array.view(pa.int32())
    if _within(days, FIRST_DAY, LAST_DAY):
        return pl.Series(pl.from_arrow(array.cast(pa.large_string())))
    return _rare_texts(_integers(days), DATE_INFINITY, _date_of_days)


def timestamp_texts(array: Arrow, zone: str) -> pl.Series:
    """`2024-02-29T12:00:00.000000` and the zone's suffix."""
    micros = _microseconds(array)
    if _within(micros, FIRST_DAY * DAY_MICROSECONDS, (LAST_DAY + 1) * DAY_MICROSECONDS - 1):
        # without its zone: Arrow prints a zoned timestamp twenty-five times slower
        plain = pc.cast(micros.view(pa.timestamp("us")), pa.large_string())
        texts = pl.Series(pl.from_arrow(pc.binary_replace_slice(plain, 10, 11, "T")))
        return texts + zone if zone else texts
    return _rare_texts(
        _integers(micros), TIMESTAMP_INFINITY, lambda values: _timestamp_of_micros(values, zone)
    )


def unix_texts(array: Arrow) -> pl.Series:
    """Microseconds since 1970 as JSON numbers, the infinities as JSON strings."""
    micros = _microseconds(array)
    high, low = TIMESTAMP_INFINITY
    texts = pl.Series(pl.from_arrow(micros.cast(pa.large_string())))
    if _within(micros, FAR_LAST + 1, high - 1):
        return texts
    named = {str(high): '"infinity"', str(low): '"-infinity"'}
    if is_far(micros) is not None:
        codes = _integers(micros).unique().drop_nulls()
        codes = codes.filter(codes.is_between(FAR_FIRST, FAR_LAST))
        named |= {str(code): str(code - FAR_FIRST + 2**63 - 1) for code in codes}
    return texts.replace(named)


def _microseconds(array: Arrow) -> Arrow:
    if array.type.unit != "us":
        array = pc.cast(array, pa.timestamp("us", tz=array.type.tz), safe=False)
    return array.view(pa.int64())


def _within(values: Arrow, low: int, high: int) -> bool:
    """Whether every value that is not NULL lies in [low, high]."""
    found = pc.min_max(values)
    least, most = found["min"].as_py(), found["max"].as_py()
    return least is None or (least >= low and most <= high)


def _integers(values: Arrow) -> pl.Series:
    return pl.Series(pl.from_arrow(values))


def _rare_texts(
    values: pl.Series, infinity: tuple[int, int], of: Callable[[Integers], pl.Series]
) -> pl.Series:
    """Formats distinct values only: such columns are mostly one sentinel and few dates."""
    distinct = values.drop_nulls().unique()
    forever, never = infinity
    finite = distinct.filter((distinct != forever) & (distinct != never))
    texts = of(finite.to_numpy().astype(np.int64))
    old = pl.concat([finite, pl.Series([forever, never], dtype=values.dtype)])
    new = pl.concat([texts, pl.Series(["infinity", "-infinity"])])
    return values.replace_strict(old, new, default=None, return_dtype=pl.String)


def _date_of_days(days: Integers) -> pl.Series:
    years, months, day = _civil(days)
    return _dated(years, months, day).select(pl.col("date") + pl.col("era")).to_series()


def _timestamp_of_micros(micros: Integers, zone: str) -> pl.Series:
    days, rest = np.divmod(micros, DAY_MICROSECONDS)
    far = (micros >= FAR_FIRST) & (micros <= FAR_LAST)
    if far.any():
        begin_day, begin_rest = divmod(2**63 - 1, DAY_MICROSECONDS)
        more, far_rest = np.divmod(micros - FAR_FIRST + begin_rest, DAY_MICROSECONDS)
        days, rest = np.where(far, begin_day + more, days), np.where(far, far_rest, rest)
    years, months, day = _civil(days)
    clock = pl.Series("clock", rest * 1000, dtype=pl.Int64).cast(pl.Time)
    parts = _dated(years, months, day).with_columns(clock.dt.to_string("%H:%M:%S%.6f"))
    return parts.select(
        pl.concat_str("date", pl.lit("T"), "clock", pl.lit(zone), "era")
    ).to_series()


def _dated(years: Integers, months: Integers, days: Integers) -> pl.DataFrame:
    """There is no year 0: the year before 1 is 1 BC."""
    frame = pl.DataFrame({"y": np.where(years > 0, years, 1 - years), "m": months, "d": days})
    padded = [
        pl.col(name).cast(pl.String).str.zfill(width)
        for name, width in (("y", 4), ("m", 2), ("d", 2))
    ]
    era = pl.Series("era", years <= 0).replace_strict(
        {True: " BC", False: ""}, return_dtype=pl.String
    )
    return frame.select(pl.concat_str(padded, separator="-").alias("date")).with_columns(era)


def _civil(days: Integers) -> tuple[Integers, Integers, np.ndarray]:
    """Days since 1970-01-01 to the proleptic Gregorian calendar, any year.

    Counted from 1 March of year 0, so that the leap day is the last of its year, in eras of 400
    years, which all have 146,097 days.
    """
    era, day_of_era = np.divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = np.where(shifted < 10, shifted + 3, shifted - 9)
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day
