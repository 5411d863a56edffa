"""Names and values as SQL text: whatever is in them stays inside."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refill.connectors.postgres.quoting import (
    bind_date,
    identifier,
    literal,
    qualified,
    row,
)
from refill.domain.errors import Invalid

DAY = date(2024, 2, 29)
BOUND = "DATE '2024-02-29'"
_TEXT = st.text(st.characters(exclude_characters="\x00"))


@given(_TEXT.filter(bool))
def test_a_name_ends_only_where_it_ends(name: str) -> None:
    quoted = identifier(name)
    assert quoted[0] == quoted[-1] == '"'
    assert quoted[1:-1].replace('""', "") == name.replace('"', "")
    assert '"' not in quoted[1:-1].replace('""', "")


@given(_TEXT)
def test_a_value_ends_only_where_it_ends(value: str) -> None:
    quoted = literal(value)
    if "\\" in value:
        assert quoted[0] == "E"
        quoted = quoted[1:].replace("\\\\", "\\")
    assert quoted[0] == quoted[-1] == "'"
    assert "'" not in quoted[1:-1].replace("''", "")
    assert quoted[1:-1].replace("''", "'") == value


def test_a_nul_or_an_empty_name_is_refused() -> None:
    for name in ("", "a\x00b"):
        with pytest.raises(Invalid):
            identifier(name)
    with pytest.raises(Invalid):
        literal("a\x00b")


def test_several_parts_make_a_row_and_one_does_not() -> None:
    assert row(["a"]) == "a"
    assert row(["a", "b"]) == "(a, b)"
    assert qualified('we"ird', "select") == '"we""ird"."select"'


@pytest.mark.parametrize(
    ("query", "bound"),
    [
        ("SELECT :date", f"SELECT {BOUND}"),
        ("SELECT :date::date, x::date", f"SELECT {BOUND}::date, x::date"),
        ("SELECT ':date', \":date\", :date", f"SELECT ':date', \":date\", {BOUND}"),
        ("SELECT E'\\':date', :date", f"SELECT E'\\':date', {BOUND}"),
        ("SELECT 'it''s :date'", "SELECT 'it''s :date'"),
        (
            "SELECT $$:date$$, $x$ :date $$ $x$, :date",
            f"SELECT $$:date$$, $x$ :date $$ $x$, {BOUND}",
        ),
        ("SELECT 1 -- :date\n, :date", f"SELECT 1  \n, {BOUND}"),
        ("SELECT /* :date /* ' */ */ :date", f"SELECT   {BOUND}"),
        ("SELECT :dates, :date_x", "SELECT :dates, :date_x"),
        ("SELECT a[1:date]", f"SELECT a[1{BOUND}]"),
        ("SELECT :date ;  -- the end", f"SELECT {BOUND}"),
        ("SELECT f(a := :date)", f"SELECT f(a := {BOUND})"),
    ],
)
def test_a_bound_date_is_found_outside_strings_names_and_comments(query: str, bound: str) -> None:
    assert bind_date(query, DAY) == bound
