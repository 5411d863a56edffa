"""The page about new connectors is a project that works: its files are written down, installed, and
held to the contract like ours."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.distributions import install_project

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "add-a-connector.md"
# a file begins with its own name
FILE = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BED = re.compile(r'^    name = "(.+)"$', re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refill-local")
    for name, text in FILE.findall(PAGE.read_text()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_page_has_every_file_that_it_draws(project: Path) -> None:
    drawn = re.search(r"^refill-local/\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert drawn is not None
    found = [path for path in project.rglob("*") if path.is_file()]
    assert sorted(re.findall(r"[\w.]+\.(?:py|toml)", drawn[1])) == sorted(f.name for f in found)


def test_its_files_are_in_our_style(project: Path) -> None:
    ruff = (sys.executable, "-m", "ruff")
    config = ("--no-cache", "--config", str(ROOT / "pyproject.toml"), str(project))
    subprocess.run([*ruff, "check", *config], check=True)
    subprocess.run([*ruff, "format", "--check", *config], check=True)


@pytest.mark.timeout(300)
def test_its_connectors_keep_the_contract(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = install_project(project, tmp_path_factory.mktemp("site"))
    report = project / "report.xml"
    suites = ("tests/contract/sinks", "tests/contract/source")
    options = ("--beds", str(project / "beds"), "--junitxml", str(report), "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *suites, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    beds = [name for file in project.glob("beds/*.py") for name in BED.findall(file.read_text())]
    cases = [str(case.get("name")) for case in ElementTree.parse(report).iter("testcase")]
    for bed in beds:
        assert sum(case.endswith(f"[{bed}]") for case in cases) > 15, bed
    assert len(beds) == 3
