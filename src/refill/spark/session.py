"""The Spark session: built from settings, Classic or Connect, with the differences in one place."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from refill.domain.errors import EngineUnavailable
from refill.settings import Settings
from refill.spark.java import find_java, prepare_java_home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

# Spark itself prints only what is an error; its own progress bar and banners stay away
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSX} %p %c: %m%n%notEmpty{%xEx{10}}
logger.pipe.name = org.apache.spark.executor.Executor
logger.pipe.level = off
logger.sets.name = org.apache.spark.scheduler.TaskSetManager
logger.sets.level = off
logger.launcher.name = org.apache.spark.util.Utils
logger.launcher.level = error
"""

_PYTHON_SHARE = 0.6
JVM_END_SECONDS = 20.0  # it removes its scratch files on its way out

# a Connect server that is away, or came back without our session
_SESSION_LOST = re.compile(r"SESSION_(NOT_FOUND|CHANGED|CLOSED)|UNAVAILABLE|RETRIES_EXCEEDED")


class SparkLink(Protocol):
    """What the lanes need of Spark, the same over Classic and Connect."""

    session: "SparkSession"

    def new_session(self) -> "SparkSession":
        """A session of its own views, for one job of the SQL lane."""

    def tagged(self, session: "SparkSession", tag: str) -> Any:
        """A context in which this thread's jobs carry the tag."""

    def cancel_tag(self, tag: str) -> None: ...
    def observed(self, frame: "DataFrame", observation: "Observation") -> Mapping[str, Any]:
        """What an observation beneath a view has seen, once the frame over it was collected."""

    def progress(self, tag: str) -> int | None:
        """What the jobs of the tag have moved inside the JVM so far; None: nobody can tell."""

    def note(self, exc: Exception) -> None:
        """Looks at a job's error: does it say that this session is gone for good?"""

    def alive(self) -> bool: ...
    def cores(self) -> int: ...
    def stop(self) -> None: ...


