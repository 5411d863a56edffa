"""Plan, apply and export."""

from typing import Annotated, Any, Literal

import yaml
from fastapi import Query
from pydantic import BaseModel, Field

from refill.api.body import Body, body_of
from refill.api.config.document import read_document
from refill.api.config.shown import showing
from refill.api.dialects.sinks.router import needs, router
from refill.api.gate import CallerParam, ServiceParam
from refill.domain.access import Scope
from refill.service.config.changes import Change, rendered


class ConfigFile(Body):
    yaml: str = Field(max_length=1_000_000, description="the file's text")
    prune: bool = Field(False, description="delete what the file's sections do not have")


class ConfigChange(BaseModel):
    resource_type: str = Field(description="database, http_endpoint, sink and others")
    action: Literal["create", "update", "delete"] = Field(description="what is done to it")
    name: str = Field(description="what it is called")
    old: dict[str, Any] | None = Field(description="as it is, without secrets")
    new: dict[str, Any] | None = Field(description="as it will be, without secrets")


class ConfigAction(BaseModel):
    description: str = Field(description="what is done beside the changes")


class ConfigPlan(BaseModel):
    changes: list[ConfigChange] = Field(description="in the order in which they are made")
    actions: list[ConfigAction] = Field(description="what is done beside them")


class ConfigApplied(BaseModel):
    resources: list[dict[str, Any]] = Field(description="everything that the team has now")
    changes: list[ConfigChange] = Field(description="what was changed")


class ConfigExport(BaseModel):
    yaml: str = Field(description="the file's text")


FileParam = Annotated[ConfigFile, body_of(ConfigFile)]


@router.post("/config/plan", tags=["config"], **needs(Scope.ADMIN))
def plan_config(body: FileParam, caller: CallerParam, service: ServiceParam) -> ConfigPlan:
    """What applying the file would change; nothing is."""
    document = read_document(body.yaml, prune=body.prune)
    plan = service.config.plan(caller, document, showing(service))
    return ConfigPlan(
        changes=[_show(change) for change in plan.changes],
        actions=[ConfigAction(description=said) for said in plan.actions],
    )


@router.post("/config/apply", tags=["config"], **needs(Scope.ADMIN))
def apply_config(body: FileParam, caller: CallerParam, service: ServiceParam) -> ConfigApplied:
    """Makes it so; a second time it changes nothing. Nothing is deleted without `prune`."""
    document = read_document(body.yaml, prune=body.prune)
    plan = service.config.apply(caller, document, showing(service))
    return ConfigApplied(
        resources=service.config.resources(caller, showing(service)),
        changes=[_show(change) for change in plan.changes],
    )


@router.get("/config/export", tags=["config"], **needs(Scope.ADMIN))
def export_config(
    caller: CallerParam,
    service: ServiceParam,
    show_sensitive: Annotated[
        bool, Query(alias="show-sensitive", description="with secrets, for owners and admins")
    ] = False,
) -> ConfigExport:
    """What the team has, as a file that can be applied again; users and teams are left out."""
    found = service.config.export(caller, showing(service), secrets=show_sensitive)
    return ConfigExport(yaml=yaml.safe_dump(found, sort_keys=False, allow_unicode=True))


def _show(change: Change) -> ConfigChange:
    return ConfigChange(
        resource_type=change.kind,
        action=change.action,
        name=change.name,
        old=None if change.old is None else rendered(change.old),
        new=None if change.new is None else rendered(change.new, beside=change.old),
    )
