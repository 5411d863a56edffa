"""The files sink. A slice is staged by a task and becomes visible by the worker's rename."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from refill.connectors.files import FilesOptions
from refill.connectors.files.folder import Folder, files_errors
from refill.connectors.files.generations import Generations
from refill.connectors.files.layout import (
    Generation,
    Staging,
    base_names,
    leaf_name,
    unit_name,
)
from refill.connectors.kit.contract import Context, Job, Sink, Written
from refill.domain.errors import SinkRefused, Superseded
from refill.domain.slice import Dated, Receipt, Slice, Ticket
from refill.domain.spec import QueryRead, Read, SinkSpec, TransferSpec

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS = ("parquet", "jsonl")
_BUFFER_BYTES = 1024 * 1024


class FilesSink(Sink):
    def __init__(self, options: FilesOptions, context: Context) -> None:
        self._options = options
        self._root = os.path.join(context.files_root, str(context.team_id))

    def test(self) -> None:
        probe = f"_probe.{uuid4().hex[:12]}"
        with self._errors(), self._base(self._options.path.split("/"), create=True) as folder:
            os.close(folder.create_file(probe))
            folder.remove_file(probe)

    def prepare(self, job: Job, schema: "pa.Schema") -> None:
        with self._errors(), self._base(base_names(self._options.path, job.spec), create=True) as b:
            if isinstance(job.spec, SinkSpec):
                Generations(b, Generation.of(job)).remove_overtaken()

    def stage(self, job: Job, tickets: Sequence[Ticket]) -> list[str | None]:
        names = base_names(self._options.path, job.spec)
        with self._errors(), self._base(names, create=True) as base:
            if isinstance(job.spec, SinkSpec):
                generations = Generations(base, Generation.of(job))
                if not generations.check_open():
                    return [None] * len(tickets)
            held: dict[str, str] = {}
            for leaf, members in self._by_leaf(job, tickets).items():
                with base.enter(leaf, create=True) as folder:
                    for staging in _claim(folder, [Staging.of(job, ticket) for ticket in members]):
                        held[staging.nonce] = "/".join((*names, leaf, staging.name))
            return [held.get(ticket.nonce) for ticket in tickets]

    def write(
        self, job: Job, ticket: Ticket, schema: "pa.Schema", batches: Iterator["pa.RecordBatch"]
    ) -> Written:
        from refill.connectors.files.formats import pour

        with self._errors(), self._staging(ticket) as folder:
            name = f"data.{ticket.nonce}"
            try:
                descriptor = folder.create_file(name)
            except FileExistsError as error:
                raise Superseded(
                    "Another execution of this attempt writes the same file."
                ) from error
            try:
                with os.fdopen(descriptor, "wb", buffering=_BUFFER_BYTES) as file:
                    poured = pour(
                        self._options.format,
                        schema,
                        batches,
                        file,
                        job.spec.timestamp_format,
                        _key(job.spec.read),
                    )
                    os.fsync(descriptor)
                folder.sync()
            except BaseException:
                folder.remove_file(name)
                raise
            return Written(
                rows_delivered=poured.rows,
                bytes_written=poured.bytes,
                rows_rejected=poured.rejected,
                rejects=poured.rejects,
                staged=f"{ticket.staging}/{name}",
            )

    def publish(self, job: Job, deliveries: Sequence[tuple[Ticket, Receipt]]) -> None:
        """Publishes all it can; then Superseded when a newer attempt took any of them over."""
        overtaken: list[str] = []
        staged = [(ticket, receipt.staged) for ticket, receipt in deliveries if receipt.staged]
        with self._errors(), self._base(base_names(self._options.path, job.spec)) as base:
            tickets = self._by_leaf(job, [ticket for ticket, _ in staged])
            places = {ticket.slice_id: place for ticket, place in staged}
            for leaf, members in tickets.items():
                with base.enter(leaf) as folder:
                    for ticket in members:
                        if not self._publish_one(folder, ticket, places[ticket.slice_id]):
                            overtaken.append(unit_name(ticket))
                    # durable before the store hears of it
                    folder.sync()
            base.sync()
        if overtaken:
            raise Superseded(
                f"A newer attempt has taken over {', '.join(overtaken[:5])} of {self._shown}."
            )

    def _publish_one(self, folder: Folder, ticket: Ticket, place: str) -> bool:
        staging_name, name = place.split("/")[-2:]
        try:
            staging = folder.enter(staging_name)
        except FileNotFoundError:
            return False
        with staging:
            left = staging.names()
            # no such file: published before, and the folder stays as the fence
            if name in left:
                staging.move(name, folder, f"{unit_name(ticket)}.{self._options.format}")
                left.remove(name)
            for other in left:
                staging.remove_file(other)
        for other in _FORMATS:
            if other != self._options.format:
                folder.remove_file(f"{unit_name(ticket)}.{other}")
        return True

    def missing(self, job: Job, slices: Sequence[Slice]) -> list[Slice]:
        """By name, and for a sink's set, which nobody else writes, by size too."""
        with self._errors():
            try:
                base = self._base(base_names(self._options.path, job.spec))
            except FileNotFoundError:
                return list(slices)
            with base:
                if isinstance(job.spec, SinkSpec):
                    generation = Generation.of(job)
                    if Generations(base, generation).current() == generation:
                        return []  # sealed before: a reader may have done with it as it liked
                    sizes = _sizes(base, generation.name)
                    return [
                        part
                        for part in slices
                        if sizes.get(f"{unit_name(part)}.{self._options.format}")
                        != part.bytes_written
                    ]
                # a later run of a date may have replaced it, in another format too
                return [
                    part
                    for part in slices
                    if not {f"{unit_name(part)}.{form}" for form in _FORMATS}
                    & _sizes(base, leaf_name(job, part.extent)).keys()
                ]

    def seal(self, job: Job) -> None:
        if isinstance(job.spec, TransferSpec):
            return
        with self._errors(), self._base(base_names(self._options.path, job.spec), create=True) as b:
            Generations(b, Generation.of(job)).seal()

    def discard(self, job: Job) -> None:
        with self._errors(), self._base(base_names(self._options.path, job.spec), create=True) as b:
            if isinstance(job.spec, SinkSpec):
                Generations(b, Generation.of(job)).discard()
                return
            there = set(b.names())
            for day in job.spec.dates:
                leaf = leaf_name(job, Dated(date=day))
                if leaf in there:
                    with b.enter(leaf) as folder:
                        _empty_stagings(folder, job.backfill_id)

    def close(self) -> None:
        pass

    @property
    def _shown(self) -> str:
        """The path as its owner knows it; the operator's part of it is nobody else's business."""
        return f"files path {self._options.path!r}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with files_errors(self._shown):
            yield

    def _base(self, names: Sequence[str], *, create: bool = False) -> Folder:
        try:
            root = Folder.at(self._root, create=create)
        except FileNotFoundError as error:
            raise SinkRefused(
                "The files root is not there on this machine; on a cluster it must be a folder "
                "that all machines share (REFILL_FILES_ROOT)."
            ) from error
        with root:
            return root.descend(names, create=create)

    def _staging(self, ticket: Ticket) -> Folder:
        """Never made here: what a newer claim removed must stay removed."""
        if ticket.staging is None:
            raise Superseded("A newer attempt of this slice has staged already.")
        try:
            return self._base(ticket.staging.split("/"))
        except FileNotFoundError as error:
            raise Superseded("A newer attempt has removed the place to write into.") from error

    @staticmethod
    def _by_leaf(job: Job, tickets: Sequence[Ticket]) -> dict[str, list[Ticket]]:
        leaves: dict[str, list[Ticket]] = {}
        for ticket in tickets:
            leaves.setdefault(leaf_name(job, ticket.extent), []).append(ticket)
        return leaves


