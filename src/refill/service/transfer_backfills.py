"""Backfills of transfers: a range of dates, run again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date

from refill.clock import Clock
from refill.domain.backfill import Backfill, CountedBackfill, Move, Order, Origin, Status
from refill.domain.errors import Conflict, Invalid, NotFound
from refill.domain.pipeline import Kind, Transfer
from refill.domain.slice import Dated, Reject, Slice, SliceState
from refill.planning.dates import (
    DateDecision,
    DatePlan,
    DateRange,
    Only,
    check_range,
    decide_dates,
    today_in,
)
from refill.service.backfills import Backfills
from refill.service.identity import new_uid
from refill.service.transfer_freezer import TransferFreezer
from refill.service.transfers import Transfers
from refill.store.port import BackfillStore
from refill.store.records import NewBackfill, Page

INCOMPLETE = frozenset(
    {Status.CREATED, Status.SCHEDULED, Status.RUNNING, Status.PAUSED, Status.FAILED}
)
LIST_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    range: DateRange
    order: Order = Order.NEWEST_FIRST
    only: Only = Only.ALL
    exclude: frozenset[date] = frozenset()
    max_concurrent: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a request would do. `blocked_by`: the active backfill in its way."""

    decisions: tuple[DateDecision, ...]
    runs_total: int
    blocked_by: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailure:
    date: date
    error: str


class TransferWords:
    """How users of transfers are told no."""

    def in_the_way(self, wanted: NewBackfill | Backfill, other: Backfill) -> Conflict:
        status = "paused" if other.status is Status.PAUSED else other.status.upper()
        return Conflict(
            f"Backfill {other.id} ({other.range_start} to {other.range_end}, {status}) is active "
            "over some of these dates; wait for it, cancel it, or leave its dates out.",
            field="range_start",
            other=other,
        )

    def refused(self, backfill: Backfill, move: Move) -> Conflict:
        status = backfill.status.upper()
        if move is Move.RETRY:
            return Conflict(
                f"Backfill {backfill.id} is {status}; only a FAILED one can be retried.",
                field="status",
                other=backfill.status,
            )
        advice = (
            "retry it, or create another one"
            if backfill.status is Status.FAILED
            else "create another one to run the dates again"
        )
        return Conflict(
            f"Backfill {backfill.id} is {status}, which is final; {advice}.",
            field="status",
            other=backfill.status,
        )


