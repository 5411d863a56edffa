"""What is left of Spark when an engine was stopped: nothing."""

import subprocess
import sys
from pathlib import Path

from tests.acceptance.serving import clean_environment

# a process of its own: the test run's has the one Spark that all other tests share
PROGRAM = """
import sys, psutil
from refill.spark.engine import SparkEngine
from refill.settings import Settings

def programs():
    return [each.name() for each in psutil.Process().children(recursive=True)]

engine = SparkEngine(Settings(home=sys.argv[1], spark_master="local[1]"), {})
engine.start()
began = programs()
engine.stop()
print("java" in began, "java" in programs())
"""


def test_a_stopped_engine_leaves_no_jvm(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True False"]
