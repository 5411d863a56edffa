"""Constants that Spark would compute while it plans, where nothing can interrupt it."""

import threading

import pytest

from refill.domain.errors import Invalid
from refill.guards.transform import check_transform
from refill.spark.analysis import Analysis, Overdue

COLUMNS = ["id", "name"]
AS = "a" * 40 + "!"


@pytest.mark.parametrize(
    "expression",
    [
        f"'{AS}' rlike '(a+)+$'",
        f"regexp_replace('{AS}', '(a+)+$', '')",
        f"case when regexp_like(concat('{AS}', ''), '(a|a)*$') then 1 end",
        "split('aaaa', '(a+)+$')",
        "length(repeat('x', 900000))",
        "length(repeat(repeat('x', 1000), 1000))",
        "length(repeat('x', 1000 * 1000 * 1000))",
        "size(sequence(1, 900000))",
        "size(sequence(1, 1000 * 1000))",
        "aggregate(sequence(1, 999), 0, (a, x) -> a + size(sequence(1, 999)))",
        "size(transform(sequence(1, 999), x -> transform(sequence(1, 999), y -> x * y)))",
        "length(rpad('x', 900000, 'y'))",
        "length(space(900000))",
        "size(array_repeat('x', 900000))",
        "length(replace(repeat('x', 9999), 'x', repeat('y', 9999)))",
        "levenshtein(repeat('x', 9999), repeat('y', 9999))",
        "repeat(name, 50000000)",
        "lpad(name, 2000000000, 'x')",
    ],
)
def test_a_costly_constant_is_refused(expression: str) -> None:
    with pytest.raises(Invalid, match=r"refused: .*(constant|each row)"):
        check_transform(f"select id, {expression} as x from source", COLUMNS, row_by_row=False)


@pytest.mark.parametrize(
    "expression",
    [
        "repeat(name, 3)",
        "repeat('-', 80)",
        "regexp_replace(name, '(a+)+$', '')",
        "name rlike '^x'",
        "lpad(cast(id as string), 12, '0')",
        "concat('https://example.org/', name, '?', repeat('x', 10))",
        "transform(sequence(1, 12), x -> x * id)",
        "split(name, ',')",
        "replace('a-b', '-', '_')",
        "case when name in ('a', 'b', 'c') then 'some words that are long enough' end",
    ],
)
def test_what_people_write_is_not(expression: str) -> None:
    check_transform(f"select id, {expression} as x from source", COLUMNS, row_by_row=False)


def test_an_analysis_that_does_not_end_is_not_waited_for() -> None:
    over = threading.Event()
    with pytest.raises(Overdue):
        Analysis(lambda: over.wait(60)).result(0.05)
    over.set()
    assert Analysis(lambda: "a schema").result(10) == "a schema"
