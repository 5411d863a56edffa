"""The demo's own `refill serve`, in a process of its own, as a user would start it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from refill.cli.output import Stopped

READY_SECONDS = 60.0


class DemoServer:
    """An empty home every time, so that the demo is the same every time."""

    def __init__(self, root: Path, port: int) -> None:
        self.home = root / "home"
        self.files = root / "files"
        self._log = root / "server.log"
        self._stop_leftover()
        for path in (self.home, self.files):
            shutil.rmtree(path, ignore_errors=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "refill.cli", "serve", "--json"],
                env={**os.environ, **self._environment(port)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the demo, which stops this in order
            )

    def greeting(self) -> tuple[str, str]:
        """(URL, first key), once it answers."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Stopped(f"The demo's server did not start: {self._last_words()}")
        said: dict[str, Any] = json.loads(line)
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                if httpx.get(f"{said['url']}/health", trust_env=False).is_success:
                    return said["url"], said["key"]
            if self._process.poll() is not None:
                raise Stopped(f"The demo's server ended: {self._last_words()}")
            time.sleep(0.05)
        raise Stopped(f"The demo's server does not answer; its log is {self._log}.")

    def wait(self) -> None:
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _environment(self, port: int) -> dict[str, str]:
        return {
            "REFILL_HOME": str(self.home),
            "REFILL_FILES_ROOT": str(self.files),
            "REFILL_HOST": "127.0.0.1",
            "REFILL_PORT": str(port if _is_free(port) else 0),
            "REFILL_LOG_FORMAT": "text",
            "REFILL_STORE_URL": "",
        }

    def _stop_leftover(self) -> None:
        """A server that a killed demo left behind, known by the note in its home."""
        import psutil  # only here: every command would pay for it

        with suppress(OSError, ValueError, KeyError, psutil.Error):
            note = json.loads((self.home / "server.json").read_text())
            process = psutil.Process(int(note["pid"]))
            if "refill.cli" in process.cmdline():
                process.terminate()
                process.wait(30)

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("refill: ") if lines else f"see {self._log}."


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
