"""Spark SQL between source and sink."""

import json
from pathlib import Path
from typing import Any

import pytest

from refill.connectors.kit.contract import Context
from refill.domain.errors import TransformFailed
from refill.domain.pipeline import Condition, Kind, Operator
from refill.domain.slice import Outcome, Receipt
from refill.domain.spec import Spec
from refill.spark import lane_sql
from refill.spark.engine import SparkEngine
from tests.integration.spark.assignments import (
    DAY,
    key_ticket,
    make_assignment,
    make_spec,
    make_ticket,
)
from tests.sheets import NOTES

pytestmark = pytest.mark.spark


def staged(receipt: Receipt) -> Any:
    return json.loads(Path(str(receipt.staged)).read_text())


def test_the_sql_runs_over_each_slice(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spec = make_spec(transform="select id, upper(name) as name from source where id % 2 = 0")
    tickets = [make_ticket(0), make_ticket(1)]
    receipts = spark_engine.run(make_assignment(tmp_path, tickets, spec=spec, seconds_budget=60))

    assert [(r.rows_read, r.rows_filtered, r.rows_delivered) for r in receipts] == [(10, 5, 5)] * 2
    first = staged(receipts[0])
    assert first["rows"][0]["name"] == f"ROW {DAY.toordinal() * 1000}"
    assert staged(receipts[1])["rows"][0]["id"] == (DAY.toordinal() + 1) * 1000


def test_what_passes_through_keeps_what_is_known_of_it(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    spec = make_spec(transform="select id, doc as body, upper(doc) as doc, day from source")
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [key_ticket(800000)], spec=spec))

    schema = staged(receipt)["schema"]
    assert schema["id"] == {**NOTES["id"].texts(), "type": "int64"}
    assert schema["body"] == {**NOTES["doc"].texts(), "type": "string"}
    # computed: text by its Arrow type, and nobody's type
    assert schema["doc"] == {"form": "plain", "family": "text", "type": "string"}
    assert schema["day"] == {**NOTES["day"].texts(), "type": "date32[day]"}


def test_a_date_can_be_aggregated(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spec = make_spec(
        transform="select day, count(*) as rows, sum(id) as total from source group by day"
    )
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [make_ticket(3)], spec=spec))

    assert (receipt.rows_read, receipt.rows_delivered) == (10, 1)
    assert staged(receipt)["rows"][0]["rows"] == 10


def test_rows_that_the_sql_drops_all_are_read_all_the_same(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    spec = make_spec(transform="select id from source where id < 0")
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [make_ticket(3)], spec=spec))

    assert receipt.outcome is Outcome.DONE
    assert (receipt.rows_read, receipt.rows_filtered, receipt.rows_delivered) == (10, 10, 0)


def test_sql_that_needs_no_row_ends(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spec = make_spec(transform="select id from source where false")
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [make_ticket(3)], spec=spec))

    assert (receipt.outcome, receipt.rows_delivered) == (Outcome.DONE, 0)


def test_the_filter_comes_before_the_sql(spark_engine: SparkEngine, tmp_path: Path) -> None:
    condition = Condition(column_name="id", operator=Operator.GE, comparison_value=1004)
    spec = make_spec(transform="select count(*) as rows from source", filter=(condition,))
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [key_ticket(1)], spec=spec))

    assert staged(receipt)["rows"] == [{"rows": 6}]
    assert receipt.rows_read == 10


def test_a_read_that_fails_keeps_its_reason(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spec = make_spec(transform="select id from source")
    order = make_assignment(
        tmp_path,
        [key_ticket(1), key_ticket(2)],
        spec=spec,
        options={"read_fails_at": (1,)},
        seconds_budget=60,
    )
    first, second = spark_engine.run(order)

    assert first.outcome is Outcome.FAILED
    assert first.fault is not None
    assert (first.fault.code, first.fault.message) == (
        "source_unavailable",
        "The source went away.",
    )
    assert second.outcome is Outcome.DONE
    assert not list(tmp_path.glob("_1.*"))


def test_a_write_that_fails_keeps_its_reason(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spec = make_spec(transform="select id from source")
    order = make_assignment(tmp_path, [key_ticket(1)], spec=spec, options={"write_fails_at": (1,)})
    (receipt,) = spark_engine.run(order)

    assert receipt.fault is not None
    assert receipt.fault.retry_after_seconds == 7
    assert (receipt.rows_read, receipt.rows_filtered) == (0, 0)


def test_data_that_breaks_the_sql_fails_for_good(spark_engine: SparkEngine, tmp_path: Path) -> None:
    spec = make_spec(transform="select cast(name as int) as n from source")
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [key_ticket(1)], spec=spec))

    assert receipt.fault is not None
    assert (receipt.fault.code, receipt.fault.transient) == ("transform_failed", False)
    assert "row 1000" in receipt.fault.message
    assert "SQLSTATE" not in receipt.fault.message


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select id + name as x from source where name like 3 = day", "DATATYPE|type"),
        ("select * from text.`/etc/passwd`", "not allowed"),
        ("select interval 1 day as i from source", "cast it to string"),
    ],
)
def test_sql_that_cannot_run_is_told_at_planning(
    spark_engine: SparkEngine, tmp_path: Path, sql: str, words: str
) -> None:
    with pytest.raises(TransformFailed, match=words):
        check(spark_engine, tmp_path, make_spec(transform=sql))


def test_a_command_that_got_past_the_guard_is_refused_by_its_plan(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_sql, "guard", lambda spec: None)
    proof = tmp_path / "proof"
    sql = (
        f"with s as (select id, name as `touch {proof}` from source) "
        f"from s left semi join s map (id) using 'touch {proof}'"
    )
    with pytest.raises(TransformFailed, match="would run a command"):
        check(spark_engine, tmp_path, make_spec(transform=sql))
    assert not proof.exists()


def test_planning_tells_the_schema_that_is_delivered(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    schema = check(
        spark_engine,
        tmp_path,
        make_spec(kind=Kind.SINK, transform="select id, length(name) as n from source"),
    )

    assert schema.names == ["id", "n"]
    assert schema.field("id").metadata[b"pg_type"] == b"bigint"


def check(engine: SparkEngine, path: Path, spec: Spec) -> Any:
    return engine.check_transform(
        spec, {"path": str(path)}, Context(team_id=1, files_root=str(path))
    )
