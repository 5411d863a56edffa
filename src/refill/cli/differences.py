"""What a plan says it will do, for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SIGNS = {"create": ("+", "green"), "update": ("~", "yellow"), "delete": ("-", "red")}


def described(changes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Lines, each with its colour."""
    for change in changes:
        sign, colour = _SIGNS[change["action"]]
        yield f"{sign} {change['resource_type']} {change['name']}", colour
        if change["action"] == "create":
            for path, value in _leaves(change["new"]):
                yield f"    {path}: {_text(value)}", colour
        if change["action"] == "update":
            old, new = dict(_leaves(change["old"])), dict(_leaves(change["new"]))
            for path in sorted({*old, *new}):
                if old.get(path) != new.get(path):
                    before, after = _text(old.get(path)), _text(new.get(path))
                    yield f"    {path}: {before} → {after}", colour


def counted(changes: Sequence[Mapping[str, Any]]) -> str:
    made = {action: 0 for action in _SIGNS}
    for change in changes:
        made[change["action"]] += 1
    return f"{made['create']} to add, {made['update']} to change, {made['delete']} to delete."


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif path != "name":
        yield path, value


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
