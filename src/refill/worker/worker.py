"""The worker's threads: slots that run packs, one that plans, one that seals, a keeper of leases,
housekeeping, and one that asks sinks what lost workers delivered."""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TypeVar

from refill.connectors.kit.contract import Connector
from refill.domain.errors import EngineUnavailable, RefillError, StoreBusy
from refill.domain.retry import RetryPolicy
from refill.logs import about
from refill.packs.engine import Engine
from refill.packs.pack_pool import ThreadPool
from refill.planning.plan import PlanSettings
from refill.settings import Settings
from refill.store.port import Store
from refill.store.records import BackfillClaim, Pack, PackLimits
from refill.worker.assignments import TaskLimits
from refill.worker.claim_runner import Claim, ClaimRunner
from refill.worker.ends import EndsFinder
from refill.worker.housekeeping import Housekeeping
from refill.worker.in_flight import InFlight, PackInFlight
from refill.worker.lease_keeper import LeaseKeeper
from refill.worker.pack_runner import PackRunner
from refill.worker.planner import Planner
from refill.worker.prepared import Prepared
from refill.worker.quarantine import Quarantine
from refill.worker.reconciler import Reconciler
from refill.worker.sealer import Sealer
from refill.worker.single_worker import only_worker
from refill.worker.snapshots import Snapshots
from refill.worker.stalls import Stalls
from refill.worker.store_retry import retry_store

log = logging.getLogger(__name__)

T = TypeVar("T")

IDLE_SECONDS = 0.2  # between two looks at an empty queue
SEAL_LOOK_SECONDS = 2.0  # beside being woken: for what a lost worker, or a failed seal, left
LONGEST_BACKOFF_SECONDS = 2.0
LET_GO_SECONDS = 5.0  # for packs that were cut short, or whose engine is gone


