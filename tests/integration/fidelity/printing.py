"""What PostgreSQL prints, and what a destination holds, brought to the same text.

Written apart from the product's own formatting, so that the two cannot be wrong together.
"""

import decimal
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from psycopg import Connection

SESSION = """
set datestyle = 'ISO, MDY'; set timezone = 'UTC'; set intervalstyle = 'postgres';
set extra_float_digits = 1; set bytea_output = 'hex'; set lc_monetary = 'C';
"""


def printed(connection: Connection[Any], sql: str) -> list[tuple[str | None, ...]]:
    """The rows of a query as the types' own output functions print them."""
    connection.execute(SESSION)
    result = connection.pgconn.exec_(sql.encode())
    if result.error_message:
        raise RuntimeError(result.error_message.decode())
    return [
        tuple(_decoded(result.get_value(row, column)) for column in range(result.nfields))
        for row in range(result.ntuples)
    ]


def arrow_printed(array: Any, field: Any) -> list[str | None]:
    """A column of a Parquet file as PostgreSQL would print it, by the documented forms."""
    kind = array.type
    nan = (field.metadata or {}).get(b"nan")
    if pa.types.is_date32(kind):
        return [_over(day, _date, (2**31 - 1, -(2**31))) for day in _raw(array, pa.int32())]
    if pa.types.is_timestamp(kind):
        zone = "+00" if kind.tz else ""
        ends = (2**63 - 1, -(2**63))
        return [_over(at, lambda us: _instant(us, zone), ends) for at in _raw(array, pa.int64())]
    return [None if value is None else _plain(value, nan) for value in array.to_pylist()]


def same_value(postgres: str | None, other: str | None, pg_type: str) -> bool:
    """Equal to the letter; floats by value, bit for bit, since their texts are not unique."""
    if postgres is None or other is None:
        return postgres is other
    if pg_type in ("real", "double precision"):
        # the shortest digits of a real are those of its 32 bits
        ours, theirs = (
            float(np.float32(text)) if pg_type == "real" else float(text)
            for text in (postgres, other)
        )
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or (ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs))
    return postgres == other


def json_matches(token: Any, postgres: str | None, pg_type: str) -> bool:
    """A value of a JSON record, its numbers kept as their texts, against PostgreSQL's."""
    if postgres is None:
        return token is None
    if pg_type in ("json", "jsonb"):
        return bool(token == parse_json(postgres))
    if pg_type == "boolean":
        return token is (postgres == "t")
    if pg_type.startswith("timestamp") and not pg_type.endswith("[]"):
        return bool(token == _iso(postgres, zoned=pg_type.endswith("with time zone")))
    if isinstance(token, Number):
        if pg_type in ("real", "double precision"):
            return same_value(postgres, token.text, pg_type)
        return token.text == postgres
    return bool(token == postgres)


class Number:
    """A JSON number by its digits."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and decimal.Decimal(self.text) == decimal.Decimal(
            other.text
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self.text


def parse_json(text: str) -> Any:
    return json.loads(text, parse_float=Number, parse_int=Number, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def _iso(postgres: str, *, zoned: bool) -> str:
    """ISO 8601 with microseconds, the years outside of it as PostgreSQL prints them."""
    if "infinity" in postgres:
        return postgres
    era = " BC" if postgres.endswith(" BC") else ""
    text = postgres.removesuffix(" BC")
    if zoned:
        text = text.removesuffix("+00")
    day, clock = text.split(" ")
    seconds, _, fraction = clock.partition(".")
    return f"{day}T{seconds}.{fraction:0<6}{'Z' if zoned else ''}{era}"


def _decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _raw(array: Any, kind: Any) -> Sequence[int | None]:
    flat = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(flat, pa.ChunkedArray):  # combine_chunks of no chunks
        return []
    return list(flat.view(kind).to_pylist())


def _over(value: int | None, of: Any, infinity: tuple[int, int]) -> str | None:
    if value is None:
        return None
    if value in infinity:
        return "infinity" if value == infinity[0] else "-infinity"
    return str(of(value))


def _date(days: int) -> str:
    year, month, day = _civil(days)
    era = "" if year > 0 else " BC"
    return f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}{era}"


def _instant(micros: int, zone: str) -> str:
    days, rest = divmod(micros, 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    decimals = f".{fraction:06}".rstrip("0") if fraction else ""
    day, _, era = _date(days).partition(" ")
    return f"{day} {clock}{decimals}{zone}{' ' + era if era else ''}"


def _civil(days: int) -> tuple[int, int, int]:
    """By whole cycles of 400 years around the years that Python's own calendar knows."""
    import datetime

    cycle = 146_097
    shift, inside = divmod(days + 719_162, cycle)
    known = datetime.date(1, 1, 1) + datetime.timedelta(days=inside)
    return known.year + 400 * shift, known.month, known.day


def _plain(value: Any, nan: bytes | None) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, decimal.Decimal):
        if nan is not None and value == decimal.Decimal(nan.decode()):
            return "NaN"
        return f"{value:f}"
    if isinstance(value, float):
        return repr(value)
    return str(value)
