"""Log lines: JSON or text, each with the request and the backfill it belongs to."""

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from refill.domain.backfill import Backfill

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SECRET_NAMES = re.compile(r"password|secret|token|authorization|passwd|nkey|jwt|api_key", re.I)
# what a secret looks like inside a sentence: our own tokens, and passwords of URLs
_SECRETS_IN_TEXT = (
    (re.compile(r"\brf_([A-Za-z0-9]+)_[A-Za-z0-9_-]+"), r"rf_\1_***"),
    (re.compile(r"(://[^\s:/@]*):[^\s/@]+@"), r"\1:***@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+"), r"\1 ***"),
    (re.compile(r"(?i)\b(password|passwd|secret)(['\"]?\s*[=:]\s*)['\"]?[^\s'\",}]+"), r"\1\2***"),
)


def mask(text: str) -> str:
    """The text without what looks like a secret."""
    for pattern, replacement in _SECRETS_IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def about(action: str, backfill: "Backfill") -> dict[str, object]:
    """What a line about a backfill says besides its message. Users of transfers know the backfill
    by its number, those of sinks by its UUID."""
    return {"action": action, "backfill_id": backfill.id, "backfill_uid": backfill.uid}


class _Formatter(logging.Formatter):
    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """What the line says besides its message."""
        found: dict[str, Any] = {}
        if (request := request_id.get()) is not None:
            found["request_id"] = request
        for name, value in vars(record).items():
            if name not in _PLAIN:
                found[name] = _masked(name, value)
        return found

    def trace(self, record: logging.LogRecord) -> str | None:
        if not record.exc_info:
            return None
        return mask(self.formatException(record.exc_info))


class JsonFormatter(_Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask(record.getMessage()),
            **self.fields(record),
        }
        if trace := self.trace(record):
            line["trace"] = trace
        return json.dumps(line, default=_masked_text, ensure_ascii=False)


class TextFormatter(_Formatter):
    """For eyes: time, level, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        fields = " ".join(
            f"{name}={_masked_text(value)}" for name, value in self.fields(record).items()
        )
        line = f"{moment} {record.levelname.lower():<7} {mask(record.getMessage())}"
        line = _escaped(f"{line}  {fields}" if fields else line)
        trace = self.trace(record)
        if not trace:
            return line
        # set off from the margin: no text of an error looks like a line of its own
        inset = "\n".join(f"  {_escaped(part)}" for part in trace.split("\n"))
        return f"{line}\n{inset}"


def configure_logs(form: str, level: str, stream: TextIO | None = None) -> None:
    """Sends every logger's lines to the stream (standard error) in that form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # they tell every start, and every connection, in many lines
    for name in ("alembic", "py4j", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    # uvicorn's own handlers would print every line twice, and without the request id
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"


def _masked(name: str, value: Any) -> Any:
    if _SECRET_NAMES.search(name):
        return "***"
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {str(inner): _masked(str(inner), found) for inner, found in value.items()}
    if isinstance(value, list | tuple):
        return [_masked("", found) for found in value]
    return value


def _escaped(text: str) -> str:
    """On one line, and nothing in it that a terminal obeys."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _masked_text(value: object) -> str:
    return mask(str(value))
