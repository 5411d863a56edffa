"""What arrived, counted in the files themselves and held against the source."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from refill.cli.demo.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    what: str
    source: str
    destination: str

    @property
    def equal(self) -> bool:
        return self.source == self.destination


def compare(history: History, files: Path) -> list[Line]:
    """Row counts, a sum to the cent, and every single date."""
    orders, amount = _count_orders(files / "orders" / "public.orders")
    visits = _count_visits(files / "lake" / "visits")
    wrong = [day for day, rows in history.visits_per_date.items() if visits.get(day) != rows]
    dates = len(history.visits_per_date)
    return [
        Line(what="orders, rows", source=f"{history.orders:,}", destination=f"{orders:,}"),
        Line(what="orders, sum of amount", source=history.orders_amount, destination=amount),
        Line(
            what="visits, rows",
            source=f"{history.visits:,}",
            destination=f"{sum(visits.values()):,}",
        ),
        Line(
            what="visits, dates equal",
            source=f"{dates:,}",
            destination=f"{dates - len(wrong):,}",
        ),
    ]


def _count_orders(folder: Path) -> tuple[int, str]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows, total = 0, None
    for path in sorted(folder.glob("slice-*.parquet")):
        amounts = pq.ParquetFile(path).read(columns=["amount"])["amount"]
        rows += len(amounts)
        part = pc.sum(amounts.cast(pa.decimal128(38, 2))).as_py()
        total = part if total is None else total + (part or 0)
    return rows, str(total)


def _count_visits(folder: Path) -> dict[date, int]:
    import pyarrow.parquet as pq

    return {
        date.fromisoformat(path.parent.name.removeprefix("date=")): pq.read_metadata(path).num_rows
        for path in folder.glob("date=*/data.parquet")
    }
