"""Which tables a sink covers."""

import pytest

from refill.domain.pipeline import Selection
from refill.domain.table import split_name
from refill.service.selection import covers, named_tables


@pytest.mark.parametrize(
    ("selection", "table", "covered"),
    [
        (Selection(), "anything.at_all", True),
        (Selection(include_schemas=("public",)), "orders", True),
        (Selection(include_schemas=("public",)), "other.orders", False),
        (Selection(exclude_schemas=("other",)), "other.orders", False),
        (Selection(include_tables=("orders",)), "public.orders", True),
        (Selection(include_tables=("public.orders",)), "orders", True),
        (Selection(include_tables=("orders",)), "lines", False),
        (Selection(exclude_tables=("orders",)), "public.orders", False),
        (Selection(include_schemas=("a",), exclude_tables=("a.t",)), "a.t", False),
        (Selection(include_schemas=("a",), exclude_tables=("a.t",)), "a.u", True),
        (Selection(include_tables=()), "orders", False),
    ],
)
def test_every_restriction_must_hold(selection: Selection, table: str, covered: bool) -> None:
    assert covers(selection, table) is covered


def test_named_tables_are_those_left_after_the_exclusions() -> None:
    selection = Selection(include_tables=("a", "public.a", "b"), exclude_tables=("b",))
    assert named_tables(selection) == ("public.a",)
    assert named_tables(Selection(include_schemas=("public",))) is None


def test_a_name_without_a_schema_is_public() -> None:
    assert split_name("orders") == ("public", "orders")
    assert split_name("a.b.c") == ("a", "b.c")
