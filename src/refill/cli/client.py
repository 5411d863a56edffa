"""A server as the commands see it: JSON in, JSON out, its refusals as one sentence."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from refill.cli.output import ExitCode, Stopped
from refill.settings import ClientSettings

if TYPE_CHECKING:
    import httpx

Answer = dict[str, Any]


class Client:
    """Both dialects of one server, with one key."""

    def __init__(self, http: "httpx.Client", team: int) -> None:
        self._http = http
        self.team = team

    @property
    def url(self) -> str:
        return str(self._http.base_url).rstrip("/")

    def get(self, path: str, **query: Any) -> Answer:
        given = {name: value for name, value in query.items() if value is not None}
        return self.send("GET", path, query=given)

    def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self.send("POST", path, body=body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Answer:
        return self.send("PATCH", path, body=body)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Answer:
        import httpx

        try:
            answer = self._http.request(method, path, json=body, params=query)
        except httpx.HTTPError as error:
            raise Stopped(
                f"No refill server answers at {self.url} ({_reason(error)}); start one with "
                "`refill serve`, or point REFILL_URL or --url at it."
            ) from None
        if answer.is_success:
            return _parsed(answer)
        raise Refusal(answer.status_code, _sentence(answer))

    def pages(self, path: str, items: str = "data") -> Iterator[Answer]:
        """Every item of a list, page by page. The transfer dialect wraps a page in `data`, where
        its items have a name."""
        cursor: str | None = None
        while True:
            answer = self.get(path, limit=1000, cursor=cursor)
            page = answer if items == "data" else answer["data"]
            yield from page[items]
            cursor = page.get("next_cursor")
            if not cursor:
                return


class Refusal(Stopped):
    """The server said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message, ExitCode.NOT_ALLOWED if status in (401, 403) else ExitCode.ERROR)
        self.status = status


@contextmanager
def connect(settings: ClientSettings, home: Path | None = None) -> Iterator[Client]:
    """By URL and key; or, with a home, to the server that runs on it, with a key of its own."""
    import httpx

    url = settings.url
    key = settings.api_key.get_secret_value() if settings.api_key else None
    if home is not None:
        from refill.cli.local import find_server, local_key

        url, key = find_server(home), local_key(home, settings.team)
    if key is None:
        raise Stopped(
            "No API key: set REFILL_API_KEY or --api-key, or name the server's --home; "
            "make one with `refill keys create`.",
            ExitCode.NOT_ALLOWED,
        )
    headers = {"Authorization": f"Bearer {key}"}
    try:
        http = httpx.Client(base_url=url, headers=headers, timeout=30.0, trust_env=_proxied(url))
    except (httpx.InvalidURL, ValueError) as error:
        raise Stopped(f"REFILL_URL is no address of a server: {error}.") from None
    with http:
        yield Client(http, settings.team)


def _proxied(url: str) -> bool:
    """A proxy of the machine is for the world outside, not for its own loopback."""
    return urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1")


def _parsed(answer: "httpx.Response") -> Answer:
    if not answer.content:
        return {}
    try:
        body = answer.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    raise Stopped(f"{answer.url} is no refill server: its answer is not JSON.")


def _sentence(answer: "httpx.Response") -> str:
    """What either dialect says is wrong."""
    try:
        body = answer.json()
    except ValueError:
        return f"The server answered {answer.status_code} {answer.reason_phrase}."
    if isinstance(body, dict) and isinstance(error := body.get("error"), dict):
        said = [str(error.get("message", "")), str(error.get("description") or "")]
        return ": ".join(part.rstrip(".") for part in said if part) + "."
    if isinstance(body, dict) and "summary" in body:
        fields = body.get("validation_errors") or {}
        details = [f"{field}: {'; '.join(map(str, what))}" for field, what in fields.items()]
        summary = str(body["summary"])
        extra = [detail for detail in details if detail not in summary]
        return ": ".join([summary.rstrip("."), *extra]).rstrip(".") + "."
    return f"The server answered {answer.status_code} {answer.reason_phrase}."


def _reason(error: "httpx.HTTPError") -> str:
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return str(error) or type(error).__name__
