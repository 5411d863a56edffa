"""Apache Kafka itself for the tests: one KRaft node, from the jars of Maven Central.

`python -m tests.servers.kafka` fetches the jars into the cache directory of the checkout.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.absent import require
from tests.servers.certificates import make_certificates
from tests.servers.postgres import free_port
from tests.servers.processes import accepts, die_with_parent

VERSION = "4.3.0"
JARS = Path(__file__).parents[2] / ".cache" / "kafka" / VERSION

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>refill</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
<version>{version}</version></dependency></dependencies></project>
"""

LOGGING = """Configuration:
  Appenders:
    Console:
      name: out
      PatternLayout: {pattern: "%d %p %c %m%n"}
  Loggers:
    Root: {level: WARN, AppenderRef: {ref: out}}
"""


def fetch_jars() -> Path:
    """The directory of the jars, filled by Maven when it is not there yet."""
    if (JARS / "complete").exists():
        return JARS
    JARS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pom.xml").write_text(POM.format(version=VERSION))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"Maven could not fetch Kafka {VERSION}: {done.stdout[-500:]}")
    (JARS / "complete").touch()
    return JARS


def find_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


@dataclass
class KafkaServer:
    """A broker that can be stopped, killed and started again on the same data."""

    folder: Path
    java: str
    port: int  # plain, no authentication
    sasl_port: int  # SASL without TLS: PLAIN and SCRAM
    tls_port: int
    authority: str  # PEM, of the TLS listener
    process: "subprocess.Popen[bytes] | None" = None
    admin: Any = None

    @property
    def hosts(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def tls_hosts(self) -> str:
        return f"127.0.0.1:{self.tls_port}"

    @property
    def sasl_hosts(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"

    def _jvm(self, heap: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.yaml'}"
        return [self.java, f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", logging, "-cp", f"{JARS}/*"]

    def format(self) -> None:
        (self.folder / "log4j2.yaml").write_text(LOGGING)
        user = "SCRAM-SHA-256=[name=scram,password=secret]"
        user512 = "SCRAM-SHA-512=[name=scram512,password=secret]"
        storage = [
            *self._jvm("128m"),
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "refill0000000000000000",
        ]
        command = [
            *storage,
            "-c",
            str(self.folder / "server.properties"),
            "-S",
            user,
            "-S",
            user512,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"Kafka's storage could not be formatted: {done.stderr[-500:]}")

    def start(self) -> None:
        log = (self.folder / "server.log").open("ab")
        command = [*self._jvm("512m"), "kafka.Kafka", str(self.folder / "server.properties")]
        self.process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent,
        )
        log.close()
        deadline = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                tail = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                self.kill()
                raise RuntimeError(f"Kafka did not start: {tail}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        if not accepts(self.port):
            return False
        # kept: clients that come and go while nobody answers them are hard on librdkafka
        if self.admin is None:
            self.admin = AdminClient({"bootstrap.servers": self.hosts, "log_level": 0})
        try:
            return bool(self.admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """While it is entered the broker keeps its connections and answers nobody."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)
        self.process = None

    def create_topic(self, partitions: int = 4, **config: str) -> str:
        """A fresh topic; returns its name."""
        from confluent_kafka.admin import NewTopic

        name = f"t-{uuid4().hex[:12]}"
        admin = self.admin
        topic = NewTopic(name, partitions, 1, config=config)
        for made in admin.create_topics([topic]).values():
            made.result(20)
        deadline = time.monotonic() + 20
        while name not in admin.list_topics(timeout=5).topics:
            assert time.monotonic() < deadline, "the topic did not appear"
        return name


SECURITY = "org.apache.kafka.common.security"
PROPERTIES = r"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:{controller},PLAINTEXT://127.0.0.1:{port},\
  SASL_PLAINTEXT://127.0.0.1:{sasl},SSL://127.0.0.1:{tls}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl},SSL://127.0.0.1:{tls}
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,\
  SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config={security}.plain.PlainLoginModule required \
  user_plain="secret";
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config={security}.scram.ScramLoginModule \
  required;
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={security}.scram.ScramLoginModule \
  required;
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
group.coordinator.append.linger.ms=0
log.cleaner.enable=false
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
# a broker that was killed may come back at once
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=250
"""


@contextmanager
def running_kafka() -> Iterator[KafkaServer]:
    """Starts a broker in a temporary directory and stops it in the end."""
    java = find_java()
    there = java is not None and ((JARS / "complete").exists() or shutil.which("mvn") is not None)
    require(there, "Kafka", "needs Java, and Maven to fetch it: apt-get install maven")
    assert java is not None
    fetch_jars()
    folder = Path(tempfile.mkdtemp(prefix="refill-kafka-"))
    certificates = make_certificates(folder)
    keystore = certificates.key.read_text() + certificates.certificate.read_text()
    (folder / "server.pem").write_text(keystore)
    ports = (free_port() for _ in range(3))
    server = KafkaServer(folder, java, *ports, authority=certificates.authority)
    (folder / "server.properties").write_text(
        PROPERTIES.format(
            controller=free_port(),
            port=server.port,
            sasl=server.sasl_port,
            folder=folder,
            security=SECURITY,
            tls=server.tls_port,
        )
    )
    try:
        server.format()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.stdout.write(f"{fetch_jars()}\n")
