"""The tables of docs/reference/connectors.md, made from the connectors themselves:

python -m refill.connectors.kit.reference docs/reference/connectors.md
"""

import re
import sys
from pathlib import Path
from typing import get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from refill.connectors.kit.contract import OURS, Connector
from refill.connectors.kit.drivers import requirement
from refill.connectors.kit.registry import load_connectors

_SECTION = re.compile(r"(<!-- (guarantees|options) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_page(page: str) -> str:
    """The page with its tables as the code has them now."""
    made = {"guarantees": guarantees_table(), "options": options_tables()}
    return _SECTION.sub(lambda match: f"{match[1]}{made[match[2]]}\n{match[3]}", page)


def guarantees_table() -> str:
    lines = ["| type | system | roles | guarantee | how | install |", "|---|---|---|---|---|---|"]
    for connector in _ours():
        extra = f"`{requirement(connector)}`" if connector.extra else ""
        lines.append(
            f"| `{connector.type}` | {connector.title} | {_roles(connector)} "
            f"| {connector.guarantee or ''} | {_text(connector.guarantee_note)} | {extra} |"
        )
    return "\n".join(lines)


def options_tables() -> str:
    parts = []
    for connector in _ours():
        lines = [f"### `{connector.type}`", "", "| field | required | | |", "|---|---|---|---|"]
        model = connector.options_model
        for name, field in model.model_fields.items():
            marks = [
                word
                for word, holds in (
                    ("live", name in model.live),
                    ("secret", _is_secret(field.annotation)),
                )
                if holds
            ]
            required = "yes" if field.is_required() else f"default {_shown(field)}"
            text = _text(field.description or field.title or "")
            lines.append(f"| `{field.alias or name}` | {required} | {', '.join(marks)} | {text} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _ours() -> list[Connector]:
    """Without those of other packages, which may be installed here too."""
    return [each for each in load_connectors().values() if each.distribution == OURS]


def _roles(connector: Connector) -> str:
    roles = {
        "source": connector.is_source,
        "sink": connector.is_sink,
        "destination": connector.is_destination,
    }
    return ", ".join(role for role, has in roles.items() if has)


def _text(sentence: str) -> str:
    """As it reads, inside a table's cell."""
    return sentence.replace("|", "\\|").replace("<", "&lt;")


def _is_secret(annotation: object) -> bool:
    return annotation is SecretStr or any(_is_secret(part) for part in get_args(annotation))


def _shown(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if isinstance(default, SecretStr):
        default = default.get_secret_value()  # what everybody may know: it is in the source
    if default in (None, "", {}):
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(fill_page(path.read_text()))
