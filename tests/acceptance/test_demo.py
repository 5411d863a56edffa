"""The demo from end to end, as somebody sees it who has just cloned the project, only smaller."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from tests.acceptance.serving import clean_environment, run_refill

SMALL = ("--rows", "60000", "--days", "20", "--per-day", "50", "--port", "0")


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_demo_ends_with_equal_counts_and_again(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "refill.cli", "demo", "--dir", root, *SMALL, "--exit", "--json"],
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=420,
        )
        assert done.returncode == 0, done.stderr + (root / "server.log").read_text()[-3000:]
        outcome = json.loads(done.stdout)
        assert outcome["equal"] is True
        counts = {each["what"]: each["destination"] for each in outcome["counts"]}
        assert counts["orders, rows"] == "60,000"
        assert counts["visits, rows"] == "1,000"
        assert [each.get("state", each.get("status")) for each in outcome["backfills"]] == [
            "completed",
            "COMPLETED",
        ]
    env = dict(
        line.removeprefix("export ").split("=", 1)
        for line in (root / "env").read_text().splitlines()
    )
    assert env.keys() == {"REFILL_URL", "REFILL_API_KEY", "TEAM", "SINK", "TRANSFER"}
    # nothing of it is left running
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{env['REFILL_URL']}/health")
    assert not [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(root) in " ".join(process.info["cmdline"] or [])
    ]


def test_a_second_demo_in_the_same_place_is_refused(tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run_refill("demo", "--dir", str(tmp_path), "--exit")
    assert done.returncode == 1
    assert "already runs" in done.stderr


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_examples_of_the_readme_can_be_pasted_while_the_demo_is_up(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    examples = re.findall(r"```sh\n(\. \.demo/env\n.*?)```", text, re.DOTALL)
    assert len(examples) == 2
    (tmp_path / ".venv").symlink_to(sys.prefix)
    with (tmp_path / "demo.log").open("w") as log:
        demo = subprocess.Popen(
            [sys.executable, "-m", "refill.cli", "demo", *SMALL],
            cwd=tmp_path,
            env=clean_environment(PYTHONUNBUFFERED="1"),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert demo.stdout is not None
    try:
        for line in demo.stdout:
            if "It stays up" in line:
                break
        else:
            pytest.fail((tmp_path / "demo.log").read_text())
        for example in examples:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", example],
                cwd=tmp_path,
                env=clean_environment(),
                capture_output=True,
                text=True,
                timeout=200,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert '"error":{' not in done.stdout
            assert "summary" not in done.stdout
    finally:
        demo.send_signal(signal.SIGTERM)
        demo.stdout.read()
        demo.stdout.close()
        assert demo.wait(100) == 128 + signal.SIGINT
