"""What a constant expression costs. Spark computes constants while it plans, where nothing can
interrupt it: what could take long, or fill the memory, is refused before."""

import math

from sqlglot import exp

from refill.guards.parsing import Guard

LARGEST_COUNT = 1_000_000  # of letters or elements that one call may make of a row
LARGEST_CONSTANT = 100_000  # steps and letters of what needs no row

_COUNTED = {"repeat": 1, "array_repeat": 1, "lpad": 1, "rpad": 1, "space": 0}
_REGEXES = frozenset(
    [
        "regexp_count",
        "regexp_extract",
        "regexp_extract_all",
        "regexp_instr",
        "regexp_like",
        "regexp_replace",
        "regexp_substr",
        "rlike",
        "split",
    ]
)
# of each of these, every letter of one argument may meet every one of another
_CROSSING = frozenset(
    [
        "replace",
        "translate",
        "levenshtein",
        "array_to_string",
        "array_union",
        "array_except",
        "array_intersect",
        "arrays_overlap",
        "map_zip_with",
        "zip_with",
        "find_in_set",
    ]
)


def check_costs(tree: exp.Expr, guard: Guard) -> None:
    for node in tree.walk():
        name = _name(node)
        if name in _COUNTED or name == "sequence":
            made = _count(node, name)
            if made is not None and made > LARGEST_COUNT:
                guard.refuse(
                    f"{name} would make {made:.0f} letters or elements of each row, and "
                    f"{LARGEST_COUNT} are allowed"
                )
        if not _is_call(node) or not _is_constant(node):
            continue
        if name in _REGEXES:
            guard.refuse(f"{name} is asked of a constant; write its result instead")
        if _size(node) > LARGEST_CONSTANT:
            guard.refuse(
                f"the constant {node.sql('spark')[:60]} takes too long to compute; write a smaller "
                "one, or its result"
            )


def _size(node: exp.Expr) -> float:
    """Letters and elements that computing a constant may touch, at most."""
    if isinstance(node, exp.Literal):
        return float(len(node.this)) if node.is_string else 1.0
    sizes = [max(1.0, _size(part)) for part in node.iter_expressions()]
    name = _name(node)
    if name in _COUNTED or name == "sequence":
        made = _count(node, name)
        return math.inf if made is None else max(sizes, default=1.0) * max(1.0, made)
    if name in _CROSSING or any(isinstance(part, exp.Lambda) for part in node.iter_expressions()):
        return math.prod(sizes)
    return sum(sizes)


def _count(node: exp.Expr, name: str) -> float | None:
    """How many a call makes of its first argument; None: that is not written as a number."""
    given = _arguments(node)
    if name == "sequence":
        numbers = [_number(part) for part in given[:3]]
        if len(numbers) < 2 or None in numbers:
            return None
        first, last, *step = [number or 0.0 for number in numbers]
        return abs(last - first) / (abs(step[0]) if step and step[0] else 1.0) + 1
    place = _COUNTED[name]
    return _number(given[place]) if len(given) > place else None


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [part for part in node.iter_expressions() if isinstance(part, exp.Expression)]


def _number(node: exp.Expr) -> float | None:
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren | exp.Cast):
        return _number(node.this)
    if isinstance(node, exp.Literal):
        try:
            return float(node.this)
        except ValueError:
            return None
    return None


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Func | exp.RegexpLike)


def _is_constant(node: exp.Expr) -> bool:
    return node.find(exp.Column, exp.Star, exp.Query) is None


def _name(node: exp.Expr) -> str:
    """As Spark calls it."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.GenerateSeries):
        return "sequence"
    if isinstance(node, exp.Pad):
        return "lpad" if node.args.get("is_left") else "rpad"
    if isinstance(node, exp.RegexpLike):
        return "rlike"
    if isinstance(node, exp.Split | exp.RegexpSplit):
        return "split"
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    return ""
