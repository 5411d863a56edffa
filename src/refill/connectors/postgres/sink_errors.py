"""What PostgreSQL and its driver report while we write, as errors of a sink."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from refill.connectors.postgres.errors import sentence
from refill.domain.errors import (
    RefillError,
    SinkRefused,
    SinkUnavailable,
    SourceRefused,
    SourceUnavailable,
)

# Worth another try: connection, conflict, locks, resources, operator's intervention, the system.
# A disk that is full (53100) is one of them: nothing is lost, and it goes on when there is room.
_TRANSIENT = {"08", "40", "53", "55", "57", "58"}
# what is wrong with a value, a constraint that it breaks, a row that is too large
_VALUE = {"22", "23", "54"}
_REFUSED_TEXT = re.compile(
    r"authentication failed|no password supplied|role \".*\" does not exist"
    r"|database \".*\" does not exist|no pg_hba.conf entry|not permitted to log in"
    r"|permission denied|does not support SSL|certificate"
    r"|authentication method requirement|signature failure",
    re.IGNORECASE,
)


def sqlstate(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str) and state:
        return state
    found = re.search(r"SQLSTATE: ([0-9A-Z]{5})", str(error))
    return found[1] if found else None


def is_value_error(error: BaseException) -> bool:
    """The row is at fault, not the statement or the connection."""
    state = sqlstate(error)
    return state is not None and (state[:2] in _VALUE or "jsonb version" in str(error))


def line_of(error: BaseException) -> int | None:
    """Which row of a COPY, counted from 0, PostgreSQL stumbled over."""
    found = re.search(r"^CONTEXT:\s+COPY .*?, line (\d+)", str(error), re.MULTILINE)
    return int(found[1]) - 1 if found else None


def reason_of(error: BaseException) -> str:
    """PostgreSQL's own words about a value, on one line."""
    text = sentence(error).split(" CONTEXT:")[0]
    text = re.sub(r"^Failed to execute COPY statement: PGRES_FATAL_ERROR\s*", "", text)
    return re.sub(r"^[A-Z_]+: ", "", text).rstrip(". ")


def as_sink_error(error: BaseException, doing: str) -> RefillError:
    if isinstance(error, SourceUnavailable):  # the connection's own words, said of a source
        return SinkUnavailable(error.message)
    if isinstance(error, SourceRefused):
        return SinkRefused(error.message)
    if isinstance(error, RefillError):
        return error
    text, state = reason_of(error), sqlstate(error)
    if state is None:
        if _REFUSED_TEXT.search(text):
            return SinkRefused(f"PostgreSQL refused to {doing}: {text}.")
        return SinkUnavailable(f"Could not {doing}: {text}.")
    if state[:2] in _TRANSIENT:
        return SinkUnavailable(f"Could not {doing}: {text}.")
    return SinkRefused(f"PostgreSQL refused to {doing}: {text}.")


@contextmanager
def sink_errors(doing: str) -> Iterator[None]:
    """`doing` says what was tried, as in "write public.orders"."""
    import adbc_driver_manager

    try:
        yield
    except (adbc_driver_manager.Error, SourceUnavailable, SourceRefused) as error:
        raise as_sink_error(error, doing) from error
