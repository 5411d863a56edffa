"""Names and values as SQL text. Every name is quoted, every value is a literal of its own."""

import re
from collections.abc import Iterable, Iterator, Sequence
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

    Means the same whatever standard_conforming_strings says: a pooler may drop our settings, and a
    backslash of a source's value would then end the literal.
    """
    if "\x00" in value:
        raise Invalid("A value with a NUL in it cannot be compared with anything in PostgreSQL.")
    quoted = "'" + value.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in quoted else quoted


def row(parts: Sequence[str]) -> str:
    """One part as it is, several as a row constructor: the form in which an index is used."""
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def names(columns: Iterable[str]) -> list[str]:
    return [identifier(column) for column in columns]


# What a colon or a quote may stand inside of: none of it is a bound date.
_COMMENT_MARK = re.compile(r"/\*|\*/")
_TOKENS = re.compile(
    r"""
      (?P<skip>
        [eE]'(?:[^'\\]|\\.|'')*'            # a string with escapes
      | '(?:[^']|'')*'
      | "(?:[^"]|"")*"
      | \$(?P<tag>[A-Za-z_\x80-\uffff][\w]*)?\$.*?\$(?P=tag)?\$
      | ::
      | :=
      | [A-Za-z_\x80-\uffff][\w$]*
      )
    | (?P<comment>/\*|--[^\n]*)
    | (?P<bound>:(?:date|keys)\b)
    """,
    re.VERBOSE | re.DOTALL,
)


def bind_date(query: str, day: date) -> str:
    """The query with every `:date` outside strings, names and comments made a date literal."""
    return _bound(query, ":date", f"DATE '{day.isoformat()}'")


def bind_keys(query: str, array: str) -> str:
    """The query with every `:keys` outside strings, names and comments made that array."""
    return _bound(query, ":keys", array)


def _bound(query: str, name: str, value: str) -> str:
    """Comments and a closing semicolon go: the query is put inside another one."""
    parts: list[str] = []
    position = 0
    for start, end, kind in _tokens(query):
        text = query[start:end]
        parts.append(query[position:start])
        parts.append(
            " " if kind == "comment" else value if kind == "bound" and text == name else text
        )
        position = end
    parts.append(query[position:])
    return "".join(parts).strip().rstrip(";").strip()


def _tokens(query: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, skip | comment | bound), from left to right."""
    position = 0
    while match := _TOKENS.search(query, position):
        kind = str(match.lastgroup) if match.lastgroup != "tag" else "skip"
        end = _end_of_comment(query, match.end()) if match[0] == "/*" else match.end()
        yield match.start(), end, kind
        position = end


def _end_of_comment(query: str, position: int) -> int:
    """PostgreSQL's comments nest."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(query, position):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(query)
