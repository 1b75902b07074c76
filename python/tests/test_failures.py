"""What exceptions say about the upstream; real ones of real clients on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import socketserver
import sys
import threading
import urllib.error
import urllib.request

import aiohttp
import httpx
import pytest
import requests
import trio
from conftest import cluster, engine, idle

from nexthop import _nexthop
from nexthop._failures import classify


def kind(error):
    return classify(error)[0]


class Handler(socketserver.BaseRequestHandler):
    """Answers as the path says."""

    def handle(self):
        self.request.settimeout(5)
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.request.recv(4096)
            if not more:
                return
            data += more
        path = data.split()[1].decode()
        if path == "/slow":
            self.server.release.wait(5)
        elif path == "/garbage":
            self.request.sendall(b"\x00\x01 not http at all\r\n\r\n")
        elif path == "/short":
            self.request.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this")
        elif path == "/reset":
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        elif path != "/closed":
            status = path.rpartition("/")[2]
            head = f"HTTP/1.1 {status} Word\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            self.request.sendall(head.encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@pytest.fixture(scope="module")
def url():
    with Server(("127.0.0.1", 0), Handler) as server:
        server.release = threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.release.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def refusing():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def by_httpx(url):
    with httpx.Client(timeout=0.2, trust_env=False) as client:
        client.get(url).raise_for_status()


def by_httpx_async(url):
    async def get():
        async with httpx.AsyncClient(timeout=0.2, trust_env=False) as client:
            (await client.get(url)).raise_for_status()

    asyncio.run(get())


def by_httpx_in_trio(url):
    async def get():
        async with httpx.AsyncClient(timeout=0.2, trust_env=False) as client:
            (await client.get(url)).raise_for_status()

    trio.run(get)


def by_requests(url):
    with requests.Session() as session:
        session.trust_env = False
        session.get(url, timeout=0.2).raise_for_status()


def by_aiohttp(url):
    async def get():
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=0.2, sock_read=0.2)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as reply:
            await reply.read()
            reply.raise_for_status()

    asyncio.run(get())


def by_urllib(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with contextlib.closing(opener.open(url, timeout=0.2)) as reply:
            reply.read()
    except urllib.error.HTTPError as error:
        error.close()  # It is a response, too.
        raise


CLIENTS = [by_httpx, by_httpx_async, by_httpx_in_trio, by_requests, by_aiohttp, by_urllib]
CUT = {"connection_termination", "remote_reset"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/slow", {"timeout"}),
        ("/closed", {"connection_termination"}),
        ("/short", {"connection_termination"}),
        ("/reset", CUT),
        ("/garbage", {"protocol_error", "connection_termination"}),
        ("/status/503", {503}),
        ("/status/404", {404}),
    ],
)
def test_clients(url, client, path, allowed):
    with pytest.raises(Exception) as raised:
        client(url + path)
    found, detail = classify(raised.value)
    if path == "/garbage" and client is by_aiohttp:
        allowed = {400}  # aiohttp says 400 of an answer that it cannot read.
    assert found in allowed, repr(raised.value)
    assert detail and len(detail) <= 256


@pytest.mark.parametrize("client", CLIENTS)
def test_refused(refusing, client):
    with pytest.raises(Exception) as raised:
        client(refusing)
    assert kind(raised.value) == "connect_failure", repr(raised.value)


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (ConnectionRefusedError(), "connect_failure"),
        (ConnectionResetError(), "remote_reset"),
        (BrokenPipeError(), "remote_reset"),
        (ConnectionAbortedError(), "connection_termination"),
        (TimeoutError(), "timeout"),
        (asyncio.TimeoutError(), "timeout"),
        (asyncio.IncompleteReadError(b"", 1), "connection_termination"),
        (socket.gaierror(), "connect_failure"),
        (OSError(errno.EMFILE, "too many"), "local_connect_failure"),
        (OSError(errno.EADDRNOTAVAIL, "no port"), "local_connect_failure"),
        (OSError(errno.EHOSTUNREACH, "no way"), "connect_failure"),
        (trio.TooSlowError(), "timeout"),
        (trio.BrokenResourceError(), "remote_reset"),
        (httpx.PoolTimeout(""), "overflow"),
        (httpx.ConnectTimeout(""), "connect_timeout"),
        (httpx.WriteError(""), "remote_reset"),
        (httpx.LocalProtocolError(""), "protocol_error"),
        (httpx.RemoteProtocolError("<StreamReset stream_id:1, error_code:7, remote_reset:True>"), "refused_stream"),
        (httpx.RemoteProtocolError("<StreamReset stream_id:1, error_code:2, remote_reset:True>"), "remote_reset"),
        (requests.ConnectTimeout(), "connect_timeout"),
        (requests.ReadTimeout(), "timeout"),
        (requests.exceptions.ChunkedEncodingError(), "connection_termination"),
        (urllib.error.URLError(TimeoutError()), "timeout"),
        (KeyboardInterrupt(), "gone"),
        (asyncio.CancelledError(), "gone"),
        (GeneratorExit(), "gone"),
        (KeyError(), None),
        (FileNotFoundError(errno.ENOENT, "no file"), None),
        (httpx.InvalidURL(""), None),
        (httpx.UnsupportedProtocol(""), None),
        (httpx.TooManyRedirects(""), None),
    ],
)
def test_by_class(error, found):
    assert kind(error) == found


def test_causes():
    outer = httpx.ConnectError("no")
    outer.__cause__ = OSError(errno.EMFILE, "too many open files")
    assert kind(outer) == "local_connect_failure"
    mine = RuntimeError("mine")
    mine.__cause__ = ConnectionResetError()
    assert kind(mine) is None, "a program's own exception may have any cause"
    loop = requests.ConnectionError()
    loop.__cause__ = loop
    assert kind(loop) == "connect_failure"

    class Own(httpx.ReadTimeout):
        pass

    assert kind(Own("")) == "timeout"


def test_a_status_error_reports_the_status(url):
    with engine(cluster("web")) as mesh:
        attempt = mesh.request("web").choose_host()
        with pytest.raises(httpx.HTTPStatusError), attempt:
            by_httpx(url + "/status/503")
        assert attempt.verdict is not None and attempt.verdict.status == 503
        assert idle(mesh)


def test_nothing_is_imported_for_it():
    import subprocess

    code = "import nexthop, sys; print(sorted({'httpx','aiohttp','requests','trio','urllib3'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_engine_with_httpx(url, refusing):
    """The program of the manual, over one refusing and one good upstream."""
    from conftest import RETRY, route

    hosts = [one.removeprefix("http://") for one in (refusing, url)]
    policy = {**RETRY, "retry_back_off": {"base_interval": "0.001s"}}
    with engine(cluster("web", hosts), routes=[route("web", retry_policy=policy)], clock="precise") as mesh:
        numbers = []
        with httpx.Client(trust_env=False) as client:
            for _ in range(4):
                for attempt in mesh.request("web", path="/status/200"):
                    with attempt:
                        reply = client.get(attempt.url(), timeout=attempt.timeout)
                        attempt.complete(reply.status_code, reply.headers)
                        numbers.append(attempt.number)
        assert len(numbers) == 4 and 2 in numbers and set(numbers) <= {1, 2}
        assert idle(mesh) and _nexthop.FAILURES[0] == "connect_failure"
