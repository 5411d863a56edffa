"""The OpenAPI document: what routes declare, plus bodies, keys and errors that all share."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from refill import __version__
from refill.api.body import BODY_MODEL
from refill.api.route import SCOPE
from refill.domain.access import Scope

_REF = "#/components/schemas/{model}"


class SinkError(BaseModel):
    """Every error of `/api`."""

    summary: str
    validation_errors: dict[str, list[str]] | None = None
    code: str | None = None


class ErrorMeta(BaseModel):
    request_id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,50}$")


class ErrorBody(BaseModel):
    code: str = Field(max_length=100)
    message: str = Field(max_length=255)
    description: str | None = Field(None, max_length=255)


class TransferError(BaseModel):
    """Every error of `/v1`."""

    meta: ErrorMeta
    error: ErrorBody


# what any guarded route may answer besides its own
_ALWAYS = {
    400: "the request could not be read",
    401: "no key, or one that is not valid",
    403: "the key or its user's role does not allow it",
    404: "nothing there, or another team's",
    413: "the body is too large",
    422: "understood, and wrong",
    429: "the key's requests of this hour are used up",
    503: "the metadata store is busy",
}


def guarded(
    scope: Scope, *, error: type[BaseModel], also: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """The keywords of a route decorator: `@router.get("/…", **guarded(Scope.SINKS_READ, …))`."""
    errors = {**_ALWAYS, **(also or {})}
    return {
        "openapi_extra": {SCOPE: scope.value},
        "responses": {status: error_answer(text, error) for status, text in errors.items()},
    }


def error_answer(text: str, *errors: type[BaseModel]) -> dict[str, Any]:
    """By reference: as a `model` FastAPI would build its validator anew for every route."""
    references = [{"$ref": _REF.format(model=error.__name__)} for error in errors]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def install_document(app: FastAPI) -> None:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title="refill",
        version=__version__,
        summary="Backfills as a service",
        description="Two dialects over one core: sinks under `/api`, transfers under `/v1`.",
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    schemas = components.setdefault("schemas", {})
    bodies = {model for _, _, model in _bodies(app)}
    models: set[type[BaseModel]] = {*bodies, SinkError, TransferError}
    named = sorted(models, key=lambda model: model.__qualname__)
    references, definitions = models_json_schema(
        [(model, "validation") for model in named],
        ref_template=_REF,
    )
    for name, definition in definitions.get("$defs", {}).items():
        if schemas.setdefault(name, definition) != definition:
            raise RuntimeError(f"two schemas of the OpenAPI document are called {name}")
    for path, method, model in _bodies(app):
        required = any(field.is_required() for field in model.model_fields.values())
        document["paths"][path][method]["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": references[(model, "validation")]}},
        }
    for operation in _operations(document):
        if SCOPE in operation:
            operation["security"] = [{"key": []}]
    for operations in document["paths"].values():
        if "post" in operations and SCOPE in operations["post"]:
            operations["post"].setdefault("parameters", []).append(_idempotency_key())
    return document


def _idempotency_key() -> dict[str, Any]:
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "The same key and body give the same answer again.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    }


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in document["paths"].values():
        yield from operations.values()


def _bodies(app: FastAPI) -> Iterator[tuple[str, str, type[BaseModel]]]:
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for model in _body_models(route.dependant):
            for method in sorted(route.methods or ()):
                yield str(context.path_format), method.lower(), model


def _body_models(dependant: Dependant) -> Iterator[type[BaseModel]]:
    for dependency in dependant.dependencies:
        model = getattr(dependency.call, BODY_MODEL, None)
        if model is not None:
            yield model
