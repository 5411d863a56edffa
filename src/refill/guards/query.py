"""The guard over a transfer's source query: one SELECT of the source's SQL with a bound :date.

The query runs with the rights that the tenant's own database user has, in a read-only transaction;
this check is there to say at creation what would only fail at run.
"""

from sqlglot import exp

from refill.guards.parsing import Guard

PARAMETER = "date"

_GUARD = Guard("query", "query", "SQL")
_ENRICHMENT = Guard("enrichment", "query", "SQL")
_NEEDED = "one SELECT with :date in it"

_WRITES = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock)


def check_dated_query(sql: str, dialect: str) -> str:
    """The query without a closing semicolon; Invalid on `query` when it cannot be one. `dialect`:
    the SQL that its source speaks."""
    text = sql.strip().rstrip(";").rstrip()
    if not text:
        _GUARD.refuse(f"it is empty; write {_NEEDED}")
    with _GUARD.reading():
        tree = _GUARD.parse(text, dialect, _NEEDED)
        _check_reads(tree, _GUARD, "a transfer")
        _check_parameters(tree)
    return text


def check_keyed_query(sql: str, dialect: str) -> None:
    """Invalid on `enrichment` unless it is one SELECT of the source's SQL with :keys in it."""
    needed = "one SELECT with :keys in it, as in: where id = any(:keys)"
    with _ENRICHMENT.reading():
        tree = _ENRICHMENT.parse(sql.strip().rstrip(";"), dialect, needed)
        _check_reads(tree, _ENRICHMENT, "an enrichment")
        if {str(node.this) for node in tree.find_all(exp.Placeholder)} != {"keys"}:
            _ENRICHMENT.refuse(f"it needs the parameter :keys, and no other; write {needed}")


def _check_reads(tree: exp.Query, guard: Guard, what: str) -> None:
    for node in tree.walk():
        if isinstance(node, _WRITES) and not isinstance(node, exp.Query):
            guard.refuse(f"{_word(node)} is not allowed: {what} only reads; write one plain SELECT")


def _check_parameters(tree: exp.Query) -> None:
    if tree.find(exp.Parameter):
        _GUARD.refuse("only the parameter :date is bound; write :date instead of $1")
    names = {str(node.this) for node in tree.find_all(exp.Placeholder)}
    for name in sorted(names - {PARAMETER}):
        _GUARD.refuse(f"only the parameter :date is bound, not :{name}")
    if PARAMETER not in names:
        _GUARD.refuse("it has no :date; compare the date column with it, as in: where day = :date")


def _word(node: exp.Expr) -> str:
    if isinstance(node, exp.Lock):
        return "FOR UPDATE"
    if isinstance(node, exp.Into):
        return "SELECT INTO"
    return type(node).__name__.upper()