class TransferBackfills:
    """What can be done to backfills of transfers."""

    def __init__(
        self,
        *,
        backfills: Backfills,
        store: BackfillStore,
        transfers: Transfers,
        freezer: TransferFreezer,
        clock: Clock,
        max_range_days: int,
    ) -> None:
        self._backfills = backfills
        self._store = store
        self._transfers = transfers
        self._freezer = freezer
        self._clock = clock
        self._max_range_days = max_range_days
        self._words = TransferWords()

    def submit(
        self, team_id: int, transfer_id: int, request: BackfillRequest, *, uid: str, user_id: int
    ) -> CountedBackfill:
        """`uid` names what a repeated request made the first time."""
        transfer = self._transfers.get(team_id, transfer_id)
        return self._backfills.submit(
            team_id, uid, lambda: self._freeze(transfer, request, uid, user_id), self._words
        )

    def preview(self, team_id: int, transfer_id: int, request: BackfillRequest) -> Preview:
        transfer = self._transfers.get(team_id, transfer_id)
        plan = self._plan(transfer, request, with_history=True)
        holder = self._store.find_holder(
            Kind.TRANSFER, str(transfer.id), [day.isoformat() for day in plan.dates]
        )
        return Preview(
            decisions=plan.decisions,
            runs_total=len(plan.dates),
            blocked_by=holder.id if holder else None,
        )

    def prepare_recurring(self, transfer: Transfer, dates: Sequence[date]) -> NewBackfill:
        """The runs that a schedule asks for: they hold nothing, since the target keeps them apart
        from a backfill's run of the same date."""
        new = self._new_backfill(
            transfer,
            tuple(dates),
            DateRange(start=min(dates), end=max(dates)),
            uid=new_uid(),
            user_id=transfer.created_user_id,
            origin=Origin.SCHEDULE,
        )
        return self._backfills.sealing(new)

    def latest(self, team_id: int, transfer_id: int) -> CountedBackfill:
        self._transfers.get(team_id, transfer_id)
        found = self._store.latest_backfill(team_id, Kind.TRANSFER, str(transfer_id))
        if found is None:
            raise NotFound("backfill")
        return found

    def list_incomplete(self, team_id: int) -> tuple[CountedBackfill, ...]:
        page = self._store.list_backfills(
            team_id, kind=Kind.TRANSFER, statuses=INCOMPLETE, limit=LIST_LIMIT
        )
        return page.items

    def get(self, team_id: int, backfill_id: int) -> CountedBackfill:
        found = self._store.get_backfill(team_id, backfill_id)
        if found.kind is not Kind.TRANSFER:
            raise NotFound("backfill", backfill_id)
        return found

    def move(self, team_id: int, backfill_id: int, move: Move, *, user_id: int) -> CountedBackfill:
        """Pauses, resumes or cancels; what is so already stays."""
        found = self.get(team_id, backfill_id)
        return self._backfills.move(found, move, self._words, user_id=user_id)

    def retry(
        self,
        team_id: int,
        backfill_id: int,
        dates: Collection[date] | None = None,
        *,
        user_id: int,
        repeated: bool = False,
    ) -> CountedBackfill:
        """Runs the failed dates again, all or those given. `repeated`: the same request came
        before, and may have done it."""
        found = self.get(team_id, backfill_id)
        if found.allows(Move.RETRY):
            if dates is not None:
                self._check_failed(found, dates)
            self._transfers.check_frozen(found)
        elif repeated:
            return found
        return self._backfills.move(found, Move.RETRY, self._words, user_id=user_id, dates=dates)

    def failures(self, backfill: CountedBackfill) -> tuple[RunFailure, ...]:
        """One per failed date, oldest first; all dates where it failed before it had runs."""
        if backfill.status is Status.FAILED and not backfill.planned:
            error = backfill.error or "The backfill could not be planned."
            return tuple(RunFailure(date=day, error=error) for day in sorted(backfill.dates))
        if not backfill.counters.slices_failed:
            return ()
        failed = self._store.list_slices(backfill.id, states={SliceState.FAILED}).items
        found = [
            RunFailure(date=item.extent.date, error=item.error or "The run failed.")
            for item in failed
            if isinstance(item.extent, Dated)
        ]
        return tuple(sorted(found, key=lambda failure: failure.date))

    def rejects(
        self, team_id: int, backfill_id: int, *, limit: int | None, cursor: str | None
    ) -> Page[tuple[Slice, Reject]]:
        found = self.get(team_id, backfill_id)
        return self._backfills.rejects(found, limit=limit, cursor=cursor)

    def _check_failed(self, backfill: CountedBackfill, dates: Collection[date]) -> None:
        if not backfill.planned and set(dates) != set(backfill.dates):
            raise Invalid.of(
                "dates",
                "the backfill failed before it had runs, and can only be retried whole; leave "
                "dates out, or create a backfill of these dates.",
            )
        failed = {failure.date for failure in self.failures(backfill)}
        for day in sorted(dates):
            if day not in failed:
                raise Invalid.of(
                    "dates",
                    f"{day} did not fail in this backfill; give failed dates only, or none.",
                )

    def _freeze(
        self, transfer: Transfer, request: BackfillRequest, uid: str, user_id: int
    ) -> NewBackfill:
        plan = self._plan(transfer, request, with_history=request.only is not Only.ALL)
        if not plan.dates:
            raise Invalid.of(
                "range_start",
                f"none of the {request.range.days} dates is left to run; "
                "a dry run says why each one is skipped.",
            )
        new = self._new_backfill(transfer, plan.dates, request.range, uid=uid, user_id=user_id)
        return replace(
            new,
            order=request.order,
            max_concurrent=request.max_concurrent,
            reason=request.reason,
        )

    def _plan(
        self, transfer: Transfer, request: BackfillRequest, *, with_history: bool
    ) -> DatePlan:
        """Earlier runs are read only where they decide, or are shown."""
        check_range(
            request.range,
            today=today_in(transfer.timezone, self._clock()),
            max_days=self._max_range_days,
        )
        return decide_dates(
            request.range,
            order=request.order,
            only=request.only,
            exclude=request.exclude,
            completed=self._store.completed_dates(transfer.id) if with_history else None,
            failed=self._store.failed_dates(transfer.id) if with_history else (),
        )

    def _new_backfill(
        self,
        transfer: Transfer,
        dates: tuple[date, ...],
        covered: DateRange,
        *,
        uid: str,
        user_id: int,
        origin: Origin = Origin.REQUEST,
    ) -> NewBackfill:
        return NewBackfill(
            uid=uid,
            team_id=transfer.team_id,
            kind=Kind.TRANSFER,
            pipeline_id=str(transfer.id),
            pipeline_name=transfer.name,
            origin=origin,
            # nobody is there to read a refusal of a schedule: its runs fail with the reason
            spec=self._freezer.freeze(transfer, dates, strict=origin is not Origin.SCHEDULE),
            range_start=covered.start,
            range_end=covered.end,
            slices_planned=len(dates),
            created_user_id=user_id,
            holds=() if origin is Origin.SCHEDULE else tuple(day.isoformat() for day in dates),
        )
