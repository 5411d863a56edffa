"""Which tables a sink covers."""

from collections.abc import Sequence

from refill.domain.errors import Invalid
from refill.domain.pipeline import Selection, Sink
from refill.domain.table import split_name


def full_name(name: str) -> str:
    return ".".join(split_name(name))


def covers(selection: Selection, table: str) -> bool:
    """Every restriction that is there must hold."""
    name = full_name(table)
    schema = split_name(name)[0]
    included = _names(selection.include_tables)
    excluded = _names(selection.exclude_tables)
    return (
        (selection.include_schemas is None or schema in selection.include_schemas)
        and (selection.exclude_schemas is None or schema not in selection.exclude_schemas)
        and (included is None or name in included)
        and (excluded is None or name not in excluded)
    )


def overlap(one: Selection, other: Selection) -> bool:
    """Whether a table may be covered by both."""
    for first, second in ((one, other), (other, one)):
        names = named_tables(first)
        if names is not None:
            return any(covers(second, name) for name in names)
    if one.include_schemas is not None and other.include_schemas is not None:
        return bool(set(one.include_schemas) & set(other.include_schemas))
    return True


def named_tables(selection: Selection) -> tuple[str, ...] | None:
    """The tables that the sink names one by one; None when it covers schemas, or everything."""
    if selection.include_tables is None:
        return None
    names = dict.fromkeys(full_name(name) for name in selection.include_tables)
    return tuple(name for name in names if covers(selection, name))


def choose_table(sink: Sink, asked: str | None) -> str:
    """The table of a backfill: the one asked for, or the only one that the sink covers."""
    if asked is not None:
        if not covers(sink.selection, asked):
            raise Invalid.of("table", f"{full_name(asked)} is not among the sink's tables")
        return full_name(asked)
    names = named_tables(sink.selection)
    if names is None or len(names) != 1:
        raise Invalid.of("table", "required: the sink covers more than one table")
    return names[0]


def _names(names: Sequence[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(full_name(name) for name in names)
