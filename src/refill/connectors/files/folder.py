"""A directory held open by its descriptor: names below it are followed step by step, never through
a symbolic link, so that nothing planted in the tree leads a write out of the team's root."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from uuid import uuid4

from refill.domain.errors import RefillError, SinkRefused, SinkUnavailable

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_A_FOLDER = {errno.ELOOP, errno.ENOTDIR}


class Folder:
    def __init__(self, descriptor: int) -> None:
        self.fd = descriptor

    @classmethod
    def at(cls, root: str, *, create: bool = False) -> "Folder":
        """The operator's own path: links in it are the operator's business."""
        if create:
            os.makedirs(root, exist_ok=True)
        return cls(os.open(root, os.O_RDONLY | os.O_DIRECTORY))

    def enter(self, name: str, *, create: bool = False) -> "Folder":
        """One step down. What it makes is durable once this folder is synced."""
        if create:
            with suppress(FileExistsError):
                self.make(name)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        return Folder(os.open(name, flags, dir_fd=self.fd))

    def descend(self, names: Sequence[str], *, create: bool = False) -> "Folder":
        """Follows several names; self stays open. What it makes is durable at once."""
        folder = Folder(os.dup(self.fd))
        for name in names:
            with folder:
                if create and not folder.has(name):
                    folder.enter(name, create=True).close()
                    folder.sync()
                folder = folder.enter(name)
        return folder

    def has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def names(self) -> list[str]:
        # a descriptor keeps its reading position: listing through a fresh one always begins anew
        with self.enter(".") as fresh:
            return os.listdir(fresh.fd)

    def sizes(self) -> dict[str, int]:
        """Of the files in it, by name."""
        with self.enter(".") as fresh, os.scandir(fresh.fd) as found:
            return {
                entry.name: entry.stat(follow_symlinks=False).st_size
                for entry in found
                if entry.is_file(follow_symlinks=False)
            }

    def make(self, name: str) -> None:
        os.mkdir(name, dir_fd=self.fd)

    def create_file(self, name: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return os.open(name, flags, 0o644, dir_fd=self.fd)

    def move(self, name: str, to: "Folder", new_name: str) -> None:
        os.rename(name, new_name, src_dir_fd=self.fd, dst_dir_fd=to.fd)

    def remove_file(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def remove_tree(self, name: str) -> None:
        """Gone at once under its name, whatever still writes into it; then its contents."""
        gone = f"_gone.{uuid4().hex[:12]}"
        try:
            os.rename(name, gone, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except FileNotFoundError:
            return
        # what a zombie creates meanwhile may keep it from going: `sweep` takes it the next time
        shutil.rmtree(gone, ignore_errors=True, dir_fd=self.fd)

    def sweep(self, names: Sequence[str]) -> None:
        for name in names:
            if name.startswith("_gone."):
                shutil.rmtree(name, ignore_errors=True, dir_fd=self.fd)

    def link_target(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self.fd)
        except FileNotFoundError:
            return None

    def make_link(self, target: str, name: str) -> None:
        os.symlink(target, name, dir_fd=self.fd)

    def sync(self) -> None:
        os.fsync(self.fd)

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@contextmanager
def files_errors(what: str) -> Iterator[None]:
    """The operating system's errors as ours. `what`: the path, as its owner knows it."""
    try:
        yield
    except OSError as error:
        raise as_refill_error(error, what) from error


def as_refill_error(error: OSError, what: str) -> RefillError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        return SinkUnavailable(
            f"There is no room to write {what} ({reason}); free some space and it goes on."
        )
    if error.errno in _FORBIDDEN:
        return SinkRefused(
            f"{what} cannot be written ({reason}); give refill's user the right to write there."
        )
    if error.errno in _NOT_A_FOLDER:
        return SinkRefused(
            f"{what} cannot be written: a part of it is a file or a link ({reason}); "
            "remove that, or choose another path."
        )
    if error.errno == errno.ENAMETOOLONG:
        return SinkRefused(f"{what} cannot be written: a name in it is too long.")
    return SinkUnavailable(f"{what} could not be written ({reason}).")
