"""What a test does when a server that it needs is not on this machine."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_ABSENCE = " is not here: "


def require(found: bool, server: str, how: str) -> None:
    """Skips with the reason; fails on CI, where a missing server would hide a broken sink.
    Outside a test: RuntimeError."""
    if found:
        return
    reason = f"{server}{_ABSENCE}{how}"
    if "PYTEST_VERSION" not in os.environ:  # the benchmarks start servers too, without pytest
        raise RuntimeError(reason)
    import pytest

    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter") -> None:
    """Names the servers whose tests were skipped, and how to get them."""
    missed: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        reason = reason.removeprefix("Skipped: ")
        if _ABSENCE in reason:
            missed[reason] = missed.get(reason, 0) + 1
    if missed:
        terminalreporter.section("servers that are not here", sep="-")
        for reason, tests in sorted(missed.items()):
            terminalreporter.line(f"{reason} ({tests} skipped)")
