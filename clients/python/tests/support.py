"""What the tests share: the server under test, its document, and servers that misbehave."""

import json
import os
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from rental_client import RentalClient

BASE = os.environ["RENTAL_BASE_URL"]


@dataclass(frozen=True)
class Seen:
    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    at: float


@dataclass(frozen=True)
class Reply:
    status: int
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def text(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


#: `None` breaks the connection.
Answer = Reply | None


def problem(status: int, kind: str, code: str, headers: dict[str, str] | None = None, **more: Any) -> Reply:
    error = {"type": kind, "code": code, "message": f"{code}.", "request_id": "req_1", **more}
    return Reply(status, {"error": error}, headers or {})


@contextmanager
def serve(answer: Callable[[Seen], Answer]) -> Iterator[str]:
    """Listens on a free port; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = answer(Seen(self.command, self.path, headers, body, time.monotonic()))
            if reply is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            text = reply.text() if reply.status not in (204, 304) else b""
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with suppress(BrokenPipeError):  # the client may have given up
                self.wfile.write(text)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def scripted(*answers: Answer, **options: Any) -> Iterator[tuple[RentalClient, list[Seen]]]:
    """A client of a server that gives the next of `answers` each time; the last one stays."""
    seen: list[Seen] = []

    def answer(request: Seen) -> Answer:
        seen.append(request)
        return answers[min(len(seen), len(answers)) - 1]

    with serve(answer) as base_url, RentalClient(base_url, "rk_live_test", **options) as client:
        yield client, seen


@contextmanager
def dropping_proxy(drops: int) -> Iterator[tuple[RentalClient, list[Seen]]]:
    """A client behind a proxy that carries out every request, and throws away the answers to the first `drops` writes."""
    forwarded: list[Seen] = []

    def answer(request: Seen) -> Answer:
        onward = HTTPConnection(urlsplit(BASE).netloc, timeout=30)
        names = ("authorization", "content-type", "idempotency-key", "if-match")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        onward.request(request.method, request.url, request.body, headers)
        response = onward.getresponse()
        text = response.read().decode()
        writes = [one for one in forwarded if one.method != "GET"]
        forwarded.append(request)
        if request.method != "GET" and len(writes) < drops:
            return None
        kept = {
            name: value for name, value in response.getheaders() if name.lower() not in ("content-length", "connection")
        }
        return Reply(response.status, text, kept)

    with serve(answer) as base_url, RentalClient(base_url) as client:
        yield client, forwarded


def closed_port() -> str:
    """The address of a port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def operations_of_the_document() -> dict[str, re.Pattern[str]]:
    """The operations of `/v1`, as `GET /v1/vehicles/{id}`, with a pattern for requests."""
    with open(os.environ["RENTAL_OPENAPI"], encoding="utf-8") as file:
        paths = json.load(file)["paths"]
    names = [
        f"{method.upper()} {path}"
        for path, item in paths.items()
        for method in item
        if path.startswith("/v1/") and method in ("get", "post", "patch", "put", "delete")
    ]
    return {name: re.compile(re.sub(r"\{[^}]+\}", "[^/]+", name)) for name in names}


def operator(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request with the operator's token."""
    headers = {"Authorization": f"Bearer {os.environ['RENTAL_ADMIN_TOKEN']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{BASE}/admin/v1/{path}", data, headers, method=method)
    with urllib.request.urlopen(request) as response:
        answer: dict[str, Any] = json.load(response)
        return answer
