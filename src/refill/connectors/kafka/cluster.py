"""The cluster as we reach it: settings of its clients, its topic, its groups."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from refill.connectors.kafka import KafkaOptions
from refill.connectors.kafka.aws import signed_settings
from refill.connectors.kafka.faults import NO_TOPIC, REFUSED, error_of, translated
from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.domain.errors import RefillError, SinkRefused, SinkUnavailable

T = TypeVar("T")

log = logging.getLogger(__name__)
log.setLevel(logging.CRITICAL)

REACH_SECONDS = 10.0
NEW_TOPIC_SECONDS = 1.5
KAFKA_DEFAULT_LIMIT = 1_048_588  # max.message.bytes, where we may not ask for it

# the cluster's own housekeeping, over in a moment
_PASSING = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
    }
)


class Cluster:
    """One admin client per sink, made at its first use."""

    def __init__(self, options: KafkaOptions, network: NetworkPolicy = ANYWHERE) -> None:
        self._options = options
        self._network = network
        self._admin: AdminClient | None = None
        self._heard: list[Any] = []
        self._limit: int | None = None
        self._asked: list[Any] = []

    def settings(self, **more: Any) -> dict[str, Any]:
        """What every client of ours begins with."""
        options = self._options
        secure = options.username is not None or options.sasl_mechanism is not None
        protocol = ("SASL_" if secure else "") + ("SSL" if options.tls else "PLAINTEXT")
        settings: dict[str, Any] = {
            "bootstrap.servers": options.hosts,
            "client.id": "refill",
            "security.protocol": protocol,
            "error_cb": self._heard.append,
            # librdkafka's own lines, which else go to stderr; what matters we say as errors
            "logger": log,
            "socket.keepalive.enable": True,
            # the default of some versions only: a name that is not the certificate's is refused
            "ssl.endpoint.identification.algorithm": "https",
            "enable.ssl.certificate.verification": True,
            **more,
        }
        if options.username is not None and options.password is not None:
            settings["sasl.mechanism"] = options.sasl_mechanism or "PLAIN"
            settings["sasl.username"] = options.username
            settings["sasl.password"] = options.password.get_secret_value()
        if options.sasl_mechanism == "AWS-MSK-IAM":
            settings |= signed_settings(options)
        if options.tls and options.ca_certificate:
            settings["ssl.ca.pem"] = options.ca_certificate
        return settings

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            for host, port in self._options.addresses:
                self._network.addresses(host, port)
            self._admin = AdminClient(self.settings())
        return self._admin

    def message_limit(self) -> int:
        """The largest message that the topic takes; asks once, and finds out on the way whether
        the cluster answers and the topic is there."""
        if self._limit is None:
            self.find_topic()
            self._limit = self._ask_limit()
        return self._limit

    def find_topic(self, name: str | None = None) -> None:
        """The sink's own, or one that its routing names."""
        self._check_brokers()
        topic = name or self._options.topic
        try:
            self.ask(lambda: self.admin.describe_topics(TopicCollection([topic]))[topic])
        except SinkRefused as exc:
            if name is None:
                raise
            raise SinkRefused(
                f"The topic {name!r} of the routing is not there, or may not be used; make it, or "
                "mend the sink's routing."
            ) from exc

    def _check_brokers(self) -> None:
        """What a cluster says its brokers are is where its clients go next: those addresses are
        looked at too. Asked of the brokers that we were given, which is one connection."""
        found = self.ask(lambda: self.admin.describe_cluster(request_timeout=REACH_SECONDS))
        for node in found.nodes:
            self._network.addresses(node.host, node.port)

    def _ask_limit(self) -> int:
        resource = ConfigResource(ResourceType.TOPIC, self._options.topic)
        try:
            config = self.admin.describe_configs([resource])[resource].result(REACH_SECONDS)
            return int(config["max.message.bytes"].value)
        except (KafkaException, KeyError, TypeError, ValueError):
            # asking needs a permission of its own; the broker has the last word anyway
            return KAFKA_DEFAULT_LIMIT

    def ask(self, question: Callable[[], Any], seconds: float = REACH_SECONDS) -> Any:
        """The answer of an admin call. What passes by itself is asked again until the time is up;
        a refused password is told at once, where librdkafka would go on trying for ever."""
        self.forget()
        deadline = time.monotonic() + seconds
        return self.patiently(lambda: self._answer(question(), deadline), seconds)

    def patiently(self, call: Callable[[], T], seconds: float) -> T:
        """What the call returns, once the cluster is done with its own housekeeping."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return call()
            except KafkaException as exc:
                if not self._passes(error_of(exc), deadline - time.monotonic(), seconds):
                    raise self.explained(exc) from exc
                time.sleep(0.1)

    def _passes(self, error: Any, seconds_left: float, seconds: float) -> bool:
        if error is None or seconds_left < 0:
            return False
        # a topic that was made a moment ago is not known to every broker yet
        just_made = error.code() in NO_TOPIC and seconds - seconds_left < NEW_TOPIC_SECONDS
        return error.code() in _PASSING or just_made

    def _answer(self, future: Any, deadline: float) -> Any:
        self._asked = [asked for asked in self._asked if not asked.done()]
        self._asked.append(future)
        while not future.done():
            self.admin.poll(0.05)
            if refused := self.refusal():
                raise refused
            if time.monotonic() > deadline or (self._all_down() and not future.done()):
                raise SinkUnavailable(
                    f"Kafka at {self._options.hosts} does not answer; is it up, and reachable?"
                )
        return future.result()

    def forget(self) -> None:
        """What clients heard before says nothing of what comes now; nor does what still waits to
        be told, from a time when nobody listened."""
        if self._admin is not None:
            self._admin.poll(0)
        self._heard.clear()

    def refusal(self) -> RefillError | None:
        """What a client was told while it tried to connect, if trying again is pointless."""
        for error in self._heard:
            if error.code() in REFUSED:
                return self.translate(error)
        return None

    def _all_down(self) -> bool:
        return any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in self._heard)

    def explained(self, exc: BaseException) -> BaseException:
        """Ours for theirs; a refusal heard meanwhile tells more than the time-out it led to."""
        error = error_of(exc)
        if error is None:
            return exc
        ours = self.translate(error)
        return self.refusal() or ours if isinstance(ours, SinkUnavailable) else ours

    def translate(self, error: Any) -> RefillError:
        return translated(error, self._options.topic, self._options.hosts)

    @contextlib.contextmanager
    def errors_explained(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as exc:
            raise self.explained(exc) from exc

    def close(self) -> None:
        """A client that goes while it still owes an answer takes the process with it: it stays
        until librdkafka's own time-out has ended the call."""
        admin, self._admin = self._admin, None
        owed = [future for future in self._asked if not future.done()]
        self._asked.clear()
        if owed:
            threading.Thread(target=_outlive, args=(admin, owed), daemon=True).start()
        self._limit = None
        self._heard.clear()


def _outlive(admin: AdminClient, futures: list[Any]) -> None:
    wait(futures, 120)
    del admin
