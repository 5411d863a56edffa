"""One request to one pinned address: signed, keyed, tried again where the receiver says so."""

import hashlib
import hmac
import socket
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

import httpx

from refill.connectors.kit.addresses import NetworkPolicy
from refill.connectors.kit.pulse import PULSE
from refill.connectors.webhook import WebhookOptions
from refill.connectors.webhook.haste import Haste
from refill.connectors.webhook.route import Route
from refill.domain.endpoint import CONTENT_TYPE
from refill.domain.errors import SinkRefused, SinkUnavailable

# of the 4xx, those that another try may change
PASSING = frozenset({408, 409, 425, 429})
TRIES = 3
# a receiver that asks for more patience than this gets it from the worker, not from a task
PATIENCE_SECONDS = 10.0
ENDPOINT = Route()  # the endpoint itself
ANSWER_BYTES = 4096  # of a body, which is only ever quoted from


class Answer:
    """What is looked at of an answer: its status, a header, its first words."""

    def __init__(self, response: httpx.Response, text: str) -> None:
        self.status_code = response.status_code
        self.is_success = response.is_success
        self.is_redirect = response.is_redirect
        self.headers = response.headers
        self.text = text


def _below(base: SplitResult, path: str) -> SplitResult:
    """The base with the path added to its own, whatever query it has."""
    added, _, query = path.lstrip("/").partition("?")
    if not added and not query:
        return base
    return base._replace(
        path=f"{base.path.rstrip('/')}/{added}",
        query="&".join(part for part in (base.query, query) if part),
    )


class Receiver:
    """Resolves the endpoint's name once; every request goes to that address, whatever the name
    says later. Redirects are not followed: they would lead past the check."""

    def __init__(
        self,
        options: WebhookOptions,
        network: NetworkPolicy,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if options.url is None:
            raise SinkRefused("The webhook has no URL; name an HTTP endpoint that exists.")
        parts = _below(urlsplit(options.url), options.http_endpoint_path or "")
        self.url = parts.geturl()
        host = parts.hostname or ""
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as exc:
            raise SinkRefused("The webhook's URL has no valid port.") from exc
        pinned = network.addresses(host, port, public=True)[0]
        self._address = (pinned, port)
        literal = f"[{pinned}]" if ":" in pinned else pinned
        self._target = parts._replace(netloc=f"{literal}:{port}", fragment="")
        self._place = f"The webhook {parts.scheme}://{parts.netloc}{parts.path}"
        self._headers = {
            **{name: value.get_secret_value() for name, value in options.headers.items()},
            "Host": parts.netloc,
            "Content-Type": CONTENT_TYPE,
            "User-Agent": "refill",
        }
        self._host = host
        self._secret = options.signing_secret
        self._clock = clock
        self._sleep = sleep
        self._timeout_seconds = options.timeout_seconds
        self._haste = Haste()
        self._client = httpx.Client(
            transport=self._haste.transport(options.concurrency),
            timeout=httpx.Timeout(options.timeout_seconds, connect=5.0),
            follow_redirects=False,
            trust_env=False,
        )

    def reach(self) -> None:
        """That somebody listens there; a request, even an empty one, could already mean
        something."""
        try:
            socket.create_connection(self._address, 5).close()
        except OSError as exc:
            raise SinkUnavailable(f"{self._place} could not be reached: {exc}") from exc

    def post(self, body: bytes, idempotency_key: str, route: Route = ENDPOINT) -> None:
        """Returns when the receiver took it. A request that timed out may have been taken: the
        same body goes out again under the same key."""
        method, target, more = route.verb(), route.target(self._target), route.more_headers()
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                answer = self._send(method, target, body, idempotency_key, more)
            except httpx.TransportError as exc:
                if last:
                    said = str(exc) or type(exc).__name__
                    raise SinkUnavailable(f"{self._place} could not be reached: {said}") from exc
                self._sleep(0.5 * 2**attempt)
                continue
            if answer.is_success:
                return
            wait = self._judge(answer)
            if last or (wait or 0) > PATIENCE_SECONDS:
                raise SinkUnavailable(
                    f"{self._place} answered {answer.status_code}; it is asked again later.",
                    retry_after_seconds=wait,
                )
            self._sleep(0.5 * 2**attempt if wait is None else wait)

    def _send(
        self,
        method: str,
        target: str,
        body: bytes,
        idempotency_key: str,
        more: Mapping[str, str],
    ) -> "Answer":
        """The whole of it within the time that one answer may take, however slowly it drips."""
        headers = {
            **self._headers,
            **more,
            "Idempotency-Key": idempotency_key,
            "Accept-Encoding": "identity",
            **self._signature(body),
        }
        self._haste.begin(self._timeout_seconds)
        extensions = {"sni_hostname": self._host}
        with self._client.stream(
            method, target, content=body, headers=headers, extensions=extensions
        ) as response:
            said = b""
            # as it came: what unpacks to gigabytes is not unpacked
            for part in response.iter_raw():
                said += part[: ANSWER_BYTES - len(said)]
                if len(said) >= ANSWER_BYTES:
                    break
            PULSE.beat()
            return Answer(response, said.decode(errors="replace"))

    def _judge(self, answer: "Answer") -> float | None:
        """How long to wait before another try, or SinkRefused where there is no use in one."""
        status = answer.status_code
        if answer.is_redirect:
            raise SinkRefused(
                f"{self._place} answered {status} and wants us elsewhere; redirects are not "
                "followed: give the endpoint's final URL."
            )
        if status < 500 and status not in PASSING:
            said = " ".join(answer.text[:200].split())
            raise SinkRefused(f"{self._place} answered {status}: {said or 'nothing'}")
        return self._retry_after(answer.headers.get("Retry-After"))

    def _retry_after(self, text: str | None) -> float | None:
        """Seconds, or a date; what is neither is no wish."""
        if text is None:
            return None
        if text.strip().isdigit():
            return float(text)
        try:
            when = parsedate_to_datetime(text)
        except ValueError:
            return None
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return max(0.0, (aware - datetime.fromtimestamp(self._clock(), UTC)).total_seconds())

    def _signature(self, body: bytes) -> dict[str, str]:
        """`t=<seconds>,v1=<hex>` over `<seconds>.<body>`, so that an old request cannot be sent
        again by somebody else."""
        if self._secret is None:
            return {}
        seconds = str(int(self._clock()))
        key = self._secret.get_secret_value().encode()
        digest = hmac.new(key, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {"Refill-Signature": f"t={seconds},v1={digest}"}

    def close(self) -> None:
        self._client.close()
