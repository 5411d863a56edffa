"""What a backfill froze of its source against what is there now: for every source's `check`."""

from collections.abc import Callable, Sequence

from refill.domain.errors import SourceChanged
from refill.domain.spec import DatedRead, KeyedRead, QueryRead, Read
from refill.domain.table import Column


def columns_in_use(read: Read) -> tuple[Column, ...]:
    """What is read, and what the slices go by."""
    match read:
        case QueryRead():
            return read.fields
        case KeyedRead():
            beside = set(read.sort_columns)
        case DatedRead():
            beside = {read.date_column}
    used = {column.name for column in read.fields} | beside
    return tuple(column for column in read.table.columns if column.name in used)


def same_words(frozen: Column, now: Column) -> bool:
    """The source prints their types alike."""
    return frozen.type == now.type


def check_columns(
    read: Read,
    now: Sequence[Column] | None,
    same_type: Callable[[Column, Column], bool] = same_words,
) -> None:
    """SourceChanged when a column in use is gone or has another type, or, with None, all of it is
    gone. A column more is no concern."""
    if now is None:
        raise SourceChanged(
            f"The table {read.name} is gone, or may not be read any more: refresh the database's "
            "tables and start a new backfill."
        )
    live = {column.name: column for column in now}
    for column in columns_in_use(read):
        found = live.get(column.name)
        if found is None:
            raise SourceChanged(
                f"Column {column.name!r} of {read.name} is gone, or may not be read any more: "
                "refresh the database's tables and start a new backfill."
            )
        if not same_type(column, found):
            raise SourceChanged(
                f"Column {column.name!r} of {read.name} was {column.type} and is now "
                f"{found.type}: refresh the database's tables and start a new backfill."
            )
