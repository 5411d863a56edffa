"""What a backfill freezes of its table."""

import pytest

from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Kind, Operator, Spec
from refill.domain.table import Column, Table
from refill.planning.freeze import freeze_table

COLUMNS = (
    Column(name="id", type="bigint", oid=20, not_null=True),
    Column(name="part", type="integer", oid=23, not_null=True),
    Column(name="doc", type="json", oid=114),
)


def make_table(kind: str = "r", **keys: tuple[str, ...]) -> Table:
    return Table(schema_name="public", name="t", kind=kind, columns=COLUMNS, **keys)


def make_spec(**changes: object) -> Spec:
    fields: dict[str, object] = {
        "kind": Kind.SINK,
        "database_id": "d",
        "database_type": "postgres",
        "database_name": "d",
        "table": Table(schema_name="public", name="t", columns=()),
        "sink_type": "files",
        "sink_options": {},
        **changes,
    }
    return Spec.model_validate(fields)


def test_the_primary_key_goes_before_a_unique_key() -> None:
    table = make_table(primary_key=("id", "part"), unique_key=("part",))
    frozen = freeze_table(make_spec(), table)
    assert frozen.sort_columns == ("id", "part")
    assert frozen.columns == ("id", "part", "doc")
    assert frozen.table == table


def test_a_given_sort_column_goes_before_the_key() -> None:
    frozen = freeze_table(make_spec(sort_columns=("part",)), make_table(primary_key=("id",)))
    assert frozen.sort_columns == ("part",)


def test_without_any_key_a_table_is_read_by_its_pages() -> None:
    assert freeze_table(make_spec(), make_table()).sort_columns == ()


@pytest.mark.parametrize("kind", ["v", "m", "f"])
def test_what_has_no_pages_needs_a_column_to_go_by(kind: str) -> None:
    with pytest.raises(Invalid) as caught:
        freeze_table(make_spec(), make_table(kind))
    assert list(caught.value.fields) == ["sort_column"]
    assert freeze_table(make_spec(sort_columns=("id",)), make_table(kind)).sort_columns == ("id",)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sort_columns": ("nope",)}, "sort_column"),
        ({"sort_columns": ("doc",)}, "sort_column"),
        ({"start_position": "x"}, "start_position"),
        ({"end_position": "1.5"}, "end_position"),
        ({"start_position": "2", "end_position": "1"}, "start_position"),
        ({"filter": (Condition(column_name="x", operator=Operator.IS_NULL),)}, "filter"),
    ],
)
def test_what_does_not_fit_the_table_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        freeze_table(make_spec(**changes), make_table(primary_key=("id",)))
    assert list(caught.value.fields) == [field]


def test_a_start_needs_one_column_to_go_by() -> None:
    for table in (make_table(), make_table(primary_key=("id", "part"))):
        with pytest.raises(Invalid, match="sort_column"):
            freeze_table(make_spec(start_position="1"), table)


def test_both_ends_are_kept() -> None:
    table = make_table(primary_key=("id",))
    frozen = freeze_table(make_spec(start_position="-5", end_position="+7"), table)
    assert (frozen.start_position, frozen.end_position) == ("-5", "+7")
