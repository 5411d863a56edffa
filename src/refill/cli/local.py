"""The server of a home on this machine: where it listens, and a key to speak to it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from refill.cli.output import Stopped
from refill.domain.access import Scope
from refill.domain.errors import Unauthenticated
from refill.settings import Settings

_NOTE = "server.json"


@contextmanager
def announced(home: Path, url: str) -> Iterator[None]:
    """Says in the home where the server listens, as long as it runs."""
    note = home / _NOTE
    write_private(note, json.dumps({"url": url, "pid": os.getpid()}))
    try:
        yield
    finally:
        with suppress(OSError, ValueError, KeyError):
            if json.loads(note.read_text())["pid"] == os.getpid():
                note.unlink()


def find_server(home: Path) -> str:
    home = home.expanduser().absolute()
    try:
        note = json.loads((home / _NOTE).read_text())
        url, pid = str(note["url"]), int(note["pid"])
    except (OSError, ValueError, KeyError):
        url, pid = "", 0
    import psutil  # only here: every command would pay for it

    if not url or not psutil.pid_exists(pid):
        raise Stopped(f"No server runs on {home}; start it with `refill serve --home {home}`.")
    return url


def local_key(home: Path, team: int) -> str:
    """A key of the team's first user, kept in a file that only the home's owner can read."""
    from refill.bootstrap import opened_store
    from refill.clock import system_clock
    from refill.service.access import Access

    settings = Settings(home=home)
    kept = settings.home_path / f"cli-{team}.key"
    with opened_store(settings) as store:
        access = Access(store=store, clock=system_clock)
        if kept.exists():
            token = kept.read_text().strip()
            with suppress(Unauthenticated):
                access.authenticate(f"Bearer {token}")
                return token
        users = store.list_users(team)
        if not users:
            raise Stopped(f"Team {team} has no user; make one with `refill users create`.")
        minted = access.mint_key(team_id=team, user_id=users[0].id, scopes=[Scope.ALL])
    write_private(kept, minted.token + "\n")
    return minted.token


def write_private(path: Path, text: str) -> None:
    """Never readable by others, not even for a moment, and never half written."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    scratch.replace(path)
