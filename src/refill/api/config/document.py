"""The file's text, read: YAML of known sections, each entry in the form of its API."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from refill.api.body import problems_of
from refill.api.config.entries import READERS
from refill.domain.errors import Invalid
from refill.service.config.changes import Wish
from refill.service.config.config import Document

MAX_NODES = 100_000
# what the original reads there, and refill has no use for
PASSED_OVER = ("api_tokens",)
NOT_HERE = {
    "functions": "functions are not run here; write filters and transforms into the sinks",
    "transforms": "functions are not run here; write filters and transforms into the sinks",
    "change_retentions": "change retention is not there",
}


class _Loader(yaml.SafeLoader):
    """Without times: a position is text, in the database's own form."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_document(text: str, *, prune: bool) -> Document:
    """Invalid, by section and entry, where it makes no sense."""
    try:
        found = yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.YAMLError as exc:
        raise Invalid.of("yaml", f"is not YAML: {_said(exc)}") from exc
    if not isinstance(found, Mapping):
        raise Invalid.of("yaml", "must have sections: databases, sinks, http_endpoints and others")
    if sum(1 for _ in _nodes(found)) > MAX_NODES:
        raise Invalid.of("yaml", f"has more than {MAX_NODES} values, anchors counted out")
    sections: dict[str, tuple[Wish, ...]] = {}
    for name, entries in found.items():
        if name in PASSED_OVER:
            continue
        if name == "account":
            name, entries = "teams", [entries]
        if name in NOT_HERE or name not in READERS:
            known = ", ".join(READERS)
            raise Invalid.of(str(name), NOT_HERE.get(name, f"is no section; there are: {known}"))
        sections[name] = tuple(_read(name, entries))
    return Document(sections=sections, prune=prune)


def _read(section: str, entries: Any) -> Iterator[Wish]:
    if not isinstance(entries, list | None):
        raise Invalid.of(section, "must be a list")
    model, make = READERS[section]
    for position, entry in enumerate(entries or []):
        if not isinstance(entry, Mapping):
            raise Invalid.of(f"{section}.{position}", "must be an object")
        called = entry.get("name") or entry.get("display_name") or entry.get("email") or position
        yield _wish(f"{section} {called}", model, make, entry)


def _wish(
    place: str, model: type[BaseModel], make: Callable[[Any], Wish], entry: Mapping[str, Any]
) -> Wish:
    try:
        # not strict: a variable that was put in is text, also where a number is meant
        return make(model.model_validate_json(json.dumps(entry), strict=False))
    except ValidationError as exc:
        found = problems_of(exc.errors(include_url=False))
        fields = {f"{place}: {field}": said for field, said in found.fields.items()}
        raise Invalid(f"{place}: {found.message}", fields) from exc


def _nodes(value: Any) -> Iterator[Any]:
    """Everything in it, as often as anchors repeat it; stops where it is too much."""
    waiting, seen = [value], 0
    while waiting and seen <= MAX_NODES:
        node = waiting.pop()
        seen += 1
        yield node
        if isinstance(node, Mapping):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _said(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark else ""
    return f"{getattr(error, 'problem', None) or 'it cannot be read'}{where}"
