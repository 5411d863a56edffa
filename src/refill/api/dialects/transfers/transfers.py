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
    run_interval: Interval
    run_hour: int | None = Field(None, description="0 to 23, UTC")
    refresh_window: int = Field(1, description="how many dates before today are run again")
    run_weekday: int | None = Field(None, description="1 Monday to 7 Sunday")
    run_day: int | None = Field(None, description="1 to 31; the last day of a shorter month")


class TransferSettingInput(Body):
    field_id: str = Field(description=f"one of {', '.join(FIELDS)}")
    value: Scalar = None
    group: str | None = None


class TransferInput(Body):
    display_name: str = Field(max_length=255)
    data_source_id: str = Field(max_length=255, description="the name of a database")
    destination_id: int = Field(ge=1, le=MAX_ID)
    schedule: list[ScheduleInput] = Field(default_factory=list, max_length=20)
    data_source_settings: list[TransferSettingInput] = Field(default_factory=list, max_length=100)
    schema_id: int = Field(1, ge=-MAX_ID - 1, le=MAX_ID)
    accounts: list[KeptObject] = Field(default_factory=list)
    segments: list[KeptObject] = Field(default_factory=list)
    notification_recipients: list[str] = Field(default_factory=list)
    transfer_type: int | None = Field(None, ge=-MAX_ID - 1, le=MAX_ID)

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
    transfer_state: Literal["pause", "unpause"]


class TransferNamed(BaseModel):
    transfer_id: int
    transfer_name: str


class TransferEnd(BaseModel):
    id: str | int
    name: str
    type: str


class BackfillStatistics(BaseModel):
    transfer_backfill_id: int
    transfer_runs_total: Count
    transfer_runs_completed: Count
    transfer_runs_failed: Count


class TransferItem(BaseModel):
    dwh_transfer_id: int
    display_name: str
    external_transfer_id: str
    status: Literal["active", "paused"]
    state: Literal["active", "paused"]
    schedule: str
    data_source: TransferEnd
    destination: TransferEnd
    accounts: list[str]
    backfill: BackfillStatistics | None
    run_date: DayText | None = Field(None, description="the day of the last run; absent: none yet")


class ScheduleAnswer(BaseModel):
    run_interval: Interval
    run_hour: int | None = None
    refresh_window: int | None = None
    run_weekday: int | None = None
    run_day: int | None = None


class TransferSettingAnswer(BaseModel):
    field_id: str
    value: Scalar


class TransferSourceAnswer(BaseModel):
    data_source_id: str
    service_name: str
    service_provider: str
    settings: list[TransferSettingAnswer]


class NotificationRecipient(BaseModel):
    email: str


class TransferAnswer(BaseModel):
    transfer_id: int
    display_name: str
    schema_id: int
    destination_id: int
    accounts: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    schedule: list[ScheduleAnswer]
    data_source: TransferSourceAnswer
    notification_recipients: list[NotificationRecipient]
    external_url: str | None
    # ours
    state: Literal["active", "paused"]
    transfer_type: int | None


class TransferStateAnswer(BaseModel):
    result: bool
    state: Literal["ACTIVE", "PAUSED"]


class TransferProblemAnswer(BaseModel):
    field_id: str
    error_code: str
    message: str  # ours


class TransferValidationAnswer(BaseModel):
    is_valid: bool
    errors: list[TransferProblemAnswer]


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
            settings=list(_settings(transfer)),
        ),
        notification_recipients=[
            NotificationRecipient(email=email) for email in extra.get("notification_recipients", [])
        ],
        external_url=None,
        state="paused" if transfer.paused else "active",
        transfer_type=extra.get("transfer_type"),
    )


def _settings(transfer: Transfer) -> Iterator[TransferSettingAnswer]:
    for name in FIELDS:
        value = getattr(transfer, name)
        if name == "columns":
            value = ", ".join(value)
        if value not in (None, ""):
            yield TransferSettingAnswer(field_id=name, value=value)
