"""Pages of lists that are short enough to be read whole."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from refill.domain.errors import Invalid
from refill.store.records import Page

T = TypeVar("T")


def cut(
    items: Sequence[T], identify: Callable[[T], str], *, limit: int | None, cursor: str | None
) -> Page[T]:
    """What comes after the cursor, up to the limit; Invalid when the cursor is another list's."""
    start = 0
    if cursor is not None:
        last = _decode(cursor)
        places = {identify(item): place for place, item in enumerate(items)}
        if last not in places:
            raise Invalid.of("cursor", "is not one of this list; begin again without it")
        start = places[last] + 1
    page = tuple(items[start:] if limit is None else items[start : start + limit])
    more = start + len(page) < len(items)
    return Page(items=page, next_cursor=_encode(identify(page[-1])) if more and page else None)


def _encode(identity: str) -> str:
    return base64.urlsafe_b64encode(identity.encode()).decode()


def _decode(cursor: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(cursor.encode()).decode()
    except (binascii.Error, UnicodeError, ValueError):
        return None
