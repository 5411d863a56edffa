"""NATS: JetStream where a stream takes the subject, which drops repeats; else core NATS."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import Field, SecretStr, field_validator

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy
from refill.connectors.kit.contract import Connector, Context, Guarantee, Job, Options, Sink
from refill.connectors.kit.message_sink import MessageSink, Outgoing, Tally, subject_of
from refill.connectors.kit.tls import Authority, tls_context
from refill.domain.errors import SinkRefused, SinkUnavailable

if TYPE_CHECKING:
    from nats.aio.client import Client

T = TypeVar("T")
Sent = tuple[bytes, dict[str, str]]  # a message and its headers
# tokens between dots; what stands for any of them, and what ends a command, is no part of one
_SUBJECT = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")

WINDOW = 512  # messages that JetStream has not acknowledged yet
ACK_SECONDS = 20.0
CONNECT_SECONDS = 15.0
_SEED = re.compile(r"SU[A-Z2-7]{56}")
HEADER_BYTES = 512  # of the headers that go with a message


class NatsOptions(Options):
    live: ClassVar[frozenset[str]] = frozenset(
        {"host", "port", "tls", "ca_certificate", "username", "password", "jwt", "nkey_seed"}
    )
    secret_address: ClassVar[frozenset[str] | None] = frozenset(
        {"host", "port", "tls", "ca_certificate"}
    )

    host: str = Field(description="name or address of the server", min_length=1)
    port: int = Field(4222, ge=1, le=65535, description="port of the server")
    tls: bool = Field(False, description="encrypt the connection, and check the server's name")
    ca_certificate: Authority = Field(
        None, description="PEM of the authority that signed the server's certificate"
    )
    username: str | None = Field(None, description="user")
    password: SecretStr | None = Field(None, description="password")
    jwt: SecretStr | None = Field(None, description="user JWT, together with nkey_seed")
    nkey_seed: SecretStr | None = Field(None, description="seed of the user's NKey")
    jetstream: bool | None = Field(
        None,
        description=(
            "true: only where a stream takes the subject; false: core NATS; without it: "
            "JetStream if a stream takes the subject"
        ),
    )

    @field_validator("nkey_seed")
    @classmethod
    def is_seed(cls, seed: SecretStr | None) -> SecretStr | None:
        if seed is not None and not _SEED.fullmatch(seed.get_secret_value().strip()):
            raise ValueError("must be the seed of a user's NKey: SU and 56 more letters and digits")
        return seed


class NatsSink(MessageSink):
    """nats-py knows only asyncio: a loop of the sink's own runs while a call lasts."""

    def __init__(self, options: NatsOptions, network: NetworkPolicy = ANYWHERE) -> None:
        self._options = options
        self._network = network
        self._runner: asyncio.Runner | None = None
        self._client: Client | None = None
        self._streams: dict[str, bool] = {}

    def test(self) -> None:
        self._run(self._connected)

    def begin(self, job: Job) -> Tally:
        client = self._run(self._connected)
        self._run(lambda: self._takes_stream(subject_of(job)))
        return Tally(client.max_payload - HEADER_BYTES, "the server")

    def send(self, job: Job, outgoing: Outgoing) -> None:
        known_as = outgoing.idempotency_keys.to_list()
        headers = outgoing.headers() or [{}] * len(known_as)
        messages = [
            (value, more | {"Nats-Msg-Id": key})
            for value, key, more in zip(outgoing.value_bytes(), known_as, headers, strict=True)
        ]
        for subject, group in _by_subject(outgoing, subject_of(job), messages).items():
            self._run(partial(self._publish, subject, group))

    def finish(self, job: Job) -> None:
        """Core NATS acknowledges nothing; an answered ping says that the server has it all."""
        self._run(self._flush)

    async def _connected(self) -> "Client":
        if self._client is None or not self._client.is_connected:
            from refill.connectors.nats.client import GuardedClient

            options = self._options
            address = self._network.reach(options.host, options.port)
            literal = f"[{address}]" if ":" in address else address
            client = GuardedClient(needs_tls=options.tls)
            connecting = client.connect(
                f"{'tls' if options.tls else 'nats'}://{literal}:{options.port}",
                name="refill",
                # whether it is worth another try is decided above us
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0.2,
                connect_timeout=5,
                error_cb=_unheard,
                **_credentials(options),
            )
            try:
                await asyncio.wait_for(connecting, CONNECT_SECONDS)
            except BaseException:
                client.abort()
                raise
            self._client = client
        return self._client

    def _begun(self) -> "Client":
        """The connection that the slice began on: on a new one a flush would say nothing of what
        the old one had in its buffer."""
        if self._client is None or not self._client.is_connected:
            raise SinkUnavailable(
                f"NATS at {self._options.host}:{self._options.port} closed the connection; "
                "the slice is tried again."
            )
        return self._client

    async def _takes_stream(self, subject: str) -> bool:
        """Whether JetStream keeps what is sent to the subject; asked once."""
        if subject not in self._streams:
            self._streams[subject] = await self._find_stream(subject)
        return self._streams[subject]

    async def _find_stream(self, subject: str) -> bool:
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        if self._options.jetstream is False:
            return False
        client = self._begun()
        try:
            await client.jetstream(timeout=5).find_stream_name_by_subject(subject)
        except (NotFoundError, ServiceUnavailableError) as exc:
            if isinstance(exc, ServiceUnavailableError) and _has_jetstream(client):
                raise  # between two leaders: there may well be a stream
            if self._options.jetstream:
                raise SinkRefused(
                    f"No JetStream stream takes the subject {subject!r}; create one, or set "
                    "jetstream to false for core NATS."
                ) from exc
            return False
        return True

    async def _publish(self, subject: str, messages: "list[Sent]") -> None:
        client = self._begun()
        if await self._takes_stream(subject):
            stream = client.jetstream(timeout=ACK_SECONDS)
            for start in range(0, len(messages), WINDOW):
                window = messages[start : start + WINDOW]
                acks = [stream.publish(subject, value, headers=more) for value, more in window]
                await asyncio.gather(*acks)
            return
        for value, more in messages:
            await client.publish(subject, value, headers=more)

    async def _flush(self) -> None:
        await self._begun().flush(timeout=10)

    def _run(self, call: Callable[[], Awaitable[T]]) -> T:
        if self._runner is None:
            self._runner = asyncio.Runner()

        async def awaited() -> T:
            return await call()

        with self._errors_explained():
            return self._runner.run(awaited())

    @contextlib.contextmanager
    def _errors_explained(self) -> Iterator[None]:
        import nats.errors as theirs
        from nats.js.errors import APIError

        place = f"NATS at {self._options.host}:{self._options.port}"
        try:
            yield
        except theirs.AuthorizationError as exc:
            raise SinkRefused(f"{place} refused us: {exc}") from exc
        except APIError as exc:
            refused = exc.code is not None and 400 <= exc.code < 500 and exc.code != 408
            kind = SinkRefused if refused else SinkUnavailable
            raise kind(f"{place} refused a message: {exc.description}") from exc
        except theirs.MaxPayloadError as exc:
            raise SinkRefused(f"{place} takes no message of that size.") from exc
        except (theirs.Error, OSError, TimeoutError) as exc:
            if "authorization" in str(exc).lower() or "authentication" in str(exc).lower():
                raise SinkRefused(f"{place} refused us: {exc}") from exc
            said = str(exc) or type(exc).__name__
            raise SinkUnavailable(f"{place} could not be used: {said}") from exc

    def close(self) -> None:
        client, self._client = self._client, None
        self._streams.clear()
        if self._runner is not None:
            if client is not None:
                with contextlib.suppress(Exception):
                    self._runner.run(client.close())
            self._runner.close()
            self._runner = None


