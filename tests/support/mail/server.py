"""An SMTP server on this machine that keeps what it receives (RFC 5321: EHLO, MAIL, RCPT, DATA, RSET, QUIT)."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Received:
    """One message.

    Attributes:
        to: recipients of the envelope.
    """

    sender: str
    to: list[str]
    message: EmailMessage


@dataclass
class MailServer:
    """Received messages; `refuse` is the reply to recipients instead of 250."""

    port: int = 0
    mails: list[Received] = field(default_factory=list)
    refuse: str = ""


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """A server on a free port of 127.0.0.1."""
    state = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        timeout = 30

        def report(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.report("220 test")
            sender, to = "", list[str]()
            for raw in self.rfile:
                line = raw.decode().strip()
                word = line.upper()
                if word.startswith("MAIL FROM:"):
                    sender = line[10:].split(">")[0].strip(" <")
                    self.report("250 ok")
                elif word.startswith("RCPT TO:"):
                    to.append(line[8:].strip(" <>"))
                    self.report(state.refuse or "250 ok")
                elif word == "DATA":
                    self.report("354 continue")
                    state.mails.append(Received(sender, to, self.body()))
                    self.report("250 kept")
                elif word == "QUIT":
                    self.report("221 bye")
                    return
                else:
                    self.report("250 ok")

        def body(self) -> EmailMessage:
            lines = []
            for raw in self.rfile:
                if raw == b".\r\n":
                    break
                lines.append(raw[1:] if raw.startswith(b"..") else raw)
            found = message_from_bytes(b"".join(lines), policy=policy.default)
            assert isinstance(found, EmailMessage)
            return found

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join(10)
