"""Cursors: where a page ended, in a form that callers hand back and do not read."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from refill.domain.errors import Invalid
from refill.store.records import Page

T = TypeVar("T")
Row = TypeVar("Row")


def encode(position: int) -> str:
    return base64.urlsafe_b64encode(f"1.{position}".encode()).decode().rstrip("=")


def decode(cursor: str) -> int:
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        form, _, position = raw.partition(".")
        if form != "1" or not position.isdigit() or len(position) > 18:
            raise ValueError(raw)
        return int(position)
    except (ValueError, binascii.Error):
        raise Invalid.of(
            "cursor", "is not one that this list gave: begin again without it"
        ) from None


def page_of(
    rows: Sequence[Row],
    limit: int | None,
    position: Callable[[Row], int],
    records: Callable[[Sequence[Row]], Sequence[T]],
) -> Page[T]:
    """Of up to `limit` + 1 rows: the page, and where the next begins if there is one."""
    if limit is None or len(rows) <= limit:
        return Page(items=tuple(records(rows)))
    kept = rows[:limit]
    return Page(items=tuple(records(kept)), next_cursor=encode(position(kept[-1])))
