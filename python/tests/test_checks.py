"""Active checks: by hand on a manual clock, and performed by the ready-made loop."""

from __future__ import annotations

import asyncio
import queue
import socketserver
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from conftest import cluster

import nexthop

HTTP = {"http_health_check": {"path": "/health"}}


def document(probe: dict[str, Any], hosts: int | list[str] = 1, **fields: Any) -> dict[str, Any]:
    check = {
        "timeout": "5s",
        "interval": "0.02s",
        "no_traffic_interval": "0.02s",
        "unhealthy_threshold": 2,
        "healthy_threshold": 1,
        **probe,
    }
    common = {"healthy_panic_threshold": {"value": 0}}
    return {"clusters": [cluster("web", hosts, health_checks=[check], common_lb_config=common, **fields)]}


def made(probe: dict[str, Any], hosts: int | list[str] = 1, **options: Any) -> nexthop.Engine:
    import json

    http2 = {"http2_protocol_options": {}} if "grpc_health_check" in probe else {}
    return nexthop.Engine.from_str(json.dumps(document(probe, hosts, **http2)), **options)


def manual(probe: dict[str, Any], hosts: int | list[str] = 1) -> nexthop.Engine:
    return made(probe, hosts, clock="manual", workers=1)


def flags(mesh: nexthop.Engine) -> list[str]:
    return [host["health_flags"] for host in mesh.hosts("web")]


def test_nobody_is_checked_without_a_question():
    with manual(HTTP) as mesh:
        mesh.advance(3600)
        assert flags(mesh) == ["healthy"] and mesh.checks_deadline() is None


def test_answers_are_judged_and_results_taken():
    with manual(HTTP, 2) as mesh:
        first, second = mesh.checks()
        assert mesh.checks() == [] and mesh.checks_deadline() == 5
        assert (first.protocol, first.method, first.path, first.authority) == ("http", "GET", "/health", "web")
        assert (first.cluster, first.name, first.extension, first.payload) == ("web", "", "", b"")
        assert (first.timeout, first.body_limit, first.http2, first.secure, first.may_reuse) == (5, 0, False, False, True)
        assert first.headers == [("user-agent", "Envoy/HC")] and first.address == first.host.address
        first.answer(503, {"X-Envoy-Immediate-Health-Check-Fail": "1"})
        second.result("degraded")
        assert flags(mesh) == ["/failed_active_hc/excluded_via_immediate_hc_fail", "/degraded_active_hc"]
        assert any("health_check_failure_event" in event for event in mesh.events())
        assert mesh.stats()["cluster.web.health_check.success"] == 1


def test_bytes_and_grpc():
    with manual({"tcp_health_check": {"send": {"text": "50"}, "receive": [{"text": "6f"}, {"text": "6b"}]}}) as mesh:
        (check,) = mesh.checks()
        assert (check.protocol, check.payload, check.body_limit) == ("tcp", b"P", None)
        assert [check.data(part) for part in (b"", b"xo", b"xo k")] == [False, False, True]
        assert flags(mesh) == ["healthy"]
    with manual({"grpc_health_check": {"service_name": "s"}}) as mesh:
        (check,) = mesh.checks()
        assert (check.protocol, check.http2, check.payload) == ("grpc", True, b"\0\0\0\0\x03\n\x01s")
        check.answer(200, [("grpc-status", "0")], b"\0\0\0\0\x02\x08\x02")
        assert flags(mesh) == ["/failed_active_hc"]
        mesh.advance(0.02)
        mesh.checks()[0].answer(200, None, b"\0\0\0\0\x02\x08\x01", grpc_status=0)
        assert flags(mesh) == ["healthy"]


def test_time_and_wrong_use():
    mesh = manual(HTTP)
    (check,) = mesh.checks()
    mesh.advance(5)
    assert flags(mesh) == ["/failed_active_hc/active_hc_timeout"]


    for call, code in [
        (lambda: check.result("success"), "ended"),
        (lambda: check.answer(200), "ended"),
        (lambda: check.fail(ConnectionRefusedError()), "ended"),
        (lambda: check.result("judge"), "invalid"),
        (lambda: check.fail("sneezed"), "invalid"),
        (lambda: check.answer(7), "invalid"),
    ]:
        with pytest.raises(nexthop.UsageError) as raised:
            call()
        assert raised.value.code == code
    mesh.advance(0.02)
    (check,) = mesh.checks()
    with pytest.raises(nexthop.UsageError, match="cannot be judged"):
        check.answer(0)
    with pytest.raises(TypeError):
        check.fail(7)  # type: ignore[arg-type]
    check.result("passive")
    check.fail(TimeoutError())
    assert mesh.stats()["cluster.web.health_check.network_failure"] == 2
    mesh.close()
    for call in (mesh.checks, mesh.checks_deadline, lambda: check.result("success")):
        with pytest.raises(nexthop.UsageError) as raised:
            call()
        assert raised.value.code == "closed"


