"""The guard over a tenant's Spark SQL: one SELECT over `source`, known columns, known functions.

Plain Spark SQL is a way in: files by path, `reflect`, writes, `SET`, `${env:…}`. What is not
listed here is refused. Spark has the last word later, when the backfill is planned.
"""

from collections.abc import Collection, Iterator
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.tokenizer_core import Token, TokenType

from refill.guards.costs import check_costs
from refill.guards.functions import FUNCTIONS, TYPES_AND_KEYWORDS
from refill.guards.parsing import Guard, first_line

_GUARD = Guard("transform", "SQL", "Spark SQL")
_NEEDED = "one SELECT over the view source"

# statements, clauses and expressions that a SELECT over one view is made of
_FORBIDDEN_EVERYWHERE: tuple[type, ...] = (
    exp.Command,
    exp.DDL,
    exp.DML,
    exp.Into,
    exp.Parameter,
    exp.SessionParameter,
    exp.Placeholder,
    exp.Set,
    exp.Hint,
    exp.TableSample,
    exp.QueryTransform,
    exp.CurrentUser,
    exp.SessionUser,
    exp.CurrentDatabase,
    exp.CurrentCatalog,
    exp.CurrentSchema,
)
_FORBIDDEN_ROW_BY_ROW: dict[type, str] = {
    exp.AggFunc: "an aggregate",
    exp.Window: "a window",
    exp.Group: "GROUP BY",
    exp.Having: "HAVING",
    exp.Distinct: "DISTINCT",
    exp.Order: "ORDER BY",
    exp.Limit: "LIMIT",
    exp.Offset: "OFFSET",
    exp.Join: "a join",
    exp.Lateral: "LATERAL VIEW",
    exp.UDTF: "a function that makes rows",
    exp.Explode: "a function that makes rows",
    exp.Inline: "a function that makes rows",
    exp.Stack: "a function that makes rows",
    exp.Subquery: "a subquery",
    exp.SetOperation: "UNION, INTERSECT or EXCEPT",
    exp.CTE: "WITH",
}
_FROM_IN_FUNCTIONS = frozenset({"extract", "trim", "substr", "substring", "overlay"})
_ROW_MAKERS = frozenset(
    {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"}
    | {"stack", "json_tuple"}
)


def check_transform(
    sql: str,
    columns: Collection[str],
    *,
    row_by_row: bool,
    keep: Collection[str] = (),
) -> None:
    """Invalid on `transform` unless the SQL is one SELECT over the view `source`.

    `row_by_row`: a sink's slices are arbitrary key ranges, so anything that looks at more than one
    row is refused, and the key columns in `keep` must come out as they went in. No `columns`
    (a query whose columns are not known): they are not checked here.
    """
    with _GUARD.reading():
        _check(sql, columns, row_by_row, keep)


def _check(sql: str, columns: Collection[str], row_by_row: bool, keep: Collection[str]) -> None:
    tokens = _tokens(sql)
    tree = _GUARD.parse(sql, "spark", _NEEDED)
    if isinstance(tree, exp.Subquery):
        _GUARD.refuse(f"it stands in parentheses; write {_NEEDED}")
    _check_words(tokens)
    _check_functions(tokens, row_by_row)
    for node in tree.walk():
        if isinstance(node, _FORBIDDEN_EVERYWHERE):
            _GUARD.refuse(f"{_name(node)} is not allowed; write one SELECT over the view source")
    check_costs(tree, _GUARD)
    if row_by_row:
        _check_row_by_row(tree)
    _check_relations(tree)
    if columns:
        _check_columns(tree, columns)
    missing = [name for name in keep if not _keeps(tree, name)]
    if missing:
        _GUARD.refuse(
            f"the key column {', '.join(missing)} must be selected as it is, under its own name"
        )


def _tokens(sql: str) -> list[Token]:
    if "${" in sql:
        _GUARD.refuse(
            "${…} is not allowed: Spark would replace it by a setting or an environment variable"
        )
    with _GUARD.reading():
        tokens = sqlglot.tokenize(sql, dialect="spark")
    if any(token.comments for token in tokens) or any(
        token.token_type is TokenType.HINT for token in tokens
    ):
        _GUARD.refuse("comments and hints are not allowed; remove them")
    return list(tokens)


def _check_words(tokens: list[Token]) -> None:
    """What Spark's grammar reads otherwise than our parser: `FROM … MAP … USING 'command'` is a
    join to the one, and a shell command to the other."""
    # per parenthesis: whether a SELECT waits for its FROM; None: a function's own FROM, as in trim
    open_selects: list[bool | None] = [False]
    before: Token | None = None
    for token, following in pairwise([*tokens, None]):
        assert token is not None
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            own = before is not None and before.text.lower() in _FROM_IN_FUNCTIONS
            open_selects.append(None if own else False)
        elif kind is TokenType.R_PAREN and len(open_selects) > 1:
            open_selects.pop()
        elif kind is TokenType.SELECT:
            open_selects[-1] = True
        elif kind is TokenType.FROM and not _is_distinct(before):
            if open_selects[-1] is False:
                _GUARD.refuse("FROM stands before its SELECT; write SELECT first")
            if open_selects[-1]:
                open_selects[-1] = False
        elif kind is TokenType.USING and (
            following is None or following.token_type is not TokenType.L_PAREN
        ):
            _GUARD.refuse("USING takes columns in parentheses")
        elif kind is TokenType.INSERT or token.text == "|>":
            _GUARD.refuse(f"{token.text} is not allowed; write one SELECT over the view source")
        before = token


def _is_distinct(token: Token | None) -> bool:
    """IS DISTINCT FROM compares."""
    return token is not None and token.token_type is TokenType.DISTINCT


def _check_functions(tokens: list[Token], row_by_row: bool) -> None:
    """By the name as it is written, since that is what Spark will look up."""
    for token, following in pairwise(tokens):
        if following.token_type is not TokenType.L_PAREN or not _is_word(token):
            continue
        name = token.text.lower()
        if name in TYPES_AND_KEYWORDS:
            continue
        if name not in FUNCTIONS:
            _GUARD.refuse(f"the function {token.text} is not among those that are allowed")
        if row_by_row and name in _ROW_MAKERS:
            _GUARD.refuse(f"{token.text} makes rows, and a sink's SQL goes row by row")


def _is_word(token: Token) -> bool:
    return token.token_type is TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum()


def _check_row_by_row(tree: exp.Expr) -> None:
    for node in tree.walk():
        for forbidden, words in _FORBIDDEN_ROW_BY_ROW.items():
            if isinstance(node, forbidden):
                _GUARD.refuse(
                    f"{words} is not allowed for a sink: its SQL goes row by row, "
                    "since a slice is only a part of the table"
                )


def _check_relations(tree: exp.Query) -> None:
    """A name is that of a WITH where SQL finds it there: before it, in the same query or around
    it. Everywhere else it is a relation of Spark's, and there is but one."""
    defined = {id(node) for node, found in _selected(tree) if isinstance(found, Scope)}
    found = False
    for table in tree.find_all(exp.Table):
        written = ".".join(part.name for part in table.parts)
        if table.db or table.catalog or not isinstance(table.this, exp.Identifier):
            _GUARD.refuse(
                f"the relation {written or table.sql('spark')} is not allowed; read from source"
            )
        if id(table) in defined:
            continue
        if table.name.lower() != "source":
            _GUARD.refuse(f"there is no relation {table.name}; read from source")
        found = True
    if not found:
        _GUARD.refuse("it must read from the view source")


def _selected(tree: exp.Query) -> Iterator[tuple[exp.Expr, object]]:
    for scope in traverse_scope(tree):
        yield from scope.selected_sources.values()


def _check_columns(tree: exp.Expr, columns: Collection[str]) -> None:
    try:
        qualify(
            tree.copy(),
            schema={"source": {name: "unknown" for name in columns}},
            dialect="spark",
            quote_identifiers=False,
        )
    except OptimizeError as exc:
        _GUARD.refuse(f"{first_line(exc)}; the source has: {', '.join(sorted(columns))}")


def _keeps(tree: exp.Expr, name: str) -> bool:
    select = tree if isinstance(tree, exp.Select) else None
    if select is None:
        return False
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and item.is_star):
            excepted = item.find(exp.Star)
            names = (
                {e.name.lower() for e in (excepted.args.get("except_") or [])} if excepted else ()
            )
            return name.lower() not in names
    return any(
        isinstance(column, exp.Column)
        and column.name.lower() == name.lower()
        and alias == name.lower()
        for column, alias in _outputs(select)
    )


def _outputs(select: exp.Select) -> Iterator[tuple[exp.Expr, str]]:
    for item in select.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        yield inner, item.alias_or_name.lower()


def _name(node: exp.Expr) -> str:
    return node.sql("spark")[:60] or type(node).__name__.upper()
