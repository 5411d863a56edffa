"""Variables of the environment in a file: `${NAME}` and `${NAME:-what it is otherwise}`."""

import re
from collections.abc import Mapping
from typing import Any

from refill.cli.output import Stopped

# $${ stands for ${ itself
_VARIABLE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)((?:[^}\\]|\\.)*))?\}")
# code has dollars of its own
_CODE = frozenset({"code", "sql"})


def substituted(value: Any, environment: Mapping[str, str]) -> Any:
    """Every text of it with its variables filled in; Stopped where one is not set."""
    if isinstance(value, dict):
        return {
            name: inner if name in _CODE else substituted(inner, environment)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [substituted(inner, environment) for inner in value]
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _filled(found, environment), value)
    return value


def _filled(found: "re.Match[str]", environment: Mapping[str, str]) -> str:
    literal, name, operator, default = found.groups()
    if literal:
        return str(literal)
    known = environment.get(name)
    if known or (known is not None and operator != ":-"):
        return known
    if operator is None:
        raise Stopped(f"The variable {name} is not set; set it, or write ${{{name}:-default}}.")
    return str(default)
