"""Distributions of somebody else, as an installer leaves them: modules beside their metadata."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CONNECTOR = """
from refill.connectors.kit.contract import Connector, Options

def open_sink(options, context):
    raise NotImplementedError

CONNECTOR = Connector(
    type={type!r}, title="Pigeon", options_model=Options, is_sink=True, open_sink=open_sink
)
"""


def make_distribution(
    folder: Path, name: str, *, module: str, entry_points: Mapping[str, str]
) -> None:
    """A distribution with one module, named like itself; entry points are connectors' types and
    the names within the module."""
    package = name.replace("-", "_")
    (folder / f"{package}.py").write_text(module)
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{type_name} = {package}:{value}" for type_name, value in entry_points.items()]
    (about / "entry_points.txt").write_text("\n".join(["[refill.connectors]", *lines, ""]))


def install_project(project: Path, folder: Path) -> str:
    """The PYTHONPATH with a folder that pip installs the project into, offline."""
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", *offline)
    subprocess.run([*pip, "--target", str(folder), str(project)], check=True, timeout=60)
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
