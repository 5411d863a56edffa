"""A sink's set of files: every backfill writes a generation of its own, and one rename of the
pointer makes it the set. A reader sees the old set whole, then the new set whole.

The generation that was replaced stays until the next backfill of the table begins: somebody may
still be reading it, and a listing of a folder that shrinks meanwhile would be short in silence.
"""

import errno
from collections.abc import Callable
from uuid import uuid4

from refill.connectors.files.folder import Folder
from refill.connectors.files.layout import Generation
from refill.domain.errors import SinkRefused, Superseded

_DISCARDED = "~discarded"


class Generations:
    """The generations of one set, as one backfill sees them."""

    def __init__(self, base: Folder, own: Generation) -> None:
        self._base = base
        self._own = own

    def current(self) -> Generation | None:
        """What the pointer says now."""
        try:
            return Generation.parse(self._base.link_target(self._own.set_name))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise SinkRefused(
                f"{self._own.set_name} is there already and was not made by refill; "
                "move it away, or choose another path."
            ) from error

    def check_open(self) -> bool:
        """Whether slices may still be added. SinkRefused when they never can again."""
        current = self.current()
        if self._own.overtaken_by(current):
            raise SinkRefused(
                f"A later backfill has replaced the files of {self._own.set_name}; "
                "what this one had written is gone. Start a new backfill."
            )
        if self._discarded():
            raise SinkRefused(
                f"The files of this backfill of {self._own.set_name} were discarded; "
                "start a new backfill."
            )
        return current != self._own

    def remove_overtaken(self) -> None:
        """Generations older than the current one: replaced, or failed and never to be sealed."""
        current = self.current()
        names = self._base.names()
        self._base.sweep(names)
        for name in names:
            generation = Generation.parse(name.removesuffix(_DISCARDED))
            if generation is None or generation.set_name != self._own.set_name:
                continue
            # one of our own origin may be taken up again, whosever set is the current one
            foreign = current is not None and generation.origin not in (
                current.origin,
                self._own.origin,
            )
            if generation not in (current, self._own) and (
                foreign or generation.overtaken_by(current)
            ):
                self._base.remove_tree(name)

    def seal(self) -> None:
        """Turns the pointer to the own generation."""
        if not self.check_open():
            return
        self.remove_overtaken()
        with self._base.enter(self._own.name, create=True) as folder:
            folder.sync()
        pointer = f"{self._pointer_stem(self._own)}.{uuid4().hex[:12]}"
        self._base.make_link(self._own.name, pointer)
        try:
            self._turn(pointer)
        finally:
            self._base.remove_file(pointer)
        self._base.sync()

    def _turn(self, pointer: str) -> None:
        # A worker may be stopped at any line here and wake up after a newer backfill has sealed.
        # Each side first makes its own pointer, then looks; the newer one removes the older one's
        # before and after its rename: whoever wakes up finds a newer set, or nothing to rename.
        self._remove_pointers(lambda other: other.overtaken_by(self._own))
        if self._own.overtaken_by(self.current()):
            raise Superseded(f"A later backfill has replaced {self._own.set_name}.")
        # `discard` makes its mark, then removes our pointer: whichever comes first is seen
        if self._discarded():
            raise Superseded(f"The files of this backfill of {self._own.set_name} were discarded.")
        try:
            self._base.move(pointer, self._base, self._own.set_name)
        except FileNotFoundError as error:
            raise Superseded(
                f"A later backfill is replacing {self._own.set_name}, or this one was cancelled."
            ) from error
        self._remove_pointers(lambda other: other.overtaken_by(self._own))
        if self.current() != self._own:
            raise Superseded(f"Another backfill has replaced {self._own.set_name}.")

    def _remove_pointers(self, wanted: Callable[[Generation], bool]) -> None:
        for name in self._base.names():
            if not name.startswith("_pointer~"):
                continue
            other = Generation.parse(self._base.link_target(name))
            if other and other.set_name == self._own.set_name and wanted(other):
                self._base.remove_file(name)

    def _discarded(self) -> bool:
        return self._mark in self._base.names()

    def discard(self) -> None:
        """Removes what was never visible; a mark keeps a late slice from beginning it anew."""
        if self.current() == self._own:
            return
        with self._base.enter(self._mark, create=True):
            pass
        # A seal may be under way: from here on it sees the mark, or finds no pointer to rename.
        # If it renamed before, the set is visible, and stays.
        self._remove_pointers(lambda other: other == self._own)
        if self.current() == self._own:
            self._base.remove_tree(self._mark)
            return
        self._base.remove_tree(self._own.name)

    @property
    def _mark(self) -> str:
        return self._own.name + _DISCARDED

    @staticmethod
    def _pointer_stem(generation: Generation) -> str:
        return f"_pointer~{generation.set_name}~{generation.backfill_id}"
