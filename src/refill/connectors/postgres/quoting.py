"""Names and values as SQL text. Every name is quoted, every value is a literal of its own."""

import re
from collections.abc import Iterable, Sequence
from datetime import date

from refill.domain.errors import Invalid


def identifier(name: str) -> str:
    """A name, quoted always: a reserved word, a space or a quote in it changes nothing."""
    if not name or "\x00" in name:
        raise Invalid(f"{name!r} is not a name that PostgreSQL can have.")
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    return f"{identifier(schema)}.{identifier(name)}"


def literal(value: str) -> str:
    """An untyped literal. Beside a column it takes the column's own type, without its length or
    precision: `'1.005'` against numeric(12,2) is not rounded, nor 'abc' cut to char(1).

    Holds with standard_conforming_strings, which every session of ours sets.
    """
    if "\x00" in value:
        raise Invalid("A value with a NUL in it cannot be compared with anything in PostgreSQL.")
    return "'" + value.replace("'", "''") + "'"


def row(parts: Sequence[str]) -> str:
    """One part as it is, several as a row constructor: the form in which an index is used."""
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def names(columns: Iterable[str]) -> list[str]:
    return [identifier(column) for column in columns]


# What a colon or a quote may stand inside of: none of it is a bound date.
_TOKENS = re.compile(
    r"""
      (?P<skip>
        [eE]'(?:[^'\\]|\\.|'')*'            # a string with escapes
      | '(?:[^']|'')*'
      | "(?:[^"]|"")*"
      | \$(?P<tag>[A-Za-z_\x80-\uffff][\w]*)?\$.*?\$(?P=tag)?\$
      | --[^\n]*
      | ::
      | :=
      | [A-Za-z_\x80-\uffff][\w$]*
      )
    | (?P<comment>/\*)
    | (?P<bound>:date\b)
    """,
    re.VERBOSE | re.DOTALL,
)


def bind_date(query: str, day: date) -> str:
    """The query with every `:date` outside strings, names and comments made a date literal."""
    value = f"DATE '{day.isoformat()}'"
    parts: list[str] = []
    position = 0
    while found := _next_token(query, position):
        start, end, is_bound = found
        parts.append(query[position:start])
        parts.append(value if is_bound else query[start:end])
        position = end
    parts.append(query[position:])
    return "".join(parts).strip().rstrip(";").strip()


def has_bound_date(query: str) -> bool:
    position = 0
    while found := _next_token(query, position):
        _, position, is_bound = found
        if is_bound:
            return True
    return False


def _next_token(query: str, position: int) -> tuple[int, int, bool] | None:
    match = _TOKENS.search(query, position)
    if match is None:
        return None
    if match["comment"]:
        return match.start(), _end_of_comment(query, match.end()), False
    return match.start(), match.end(), match["bound"] is not None


def _end_of_comment(query: str, position: int) -> int:
    """PostgreSQL's comments nest."""
    depth = 1
    for mark in re.compile(r"/\*|\*/").finditer(query, position):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(query)
