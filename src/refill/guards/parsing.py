"""What both guards have in common: one statement, read by the parser, refused with a sentence."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import sqlglot
from sqlglot import exp

from refill.domain.errors import Invalid

LONGEST_SQL = 20_000  # characters
DEEPEST_SQL = 60  # parentheses within parentheses: the parser's work may double with each
_LONGEST_COMPLAINT = 120
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"|`[^`]*`", re.DOTALL)


class Guard:
    """Refuses on one field. `what` is the SQL as its author knows it: "SQL", "query"."""

    def __init__(self, field: str, what: str, language: str) -> None:
        self._field = field
        self._what = what
        self._language = language

    def parse(self, sql: str, dialect: str, needed: str) -> exp.Query:
        """The one query that it is; `needed` says what to write instead of anything else."""
        self._check_size(sql)
        with self.reading():
            statements = sqlglot.parse(sql, dialect=dialect)
        if len(statements) != 1 or statements[0] is None:
            self.refuse(f"exactly one statement is allowed: {needed}")
        tree = statements[0]
        if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table | exp.DML):
            self.refuse(f"it is not a SELECT; write {needed}")
        return tree

    def _check_size(self, sql: str) -> None:
        if len(sql) > LONGEST_SQL:
            self.refuse(f"it has {len(sql)} characters, and {LONGEST_SQL} are allowed; shorten it")
        depth = 0
        for letter in _QUOTED.sub("", sql):
            depth += (letter in "([") - (letter in ")]")
            if depth > DEEPEST_SQL:
                self.refuse(f"it is nested more than {DEEPEST_SQL} deep; write it flatter")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Beside its own errors the parser raises whatever it trips over."""
        try:
            yield
        except Invalid:
            raise
        except RecursionError:
            self.refuse("it is too deep to be read; write it flatter")
        except Exception as exc:
            self.refuse(f"it is not valid {self._language}: {first_line(exc)}")

    def refuse(self, problem: str) -> NoReturn:
        raise Invalid.of(self._field, f"The {self._what} was refused: {problem}.")


def first_line(exc: Exception) -> str:
    """Of the parser's complaint, without its colours."""
    text = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
    plain = text.replace("\x1b[4m", "").replace("\x1b[0m", "").rstrip(". ")
    return plain[:_LONGEST_COMPLAINT]
