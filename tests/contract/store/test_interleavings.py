"""Random orders of what workers and people do: what must hold after every single step."""

from collections import Counter
from dataclasses import dataclass, field
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refill.domain.backfill import ACTIVE, CountedBackfill, Counters, Origin, Status
from refill.domain.errors import Conflict
from refill.domain.pipeline import Kind
from refill.domain.slice import Slice, SliceState
from refill.store.port import Store
from refill.store.records import Pack, PackLimits
from tests.contract.store.factories import (
    AT_ONCE,
    FIRST,
    Outcomes,
    dated_slices,
    dates_from,
    done,
    failed,
    new_transfer_backfill,
    plan,
    stumbled,
    unstarted,
)

DAYS = 4
FINAL = (Status.COMPLETED, Status.CANCELLED)
OUTCOMES: list[Outcomes] = [done, done, done, failed, stumbled, unstarted]

number = st.integers(0, 7)
step = st.one_of(
    st.tuples(st.just("claim"), st.integers(1, 3)),
    st.tuples(st.just("finish"), number, st.sampled_from(OUTCOMES)),
    st.tuples(st.just("part"), number, st.sampled_from(OUTCOMES)),
    st.tuples(st.just("heartbeat"), number),
    st.tuples(st.just("lapse"), number),
    st.tuples(st.just("release"), number),
    st.tuples(st.just("sweep")),
    st.tuples(st.sampled_from(["pause", "resume", "cancel", "retry"]), st.integers(0, 1)),
)


