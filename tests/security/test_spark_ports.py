"""Somebody else on the machine gets nothing out of Spark's ports."""

from typing import Any

import psutil
import pytest

from refill.spark.engine import SparkEngine
from tests.security.spark_ports import gives_block, ports_of

pytestmark = pytest.mark.spark


def jvm_of(engine: SparkEngine) -> Any:
    assert engine._link is not None
    return engine._link.session.sparkContext


def test_a_stranger_is_not_given_what_tasks_are_given(spark_engine: SparkEngine) -> None:
    """A task's function is a broadcast: a team's passwords are in it."""
    context = jvm_of(spark_engine)
    secret = context.broadcast(b"hunter2")
    block = f"broadcast_{secret._jbroadcast.id()}_piece0"
    assert context.parallelize([0], 1).map(lambda _: secret.value).collect() == [b"hunter2"]
    ports = ports_of(context._gateway.proc.pid)
    assert ports
    assert [port for port in ports if gives_block(port, block)] == []


def test_spark_listens_on_this_machine_alone(spark_engine: SparkEngine) -> None:
    process = psutil.Process(jvm_of(spark_engine)._gateway.proc.pid)
    listening = [
        each.laddr.ip
        for one in (process, *process.children(recursive=True))
        for each in one.net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    ]
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_no_command_line_shows_sparks_secret(spark_engine: SparkEngine) -> None:
    process = psutil.Process(jvm_of(spark_engine)._gateway.proc.pid)
    shown = " ".join(process.cmdline())
    assert "spark.authenticate=true" in shown
    assert "spark.authenticate.secret" not in shown
