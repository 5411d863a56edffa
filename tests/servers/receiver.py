"""A webhook's receiver: answers as it is told, and keeps what it was sent."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def messages(self) -> list[dict[str, Any]]:
        content: dict[str, Any] = json.loads(self.body)
        messages: list[dict[str, Any]] = content.get("data", [content])
        return messages


# what to answer: (status, headers), or None to hang up without an answer
Answer = tuple[int, dict[str, str]] | None


@dataclass
class Receiver:
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    answer: Callable[[Request], Answer] = lambda request: (200, {})
    delay_seconds: float = 0.0
    at_once: int = 0
    most_at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, request: Request) -> Answer:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            time.sleep(self.delay_seconds)
            with self._lock:
                self.requests.append(request)
            return self.answer(request)
        finally:
            with self._lock:
                self.at_once -= 1

    def kept(self) -> list[dict[str, Any]]:
        """The messages of requests that it took, without repeats of a message's key."""
        found: dict[str, dict[str, Any]] = {}
        for request in list(self.requests):
            for message in request.messages:
                found.setdefault(message["metadata"]["idempotency_key"], message)
        return list(found.values())


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the sender died before it had said it all: nothing was sent
                self.close_connection = True
                return
            answer = receiver.take(Request(self.path, dict(self.headers), body))
            if answer is None:
                self.close_connection = True
                return
            status, headers = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away is what some tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