@dataclass
class World:
    """Two backfills over the same dates, and every pack that was ever claimed of them."""

    store: Store
    ids: list[int]
    pipeline: str
    packs: list[Pack] = field(default_factory=list)
    delivered: Counter[int] = field(default_factory=Counter)
    attempts: dict[int, int] = field(default_factory=dict)
    final: dict[int, Status] = field(default_factory=dict)

    def do(self, action: str, *arguments: object) -> None:
        if action == "claim":
            slots = int(arguments[0])  # type: ignore[call-overload]
            pack = self.store.claim_pack("w", PackLimits(slots=slots), 30)
            if pack is not None:
                self.packs.append(pack)
        elif action == "sweep":
            self.store.sweep(AT_ONCE)
        elif action in ("pause", "resume", "cancel", "retry"):
            self.change(action, self.ids[int(arguments[0])])  # type: ignore[call-overload]
        elif self.packs:
            chosen = self.packs[int(arguments[0]) % len(self.packs)]  # type: ignore[call-overload]
            self.work(action, chosen, *arguments[1:])

    def change(self, action: str, backfill_id: int) -> None:
        try:
            if action == "cancel":
                self.store.cancel_backfill(1, backfill_id, None)
            else:
                getattr(self.store, f"{action}_backfill")(1, backfill_id)
        except Conflict:
            pass  # the state forbids it: nothing may have changed, which is checked next

    def work(self, action: str, pack: Pack, *arguments: object) -> None:
        held = [(claimed.slice.id, claimed.slice.attempt) for claimed in pack.slices]
        if action == "heartbeat":
            self.store.heartbeat("w", held, [], 30)
        elif action == "lapse":
            self.store.heartbeat("w", held, [], -1)
        elif action == "release":
            self.store.release_slices(held)
        else:
            parts = pack.slices if action == "finish" else pack.slices[:1]
            receipts = [arguments[0](claimed) for claimed in parts]  # type: ignore[operator]
            finished = self.store.finish_slices(pack.backfill.id, receipts, AT_ONCE)
            assert finished.accepted | finished.superseded == {r.slice_id for r in receipts}
            if arguments[0] is done:
                self.delivered.update(finished.accepted)

    def check(self) -> None:
        running: dict[str, int] = {}
        for backfill_id in self.ids:
            backfill = self.store.get_backfill(1, backfill_id)
            slices = self.store.list_slices(backfill_id).items
            assert backfill.counters == sums(slices)
            self.check_slices(slices, running)
            self.check_state(backfill, slices)

    def check_slices(self, slices: tuple[Slice, ...], running: dict[str, int]) -> None:
        for part in slices:
            assert part.attempt >= self.attempts.get(part.id, 0)
            self.attempts[part.id] = part.attempt
            assert self.delivered[part.id] == (part.state is SliceState.COMPLETED)
            if part.state is SliceState.RUNNING:
                assert running.setdefault(part.target, part.backfill_id) == part.backfill_id

    def check_state(self, backfill: CountedBackfill, slices: tuple[Slice, ...]) -> None:
        states = {part.state for part in slices}
        unfinished = states & {SliceState.PENDING, SliceState.RUNNING}
        assert self.final.get(backfill.id, backfill.status) is backfill.status
        if backfill.status in FINAL:
            self.final[backfill.id] = backfill.status
        if backfill.status is Status.COMPLETED:
            assert states == {SliceState.COMPLETED}
        elif backfill.status is Status.FAILED:
            assert SliceState.FAILED in states
            assert not unfinished
        elif backfill.status is Status.CANCELLED:
            assert SliceState.PENDING not in states
        else:
            assert unfinished
        assert (backfill.ended_at is not None) == (backfill.status not in ACTIVE)
        if backfill.origin is not Origin.SCHEDULE:
            dates = [day.isoformat() for day in dates_from(FIRST, DAYS)]
            holder = self.store.find_holder(Kind.TRANSFER, self.pipeline, dates)
            assert (holder is not None) == (backfill.status in ACTIVE)

    def run_to_the_end(self) -> None:
        for backfill_id in self.ids:
            if self.store.get_backfill(1, backfill_id).status is Status.PAUSED:
                self.store.resume_backfill(1, backfill_id)
        for pack in self.packs:
            self.work("lapse", pack)
        self.store.sweep(AT_ONCE)
        while (pack := self.store.claim_pack("w", PackLimits(slots=1), 30)) is not None:
            self.work("finish", pack, done)
        self.check()
        for backfill_id in self.ids:
            assert self.store.get_backfill(1, backfill_id).status not in ACTIVE


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(step, min_size=4, max_size=14))
def test_whatever_the_order_the_books_are_right(
    store: Store, steps: list[tuple[object, ...]]
) -> None:
    pipeline, target = uuid4().hex, uuid4().hex
    slices = dated_slices(dates_from(FIRST, DAYS), target=target)
    ids = []
    for origin in (Origin.REQUEST, Origin.SCHEDULE):
        new = new_transfer_backfill(days=DAYS, origin=origin, pipeline_id=pipeline)
        if origin is Origin.SCHEDULE:
            new = new_transfer_backfill(days=DAYS, origin=origin, pipeline_id=pipeline, holds=())
        ids.append(plan(store, new, slices).id)
    world = World(store, ids, pipeline)
    for taken in steps:
        world.do(*taken)  # type: ignore[arg-type]
        world.check()
    world.run_to_the_end()


def sums(slices: tuple[Slice, ...]) -> Counters:
    states = Counter(part.state for part in slices)
    packs = {part.pack for part in slices if part.state is SliceState.RUNNING}
    return Counters(
        slices_total=len(slices),
        slices_pending=states[SliceState.PENDING],
        slices_claimed=states[SliceState.RUNNING],
        slices_running=len(packs),
        slices_completed=states[SliceState.COMPLETED],
        slices_failed=states[SliceState.FAILED],
        slices_cancelled=states[SliceState.CANCELLED],
        rows_read=sum(part.rows_read for part in slices),
        rows_delivered=sum(part.rows_delivered for part in slices),
        rows_filtered=sum(part.rows_filtered for part in slices),
        rows_rejected=sum(part.rows_rejected for part in slices),
        bytes_written=sum(part.bytes_written for part in slices),
    )
