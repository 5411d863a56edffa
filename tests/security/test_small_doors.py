"""The small ways in: paths, headers, logs, keys, files, tools."""

import io
import logging
import os
import re
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from refill.connectors.kit.addresses import NetworkPolicy
from refill.connectors.kit.registry import load_connectors
from refill.connectors.nats import NatsOptions
from refill.connectors.webhook import WebhookOptions
from refill.connectors.webhook.request import Receiver
from refill.logs import configure_logs
from refill.worker.single_worker import only_worker
from tests.integration.api.running import Running, answer, running_server

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../admin",
        "a/../../admin",
        "/../admin",
        "%2e%2e/admin",
        "%252e%252e/admin",
        ".%2E/admin",
        "..;/admin",
        "a\\..\\admin",
        "a#b",
        "a\r\nHost: evil",
        "a b",
        "%0d%0a",
    ],
)
def test_a_path_cannot_leave_its_base(path: str) -> None:
    with pytest.raises(ValidationError):
        WebhookOptions(url="https://a.test/in", http_endpoint_path=path)


@pytest.mark.parametrize(
    ("url", "path", "goes_to"),
    [
        ("https://127.0.0.1/in", "a/b", "https://127.0.0.1/in/a/b"),
        ("https://127.0.0.1/in/", "/a", "https://127.0.0.1/in/a"),
        ("https://127.0.0.1/in?key=1", "a", "https://127.0.0.1/in/a?key=1"),
        ("https://127.0.0.1/in?key=1", "a?b=2", "https://127.0.0.1/in/a?key=1&b=2"),
        ("https://127.0.0.1/in", "//evil.test/x", "https://127.0.0.1/in/evil.test/x"),
        ("https://127.0.0.1/in", "@evil.test", "https://127.0.0.1/in/@evil.test"),
        ("https://127.0.0.1", "@evil.test", "https://127.0.0.1/@evil.test"),
        ("https://127.0.0.1/in", None, "https://127.0.0.1/in"),
    ],
)
def test_a_path_is_added_below_its_base(url: str, path: str | None, goes_to: str) -> None:
    options = WebhookOptions(url=url, http_endpoint_path=path)
    receiver = Receiver(options, NetworkPolicy(allow_private=True))
    assert receiver.url == goes_to
    receiver.close()


BAD_HEADERS: list[tuple[str, str]] = [
    ("Idempotency-Key", "mine"),
    ("idempotency-key", "mine"),
    ("Refill-Signature", "t=1"),
    ("Content-Length", "0"),
    ("Transfer-Encoding", "chunked"),
    ("Connection", "close"),
    ("X", "a\r\nY: b"),
    ("X", "a\x00"),
    ("X", "caf\u00e9"),
    ("X", "\u2028"),
    ("X", " a"),
    ("X", "a\x7f"),
    ("X Y", "a"),
    ("X:Y", "a"),
    ("", "a"),
]


@pytest.mark.parametrize(("name", "value"), BAD_HEADERS)
def test_what_is_no_header_or_is_ours_is_refused(
    server: Running, api: httpx.Client, name: str, value: str
) -> None:
    with pytest.raises(ValidationError):
        WebhookOptions.model_validate({"url": "https://a.test", "headers": {name: value}})
    for field in ("headers", "encrypted_headers"):
        body = {"name": server.name("hook"), "url": "https://a.test", field: {name: value}}
        answer(api.post("/api/destinations/http_endpoints", json=body), 422)


@pytest.mark.parametrize("pem", ["nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n", "\x00"])
def test_a_bad_certificate_is_a_sentence_for_every_connector(pem: str) -> None:
    having = {
        name: each.options_model
        for name, each in load_connectors().items()
        if "ca_certificate" in each.options_model.model_fields
    }
    assert having.keys() == {
        *("kafka", "nats", "postgres", "rabbitmq", "redis_stream", "redis_string")
    }
    for model in having.values():
        with pytest.raises(ValidationError) as refused:
            model.model_validate({"ca_certificate": pem})
        said = [each["msg"] for each in refused.value.errors() if "ca_certificate" in each["loc"]]
        assert said == [
            "Value error, must be certificates in PEM form, from -----BEGIN CERTIFICATE----- on"
        ]


@pytest.mark.parametrize("seed", ["", "SU", "SUAAA", "su" + "A" * 56, "SA" + "A" * 56])
def test_a_bad_seed_is_a_sentence(seed: str) -> None:
    with pytest.raises(ValidationError, match="NKey"):
        NatsOptions.model_validate({"host": "a.test", "nkey_seed": seed})


def test_a_line_of_text_is_one_line_whatever_is_in_it() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        configure_logs("text", "INFO", stream)
        evil = "a\n12:00:00 info    all is well\r\x1b[2J\x9b2J\u2028\u202e"
        logging.getLogger("x").info("said: %s", evil, extra={"name_": evil})
        try:
            raise ValueError(evil)
        except ValueError:
            logging.getLogger("x").exception("failed")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    first, *rest = stream.getvalue().splitlines()
    assert "said: a\\n12:00:00 info    all is well\\r\\x1b[2J\\x9b2J\\u2028\\u202e" in first
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", stream.getvalue())
    assert rest[0].endswith("failed")
    assert all(line.startswith("  ") for line in rest[1:])


def test_a_key_whose_user_is_gone_opens_nothing(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        token = server.make_token()
        with server.client(token) as api:
            answer(api.get("/api/sinks"), 200)
            engine = sa.create_engine(f"sqlite:///{tmp_path / 'refill.db'}")
            with engine.begin() as connection:
                connection.execute(sa.text("PRAGMA foreign_keys = off"))
                connection.execute(sa.text("DELETE FROM users"))
            engine.dispose()
            answer(api.get("/api/sinks"), 401)
            answer(api.get("/v1/teams/1/transfers"), 401)


def test_files_of_the_home_are_for_nobody_else(tmp_path: Path) -> None:
    """Also in a home that was there before, and open, and under a careless umask."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    before = os.umask(0)
    try:
        with running_server(home) as server, only_worker(home), server.client() as api:
            server.make_database(api)
            found = {path for path in home.rglob("*") if path.is_file()}
            assert {"refill.db", "secret.key", "worker.lock"} <= {path.name for path in found}
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in found}
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}, modes


def test_the_pinned_uv_installs_and_no_other() -> None:
    makefile = (ROOT / "Makefile").read_text()
    uses: list[Any] = re.findall(r"^UV\s*[:?]?=\s*(.*)$", makefile, re.MULTILINE)
    assert uses == ["$(BIN)/uv"]
    assert "command -v uv" not in makefile
