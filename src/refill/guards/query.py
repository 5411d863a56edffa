"""The guard over a transfer's source query: one SELECT of the source's SQL with a bound :date.

The query runs with the rights that the tenant's own database user has, in a read-only transaction;
this check is there to say at creation what would only fail at run.
"""

from typing import NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from refill.domain.errors import Invalid

FIELD = "query"
PARAMETER = "date"

_WRITES = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock)


def check_dated_query(sql: str) -> str:
    """The query without a closing semicolon; Invalid on `query` when it cannot be one."""
    text = sql.strip().rstrip(";").rstrip()
    if not text:
        _refuse("it is empty; write one SELECT with :date in it")
    tree = _parse(text)
    for node in tree.walk():
        if isinstance(node, _WRITES) and not isinstance(node, exp.Query):
            _refuse(f"{_word(node)} is not allowed: a transfer only reads; write one plain SELECT")
    _check_parameters(tree)
    return text


def _parse(text: str) -> exp.Query:
    try:
        statements = sqlglot.parse(text, dialect="postgres")
    except SqlglotError as exc:
        _refuse(f"it is not valid SQL: {_first_line(exc)}")
    if len(statements) != 1:
        _refuse("it has several statements; write one SELECT")
    tree = statements[0]
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table | exp.DML):
        _refuse("it is not a SELECT; write one SELECT with :date in it")
    return tree


def _check_parameters(tree: exp.Query) -> None:
    if tree.find(exp.Parameter):
        _refuse("only the parameter :date is bound; write :date instead of $1")
    names = {str(node.this) for node in tree.find_all(exp.Placeholder)}
    for name in sorted(names - {PARAMETER}):
        _refuse(f"only the parameter :date is bound, not :{name}")
    if PARAMETER not in names:
        _refuse("it has no :date; compare the date column with it, as in: where day = :date")


def _word(node: exp.Expr) -> str:
    if isinstance(node, exp.Lock):
        return "FOR UPDATE"
    if isinstance(node, exp.Into):
        return "SELECT INTO"
    return type(node).__name__.upper()


def _first_line(exc: Exception) -> str:
    text = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
    return text.replace("\x1b[4m", "").replace("\x1b[0m", "").rstrip(". ")[:120]


def _refuse(problem: str) -> NoReturn:
    raise Invalid.of(FIELD, f"The query was refused: {problem}.")
