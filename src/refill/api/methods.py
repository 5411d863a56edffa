"""Which methods a path takes, where a fixed path looks like an id to another route."""

import re
from collections import defaultdict

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

_PARAMETER = re.compile(r"\{[^}]*\}")


class FixedPaths:
    """`PUT /transfers/validations` must be a method that is not there, and not a transfer whose
    id is "validations"."""

    def __init__(self, app: FastAPI) -> None:
        methods: dict[str, set[str]] = defaultdict(set)
        for route in iter_route_contexts(app.routes):
            if route.path_format is not None:
                methods[route.path_format] |= route.methods or set()
        self._fixed: list[tuple[re.Pattern[str], frozenset[str]]] = [
            (_pattern(path), frozenset(found))
            for path, found in methods.items()
            if any(_takes(other, path) for other in methods)
        ]

    def missing_method(self, method: str, path: str) -> str | None:
        """The methods that the fixed path does take, when this one is not among them."""
        for pattern, methods in self._fixed:
            if method not in methods and pattern.fullmatch(path):
                return ", ".join(sorted(methods))
        return None


def _takes(template: str, fixed: str) -> bool:
    """Whether the template would take the fixed path, one of its parameters for a word of it."""
    ours, theirs = template.split("/"), fixed.split("/")
    if template == fixed or len(ours) != len(theirs):
        return False
    return all(
        own == other or (_PARAMETER.fullmatch(own) and not _PARAMETER.fullmatch(other))
        for own, other in zip(ours, theirs, strict=True)
    )


def _pattern(path: str) -> re.Pattern[str]:
    literals = (re.escape(part) for part in _PARAMETER.split(path))
    return re.compile("[^/]+".join(literals))
