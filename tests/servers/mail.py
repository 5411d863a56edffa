"""A mail server that keeps what it is sent: as much of SMTP as one client speaks."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message


@dataclass
class MailServer:
    url: str = ""
    mails: list[Message] = field(default_factory=list)


@contextmanager
def running_mail_server() -> Iterator[MailServer]:
    kept = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

        def handle(self) -> None:
            self.say("220 ready")
            while line := self.rfile.readline():
                word = line[:4].upper()
                if word == b"DATA":
                    self.say("354 go on")
                    lines: list[bytes] = []
                    while (part := self.rfile.readline()) not in (b".\r\n", b""):
                        lines.append(part)
                    kept.mails.append(message_from_bytes(b"".join(lines)))
                self.say("221 bye" if word == b"QUIT" else "250 ok")
                if word == b"QUIT":
                    return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    server = Server(("127.0.0.1", 0), Handler)
    kept.url = f"smtp://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
