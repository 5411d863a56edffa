"""The ways out: a signed request, Slack's form of one, a mail. An error is a sentence."""

import hashlib
import hmac
import smtplib
import ssl
import time
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import httpx

from refill.connectors.kit.addresses import NetworkPolicy
from refill.domain.errors import Misconfigured, SinkUnavailable
from refill.domain.notice import Event, Receiver, ReceiverType
from refill.notices.texts import event_json, mail, slack_json
from refill.settings import Settings

TIMEOUT_SECONDS = 10.0


class Senders:
    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock

    def send(self, event: Event, receiver: Receiver) -> None:
        if receiver.type is ReceiverType.EMAIL:
            self.send_mail(event, receiver.recipients)
            return
        body = slack_json(event) if receiver.type is ReceiverType.SLACK else event_json(event)
        self._post(receiver, body, event)

    def send_mail(self, event: Event, recipients: tuple[str, ...]) -> None:
        url = self._settings.smtp_url
        if url is None:
            raise Misconfigured("No mail can be sent: set REFILL_SMTP_URL.")
        parts = urlsplit(url.get_secret_value())
        tls = parts.scheme == "smtps"
        host, port = parts.hostname or "localhost", parts.port or (465 if tls else 25)
        message = mail(event, self._settings.mail_from, recipients)
        try:
            with self._opened(host, port, tls) as server:
                if not tls and server.has_extn("starttls"):
                    server.starttls(context=ssl.create_default_context())
                if parts.username:
                    server.login(unquote(parts.username), unquote(parts.password or ""))
                server.send_message(message)
        except (OSError, smtplib.SMTPException) as exc:
            raise SinkUnavailable(f"The mail server {host}:{port} did not take it: {exc}") from exc

    @staticmethod
    def _opened(host: str, port: int, tls: bool) -> smtplib.SMTP:
        if tls:
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_SECONDS, context=context)
        server = smtplib.SMTP(host, port, timeout=TIMEOUT_SECONDS)
        server.ehlo_or_helo_if_needed()
        return server

    def _post(self, receiver: Receiver, body: bytes, event: Event) -> None:
        parts = urlsplit(receiver.url or "")
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        # the name is looked up once: a second answer could lead past the check
        settings = self._settings
        network = NetworkPolicy(
            settings.allow_private_hosts, settings.allowed_networks, settings.refused_networks
        )
        pinned = network.addresses(host, port, public=True)[0]
        literal = f"[{pinned}]" if ":" in pinned else pinned
        target = parts._replace(netloc=f"{literal}:{port}", fragment="").geturl()
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "User-Agent": "refill",
            "Idempotency-Key": f"event-{event.id}",
            **self._signature(receiver.secret, body),
        }
        try:
            with httpx.Client(
                timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False
            ) as client:
                answer = client.post(
                    target, content=body, headers=headers, extensions={"sni_hostname": host}
                )
        except httpx.HTTPError as exc:
            said = str(exc) or type(exc).__name__
            raise SinkUnavailable(f"{host} could not be reached: {said}") from exc
        if not answer.is_success:
            raise SinkUnavailable(f"{host} answered {answer.status_code}.")

    def _signature(self, secret: str | None, body: bytes) -> dict[str, str]:
        """As the webhook sink signs: `t=<seconds>,v1=<hex>` over `<seconds>.<body>`."""
        if not secret:
            return {}
        seconds = str(int(self._clock()))
        signed = seconds.encode() + b"." + body
        digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        return {"Refill-Signature": f"t={seconds},v1={digest}"}
