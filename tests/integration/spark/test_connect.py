"""The same engine against a real Spark Connect server: settings differ, nothing else."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from refill.spark.java import find_java, prepare_java_home
from tests.servers.postgres import free_port
from tests.servers.processes import accepts
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(
        [
            *(str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *("--conf", f"spark.connect.grpc.binding.port={port}"),
            *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
            "spark-internal",
        ],
        env={
            **os.environ,
            "JAVA_HOME": str(prepare_java_home(find_java(), tmp_path / "cache")),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: process.poll() is not None or accepts(port), "an answer of Spark", 120, 0.2)
        assert process.poll() is None
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(30)


def test_both_lanes_and_cancelling_work_over_connect(connect_server: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.spark.connected", connect_server, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {
        "fused": ["done", "done", "done"],
        "sql": ["done", 5],
        "failed": "source_unavailable",
        "cancelled": True,
        "alive": True,
    }
