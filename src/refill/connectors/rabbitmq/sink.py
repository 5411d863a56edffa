"""Delivers slices to RabbitMQ, and counts them as delivered when they are confirmed."""

import pika

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.kit.contract import Job
from refill.connectors.kit.message_sink import MessageSink, Outgoing, Tally, subject_of
from refill.connectors.kit.tls import tls_context
from refill.connectors.rabbitmq import RabbitOptions
from refill.connectors.rabbitmq.channel import ConfirmedChannel, Published
from refill.domain.errors import SinkUnavailable

# RabbitMQ refuses larger ones by closing the channel (max_message_size, since 3.8)
MESSAGE_LIMIT = 128 * 1024 * 1024


class RabbitSink(MessageSink):
    def __init__(self, options: RabbitOptions, network: NetworkPolicy = ANYWHERE) -> None:
        self._options = options
        self._network = network
        self._channel: ConfirmedChannel | None = None

    def test(self) -> None:
        self._open().check_exchange(self._options.exchange)

    def begin(self, job: Job) -> Tally:
        self._open()
        return Tally(MESSAGE_LIMIT, "RabbitMQ")

    def send(self, job: Job, outgoing: Outgoing) -> None:
        values, known_as = outgoing.value_bytes(), outgoing.idempotency_keys.to_list()
        own, subject = self._options.headers, subject_of(job)
        nowhere = [None] * len(values)
        headers = outgoing.headers()
        self._begun().publish(
            [
                Published(exchange or self._options.exchange, key or subject, value, known, more)
                for exchange, key, value, known, more in zip(
                    outgoing.route("exchange") or nowhere,
                    outgoing.route("routing_key") or nowhere,
                    values,
                    known_as,
                    [own] * len(values) if headers is None else [own | more for more in headers],
                    strict=True,
                )
            ]
        )

    def finish(self, job: Job) -> None:
        self._begun().wait_confirmed()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _begun(self) -> ConfirmedChannel:
        """The channel that the slice began on, broken or not: a new one would know nothing of what
        the old one published and nobody confirmed."""
        if self._channel is None:
            raise SinkUnavailable("The channel to RabbitMQ was closed; the slice is tried again.")
        return self._channel

    def _open(self) -> ConfirmedChannel:
        if self._channel is None or not self._channel.is_open:
            self.close()
            options = self._options
            address = self._network.reach(options.host, options.port)
            place = f"RabbitMQ at {options.host}:{options.port}"
            self._channel = ConfirmedChannel(_parameters(options, address), place)
        return self._channel


def _parameters(options: RabbitOptions, address: str) -> pika.ConnectionParameters:
    tls = None
    if options.tls:
        tls = pika.SSLOptions(tls_context(options.ca_certificate), options.host)
    return pika.ConnectionParameters(
        host=address,
        port=options.port,
        virtual_host=options.virtual_host,
        credentials=pika.PlainCredentials(options.username, options.password.get_secret_value()),
        ssl_options=tls,
        heartbeat=30,
        socket_timeout=5,
        stack_timeout=10,
        client_properties={"connection_name": "refill"},
    )