class ClassicLink:
    """A JVM of our own beside this process, reached through py4j."""

    def __init__(self, session: "SparkSession") -> None:
        self.session = session

    def new_session(self) -> "SparkSession":
        return self.session.newSession()

    @contextmanager
    def tagged(self, session: "SparkSession", tag: str) -> Iterator[None]:
        context = session.sparkContext
        context.addJobTag(tag)
        try:
            yield
        finally:
            if self.alive():
                context.removeJobTag(tag)

    def cancel_tag(self, tag: str) -> None:
        # interruptTag of the session only reaches jobs of the calling thread on Classic
        self.session.sparkContext.cancelJobsWithTag(tag)

    def observed(self, frame: "DataFrame", observation: "Observation") -> Mapping[str, Any]:
        return observation.get

    def progress(self, tag: str) -> int | None:
        scala: Any = self.session.sparkContext._jsc.sc()
        tracker, store = scala.statusTracker(), scala.statusStore()
        moved = 0
        for job in tracker.getJobIdsForTag(tag):
            moved += 1
            for stage in store.job(job).stageIds().mkString(",").split(","):
                moved += _moved(store, int(stage)) if stage else 0
        return moved

    def note(self, exc: Exception) -> None:
        """The JVM is our child: `alive` asks the process itself."""

    def alive(self) -> bool:
        gateway: Any = self.session.sparkContext._gateway
        process = getattr(gateway, "proc", None)
        return gateway is not None and (process is None or process.poll() is None)

    def cores(self) -> int:
        return int(self.session.sparkContext.defaultParallelism)

    def stop(self) -> None:
        """Ends the JVM too. It would follow us by itself, some seconds later: whoever waits for
        this process may rely on nothing of it being left."""
        from pyspark import SparkContext

        gateway: Any = self.session.sparkContext._gateway
        self.session.stop()
        process = getattr(gateway, "proc", None)
        if process is None:
            return
        gateway.shutdown()
        # PySpark keeps one for the life of the process; the next session needs a new one
        SparkContext._gateway = None
        SparkContext._jvm = None
        process.stdin.close()  # the sign that it waits for
        try:
            process.wait(JVM_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _moved(store: Any, stage: int) -> int:
    """Rows that went through a stage, as the executors' heartbeats tell; 0: it has not begun."""
    try:
        data = store.lastStageAttempt(stage)
    except Exception:  # py4j's own form of the JVM's "no such element"
        return 0
    return int(
        data.shuffleReadRecords() + data.shuffleWriteRecords() + 1_000 * data.numCompleteTasks()
    )


class ConnectLink:
    """A Spark Connect server somewhere else."""

    def __init__(self, session: "SparkSession") -> None:
        self.session = session
        # a tag is known only to the session whose jobs carry it
        self._tagged: dict[str, SparkSession] = {}
        self._lost = False

    def new_session(self) -> "SparkSession":
        session = self.session.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        return session

    @contextmanager
    def tagged(self, session: "SparkSession", tag: str) -> Iterator[None]:
        session.addTag(tag)
        self._tagged[tag] = session
        try:
            yield
        finally:
            self._tagged.pop(tag, None)
            session.removeTag(tag)

    def cancel_tag(self, tag: str) -> None:
        self._tagged.get(tag, self.session).interruptTag(tag)

    def observed(self, frame: "DataFrame", observation: "Observation") -> Mapping[str, Any]:
        # the client does not see through a view, so that the observation itself hears nothing
        info: Any = frame.executionInfo
        for name, values in info.flows if info is not None else ():
            if name == observation._name:
                return dict(values)
        return {}

    def progress(self, tag: str) -> int | None:
        return None  # the server keeps it to itself

    def note(self, exc: Exception) -> None:
        if _SESSION_LOST.search(str(exc)):
            self._lost = True

    def alive(self) -> bool:
        return not self._lost and not getattr(self.session, "is_stopped", False)

    def cores(self) -> int:
        known = self.session.conf.get("spark.default.parallelism", None)
        return int(known) if known else 2

    def stop(self) -> None:
        self.session.stop()


def open_link(settings: Settings) -> SparkLink:
    """Brings Spark up. Misconfigured without a Java; EngineUnavailable when it does not answer."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    ignore_pandas_warning()
    if settings.spark_remote:
        return _connect(settings.spark_remote)
    _prepare_environment(settings)
    return _launch(settings)


def ignore_pandas_warning() -> None:
    """PySpark warns of pandas 3 wherever a function takes Arrow data; no pandas is handed over."""
    warnings.filterwarnings(
        "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
    )


def _connect(remote: str) -> SparkLink:
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.remote(remote).appName("refill").create()
        session.conf.set("spark.sql.session.timeZone", "UTC")
    except Exception as exc:
        raise EngineUnavailable(
            f"Spark Connect at {_without_token(remote)} does not answer; "
            "see whether the server runs and REFILL_SPARK_REMOTE names it."
        ) from exc
    return ConnectLink(session)


def _launch(settings: Settings) -> SparkLink:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("refill").master(settings.spark_master)
    for name, value in _configuration(settings).items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as exc:
        raise EngineUnavailable(
            f"Spark did not start with master {settings.spark_master}: {_first_line(exc)}"
        ) from exc
    return ClassicLink(session)


def _configuration(settings: Settings) -> dict[str, str]:
    """Hints for speed and quiet. Nothing here may be needed for correctness: on a cluster the
    operator's own configuration may win."""
    hints = {
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.eventLog.enabled": "false",
        # a worker runs for months: what it keeps of past jobs must not grow
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.python.worker.reuse": "true",
        "spark.speculation": "false",
        "spark.task.reaper.enabled": "true",
        "spark.task.reaper.killTimeout": "-1",
        # a second run of a task does nothing but say so: see task.py
        "spark.task.maxFailures": "1",
        "spark.stage.maxConsecutiveAttempts": "1",
        "spark.python.task.killTimeout": "200ms",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.sql.ansi.enabled": "true",
    }
    if (memory := settings.python_memory or _share_of_memory(settings)) is not None:
        # one that needs more gets a MemoryError, and not the machine its last page
        hints["spark.executor.pyspark.memory"] = memory
    if settings.spark_master.startswith("local"):
        scratch = settings.home_path / "cache" / "spark"
        scratch.mkdir(parents=True, exist_ok=True)
        hints |= {
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Whoever else is on this machine may connect to the ports: what is not of this very
            # JVM gets nothing. It draws the secret itself, so that no command line shows it
            "spark.authenticate": "true",
            "spark.network.crypto.enabled": "true",
            "spark.io.encryption.enabled": "true",
        }
    return hints


def _share_of_memory(settings: Settings) -> str | None:
    """On one machine, what its other inhabitants can spare; a cluster's operator knows better."""
    import psutil

    if not settings.spark_master.startswith("local"):
        return None
    return f"{int(psutil.virtual_memory().total * _PYTHON_SHARE) // 2**20}m"


def _prepare_environment(settings: Settings) -> None:
    cache = settings.home_path / "cache"
    java_home = prepare_java_home(find_java(), cache)
    os.environ["JAVA_HOME"] = str(java_home)
    if settings.spark_master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "SPARK_CONF_DIR" not in os.environ:
        os.environ["SPARK_CONF_DIR"] = str(_write_log4j(cache / "spark-conf"))


def _write_log4j(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "log4j2.properties").write_text(_LOG4J)
    return directory


def _first_line(exc: Exception) -> str:
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0][:300]


def _without_token(remote: str) -> str:
    """`sc://host:port/;token=…` may carry a secret behind the address."""
    return remote.split(";", 1)[0]
