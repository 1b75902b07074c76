"""A small gateway: every request goes where the Envoy document says, answers are streamed.

    CONFIG=envoy.yaml PORT=8080 python gateway.py

Only the standard library and nexthop. Hosts, retries, limits and ejection are nexthop's; sockets are ours.
"""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import nexthop

HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}


class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mesh: nexthop.Engine

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        call = self.mesh.request(
            method=self.command,
            authority=self.headers.get("host", ""),
            path=self.path,
            headers=self.headers.items(),
            source=self.client_address[0],
            body="replayable" if body else "none",
        )
        try:
            upstream, stream = self.ask(call, body)
        except (nexthop.Refused, OSError, http.client.HTTPException):
            self.refuse(call.reply or nexthop.UNAVAILABLE)
        else:
            self.answer(upstream, stream)

    def ask(self, call: nexthop.Request, body: bytes) -> tuple[http.client.HTTPResponse, Iterator[bytes]]:
        for attempt in call:
            # An exception in here becomes the matching failure; when a retry follows, it stays in here.
            with attempt:
                upstream, connection = self.send(attempt, body)
                if attempt.on_headers(upstream.status, upstream.getheaders()).retry:
                    connection.close()
                    continue
                # From here on the stream's end, error or early close is the report.
                return upstream, attempt.body_sync(chunks(upstream), close=connection.close)
        raise AssertionError("an iteration ends with an answer or an exception")

    def send(
        self, attempt: nexthop.Attempt, body: bytes
    ) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        url = urlsplit(attempt.url())
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.netloc, timeout=attempt.timeout)
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        for name, value in attempt.headers.items():
            if value is None:
                headers.pop(name, None)
            else:
                headers[name] = value
        path = f"{url.path}?{url.query}" if url.query else url.path
        try:
            connection.request(self.command, path, body or None, headers)
            return connection.getresponse(), connection
        except BaseException:
            connection.close()
            raise

    def answer(self, upstream: http.client.HTTPResponse, body: Iterator[bytes]) -> None:
        self.send_response_only(upstream.status)
        for name, value in upstream.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        # Without a length the end of the connection is the end of the body.
        self.close_connection = upstream.length is None and self.command != "HEAD"
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        for chunk in body:
            self.wfile.write(chunk)

    def refuse(self, reply: nexthop.LocalReply) -> None:
        """What Envoy would answer by itself."""
        body = reply.body.encode()
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-response-flags", reply.flags)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = forward

    def log_message(self, format: str, *args: object) -> None:
        pass


def chunks(upstream: http.client.HTTPResponse) -> Iterator[bytes]:
    while chunk := upstream.read1(65536):
        yield chunk


def serve(mesh: nexthop.Engine, port: int) -> ThreadingHTTPServer:
    handler = type("Handler", (Gateway,), {"mesh": mesh})
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


if __name__ == "__main__":
    # The second performs the health checks of the documents, if they have any.
    with nexthop.Engine.from_file(os.environ["CONFIG"]) as mesh, mesh.start_checks():
        with serve(mesh, int(os.environ.get("PORT", "8080"))) as server:
            print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
            server.serve_forever()
