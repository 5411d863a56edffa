"""Files of a sink and of a transfer; a disk of one megabyte, for what happens when it is full; a
folder of somebody else's."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.sinks.beds.files import ParquetSink, ParquetTransfer


@pytest.fixture
def sinks(request: pytest.FixtureRequest, tmp_path: Path) -> ParquetSink:
    return ParquetSink(request, tmp_path)


@pytest.fixture
def dates(request: pytest.FixtureRequest, tmp_path: Path) -> ParquetTransfer:
    return ParquetTransfer(request, tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder that we may not write: as root, by becoming somebody else for the test."""
    place = Path(tempfile.mkdtemp(prefix="refill-closed-"))
    (place / "files" / "1").mkdir(parents=True)
    for folder in (place / "files" / "1", place / "files", place):
        folder.chmod(0o555)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield place
    finally:
        os.seteuid(before)
        for folder in (place, place / "files", place / "files" / "1"):
            folder.chmod(0o755)
        shutil.rmtree(place)