def _by_subject(outgoing: Outgoing, own: str, messages: "list[Sent]") -> "dict[str, list[Sent]]":
    subjects = outgoing.route("subject")
    if subjects is None:
        return {own: messages}
    found: dict[str, list[Sent]] = {}
    for subject, message in zip(subjects, messages, strict=True):
        found.setdefault(own if subject is None else subject, []).append(message)
    for subject in found:
        if not _SUBJECT.fullmatch(subject):
            raise SinkRefused(f"{subject!r} is no NATS subject; mend the sink's routing.")
    return found


def _has_jetstream(client: "Client") -> bool:
    """What the server said of itself when we connected."""
    return bool(client._server_info.get("jetstream"))


async def _unheard(exc: Exception) -> None:
    """The call that fails tells it; the library would log it besides."""


def _credentials(options: NatsOptions) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if options.username is not None:
        found["user"] = options.username
    if options.password is not None:
        found["password"] = options.password.get_secret_value()
    if options.nkey_seed is not None:
        found |= _signer(options.nkey_seed, options.jwt)
    if options.tls:
        found["tls"] = tls_context(options.ca_certificate)
        found["tls_hostname"] = options.host
    return found


def _signer(seed: SecretStr, jwt: SecretStr | None) -> dict[str, Any]:
    """The server's challenge is signed with the key: with a JWT of it, or as an NKey alone."""
    import base64

    import nkeys  # type: ignore[import-untyped]

    try:
        pair = nkeys.from_seed(seed.get_secret_value().strip().encode())
    except Exception as exc:  # of a class of its own, or whatever its decoding stumbles over
        raise SinkRefused("The nkey_seed is not the seed of an NKey: copy it again.") from exc
    if jwt is None:
        return {"nkeys_seed_str": seed.get_secret_value().strip()}
    token = jwt.get_secret_value()
    return {
        "user_jwt_cb": lambda: bytearray(token.encode()),
        "signature_cb": lambda nonce: base64.b64encode(pair.sign(nonce.encode())),
    }


def _open_sink(options: NatsOptions, context: Context) -> Sink:
    return NatsSink(options, context.network)


CONNECTOR = Connector(
    type="nats",
    title="NATS",
    options_model=NatsOptions,
    is_sink=True,
    guarantee=Guarantee.KEYED,
    guarantee_note=(
        "JetStream drops repeats of a message id within the stream's duplicate window, two "
        "minutes unless changed; core NATS is at least once"
    ),
    extra="nats",
    driver="nats",
    routes=("subject", "headers"),
    open_sink=_open_sink,
)
