"""A pack's slices, without Spark."""

from datetime import date, timedelta

from refill.domain.slice import Dated, Ticket, Whole
from refill.engine.task import contiguous


def ticket(day: int | None) -> Ticket:
    extent = Whole() if day is None else Dated(date=date(2024, 1, 1) + timedelta(days=day))
    return Ticket(
        slice_id=day or 0, index=0, extent=extent, attempt=1, target="t", fence=1, nonce="n"
    )


def groups(*days: int | None) -> list[list[int]]:
    return [[part.slice_id for part in group] for group in contiguous([ticket(d) for d in days])]


def test_neighbouring_dates_belong_together_in_either_direction() -> None:
    assert groups(1, 2, 3) == [[1, 2, 3]]
    assert groups(3, 2, 1) == [[3, 2, 1]]


def test_a_gap_or_a_turn_begins_a_new_group() -> None:
    assert groups(1, 2, 4, 5) == [[1, 2], [4, 5]]
    assert groups(1, 2, 1) == [[1, 2], [1]]
    assert groups(None, 1, 2) == [[0], [1, 2]]
    assert groups() == []
