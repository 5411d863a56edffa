"""What PostgreSQL, libpq and ADBC report, as errors of ours: by SQLSTATE where there is one."""

import re

from refill.domain.errors import (
    RefillError,
    SnapshotLost,
    SourceChanged,
    SourceRefused,
    SourceUnavailable,
)

_NO_TLS = "server does not support SSL, but SSL was required"
_CHANGED = {"42P01", "42703", "3F000", "42704", "42883", "42804"}
_REFUSED_CLASSES = {"28", "42", "3D", "0A", "22", "25"}
_REFUSED = {"55000"}  # a materialized view that was never filled
_SNAPSHOT = re.compile(r"invalid snapshot identifier|snapshot \".*\" does not exist", re.I)
# libpq gives no SQLSTATE when a connection is refused at its start
_REFUSED_TEXT = re.compile(
    r"password authentication failed|authentication failed|no password supplied"
    r"|role \".*\" does not exist|database \".*\" does not exist|no pg_hba.conf entry"
    r"|not permitted to log in|permission denied|does not support SSL|certificate"
    r"|authentication method requirement|signature failure"
    r"|is not currently accepting connections",
    re.I,
)


def translate(exc: BaseException, doing: str) -> RefillError:
    """Ours for a driver's error; `doing` says what was tried, as in "read public.orders"."""
    if isinstance(exc, RefillError):
        return exc
    text = sentence(exc)
    state = _sqlstate(exc)
    if _SNAPSHOT.search(text):
        return SnapshotLost(
            f"Could not {doing}: the snapshot that the table is read under is gone ({text}). "
            "Start a new backfill."
        )
    if state is not None:
        return _by_state(state, text, doing)
    if _REFUSED_TEXT.search(text):
        return SourceRefused(f"PostgreSQL refused to {doing}: {text}.")
    return SourceUnavailable(f"Could not {doing}: {text}.")


def _by_state(state: str, text: str, doing: str) -> RefillError:
    if state in _CHANGED:
        return SourceChanged(
            f"Could not {doing}: {text}. The table or a column is gone or changed; "
            "refresh the database's tables and start a new backfill."
        )
    if state[:2] in _REFUSED_CLASSES or state in _REFUSED:
        return SourceRefused(f"PostgreSQL refused to {doing}: {text}.")
    # 08 connection, 53 resources, 57 shutdown or cancelled, 40 conflict, 55 locked, 58 system:
    # all of these may well pass
    return SourceUnavailable(f"Could not {doing}: {text}.")


def _sqlstate(exc: BaseException) -> str | None:
    state = getattr(exc, "sqlstate", None)
    if isinstance(state, str) and len(state) == 5 and state != "00000":
        return state
    found = re.search(r"SQLSTATE: ([0-9A-Z]{5})", str(exc))
    return found[1] if found else None


def sentence(exc: BaseException) -> str:
    """The first thing a driver says, on one line, without its prefixes and our SQL."""
    text = str(exc)
    text = re.split(r"\n\s*\nQuery was:|\nLINE \d+:|\n\s*\nLINE", text)[0]
    text = re.sub(r"^[A-Z_]+: (?=\[libpq\]|Failed)", "", text)
    text = re.sub(r"\[libpq\] *", "", text)
    text = re.sub(r"Failed to (execute|prepare) query(:| '.*?':)", "", text, flags=re.S)
    text = re.sub(r"Execution error \[\w+\]:|could not begin COPY:|Failed to connect:", "", text)
    text = re.sub(r"\. SQLSTATE: \w+", "", text)
    text = re.sub(r"\b(ERROR|FATAL):\s+", "", text)
    text = text.replace(_NO_TLS, "it does not support SSL; set ssl to false to go without")
    return " ".join(text.split()).rstrip(". ") or type(exc).__name__