def _sizes(base: Folder, leaf: str) -> dict[str, int]:
    """Of the files in a folder; none where there is no such folder."""
    try:
        with base.enter(leaf) as folder:
            return folder.sizes()
    except FileNotFoundError:
        return {}


def _key(read: Read) -> tuple[str, ...]:
    return () if isinstance(read, QueryRead) else read.table.key


def _claim(folder: Folder, stagings: Sequence[Staging]) -> list[Staging]:
    """Makes the folders, removes older ones of the same units; those that were not overtaken."""
    # made before looked around: of two claims at once, at least one sees the other
    for staging in stagings:
        with suppress(FileExistsError):
            folder.make(staging.name)
    names = folder.names()
    folder.sweep(names)
    own = {staging.unit: staging for staging in stagings}
    held = dict(own)
    for name in names:
        other = Staging.parse(name)
        mine = own.get(other.unit) if other else None
        if other is None or mine is None or other == mine:
            continue
        if mine.overtaken_by(other):
            held.pop(mine.unit, None)
            folder.remove_tree(mine.name)
        else:
            folder.remove_tree(name)
    return list(held.values())


def _empty_stagings(folder: Folder, backfill_id: int) -> None:
    for name in folder.names():
        staging = Staging.parse(name)
        if staging is not None and staging.backfill_id == backfill_id:
            with folder.enter(name) as place:
                for file in place.names():
                    place.remove_file(file)
