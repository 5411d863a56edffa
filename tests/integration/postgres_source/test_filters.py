"""A filter keeps the rows that PostgreSQL's own WHERE would keep."""

from typing import Any

import pytest

from refill.connectors.postgres.quoting import literal
from refill.domain.pipeline import Condition, Operator
from refill.domain.slice import Whole
from refill.packs.filter import Filter
from tests.integration.postgres_source.conftest import Bed

TEXTS = ["ab", "ab ", "ab   ", " ab", "AB", "abc", "ab\t", "", "  ", "ä", None]
CONDITIONS: list[tuple[str, Any]] = [
    *((operator, value) for operator in ("=", "!=") for value in ("ab", "ab  ", "", " ", "ä ")),
    *((operator, ["abc  ", " ab", ""]) for operator in ("in", "not in")),
]


@pytest.mark.parametrize("type_name", ["character(5)", "bpchar", "varchar(5)", "text"])
def test_texts_are_equal_where_postgresql_says_so(bed: Bed, type_name: str) -> None:
    bed.sql.execute(f"CREATE TABLE t (id integer PRIMARY KEY, c {type_name})")
    for number, text in enumerate(TEXTS):
        bed.sql.execute("INSERT INTO t VALUES (%s, %s)", (number, text))
    read = bed.reading("t")
    for operator, value in CONDITIONS:
        assert kept(bed, read, operator, value) == wanted(bed, operator, value), (operator, value)


def kept(bed: Bed, read: Any, operator: str, value: Any) -> list[int]:
    condition = Condition(column_name="c", operator=Operator(operator), comparison_value=value)
    keep = Filter([condition], bed.source.schema(read))
    batches = [keep.apply(batch) for batch in bed.source.read(read, Whole())]
    return sorted(number for batch in batches for number in batch.column("id").to_pylist())


def wanted(bed: Bed, operator: str, value: Any) -> list[int]:
    right = f"({', '.join(map(literal, value))})" if isinstance(value, list) else literal(value)
    rows = bed.sql.execute(f"SELECT id FROM t WHERE c {operator} {right} ORDER BY id".encode())
    return [number for (number,) in rows]
