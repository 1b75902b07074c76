"""A gateway in front of three model providers, with stand-ins for them: who answered, and why.

    python examples/ai-gateway/ai_gateway.py

Only the standard library and nexthop. The gateway streams; it fails over until the first token is there, never after.
"""

from __future__ import annotations

import http.client
import json
import pathlib
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import NamedTuple
from urllib.parse import urlsplit

import nexthop

CONFIG = pathlib.Path(__file__).with_name("models.yaml")
TOKENS = ["all", "of", "this", "is", "local"]
RETRY_AFTER = 4


class Streaming(BaseHTTPRequestHandler):
    """Answers in chunks, so that a cut body is told from a whole one."""

    protocol_version = "HTTP/1.1"

    def prompt(self) -> str:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        return str(body["prompt"])

    def begin(self, **more: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def part(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def whole(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Provider(Streaming):
    """A stand-in: says some tokens."""

    breaks = False
    seen: list[str]

    def do_POST(self) -> None:
        prompt = self.prompt()
        self.seen.append(prompt)
        try:
            self.generate(prompt)
        except OSError:  # the gateway did not wait
            self.close_connection = True

    def generate(self, prompt: str) -> None:
        self.begin()
        for number, token in enumerate(TOKENS):
            if number == 2 and self.breaks and "break" in prompt:
                self.close_connection = True
                return
            self.part(b"data: " + json.dumps({"token": token}).encode() + b"\n\n")
        self.wfile.write(b"0\r\n\r\n")


class Preferred(Provider):
    """Two requests, then a pause that it names."""

    until = 0.0

    def generate(self, prompt: str) -> None:
        here = type(self)
        if len(self.seen) == 3:
            here.until = time.monotonic() + RETRY_AFTER
        if time.monotonic() < here.until:
            error = json.dumps({"error": {"code": "rate_limit_exceeded"}}).encode()
            self.whole(429, error, {"retry-after": str(RETRY_AFTER)})
        else:
            super().generate(prompt)


class Backup(Provider):
    """Headers at once; the first token of a long prompt takes its time."""

    def generate(self, prompt: str) -> None:
        if "long" in prompt:
            self.begin()
            time.sleep(2)
            self.part(b"too late")
        else:
            super().generate(prompt)


class Cheap(Provider):
    """Always there. A stream of it may break."""

    breaks = True


class Gateway(Streaming):
    mesh: nexthop.Engine

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        call = self.mesh.request(
            method="POST", authority=self.headers["host"], path=self.path, headers=self.headers.items(), body="replayable"
        )
        way: list[str] = []
        try:
            tokens = self.ask(call, body, way)
        except nexthop.Refused as refused:
            way.append(refused.refusal)
            self.refuse(refused.reply, way)
        except (OSError, http.client.HTTPException):
            self.refuse(call.reply or nexthop.UNAVAILABLE, way)
        else:
            self.pass_on(tokens, way)

    def pass_on(self, tokens: Iterator[bytes] | Answer, way: list[str]) -> None:
        if isinstance(tokens, Answer):
            self.whole(tokens.status, tokens.body, {"x-way": " -> ".join(way)})
            return
        self.begin(x_way=" -> ".join(way))
        try:
            for part in tokens:
                self.part(part)
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            # The client has seen tokens: what broke there breaks here, and nobody is asked again.
            self.close_connection = True

    def ask(self, call: nexthop.Request, body: bytes, way: list[str]) -> Iterator[bytes] | Answer:
        for attempt in call:
            with attempt:
                try:
                    reply, connection, first = send(attempt, body)
                except (OSError, http.client.HTTPException) as error:
                    late = isinstance(error, TimeoutError)
                    way.append(f"{attempt.cluster}: {'no token in time' if late else type(error).__name__}")
                    raise
                if reply.status < 400:
                    # The first token is there: from here on this is the answer.
                    way.append(f"{attempt.cluster}: {reply.status}")
                    attempt.on_headers(reply.status, reply.getheaders())
                    parts = chain([first], iter(lambda: reply.read1(65536), b""))
                    return attempt.body_sync(parts, close=connection.close)
                answer = Answer(reply.status, first + reply.read())
                connection.close()
                way.append(f"{attempt.cluster}: {answer.status} {answer.code()}")
                if not attempt.complete(reply.status, reply.getheaders(), detail=answer.code()).retry:
                    return answer
        raise AssertionError("an iteration ends with an answer or an exception")

    def refuse(self, reply: nexthop.LocalReply, way: list[str]) -> None:
        self.whole(reply.status, reply.body.encode(), {**reply.headers, "x-way": " -> ".join(way)})


class Answer(NamedTuple):
    """What a provider said instead of tokens."""

    status: int
    body: bytes

    def code(self) -> str:
        try:
            return str(json.loads(self.body)["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return ""


def send(attempt: nexthop.Attempt, body: bytes) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection, bytes]:
    """Until the first part of the body is there; the time-out of the try is for that."""
    url = urlsplit(attempt.url())
    until = None if attempt.timeout is None else time.monotonic() + attempt.timeout
    connection = http.client.HTTPConnection(url.netloc, timeout=attempt.timeout)
    try:
        connection.request("POST", url.path, body, {"content-type": "application/json"})
        sock = connection.sock
        reply = connection.getresponse()
        if until is not None:
            sock.settimeout(max(until - time.monotonic(), 0.001))
        first = reply.read1(65536)
        sock.settimeout(attempt.remaining)
        return reply, connection, first
    except BaseException:
        connection.close()
        raise


class Row(NamedTuple):
    prompt: str
    status: int
    tokens: int
    whole: bool
    seconds: float
    way: str
    retry_after: str


def client(port: int, path: str, prompt: str) -> Row:
    """Asks the gateway and counts what comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    begun = time.monotonic()
    connection.request("POST", path, json.dumps({"prompt": prompt}))
    reply = connection.getresponse()
    seconds, text, whole = time.monotonic() - begun, b"", True
    try:
        while part := reply.read1(65536):
            text += part
    except (OSError, http.client.HTTPException):
        whole = False
    connection.close()
    headers = reply.headers
    return Row(
        prompt, reply.status, text.count(b"data: "), whole, seconds, headers["x-way"], headers.get("retry-after", "")
    )


def start(stack: ExitStack, handler: type[BaseHTTPRequestHandler]) -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    stack.callback(thread.join)
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return server.server_port


def demo() -> tuple[list[Row], dict[str, list[str]], dict[str, int]]:
    """Seven prompts and one that wants the preferred provider or none."""
    providers: list[type[Provider]] = [type(kind.__name__, (kind,), {"seen": []}) for kind in (Preferred, Backup, Cheap)]
    with ExitStack() as stack:
        mesh = stack.enter_context(nexthop.Engine.from_file(str(CONFIG)))
        for provider in providers:
            mesh.set_hosts(provider.__name__.lower(), [f"127.0.0.1:{start(stack, provider)}"])
        port = start(stack, type("Handler", (Gateway,), {"mesh": mesh}))

        def ask(prompt: str, path: str = "/v1/models") -> Row:
            return client(port, path, prompt)

        rows = [ask("one"), ask("two"), ask("three, long")]
        paused = time.monotonic()
        rows += [ask("four"), ask("preferred or none", "/v1/preferred"), ask("five, long"), ask("six, long: break")]
        time.sleep(max(paused + RETRY_AFTER + 0.1 - time.monotonic(), 0))
        rows.append(ask("seven"))
        return rows, {kind.__name__.lower(): kind.seen for kind in providers}, dict(mesh.stats())


if __name__ == "__main__":
    rows, _, stats = demo()
    print(f"{'prompt':<18}{'answered by':<13}{'first token':<13}{'tokens':<9}why")
    for row in rows:
        by = row.way.split(" -> ")[-1].split(":")[0] if row.status == 200 else f"({row.status})"
        tokens = f"{row.tokens}{'' if row.whole else ', cut'}"
        first = f"{row.seconds * 1000:.0f} ms" if row.status == 200 else f"in {row.retry_after} s"
        print(f"{row.prompt:<18}{by:<13}{first:<13}{tokens:<9}{row.way}")
    print()
    for name, value in stats.items():
        if ".nexthop." in name and value and name.startswith("cluster."):
            print(f"{name.removeprefix('cluster.')}: {value}")