class Worker:
    """`run` blocks until `stop`, or until Spark is lost: then it raises EngineUnavailable, and
    whoever started it starts it again."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        connectors: Mapping[str, Connector],
        settings: Settings,
        fire_schedules: Callable[[], None] | None = None,
        notify: Callable[[], None] | None = None,
        on_step: Callable[[str], None] | None = None,
        on_task_step: Callable[[str, int], None] | None = None,
    ) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._store = store
        self._engine = engine
        self._settings = settings
        self._connectors = connectors
        self._fire_schedules = fire_schedules
        self._notify = notify
        self._on_step = on_step or (lambda _: None)
        self._on_task_step = on_task_step
        self._policy = RetryPolicy(max_failures=settings.max_failures)
        self._in_flight = InFlight()
        self._pool = ThreadPool()
        self._snapshots = Snapshots()
        self._stopping = threading.Event()  # nothing more is claimed
        self._ended = threading.Event()  # the leases are not kept any longer
        self._abandoned = threading.Event()  # the store is not insisted on any longer
        self._claiming = threading.Lock()
        self._quarantine = Quarantine(
            store,
            self._in_flight,
            worker=self.name,
            lease_seconds=settings.lease_seconds,
            stopping=self._stopping,
        )
        self._wake = threading.Event()  # there is something to claim
        self._sealable = threading.Event()  # a backfill's last slice was finished
        self.ready = threading.Event()  # Spark is warm and packs are claimed

    def run(self) -> None:
        # an embedded store knows one worker only
        alone = only_worker(self._settings.home_path) if not self._settings.store_url else None
        with alone or nullcontext():
            try:
                self._engine.start()
                self._work()
            finally:
                self._ended.set()
                self._snapshots.close()
                self._pool.close()
                self._engine.stop()

    def stop(self) -> None:
        """From any thread, or a signal handler."""
        self._stopping.set()
        self._wake.set()
        self._sealable.set()

    def _work(self) -> None:
        slots = self._settings.slots or self._engine.cores
        threads = self._threads(slots)
        for thread in threads:
            thread.start()
        self.ready.set()
        log.info(
            "worker is ready",
            extra={"action": "worker_ready", "worker": self.name, "slots": slots},
        )
        lost = False
        while not self._stopping.wait(0.5):
            if not self._engine.alive():
                lost = True
                log.error("Spark's JVM is gone", extra={"action": "engine_lost"})
                self.stop()
        slot_threads = [thread for thread in threads if thread.name.startswith("slot-")]
        claimers = [thread for thread in threads if thread.name in ("planner", "sealer")]
        grace_seconds = LET_GO_SECONDS if lost else self._settings.grace_seconds
        self._drain(slot_threads, claimers, grace_seconds, lost)
        self._ended.set()
        for thread in threads:
            thread.join(2.0)
        log.info("worker has stopped", extra={"action": "worker_stopped", "worker": self.name})
        if lost:
            raise EngineUnavailable("Spark's JVM ended; the worker has to be started again.")

    def _threads(self, slots: int) -> list[threading.Thread]:
        ends = EndsFinder(self._store, self._connectors, self._settings)
        prepared = Prepared(self._engine, ends, self._pool)
        planner = Planner(
            store=self._store,
            ends=ends,
            pool=self._pool,
            prepared=prepared,
            snapshots=self._snapshots,
            settings=PlanSettings(slots=slots),
        )
        sealer = Sealer(self._store, ends, self._pool)
        runner = PackRunner(
            store=self._store,
            engine=self._engine,
            ends=ends,
            pool=self._pool,
            prepared=prepared,
            in_flight=self._in_flight,
            policy=self._policy,
            limits=TaskLimits(
                stall_seconds=self._settings.stall_seconds,
                max_row_bytes=self._settings.max_row_bytes,
            ),
            abandoned=self._abandoned,
            on_sealable=self._sealable.set,
            on_step=self._on_step,
            on_task_step=self._on_task_step,
        )
        leases = LeaseKeeper(
            self._store,
            self._engine,
            self._in_flight,
            self._policy,
            worker=self.name,
            lease_seconds=self._settings.lease_seconds,
        )
        housekeeping = Housekeeping(
            self._store,
            self._engine,
            self._in_flight,
            prepared,
            self._snapshots,
            retention_days=self._settings.retention_days,
            fire_schedules=self._fire_schedules,
            notify=self._notify,
        )
        reconciler = Reconciler(
            self._store, ends, self._pool, self._connectors, on_sealable=self._sealable.set
        )
        plans = self._claim_runner(
            "plan", self._store.claim_plan, lambda claim: self._plan(planner, claim)
        )
        seals = self._claim_runner(
            "seal", self._store.claim_seal, lambda claim: self._seal(sealer, claim)
        )
        limits = PackLimits(slots=slots, weights=self._settings.weights)
        stalls = Stalls(
            self._store,
            self._engine,
            self._in_flight,
            self._pool,
            self._policy,
            stall_seconds=self._settings.stall_seconds,
            on_abandoned=lambda held: self._replace_slot(held, runner, limits),
        )
        jobs: list[tuple[str, Callable[[], None]]] = [
            *((f"slot-{n}", lambda: self._run_slot(runner, limits)) for n in range(slots)),
            ("planner", lambda: self._run_claims(plans, self._stopping, IDLE_SECONDS)),
            ("sealer", lambda: self._run_claims(seals, self._sealable, SEAL_LOOK_SECONDS)),
            ("leases", lambda: leases.run(self._ended)),
            ("stalls", lambda: stalls.run(self._ended)),
            ("housekeeping", lambda: housekeeping.run(self._stopping)),
            ("reconciler", lambda: reconciler.run(self._stopping)),
        ]
        return [threading.Thread(target=do, name=name, daemon=True) for name, do in jobs]

    def _claim_runner(
        self, doing: str, claim: Claim, work: Callable[[BackfillClaim], None]
    ) -> ClaimRunner:
        return ClaimRunner(
            doing,
            claim,
            work,
            store=self._store,
            in_flight=self._in_flight,
            policy=self._policy,
            worker=self.name,
            lease_seconds=self._settings.lease_seconds,
            stall_seconds=self._settings.stall_seconds,
            abandoned=self._abandoned,
        )

    def _plan(self, planner: Planner, claim: BackfillClaim) -> None:
        slices = planner.plan(claim, self._stored)
        log.info("planned %d slices", slices, extra=about("planned", claim.backfill))
        self._wake.set()
        if not slices:
            self._sealable.set()

    def _seal(self, sealer: Sealer, claim: BackfillClaim) -> None:
        lost = sealer.seal(claim.backfill)
        if lost:
            self._stored(lambda: self._store.take_back(claim, lost, self._policy))
            log.warning(
                "what %d slices had delivered is gone; they go back",
                len(lost),
                extra=about("delivery_lost", claim.backfill),
            )
            self._wake.set()
            return
        self._stored(lambda: self._store.end_claim(claim, None, self._policy))
        log.info("sealed", extra=about("sealed", claim.backfill))

    def _stored(self, call: Callable[[], T]) -> T:
        return retry_store(call, abandoned=self._abandoned)

    def _replace_slot(self, held: PackInFlight, runner: PackRunner, limits: PackLimits) -> None:
        """A slot whose pack cannot be ended is given up; another one takes its place."""
        if self._stopping.is_set():
            return
        threading.Thread(
            target=self._run_slot, args=(runner, limits), name="slot-again", daemon=True
        ).start()

    def _run_slot(self, runner: PackRunner, limits: PackLimits) -> None:
        backoff = IDLE_SECONDS
        while not self._stopping.is_set():
            try:
                # one slot looks at a time; the others wait here, not at the store
                with self._claiming:
                    if self._stopping.is_set():
                        return
                    pack = self._claim_pack(limits)
                    if pack is None:
                        self._wake.wait(IDLE_SECONDS)
                        self._wake.clear()
                        continue
                    held = self._in_flight.add_pack(pack)
                runner.run(held)
                if held.abandoned:
                    return  # another slot took this one's place
                self._wake.set()
                backoff = IDLE_SECONDS
            except Exception as exc:
                self._tell(exc, "slot")
                self._stopping.wait(backoff)
                backoff = min(backoff * 2, LONGEST_BACKOFF_SECONDS)

    def _claim_pack(self, limits: PackLimits) -> Pack | None:
        if not self._engine.alive() or any(each.pack.alone for each in self._in_flight.packs()):
            return None
        return self._quarantine.claim(limits) or self._store.claim_pack(
            self.name, limits, self._settings.lease_seconds
        )

    def _run_claims(self, claims: ClaimRunner, wake: threading.Event, idle_seconds: float) -> None:
        """Looks when it is woken, and now and then by itself: what another process made, or a
        crash left, wakes nobody."""
        backoff = IDLE_SECONDS
        while not self._stopping.is_set():
            try:
                if not claims.look():
                    wake.wait(idle_seconds)
                if wake is not self._stopping:
                    wake.clear()
                backoff = IDLE_SECONDS
            except Exception as exc:
                self._tell(exc, claims.doing)
                self._stopping.wait(backoff)
                backoff = min(backoff * 2, LONGEST_BACKOFF_SECONDS)

    def _drain(
        self,
        slots: list[threading.Thread],
        claimers: list[threading.Thread],
        grace_seconds: float,
        lost: bool,
    ) -> None:
        """Running packs may end by themselves, for a while; then they are cut short and their
        slices handed back, with no failure counted."""
        deadline = time.monotonic() + grace_seconds
        for thread in slots:
            thread.join(max(0.0, deadline - time.monotonic()))
        for held in self._in_flight.packs():
            if not held.finishing:
                held.given_up = True
                held.engine_died |= lost and held.stage == "run"
                self._cancel(held.pack.id)
        for thread in claimers:
            # one that is just asking the store may still be given a claim
            thread.join(LET_GO_SECONDS)
        for claim in self._in_flight.claims():
            self._hand_back(claim)
        for thread in slots:
            thread.join(LET_GO_SECONDS)
        self._abandoned.set()
        left = self._in_flight.packs()
        if left:
            # Spark did not let go of them in time; the fences hold whatever they still do
            died = [lease for held in left if held.engine_died for lease in held.leases]
            others = [lease for held in left if not held.engine_died for lease in held.leases]
            try:
                self._store.suspect_slices(died, self._policy)
                self._store.release_slices(others)
            except StoreBusy as exc:
                log.warning("not released: %s", exc.message, extra={"action": "release_failed"})

    def _hand_back(self, claim: BackfillClaim) -> None:
        if claim.backfill.planned:
            return  # a seal: ending it without a fault would say that it is done
        try:
            self._store.end_claim(claim, None, self._policy)
        except RefillError as exc:
            log.info("claim left: %s", exc.message, extra={"action": "claim_left"})

    def _cancel(self, pack_id: str) -> None:
        try:
            self._engine.cancel(pack_id)
        except Exception as exc:
            log.warning("cancel failed: %s", exc, extra={"action": "cancel_failed"})

    def _tell(self, exc: Exception, thread: str) -> None:
        if isinstance(exc, StoreBusy):
            log.warning("the store is busy: %s", exc.message, extra={"action": "store_busy"})
        else:
            log.error(
                "%s stumbled", thread, exc_info=exc, extra={"action": "stumbled", "thread": thread}
            )
