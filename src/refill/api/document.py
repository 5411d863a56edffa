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
from refill.api.connector_schemas import describe_connectors
from refill.api.route import SCOPE
from refill.api.schema_names import REF, rename_schemas
from refill.domain.access import Scope
from refill.service import Service


class SinkError(BaseModel):
    """Every error of `/api`."""

    summary: str = Field(description="what is wrong, in a sentence")
    validation_errors: dict[str, list[str]] | None = Field(
        None, description="what is wrong, by field; with 422"
    )
    code: str | None = Field(None, description="a word that programs can go by; with 422")


class ErrorMeta(BaseModel):
    request_id: str = Field(
        pattern=r"^[A-Za-z0-9_-]{1,50}$", description="also in the server's log"
    )


class ErrorDetail(BaseModel):
    code: str = Field(max_length=100, description="a word that programs can go by")
    message: str = Field(max_length=255, description="what kind of error it is")
    description: str | None = Field(
        None, max_length=255, description="what is wrong, in a sentence"
    )


class TransferError(BaseModel):
    """Every error of `/v1`."""

    meta: ErrorMeta = Field(description="about the request")
    error: ErrorDetail = Field(description="what is wrong")


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
    references = [{"$ref": REF.format(model=error.__name__)} for error in errors]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def install_document(app: FastAPI, service: Service) -> None:
    """Made when it is first asked for."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app, service)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _describe(app: FastAPI, service: Service) -> dict[str, Any]:
    document = get_openapi(
        title="refill",
        version=__version__,
        summary="Backfills as a service",
        description="Two dialects over one core: sinks under `/api`, transfers under `/v1`.",
        routes=app.routes,
    )
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    _add_bodies(document, app)
    for path, method, route in _routes(app):
        operation = document["paths"][path][method]
        if SCOPE in operation:
            operation["security"] = [{"key": []}]
            if method == "post":
                operation.setdefault("parameters", []).append(_idempotency_key())
        # the same function under another method is another operation
        twin = method == "put" and "patch" in document["paths"][path]
        operation["operationId"] = f"{route.name}_put" if twin else route.name
    document = rename_schemas(document)
    schemas = document["components"]["schemas"]
    describe_connectors(
        schemas, {"sink": service.sinks.types(), "destination": service.destinations.types()}
    )
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document


def _add_bodies(document: dict[str, Any], app: FastAPI) -> None:
    """FastAPI does not know them: we read bodies ourselves."""
    bodies = [
        (path, method, model)
        for path, method, route in _routes(app)
        for model in _body_models(route.dependant)
    ]
    models: set[type[BaseModel]] = {*(model for _, _, model in bodies), SinkError, TransferError}
    references, definitions = models_json_schema(
        [(model, "validation") for model in sorted(models, key=lambda model: model.__qualname__)],
        ref_template=REF,
    )
    schemas = document["components"]["schemas"]
    for name, definition in definitions.get("$defs", {}).items():
        if schemas.setdefault(name, definition) != definition:
            raise RuntimeError(f"two schemas of the OpenAPI document are called {name}")
    for path, method, model in bodies:
        required = any(field.is_required() for field in model.model_fields.values())
        document["paths"][path][method]["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": references[(model, "validation")]}},
        }


def _idempotency_key() -> dict[str, Any]:
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "The same key and body give the same answer again.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    }


def _routes(app: FastAPI) -> Iterator[tuple[str, str, APIRoute]]:
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in sorted(route.methods or ()):
                yield str(context.path_format), method.lower(), route


def _body_models(dependant: Dependant) -> Iterator[type[BaseModel]]:
    for dependency in dependant.dependencies:
        model = getattr(dependency.call, BODY_MODEL, None)
        if model is not None:
            yield model
