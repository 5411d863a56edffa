"""The pieces of SQL that a sink may have, made one SELECT: transform, condition and routing.

All three go row by row over `source`, so that one SELECT with the transform's columns, the
routing's beside them and all conditions in its WHERE is the same as one after the other.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import sqlglot
from sqlglot import exp

from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator
from refill.domain.spec import HIDDEN, MESSAGE, ROUTE
from refill.domain.table import Column, Comparison, Family
from refill.guards.transform import check_transform

_EVERYTHING = "select * from source"
_COMPARED: dict[type, Operator] = {
    exp.EQ: Operator.EQ,
    exp.NEQ: Operator.NE,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GE,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LE,
}
_EQUALITY = frozenset({Operator.EQ, Operator.NE})
_NUMBERS = frozenset({Family.INTEGER, Family.DECIMAL})


def check_routing(sql: str, columns: Collection[str], fields: Sequence[str]) -> None:
    """One SELECT of some of the fields, each under its name, and nothing else."""
    with _on("routing"):
        check_transform(sql, columns, row_by_row=True)
    select = _select(sql)
    names = [item.alias_or_name for item in select.expressions]
    unknown = [name for name in names if name not in fields]
    if unknown or len(set(names)) < len(names):
        known = ", ".join(fields)
        raise Invalid.of(
            "routing", f"selects {', '.join(names)}; this sink has, once each: {known}"
        )
    if select.args.get("where") is not None:
        raise Invalid.of("routing", "must not have a WHERE: which rows are sent, the filter says")


def check_filter_sql(condition: str, columns: Collection[str]) -> None:
    with _on("filter"):
        check_transform(_where(condition), columns, row_by_row=True)
        tree = sqlglot.parse_one(condition, dialect="spark")
    if isinstance(tree, exp.Query | exp.Alias | exp.Star):
        raise Invalid.of("filter", "is no condition; write one as in: amount > 10")


def message_form(sql: str) -> Literal["value", "json"] | None:
    """Whether the SQL makes the whole message, in a column that it names so itself: one that the
    table has, passed on as it is, is a part of the record."""
    for item in _select(sql).expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == MESSAGE:
            inner = item.this
            if isinstance(inner, exp.Column) and inner.name.lower() == MESSAGE:
                return None
            return "json" if isinstance(inner, exp.JSONFormat) else "value"
    return None


def compose(transform: str | None, condition: str | None, routing: str | None) -> str | None:
    """One SELECT; the transform itself, word by word, where there is nothing beside it."""
    if condition is None and routing is None:
        return transform
    select = _select(transform or _EVERYTHING)
    for item in _select(routing).expressions if routing else ():
        inner = item.this if isinstance(item, exp.Alias) else item
        select = select.select(exp.alias_(inner, ROUTE + item.alias_or_name))
    if condition is not None:
        select = select.where(exp.paren(sqlglot.parse_one(condition, dialect="spark")))
    return select.sql("spark")


def simple_conditions(condition: str, columns: Sequence[Column]) -> tuple[Condition, ...] | None:
    """The same as conditions that need no Spark; None where it says more than they can."""
    by_name = {column.name.lower(): column for column in columns}
    found: list[Condition] = []
    for part in _conjuncts(sqlglot.parse_one(condition, dialect="spark")):
        simple = _simple(part, by_name)
        if simple is None:
            return None
        found.append(simple)
    return tuple(found)


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.left)
        yield from _conjuncts(tree.right)
    else:
        yield tree


def _simple(part: exp.Expr, columns: dict[str, Column]) -> Condition | None:
    negated = isinstance(part, exp.Not)
    inner = part.this.unnest() if negated else part
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        column = _column(inner.this, columns)
        test = Operator.IS_NOT_NULL if negated else Operator.IS_NULL
        return None if column is None else Condition(column_name=column.name, operator=test)
    operator = None if negated else _COMPARED.get(type(inner))
    literal = inner.args.get("expression")
    if operator is None or not isinstance(literal, exp.Literal):
        return None
    if isinstance(inner.this, exp.JSONExtractScalar):
        return _inside_json(inner.this, operator, literal, columns)
    column = _column(inner.this, columns)
    if column is None or column.comparison is not Comparison.FAMILY:
        return None
    numbers = column.family in _NUMBERS and not literal.is_string
    texts = column.family is Family.TEXT and literal.is_string and operator in _EQUALITY
    if not numbers and not texts:
        return None
    if column.family is Family.INTEGER and not literal.this.isdigit():
        return None
    return Condition(column_name=column.name, operator=operator, comparison_value=literal.this)


def _inside_json(
    extract: exp.Expr, operator: Operator, literal: exp.Literal, columns: dict[str, Column]
) -> Condition | None:
    column = _column(extract.this, columns)
    keys = extract.expression.expressions if isinstance(extract.expression, exp.JSONPath) else []
    names = [key.this for key in keys[1:] if isinstance(key, exp.JSONPathKey)]
    plain = len(names) == len(keys) - 1 and all(str(n).isidentifier() for n in names)
    if column is None or column.family is not Family.JSON or not names or not plain:
        return None
    if not literal.is_string or operator not in _EQUALITY:
        return None
    return Condition(
        column_name=column.name,
        operator=operator,
        comparison_value=literal.this,
        field_path=".".join(names),
    )


def _column(node: exp.Expr, columns: dict[str, Column]) -> Column | None:
    if not isinstance(node, exp.Column) or node.table not in ("", "source"):
        return None
    return columns.get(node.name.lower())


def _select(sql: str) -> exp.Select:
    tree = sqlglot.parse_one(sql, dialect="spark")
    if not isinstance(tree, exp.Select):
        raise Invalid.of("transform", "is not one SELECT over the view source")
    return tree


def _where(condition: str) -> str:
    return f"{_EVERYTHING} where ({condition})"


@contextmanager
def _on(field: str) -> Iterator[None]:
    """The guard's complaints, on the field that the SQL stands in."""
    try:
        yield
    except Invalid as exc:
        problems = [problem for found in exc.fields.values() for problem in found]
        raise Invalid(f"{field}: {problems[0]}", {field: problems}) from exc
    except sqlglot.errors.SqlglotError as exc:
        raise Invalid.of(field, "The SQL was refused: it is no condition of Spark SQL.") from exc


def check_no_hidden(columns: Collection[str]) -> None:
    """Names that begin so are ours; a table that has one cannot be told from what we add."""
    for name in columns:
        if name.startswith(HIDDEN):
            raise Invalid.of("table", f"has a column {name}; names that begin {HIDDEN} are ours")
