"""Log lines: what they carry, and what they never do."""

import io
import json
import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from refill import logs
from refill.logs import JsonFormatter, TextFormatter, mask

# all that a line takes of a backfill
BACKFILL: Any = SimpleNamespace(id=7, uid="u-7")


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.getLogger("refill.test").makeRecord(
        "refill.test", logging.INFO, __file__, 1, message, (), None, extra=extra
    )
    return made


def test_a_line_carries_the_request_and_the_backfill() -> None:
    token = logs.request_id.set("r-1")
    try:
        told = record("planned", **logs.about("plan", BACKFILL), slices=3)
        line = json.loads(JsonFormatter().format(told))
    finally:
        logs.request_id.reset(token)
    assert line["message"] == "planned"
    assert line["request_id"] == "r-1"
    assert (line["backfill_id"], line["backfill_uid"]) == (7, "u-7")
    assert (line["action"], line["slices"]) == ("plan", 3)
    assert "request_id" not in json.loads(JsonFormatter().format(record("later")))


@pytest.mark.parametrize(
    "secret",
    [
        "rf_0123456789ab_s3cr3ts3cr3ts3cr3t",
        "postgresql://user:s3cr3t@host/db",
        "Authorization: Bearer s3cr3t.s3cr3t",
        "password=s3cr3t host=x",
        "{'password': 's3cr3t'}",
    ],
)
def test_secrets_are_masked_in_messages_fields_and_traces(secret: str) -> None:
    assert "s3cr3t" not in mask(secret)
    try:
        raise RuntimeError(secret)
    except RuntimeError:
        with_trace = record("failed", detail=secret, password="s3cr3t")
        with_trace.exc_info = sys.exc_info()
    for formatter in (JsonFormatter(), TextFormatter()):
        line = formatter.format(with_trace)
        assert "s3cr3t" not in line.replace("raise RuntimeError(secret)", "")
        assert "failed" in line


def test_lines_go_to_the_stream_in_the_form_that_was_asked_for() -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    try:
        logs.configure_logs("json", "info", stream)
        logging.getLogger("anything").info("hello")
        logging.getLogger("anything").debug("not this")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["hello"]
