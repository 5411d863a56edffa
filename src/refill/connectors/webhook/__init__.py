"""Webhooks: messages by HTTP POST, each request with a key by which the receiver knows a repeat."""

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from refill.connectors.kit.contract import (
    Connector,
    Context,
    Guarantee,
    Options,
    Reference,
    Sink,
)
from refill.domain.endpoint import (
    object_to_header,
    object_to_path,
    origin_of,
    says_our_content_type,
)
from refill.domain.pipeline import HttpEndpoint
from refill.domain.stored import Stored

BATCH_SIZE = 100


class WebhookOptions(Options):
    live: ClassVar[frozenset[str]] = frozenset(
        {"url", "headers", "signing_secret", "timeout_seconds", "concurrency"}
    )

    http_endpoint: str | None = Field(
        None, description="name or id of the HTTP endpoint that the requests go to"
    )
    http_endpoint_path: str | None = Field(
        None, description="path that is added to the endpoint's URL", max_length=2000
    )
    batch: bool = Field(
        True, description="send batches as {data: [message…]}; false: one message per request"
    )
    timeout_seconds: float = Field(
        30.0, gt=0, le=300, description="how long the receiver may take to answer a request"
    )
    concurrency: int = Field(
        4, ge=1, le=32, description="requests on their way at once, per slice that runs"
    )
    signing_secret: SecretStr | None = Field(
        None, description="key of the HMAC signature; without it requests are not signed"
    )
    # what the endpoint resolves to when a slice runs
    url: str | None = Field(None, description="the endpoint's URL, where no endpoint is named")
    headers: dict[str, SecretStr] = Field(
        default_factory=dict, description="headers of every request, secret ones among them"
    )

    def where_secrets_go(self) -> dict[str, Any]:
        """Another path of the same server is the same address."""
        return {
            "http_endpoint": self.http_endpoint,
            "url": None if self.url is None else origin_of(self.url),
        }

    @field_validator("url")
    @classmethod
    def is_http(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("must begin with http:// or https:// and name a host")
            if parts.username or parts.password:
                raise ValueError("must not carry a user or password; use a header")
        return url

    @field_validator("http_endpoint_path")
    @classmethod
    def stays_below(cls, path: str | None) -> str | None:
        if path is not None and (objection := object_to_path(path)) is not None:
            raise ValueError(objection)
        return path

    @field_validator("headers")
    @classmethod
    def are_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if (objection := object_to_header(name, value.get_secret_value())) is not None:
                raise ValueError(objection)
        return headers


def with_endpoint(options: Mapping[str, Any], endpoint: HttpEndpoint) -> dict[str, Any]:
    """A sink's options with its HTTP endpoint looked up, secret headers included."""
    sent = {
        name: value
        for name, value in {**endpoint.headers, **endpoint.encrypted_headers}.items()
        if not says_our_content_type(name, value)
    }
    return {**options, "url": endpoint.url, "headers": {**options.get("headers", {}), **sent}}


def _open_sink(options: WebhookOptions, context: Context) -> Sink:
    from refill.connectors.webhook.sink import WebhookSink

    return WebhookSink(options, context)


CONNECTOR = Connector(
    type="webhook",
    title="Webhook",
    options_model=WebhookOptions,
    is_sink=True,
    routes=("path", "method", "headers"),
    guarantee=Guarantee.KEYED,
    guarantee_note=(
        "every message carries its idempotency key, every request a hash of its messages' keys; "
        "the receiver drops repeats"
    ),
    references={
        "http_endpoint": Reference(to=Stored.HTTP_ENDPOINT, merge=with_endpoint, instead="url")
    },
    default_batch_size=BATCH_SIZE,
    open_sink=_open_sink,
)
