"""What a source says of the size and the keys of a table before anything is read."""

from refill.domain.table import Record


class PageRange(Record):
    """A relation that is read by ctid: the table itself, or one of its partitions."""

    relation: str
    pages: int
    rows_estimated: int


class Bounds(Record):
    """Estimates from the catalogue and a sample of keys, sorted and made distinct by the database.

    Boundaries are text in a form that the database itself reads back; they are never compared here.
    """

    rows_estimated: int = 0
    bytes_estimated: int = 0
    boundaries: tuple[tuple[str, ...], ...] = ()
    may_have_nulls: bool = False  # a part of the key may be NULL: a rest slice is needed
    pages: tuple[PageRange, ...] = ()  # for ctid reading
    rows_exact: bool = False
