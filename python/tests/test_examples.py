"""The examples run: the gateway over real sockets, on loopback."""

from __future__ import annotations

import http.client
import importlib.util
import pathlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import RETRY, cluster, counter, engine, idle, route

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Upstream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append((self.path, body, self.headers.get("x-envoy-attempt-count")))
        status = 503 if self.path == "/bad" or (self.path == "/once" and len(self.server.seen) == 1) else 200
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-upstream", "yes")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *args):
        pass


@pytest.fixture
def running():
    servers = []

    def start(server):
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return server.server_address[1]

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body, {"host": "shop.example"})
    reply = connection.getresponse()
    found = reply.status, reply.read(), reply.headers
    connection.close()
    return found


def test_gateway(running):
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    upstream.seen = []
    address = f"127.0.0.1:{running(upstream)}"
    policy = {**RETRY, "retry_back_off": {"base_interval": "0.001s"}}
    routes = [route("none", "/none"), route("web", retry_policy=policy, timeout="10s")]
    clusters = [cluster("web", [address]), cluster("none", [])]
    with engine(*clusters, routes=routes, clock="precise", workers=0) as mesh:
        port = running(load("gateway").serve(mesh, 0))
        status, body, headers = ask(port, "POST", "/once", b"x" * 300_000)
        assert (status, body, headers["x-upstream"]) == (200, b"x" * 300_000, "yes")
        assert [one[0] for one in upstream.seen] == ["/once", "/once"] and upstream.seen[0] == upstream.seen[1]
        assert counter(mesh, "upstream_rq_retry") == 1
        assert ask(port, "GET", "/good")[0] == 200
        assert ask(port, "GET", "/bad")[0] == 503
        status, body, headers = ask(port, "GET", "/none")
        assert (status, headers["x-response-flags"]) == (503, "UH") and body
        assert idle(mesh)


def test_the_experiment_is_whole():
    assert list(load("experiment").EXPERIMENTS) == ["a", "b", "c", "chain"]
