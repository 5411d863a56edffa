"""What models are called in the OpenAPI document: words of the product, not of the code."""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

REF = "#/components/schemas/{model}"


def word_of(annotation: Any) -> str:
    """`SinkBackfillAnswer` is a SinkBackfill, several of them are a SinkBackfillList."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is list:
        return f"{word_of(parts[0])}List"
    if origin in (Union, UnionType):
        return "Or".join(word_of(part) for part in parts)
    return strip(annotation.__name__)


def strip(name: str) -> str:
    """In the code an answer stands beside the record that it shows; a reader sees answers only."""
    return name.removesuffix("Answer")


def rename_schemas(document: dict[str, Any]) -> dict[str, Any]:
    """The document with every schema under its word."""
    schemas = document["components"]["schemas"]
    # the title is the model's name; the key has a module's too where two models share theirs
    words = {name: strip(schema["title"]) for name, schema in schemas.items()}
    if len(set(words.values())) < len(words):
        twice = sorted(word for word in words.values() if list(words.values()).count(word) > 1)
        raise RuntimeError(f"two schemas of the OpenAPI document are called {twice[0]}")
    places = {REF.format(model=name): REF.format(model=word) for name, word in words.items()}
    renamed: dict[str, Any] = _referring(document, places)
    renamed["components"]["schemas"] = {
        words[name]: {**schema, "title": words[name]}
        for name, schema in renamed["components"]["schemas"].items()
    }
    return renamed


def _referring(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            name: places[inner] if name == "$ref" else _referring(inner, places)
            for name, inner in value.items()
        }
    return [_referring(inner, places) for inner in value] if isinstance(value, list) else value
