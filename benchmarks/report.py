"""The table on the terminal, the JSON file and the chart."""

import json
import platform
import statistics
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Pass

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parent.parent / "docs" / "images"


def median_rate(passes: list[Pass]) -> float:
    return statistics.median(one.rate for one in passes)


def ratio(results: dict[str, list[Pass]], ours: str, other: str) -> float:
    return median_rate(results[ours]) / median_rate(results[other])


def median_cpu(passes: list[Pass]) -> float:
    return statistics.median(one.cpu_seconds for one in passes)


def show_rates(results: dict[str, list[Pass]], limit: str) -> None:
    """One row per contender, with its ratio to the limit of the same run."""
    table = Table(title="rows per second, median pass")
    for name in ("path", "rows/s", "of the limit", "CPU s", "passes"):
        table.add_column(name, justify="left" if name == "path" else "right")
    ceiling = median_rate(results[limit]) if limit in results else None
    for name, passes in results.items():
        rate = median_rate(passes)
        table.add_row(
            name,
            f"{rate:,.0f}",
            f"{rate / ceiling:.2f}" if ceiling else "",
            f"{median_cpu(passes):.1f}",
            " ".join(f"{one.rate / 1000:,.0f}k" for one in passes),
        )
    Console().print(table)


def show_bars(ratios: list[tuple[str, float, float, float]]) -> bool:
    """(what, ratio, must, aim); True when every must is met."""
    table = Table(title="ratios in this run")
    for name in ("what", "ratio", "must", "aim", ""):
        table.add_column(name, justify="left" if name == "what" else "right")
    for what, ratio, must, aim in ratios:
        verdict = "aim met" if ratio >= aim else "met" if ratio >= must else "MISSED"
        table.add_row(what, f"{ratio:.2f}", f"{must:g}", f"{aim:g}", verdict)
    Console().print(table)
    return all(ratio >= must for _, ratio, must, _ in ratios)


def save(name: str, results: dict[str, list[Pass]], **facts: Any) -> Path:
    RESULTS.mkdir(exist_ok=True)
    at = datetime.now(UTC)
    path = RESULTS / f"{name}-{at:%Y%m%dT%H%M%S}.json"
    document = {
        "name": name,
        "at": at.isoformat(timespec="seconds"),
        "machine": {"system": platform.platform(), "python": platform.python_version()},
        "results": {
            contender: [asdict(one) | {"rate": round(one.rate)} for one in passes]
            for contender, passes in results.items()
        },
        **facts,
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def draw_rates(results: dict[str, list[Pass]], path: Path, title: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted(results, key=lambda name: median_rate(results[name]))
    rates = [median_rate(results[name]) / 1000 for name in names]
    colours = ["#0f766e" if name.startswith("refill") else "#94a3b8" for name in names]
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(names) + 1.2))
    bars = axes.barh(names, rates, color=colours)
    axes.bar_label(bars, [f"{rate:,.0f}k" for rate in rates], padding=4, fontsize=9)
    axes.set_xlabel("thousand rows per second")
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.12)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_growth(points: list[dict[str, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [point["rows"] / 1e6 for point in points]
    figure, (cost, memory) = plt.subplots(1, 2, figsize=(9, 3.2))
    cost.plot(rows, [point["microseconds_per_row"] for point in points], "o-", color="#0f766e")
    cost.set_ylabel("µs per row")
    memory.plot(rows, [point["peak_bytes"] / 1e9 for point in points], "o-", color="#b45309")
    memory.set_ylabel("peak memory, GB (PSS of the process tree)")
    for axes in (cost, memory):
        axes.set_xlabel("million rows")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
