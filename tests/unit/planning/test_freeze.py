"""What a backfill freezes of its table."""

import pytest

from refill.domain.errors import Invalid, SourceChanged
from refill.domain.spec import DatedRead, KeyedRead
from refill.domain.table import Keyless, Table, TableKind
from refill.planning.freeze import freeze_keyed, freeze_named
from tests.specs import NO_TABLE, pg_column

COLUMNS = (
    pg_column(name="id", type="bigint", oid=20, not_null=True),
    pg_column(name="part", type="integer", oid=23, not_null=True),
    pg_column(name="doc", type="json", oid=114),
)


def make_table(keyless: Keyless = Keyless.CUT, **keys: tuple[str, ...]) -> Table:
    kind = TableKind.TABLE if keyless is Keyless.CUT else TableKind.VIEW
    return Table(
        schema_name="public", name="t", kind=kind, columns=COLUMNS, keyless=keyless, **keys
    )


def make_read(**changes: object) -> KeyedRead:
    table = Table(schema_name="public", name="t", columns=())
    return KeyedRead.model_validate({"table": table, **changes})


def test_the_primary_key_goes_before_a_unique_key() -> None:
    table = make_table(primary_key=("id", "part"), unique_key=("part",))
    frozen = freeze_keyed(make_read(), table)
    assert frozen.sort_columns == ("id", "part")
    assert frozen.columns == ("id", "part", "doc")
    assert frozen.table == table


def test_a_given_sort_column_goes_before_the_key() -> None:
    frozen = freeze_keyed(make_read(sort_columns=("part",)), make_table(primary_key=("id",)))
    assert frozen.sort_columns == ("part",)


def test_without_any_key_a_table_is_read_by_its_pages() -> None:
    assert freeze_keyed(make_read(), make_table()).sort_columns == ()


@pytest.mark.parametrize("kind", list(TableKind))
def test_what_its_source_cannot_cut_needs_a_column_to_go_by(kind: TableKind) -> None:
    view = make_table(Keyless.REFUSED).model_copy(update={"kind": kind})
    with pytest.raises(Invalid, match=rf"public\.t is a {kind.value} with no key") as caught:
        freeze_keyed(make_read(), view)
    assert list(caught.value.fields) == ["sort_column"]
    assert freeze_keyed(make_read(sort_columns=("id",)), view).sort_columns == ("id",)


def test_what_is_read_whole_needs_no_column_to_go_by() -> None:
    assert freeze_keyed(make_read(), make_table(Keyless.WHOLE)).sort_columns == ()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sort_columns": ("nope",)}, "sort_column"),
        ({"sort_columns": ("doc",)}, "sort_column"),
        ({"start_position": "x"}, "start_position"),
        ({"end_position": "1.5"}, "end_position"),
        ({"start_position": "2", "end_position": "1"}, "start_position"),
    ],
)
def test_what_does_not_fit_the_table_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        freeze_keyed(make_read(**changes), make_table(primary_key=("id",)))
    assert list(caught.value.fields) == [field]


@pytest.mark.parametrize(
    ("key", "why"), [((), "has no key"), (("id", "part"), "has a key of several columns")]
)
def test_a_start_needs_one_column_to_go_by(key: tuple[str, ...], why: str) -> None:
    with pytest.raises(Invalid, match=why) as caught:
        freeze_keyed(make_read(start_position="1"), make_table(primary_key=key))
    assert list(caught.value.fields) == ["sort_column"]


def test_only_the_source_can_tell_where_a_range_of_text_begins_and_ends() -> None:
    name = pg_column(name="name", type="text", oid=25, not_null=True)
    table = Table(schema_name="public", name="t", columns=(name,), primary_key=("name",))
    frozen = freeze_keyed(make_read(start_position="b", end_position="a"), table)
    assert (frozen.start_position, frozen.end_position) == ("b", "a")


@pytest.mark.parametrize("positions", [("5", "5"), ("5", "6"), ("-9", "+9"), ("9", "10")])
def test_a_range_of_numbers_may_be_as_short_as_one(positions: tuple[str, str]) -> None:
    start, end = positions
    read = make_read(start_position=start, end_position=end)
    freeze_keyed(read, make_table(primary_key=("id",)))


def test_both_ends_are_kept() -> None:
    table = make_table(primary_key=("id",))
    frozen = freeze_keyed(make_read(start_position="-5", end_position="+7"), table)
    assert (frozen.start_position, frozen.end_position) == ("-5", "+7")


def test_a_read_by_date_keeps_the_columns_that_were_named() -> None:
    read = DatedRead(table=NO_TABLE, columns=("part",), date_column="id")
    frozen = freeze_named(read, make_table(), read.date_column)
    assert [column.name for column in frozen.fields] == ["part"]
    every = freeze_named(read.model_copy(update={"columns": ()}), make_table(), read.date_column)
    assert [column.name for column in every.fields] == ["id", "part", "doc"]


@pytest.mark.parametrize(("columns", "needed"), [(("part",), "gone"), (("part", "gone"), "id")])
def test_a_column_that_is_not_there_any_more_is_named(
    columns: tuple[str, ...], needed: str
) -> None:
    read = DatedRead(table=NO_TABLE, columns=columns, date_column=needed)
    with pytest.raises(SourceChanged, match=r"public\.t has no column gone"):
        freeze_named(read, make_table(), read.date_column)
