"""Transfers over HTTP."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from refill.api.body import Body, body_of
from refill.api.dialects.transfers.forms import Count, DayText, Envelope, Id, wrap
from refill.api.dialects.transfers.router import needs, router
from refill.api.dialects.transfers.setup_forms import Scalar
from refill.api.gate import MAX_ID, CallerParam, ServiceParam
from refill.api.route import RepeatedParam
from refill.domain.access import Scope
from refill.domain.pipeline import Schedule, Transfer
from refill.service import Service
from refill.service.schedules import describe_schedule
from refill.service.transfer_settings import FIELDS
from refill.service.transfer_views import ListedTransfer, TransferView
from refill.service.transfers import TransferDraft

Interval = Literal["hourly", "daily", "weekly", "monthly"]


class KeptObject(BaseModel):
    """Accepted, kept and given back; the core does not read it."""

    model_config = ConfigDict(extra="allow", frozen=True)


class ScheduleInput(Body):
    run_interval: Interval = Field(description="how often it runs")
    run_hour: int | None = Field(None, description="0 to 23, UTC")
    refresh_window: int = Field(1, description="how many dates before today are run again")
    run_weekday: int | None = Field(None, description="1 Monday to 7 Sunday")
    run_day: int | None = Field(None, description="1 to 31; the last day of a shorter month")


class TransferSettingInput(Body):
    field_id: str = Field(description=f"one of {', '.join(FIELDS)}")
    value: Scalar = Field(None, description="what it is set to")
    group: str | None = Field(None, description="not read")


class TransferInput(Body):
    display_name: str = Field(max_length=255, description="what it is called; unique in the team")
    data_source_id: str = Field(max_length=255, description="the name of a database")
    destination_id: int = Field(ge=1, le=MAX_ID, description="where it writes")
    schedule: list[ScheduleInput] = Field(
        default_factory=list, max_length=20, description="when it runs by itself; empty: never"
    )
    data_source_settings: list[TransferSettingInput] = Field(
        default_factory=list,
        max_length=100,
        description="what is read, and into which table it is written",
    )
    schema_id: int = Field(1, ge=-MAX_ID - 1, le=MAX_ID, description="kept, and given back")
    accounts: list[KeptObject] = Field(default_factory=list, description="kept, and given back")
    segments: list[KeptObject] = Field(default_factory=list, description="kept, and given back")
    notification_recipients: list[str] = Field(
        default_factory=list, description="addresses; kept, and given back"
    )
    transfer_type: int | None = Field(
        None, ge=-MAX_ID - 1, le=MAX_ID, description="kept, and given back"
    )

    def to_draft(self) -> TransferDraft:
        times = Counter(setting.field_id for setting in self.data_source_settings)
        return TransferDraft(
            name=self.display_name,
            data_source_id=self.data_source_id,
            destination_id=self.destination_id,
            schedule=tuple(Schedule(**entry.model_dump()) for entry in self.schedule),
            settings={item.field_id: item.value for item in self.data_source_settings},
            repeated=tuple(name for name, count in times.items() if count > 1),
            extra={
                "schema_id": self.schema_id,
                "accounts": [item.model_dump(mode="json") for item in self.accounts],
                "segments": [item.model_dump(mode="json") for item in self.segments],
                "notification_recipients": self.notification_recipients,
                "transfer_type": self.transfer_type,
            },
        )


class ChangeTransferState(Body):
    transfer_state: Literal["pause", "unpause"] = Field(description="whether its schedule fires")


class TransferNamed(BaseModel):
    transfer_id: int = Field(description="its id")
    transfer_name: str = Field(description="what it is called")


class TransferEnd(BaseModel):
    id: str | int = Field(description="name of the database, or id of the destination")
    name: str = Field(description="what it is called")
    type: str = Field(description="which connector")


class BackfillStatistics(BaseModel):
    transfer_backfill_id: int = Field(description="its id")
    transfer_runs_total: Count = Field(description="dates that it runs")
    transfer_runs_completed: Count = Field(description="dates that were delivered")
    transfer_runs_failed: Count = Field(description="dates that failed")


class TransferItem(BaseModel):
    dwh_transfer_id: int = Field(description="its id")
    display_name: str = Field(description="what it is called")
    external_transfer_id: str = Field(description="its id, as text")
    status: Literal["active", "paused"] = Field(description="whether its schedule fires")
    state: Literal["active", "paused"] = Field(description="whether its schedule fires")
    schedule: str = Field(description="when it runs by itself, in words")
    data_source: TransferEnd = Field(description="the database that it reads")
    destination: TransferEnd = Field(description="where it writes")
    accounts: list[str] = Field(description="ids of the accounts that were given")
    backfill: BackfillStatistics | None = Field(description="the one that is under way")
    run_date: DayText | None = Field(None, description="the day of the last run; absent: none yet")


class ScheduleAnswer(BaseModel):
    run_interval: Interval = Field(description="how often it runs")
    run_hour: int | None = Field(None, description="0 to 23, UTC")
    refresh_window: int | None = Field(
        None, description="how many dates before today are run again"
    )
    run_weekday: int | None = Field(None, description="1 Monday to 7 Sunday")
    run_day: int | None = Field(None, description="1 to 31; the last day of a shorter month")


class TransferSettingAnswer(BaseModel):
    field_id: str = Field(description="its name")
    value: Scalar = Field(description="what it is set to")


class TransferSourceAnswer(BaseModel):
    data_source_id: str = Field(description="name of the database")
    service_name: str = Field(description="what its system is called")
    service_provider: str = Field(description="which connector")
    settings: list[TransferSettingAnswer] = Field(
        description="what is read, and into which table it is written"
    )


class NotificationRecipient(BaseModel):
    email: str = Field(description="as it was given")


class TransferAnswer(BaseModel):
    transfer_id: int = Field(description="its id")
    display_name: str = Field(description="what it is called")
    schema_id: int = Field(description="as it was given")
    destination_id: int = Field(description="where it writes")
    accounts: list[dict[str, Any]] = Field(description="as they were given")
    segments: list[dict[str, Any]] = Field(description="as they were given")
    schedule: list[ScheduleAnswer] = Field(description="when it runs by itself")
    data_source: TransferSourceAnswer = Field(description="the database that it reads")
    notification_recipients: list[NotificationRecipient] = Field(description="as they were given")
    external_url: str | None = Field(description="always null")
    # ours
    state: Literal["active", "paused"] = Field(description="whether its schedule fires")
    transfer_type: int | None = Field(description="as it was given")


class TransferStateAnswer(BaseModel):
    result: bool = Field(description="it is so")
    state: Literal["ACTIVE", "PAUSED"] = Field(description="whether its schedule fires")


class TransferProblemAnswer(BaseModel):
    field_id: str = Field(description="what is wrong")
    error_code: str = Field(description="why, as a word")
    message: str = Field(description="why, in a sentence")  # ours


class TransferValidationAnswer(BaseModel):
    is_valid: bool = Field(description="whether it would be accepted")
    errors: list[TransferProblemAnswer] = Field(description="everything that would be refused")


TransferParam = Annotated[TransferInput, body_of(TransferInput)]


@router.get(
    "/transfers",
    tags=["transfers"],
    response_model_exclude_unset=True,
    **needs(Scope.TRANSFERS_READ),
)
def list_transfers(
    team_id: Id, caller: CallerParam, service: ServiceParam
) -> Envelope[list[TransferItem]]:
    return wrap([_show_item(found) for found in service.transfer_views.list_all(caller.team_id)])


@router.post("/transfers", status_code=201, tags=["transfers"], **needs(Scope.TRANSFERS_WRITE))
def create_transfer(
    team_id: Id,
    body: TransferParam,
    repeated: RepeatedParam,
    caller: CallerParam,
    service: ServiceParam,
) -> Envelope[TransferNamed]:
    made = service.transfers.create(
        caller.team_id, caller.user_id, body.to_draft(), repeated=repeated
    )
    return wrap(TransferNamed(transfer_id=made.id, transfer_name=made.name))


@router.post("/transfers/validations", tags=["transfers"], **needs(Scope.TRANSFERS_WRITE))
def validate_transfer(
    team_id: Id, body: TransferParam, caller: CallerParam, service: ServiceParam
) -> TransferValidationAnswer:
    """Everything that creating it would refuse. Without an envelope, as the client reads it."""
    return _show_validation(service, caller.team_id, body, None)


@router.get(
    "/transfers/{transfer_id}",
    tags=["transfers"],
    response_model_exclude_unset=True,
    **needs(Scope.TRANSFERS_READ),
)
def get_transfer(
    team_id: Id, transfer_id: Id, caller: CallerParam, service: ServiceParam
) -> TransferAnswer:
    """Without an envelope, as the client reads it."""
    return _show_transfer(service.transfer_views.get(caller.team_id, transfer_id))


@router.put("/transfers/{transfer_id}", tags=["transfers"], **needs(Scope.TRANSFERS_WRITE))
def update_transfer(
    team_id: Id, transfer_id: Id, body: TransferParam, caller: CallerParam, service: ServiceParam
) -> TransferNamed:
    """Without an envelope. Backfills made before go on as they were."""
    changed = service.transfers.update(caller.team_id, transfer_id, body.to_draft())
    return TransferNamed(transfer_id=changed.id, transfer_name=changed.name)


@router.delete(
    "/transfers/{transfer_id}",
    status_code=204,
    response_class=Response,
    tags=["transfers"],
    **needs(Scope.TRANSFERS_WRITE),
)
def delete_transfer(
    team_id: Id, transfer_id: Id, caller: CallerParam, service: ServiceParam
) -> None:
    service.transfers.delete(caller.team_id, transfer_id)


@router.put("/transfers/{transfer_id}/state", tags=["transfers"], **needs(Scope.TRANSFERS_WRITE))
def change_transfer_state(
    team_id: Id,
    transfer_id: Id,
    body: Annotated[ChangeTransferState, body_of(ChangeTransferState)],
    caller: CallerParam,
    service: ServiceParam,
) -> TransferStateAnswer:
    """Whether its schedule fires. Without an envelope."""
    paused = body.transfer_state == "pause"
    changed = service.transfers.set_paused(caller.team_id, transfer_id, paused)
    return TransferStateAnswer(result=True, state="PAUSED" if changed.paused else "ACTIVE")


@router.post(
    "/transfers/{transfer_id}/validations", tags=["transfers"], **needs(Scope.TRANSFERS_WRITE)
)
def validate_transfer_update(
    team_id: Id, transfer_id: Id, body: TransferParam, caller: CallerParam, service: ServiceParam
) -> TransferValidationAnswer:
    """Everything that updating it would refuse. Without an envelope."""
    return _show_validation(service, caller.team_id, body, transfer_id)


def _show_validation(
    service: Service, team_id: int, body: TransferInput, transfer_id: int | None
) -> TransferValidationAnswer:
    problems = service.transfers.examine(team_id, body.to_draft(), transfer_id)
    return TransferValidationAnswer(
        is_valid=not problems,
        errors=[
            TransferProblemAnswer(field_id=item.field, error_code=item.code, message=item.message)
            for item in problems
        ],
    )


def _show_item(listed: ListedTransfer) -> TransferItem:
    transfer, database, destination = listed.transfer, listed.database, listed.destination
    backfill, last_run = listed.backfill, listed.last_run
    state: Literal["active", "paused"] = "paused" if transfer.paused else "active"
    return TransferItem(
        # the client reads a text or nothing at all, and no null
        **({} if last_run is None else {"run_date": last_run.isoformat()}),
        dwh_transfer_id=transfer.id,
        display_name=transfer.name,
        external_transfer_id=str(transfer.id),
        status=state,
        state=state,
        schedule=describe_schedule(transfer.schedule),
        data_source=TransferEnd(id=database.name, name=database.name, type=database.type),
        destination=TransferEnd(id=destination.id, name=destination.name, type=destination.type),
        accounts=[
            str(account["account_id"])
            for account in transfer.extra.get("accounts", [])
            if account.get("account_id") is not None
        ],
        backfill=None
        if backfill is None
        else BackfillStatistics(
            transfer_backfill_id=backfill.id,
            transfer_runs_total=backfill.slices_planned,
            transfer_runs_completed=backfill.counters.slices_completed,
            transfer_runs_failed=backfill.counters.slices_failed,
        ),
    )


def _show_transfer(view: TransferView) -> TransferAnswer:
    transfer, database = view.transfer, view.source.database
    extra = transfer.extra
    return TransferAnswer(
        transfer_id=transfer.id,
        display_name=transfer.name,
        schema_id=extra.get("schema_id", 1),
        destination_id=transfer.destination_id,
        accounts=extra.get("accounts", []),
        segments=extra.get("segments", []),
        schedule=[
            ScheduleAnswer(**entry.model_dump(exclude_none=True)) for entry in transfer.schedule
        ],
        data_source=TransferSourceAnswer(
            data_source_id=database.name,
            service_name=view.source.title,
            service_provider=database.type,
            settings=list(settings_of(transfer)),
        ),
        notification_recipients=[
            NotificationRecipient(email=email) for email in extra.get("notification_recipients", [])
        ],
        external_url=None,
        state="paused" if transfer.paused else "active",
        transfer_type=extra.get("transfer_type"),
    )


def settings_of(transfer: Transfer) -> Iterator[TransferSettingAnswer]:
    for name in FIELDS:
        value = getattr(transfer, name)
        if name == "columns":
            value = ", ".join(value)
        if value not in (None, ""):
            yield TransferSettingAnswer(field_id=name, value=value)
