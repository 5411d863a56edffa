"""What a source says of the size and the keys of a table before anything is read."""

from refill.domain.table import Record


class Bounds(Record):
    """Estimates, and a sample of keys, sorted and made distinct by the source.

    Boundaries are text in a form that the source itself reads back; they are never compared here.
    A source may return more than this, for itself: its `cut` is given what its `bounds` returned.
    """

    rows_estimated: int = 0
    bytes_estimated: int = 0
    boundaries: tuple[tuple[str, ...], ...] = ()
    may_have_nulls: bool = False  # a part of the key may be NULL: a rest slice is needed
