"""Packs in real Spark tasks, with a source and a sink that fail on demand."""

import json
import threading
import time
from pathlib import Path

import pytest

from refill.domain.errors import EngineUnavailable
from refill.domain.pipeline import Condition, Operator
from refill.domain.slice import Outcome
from refill.spark.engine import SparkEngine
from refill.spark.lane_fused import RECEIPT_SCHEMA, PackTask
from refill.spark.session import ignore_pandas_warning
from tests.integration.spark.assignments import (
    DAY,
    key_ticket,
    make_assignment,
    make_spec,
    make_ticket,
)
from tests.sheets import SHEETS

pytestmark = pytest.mark.spark


def test_every_ticket_gets_its_receipt(spark_engine: SparkEngine, tmp_path: Path) -> None:
    receipts = spark_engine.run(make_assignment(tmp_path, [make_ticket(n) for n in range(5)]))

    assert [receipt.slice_id for receipt in receipts] == [0, 1, 2, 3, 4]
    assert {receipt.outcome for receipt in receipts} == {Outcome.DONE}
    assert {(r.rows_read, r.rows_delivered) for r in receipts} == {(10, 10)}
    staged = [json.loads(Path(str(receipt.staged)).read_text()) for receipt in receipts]
    assert [rows["rows"][0]["id"] for rows in staged] == [
        (DAY.toordinal() + n) * 1000 for n in range(5)
    ]


def test_a_failing_slice_does_not_stop_the_others(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    options = {
        "read_fails_at": (DAY.toordinal() + 1,),
        "write_fails_at": (3,),
        "breaks_at": (4,),
        "superseded_at": (5,),
    }
    tickets = [make_ticket(n) for n in range(7)]
    receipts = spark_engine.run(make_assignment(tmp_path, tickets, options=options))

    outcomes = {receipt.slice_id: receipt for receipt in receipts}
    assert [outcomes[n].outcome for n in range(7)] == [
        Outcome.DONE,
        Outcome.FAILED,
        Outcome.DONE,
        Outcome.FAILED,
        Outcome.FAILED,
        Outcome.SUPERSEDED,
        Outcome.DONE,
    ]
    faults = {n: outcomes[n].fault for n in (1, 3, 4)}
    assert faults[1] is not None
    assert (faults[1].code, faults[1].transient) == ("source_unavailable", True)
    assert faults[3] is not None
    assert (faults[3].code, faults[3].retry_after_seconds) == ("sink_unavailable", 7)
    assert faults[4] is not None
    assert faults[4].code == "unexpected"
    assert "KeyError" in faults[4].message
    assert "secret detail" not in faults[4].message


def test_a_sink_that_leaves_rows_behind_has_failed(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    order = make_assignment(tmp_path, [key_ticket(1)], options={"stops_early": True})
    (receipt,) = spark_engine.run(order)

    assert receipt.outcome is Outcome.FAILED


def test_after_its_time_a_pack_hands_the_rest_back(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    order = make_assignment(
        tmp_path,
        [make_ticket(n) for n in range(4)],
        options={"seconds": 0.3},
        seconds_budget=0.4,
    )
    outcomes = [receipt.outcome for receipt in spark_engine.run(order)]

    assert outcomes == [Outcome.DONE, Outcome.DONE, Outcome.UNSTARTED, Outcome.UNSTARTED]


def test_a_filter_makes_read_and_delivered_differ(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    condition = Condition(column_name="id", operator=Operator.GE, comparison_value=1004)
    order = make_assignment(tmp_path, [key_ticket(1)], spec=make_spec(filter=(condition,)))
    (receipt,) = spark_engine.run(order)

    assert (receipt.rows_read, receipt.rows_filtered, receipt.rows_delivered) == (10, 4, 6)


def test_rows_a_second_are_held_to_the_limit(spark_engine: SparkEngine, tmp_path: Path) -> None:
    order = make_assignment(
        tmp_path, [key_ticket(1)], options={"rows": 100}, max_rows_per_second=100
    )
    (receipt,) = spark_engine.run(order)

    assert receipt.rows_delivered == 100
    assert receipt.seconds >= 0.4


def test_a_killed_python_worker_is_told_and_the_engine_goes_on(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    with pytest.raises(EngineUnavailable):
        spark_engine.run(make_assignment(tmp_path, [key_ticket(1)], options={"kills_at": (1,)}))

    assert spark_engine.alive()
    (receipt,) = spark_engine.run(make_assignment(tmp_path, [key_ticket(2)]))
    assert receipt.outcome is Outcome.DONE


def test_a_pack_can_be_cancelled_from_another_thread(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    order = make_assignment(tmp_path, [key_ticket(1)], options={"seconds": 60})
    ended: list[BaseException] = []

    def run() -> None:
        try:
            spark_engine.run(order)
        except EngineUnavailable as exc:
            ended.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 20
    while thread.is_alive() and time.monotonic() < deadline:
        spark_engine.cancel(order.pack_id)
        thread.join(0.2)

    assert len(ended) == 1


def test_no_secret_shows_in_the_plan(spark_engine: SparkEngine, tmp_path: Path) -> None:
    ignore_pandas_warning()
    order = make_assignment(tmp_path, [key_ticket(1)], options={"password": "hunter2"})
    link = spark_engine._linked()
    frame = link.session.range(0, 1, 1, 1).mapInArrow(
        PackTask(order, SHEETS, SHEETS), RECEIPT_SCHEMA
    )
    plan = frame._jdf.queryExecution().toString()

    assert "PackTask" in plan
    assert "hunter2" not in plan
    assert "hunter2" not in repr(order)
