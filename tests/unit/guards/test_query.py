"""The guard over a transfer's query."""

import pytest

from refill.domain.errors import Invalid
from refill.guards.query import check_dated_query


@pytest.mark.parametrize(
    "sql",
    [
        "select * from orders where day = :date",
        "select a::date from t where at >= :date and at < :date + interval '1 day'",
        "with x as (select * from t where d = :date) select * from x",
        "select 1 as a where :date is not null union all select 2",
        "select * from f(:date) as rows",
        "select ';' as text from t where d = :date ;",
        "(select 1 where :date > '2020-01-01')",
        "select delete, update from t where d = :date -- a comment",
    ],
)
def test_one_select_with_a_date_is_accepted(sql: str) -> None:
    assert not check_dated_query(sql, "postgres").endswith(";")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("", "empty"),
        (" ; ", "empty"),
        ("select 1", "no :date"),
        ("select ':date'", "no :date"),
        ("select 1 /* :date */", "no :date"),
        ("select 1 where :date is null; drop table t", "exactly one statement"),
        ("delete from t where d = :date", "not a SELECT"),
        ("insert into t select :date", "not a SELECT"),
        ("with x as (delete from t returning *) select * from x where d = :date", "DELETE"),
        ("with x as (insert into t values (1) returning *) select :date from x", "INSERT"),
        ("with x as (update t set a = 1 returning *) select :date from x", "UPDATE"),
        ("select * into u from t where d = :date", "SELECT INTO"),
        ("select * from t where d = :date for update", "FOR UPDATE"),
        ("explain select :date", "not a SELECT"),
        ("call f(:date)", "not a SELECT"),
        ("copy t to stdout", "not a SELECT"),
        ("vacuum", "not a SELECT"),
        ("select * from t where d = :date and a = :other", "not :other"),
        ("select * from t where d = $1", "instead of \\$1"),
        ("select from where", "not valid SQL|no :date"),
        ("selec * from t where d = :date", "not valid SQL|not a SELECT"),
    ],
)
def test_anything_else_is_refused_with_the_reason(sql: str, words: str) -> None:
    with pytest.raises(Invalid, match=words) as refused:
        check_dated_query(sql, "postgres")
    assert set(refused.value.fields) == {"query"}
