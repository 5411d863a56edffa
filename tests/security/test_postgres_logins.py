"""What a PostgreSQL server must prove before it is told a password, and what a URL may ask for."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from refill.connectors.kit.contract import Context
from refill.connectors.kit.registry import load_connectors
from refill.connectors.postgres.options import PostgresOptions
from refill.domain.errors import Invalid, RefillError
from refill.domain.slice import KeyRange
from refill.service.databases import parse_url
from tests.integration.api.running import Running, answer
from tests.integration.postgres_sink.pipe import Pipe, find_table, job_of, open_sink
from tests.servers.certificates import Certificates, make_certificates
from tests.servers.impostor import impostor
from tests.servers.postgres import PostgresServer, running_postgres

CONTEXT = Context(team_id=1, files_root="/nowhere")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def encrypted(certificates: Certificates) -> Iterator[PostgresServer]:
    with running_postgres() as server:
        for name in ("certificate", "key"):
            path = server.data_dir / f"server.{'crt' if name == 'certificate' else 'key'}"
            shutil.copy(getattr(certificates, name), path)
            owner = server.data_dir.stat()
            os.chown(path, owner.st_uid, owner.st_gid)
            path.chmod(0o600)
        (server.data_dir / "ca.crt").write_text(certificates.authority)
        (server.data_dir / "ca.crt").chmod(0o644)
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET ssl = on")
            connection.execute("ALTER SYSTEM SET ssl_ca_file = 'ca.crt'")
            connection.execute("SELECT pg_reload_conf()")
        server.restart()
        yield server


def try_login(port: int, **more: Any) -> None:
    connector = load_connectors()["postgres"]
    fields = {"hostname": "127.0.0.1", "port": port, "database": "postgres", "username": "postgres"}
    options = connector.options_model.model_validate({**fields, "password": "secret", **more})
    assert connector.open_source is not None
    source = connector.open_source(options, CONTEXT)
    try:
        source.test()
    finally:
        source.close()


@pytest.mark.parametrize("method", ["password", "md5"])
def test_a_server_that_wants_the_password_readable_does_not_get_it(method: str) -> None:
    with running_asking(method) as server:
        with pytest.raises(RefillError, match="authentication method requirement"):
            try_login(server.port)
        with pytest.raises(RefillError, match="authentication method requirement"):
            open_sink(server.url()).test()
        try_login(server.port, weak_authentication=True)


@contextmanager
def running_asking(method: str) -> Iterator[PostgresServer]:
    with running_postgres(
        password_encryption="md5" if method == "md5" else "'scram-sha-256'"
    ) as server:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("ALTER USER postgres PASSWORD 'secret'")
        rules = server.data_dir / "pg_hba.conf"
        rules.write_text(f"host all all 127.0.0.1/32 {method}\n")
        server.restart()
        yield server


def test_an_impostor_that_asks_nicely_hears_no_password() -> None:
    with impostor("postgres", None) as server:
        with pytest.raises(RefillError):
            try_login(server.port, password="xyzzy-hush")
        assert b"xyzzy-hush" not in server.said_to_it


def test_each_mode_lets_in_whom_it_should(
    encrypted: PostgresServer, certificates: Certificates, tmp_path: Path
) -> None:
    ours, foreign = certificates.authority, make_certificates(tmp_path).authority
    port = encrypted.port
    try_login(port, sslmode="require")
    try_login(port, ssl=True)
    try_login(port, ssl=True, ca_certificate=ours)
    for mode in ("verify-ca", "verify-full"):
        try_login(port, sslmode=mode, ca_certificate=ours)
        with pytest.raises(RefillError, match=r"certificate|signature"):
            try_login(port, sslmode=mode, ca_certificate=foreign)
    with pytest.raises(RefillError, match="certificate"):
        try_login(port, sslmode="verify-full")  # no authority of the machine signed it


def test_rows_go_both_ways_under_verify_full(
    encrypted: PostgresServer, certificates: Certificates
) -> None:
    """The driver that reads and writes checks as the one that looks does."""
    url = encrypted.create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
    more = {"sslmode": "verify-full", "ca_certificate": certificates.authority}
    job = job_of(find_table(url, "t"))
    pipe = Pipe(url, encrypted.create_database())
    assert pipe.run(job, KeyRange(), **more).rows_delivered == 2


def test_a_client_certificate_is_shown(
    encrypted: PostgresServer, certificates: Certificates
) -> None:
    rules = encrypted.data_dir / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n")
    encrypted.restart()
    try:
        with pytest.raises(RefillError, match="certificate"):
            try_login(encrypted.port, sslmode="require")
        try_login(
            encrypted.port,
            sslmode="require",
            client_certificate=certificates.certificate.read_text(),
            client_key=certificates.key.read_text(),
        )
    finally:
        rules.write_text(before)
        encrypted.restart()


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({"hostname": "db.test"}, "require"),
        ({"hostname": "10.0.0.1"}, "require"),
        ({"hostname": "localhost"}, "disable"),
        ({"hostname": "127.0.0.1"}, "disable"),
        ({"hostname": "db.test", "ssl": False}, "disable"),
        ({"hostname": "localhost", "ssl": True}, "require"),
        ({"hostname": "db.test", "sslmode": "verify-full"}, "verify-full"),
    ],
)
def test_what_is_not_on_this_machine_is_encrypted(given: dict[str, Any], mode: str) -> None:
    options = PostgresOptions.model_validate({**given, "database": "d", "username": "u"})
    assert options.mode == mode
    assert options.ssl is (mode != "disable")
    assert options.shown_masked()["sslmode"] == mode


def test_an_authority_is_there_to_be_asked(certificates: Certificates) -> None:
    fields = {"hostname": "db.test", "database": "d", "username": "u"}
    options = PostgresOptions.model_validate({**fields, "ca_certificate": certificates.authority})
    assert options.mode == "verify-full"


@pytest.mark.parametrize("mode", ["disable", "require", "verify-ca", "verify-full"])
def test_what_a_url_asks_for_is_kept(mode: str) -> None:
    assert parse_url(f"postgresql://u@db.test/d?sslmode={mode}")["sslmode"] == mode


@pytest.mark.parametrize(
    "query",
    [
        "sslmode=verify_full",
        "sslmode=no-verify",
        "sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem",
        "sslcert=/x&sslkey=/y",
        "channel_binding=require",
        "require_auth=scram-sha-256",
        "ssl_min_protocol_version=TLSv1.3",
    ],
)
def test_what_a_url_asks_for_and_cannot_be_kept_is_refused(query: str) -> None:
    with pytest.raises(Invalid, match="url"):
        parse_url(f"postgresql://u@db.test/d?{query}")


def test_the_answer_says_how_well_it_is_guarded(server: Running, api: httpx.Client) -> None:
    url = "postgresql://reader:hush@db.invalid/shop"
    body = {"name": "far", "url": url, "test": False}
    made = answer(api.post("/api/postgres_databases", json=body), 201)
    assert (made["ssl"], made["sslmode"]) == (True, "require")
    path = f"/api/postgres_databases/{made['id']}"
    more = {"sslmode": "verify-full", "password": "hush"}
    changed = answer(api.patch(path, json=more), 200)
    assert (changed["ssl"], changed["sslmode"]) == (True, "verify-full")
    # a word of another time does not weaken it
    assert answer(api.patch(path, json={"ssl": False}), 200)["sslmode"] == "verify-full"


def test_no_certificate_is_a_sentence(server: Running, api: httpx.Client) -> None:
    url = "postgresql://reader:hush@db.invalid/shop"
    body = {"name": server.name("bad"), "url": url, "ca_certificate": "-----BEGIN nothing"}
    refused = answer(api.post("/api/postgres_databases", json=body), 422)
    assert "PEM" in str(refused)
