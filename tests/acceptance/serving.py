"""`refill serve` as a user runs it, in a process of its own, to be asked, stopped and killed."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.waiting import until


def run_refill(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """One command, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "refill.cli", *arguments],
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=110,
        stdin=subprocess.DEVNULL,
    )


def clean_environment(**changed: str) -> dict[str, str]:
    """Ours, without what the developer's own refill is set to."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REFILL_")}
    return {**kept, **changed}


class Serving:
    """A home and the server on it; it can be started again and again."""

    def __init__(self, home: Path, command: str = "serve", **environment: str) -> None:
        self.home = home
        self.files = home / "files"
        self.log = home.with_suffix(".log")
        self.key: str | None = None
        self.url = ""
        self._command = command
        self._environment = clean_environment(
            REFILL_HOME=str(home), REFILL_PORT="0", REFILL_LOG_FORMAT="text", **environment
        )
        self._process: subprocess.Popen[str] | None = None
        self._http = httpx.Client(timeout=30, trust_env=False)

    def start(self) -> "Serving":
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "refill.cli", self._command, "--json"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said, self.log.read_text()[-2000:]
        greeting = json.loads(said)
        self.url = greeting["url"]
        self.key = greeting.get("key") or self.key
        until(self._answers, "an answer of the server")
        return self

    def kill(self) -> None:
        """-9 to the server, its worker and all that they started, at once."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in [server, *server.children(recursive=True)]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._process.wait()
        self._close_pipe()

    def kill_worker(self) -> None:
        worker = self.worker()
        assert worker is not None
        worker.kill()

    def worker(self) -> psutil.Process | None:
        """None while there is none; one that was killed is no worker any more."""
        assert self._process is not None
        for child in psutil.Process(self._process.pid).children():
            with suppress(psutil.Error):
                if "worker" in child.cmdline():
                    return child
        return None

    def stop(self) -> int:
        """SIGTERM; returns its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(60)
        self._close_pipe()
        return code

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        if self._process is not None:
            self._close_pipe()
        self._http.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = self._http.request(method, self.url + path, json=body, headers=headers)
        assert answer.is_success, f"{answer.status_code}: {answer.text}"
        return answer.json() if answer.content else None

    def _answers(self) -> bool:
        try:
            return self._http.get(f"{self.url}/health").is_success
        except httpx.HTTPError:
            return False

    def _close_pipe(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