class Script:
    """Tells what was asked, and answers in order, each when it may; the last answer for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.seen: queue.Queue[str] = queue.Queue()
        self.may = threading.Semaphore(0)

    def next(self, asked: str) -> Any:
        self.seen.put(asked)
        self.may.acquire(timeout=9)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def asked(self) -> str:
        return self.seen.get(timeout=9)

    def judged(self, mesh: nexthop.Engine) -> list[str]:
        """Lets the check that is out be answered; the flags after it. The next one begins when its result is known."""
        self.may.release()
        self.asked()
        return flags(mesh)


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        host, port = server.server_address[:2]  # type: ignore[misc]
        yield f"{host}:{port}"  # type: ignore[str-bytes-safe]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def http_server(script: Script, chunked: bool = False) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            head = f"{self.command} {self.path} {self.headers['host']} {self.headers['user-agent']}"
            status, body = script.next(f"{head} {sent.decode()}")
            self.send_response_only(100)
            self.end_headers()
            self.send_response_only(status)
            if chunked:
                self.send_header("Transfer-Encoding", "chunked")
                body = b"%x;a=b\r\n%b\r\n0\r\nx-t: 1\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = answer

        def log_message(self, *_args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


PUT = {
    "http_health_check": {
        "path": "/h",
        "method": "PUT",
        "send": {"text": "6869"},
        "receive": [{"text": "6f6b"}],
        "response_buffer_size": 4,
        "host": "other.example",
    }
}


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("probe", "answers", "line"),
    [
        (HTTP, [(503, b""), (200, b"")], "GET /health web Envoy/HC "),
        (PUT, [(200, b"12345ok"), (200, b"1ok456")], "PUT /h other.example Envoy/HC hi"),
    ],
)
def test_a_thread_performs_http(probe: dict[str, Any], answers: Any, line: str, chunked: bool):
    script = Script(*answers)
    with serving(http_server(script, chunked)) as address, made(probe, [address]) as mesh:
        with mesh.start_checks():
            assert script.asked() == line
            assert [script.judged(mesh) for _ in range(2)] == [["/failed_active_hc"], ["healthy"]]
        script.may.release(9)


def test_a_task_performs_tcp_until_the_engine_is_closed():
    script = Script([], [b"xPO", b"NGx"])

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for part in script.next(self.rfile.read(4).decode()):
                self.wfile.write(part)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    async def main() -> None:
        probe = {"tcp_health_check": {"send": {"text": "50494e47"}, "receive": [{"text": "504f4e47"}]}}
        with serving(Server(("127.0.0.1", 0), Handler)) as address:
            mesh = made(probe, [address])
            task = asyncio.create_task(mesh.run_checks())
            assert await asyncio.to_thread(script.asked) == "PING"
            for expected in ["/failed_active_hc", "healthy"]:
                assert await asyncio.to_thread(script.judged, mesh) == [expected]
            script.may.release(9)
            mesh.close()
            await asyncio.wait_for(task, 9)

    asyncio.run(main())


def test_what_python_cannot_perform_is_handed_on():
    grpc = {"grpc_health_check": {}}
    seen: queue.Queue[str] = queue.Queue()

    def others(check: nexthop.Check) -> None:
        check.result("failed")
        seen.put(check.protocol)

    with made(grpc, ["127.0.0.1:1"]) as mesh, mesh.start_checks(others=others):
        assert seen.get(timeout=9) == "grpc" and flags(mesh) == ["/failed_active_hc"]

    async def alone() -> None:
        with made(grpc, ["127.0.0.1:1"]) as mesh:
            task = asyncio.create_task(mesh.run_checks())
            while mesh.stats().get("cluster.web.health_check.network_failure", 0) < 3:
                await asyncio.sleep(0)
            assert flags(mesh) == ["/failed_active_hc"]
            task.cancel()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(alone())
    assert [str(one.message).count("grpc over HTTP/2") for one in told] == [1]


def test_hosts_leave_while_checks_are_out():
    with manual(HTTP, 2) as mesh:
        first, second = mesh.checks()
        mesh.set_hosts("web", [second.address])
        with pytest.raises(nexthop.UsageError, match="its host has left"):
            first.result("success")
        mesh.update_str('{"clusters": []}')
        with pytest.raises(nexthop.UsageError, match="is over"):
            second.result("success")
        assert mesh.checks() == []
