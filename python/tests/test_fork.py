"""A child keeps documents and hosts, and has no request of its parent's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from conftest import breakers, cluster, engine, gauge, idle, route

import nexthop


def in_child(work):
    """Runs `work` in a forked child; its exit code says whether all went well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def test_the_child_starts_empty():
    limits = {"circuit_breakers": breakers(max_connections=1)}
    with engine(cluster("web", 1, **limits), routes=[route("web")]) as mesh:
        held = mesh.request("web").choose_host()
        queued = mesh.request("web")
        assert isinstance(queued.try_choose_host(), nexthop.Wait)

        def child():
            assert idle(mesh) and mesh.events() == []
            for use in (lambda: held.complete(200), queued.choose_host):
                with pytest.raises(nexthop.UsageError) as raised:
                    use()
                assert raised.value.code == "ended"
            attempt = mesh.request("web").choose_host()
            assert attempt.host.address == held.host.address
            attempt.complete(200)
            assert idle(mesh)

        in_child(child)
        assert gauge(mesh, "upstream_rq_active") == 1, "the parent is as it was"
        held.complete(200)
        assert queued.choose_host().complete(200).action == "forward"
        assert idle(mesh)


def test_children_choose_differently():
    with engine(cluster("web", 200, lb_policy="RANDOM"), seed=7, workers=0, clock="coarse") as mesh:

        def sequence():
            hosts = []
            for _ in range(12):
                attempt = mesh.choose_host("web")
                hosts.append(attempt.host.address)
                attempt.complete(200)
            return ",".join(hosts)

        sequence()
        seen = []
        for _ in range(2):
            read, write = os.pipe()
            in_child(lambda write=write: os.write(write, sequence().encode()))
            os.close(write)
            with os.fdopen(read) as pipe:
                seen.append(pipe.read())
        assert seen[0] and seen[0] != seen[1]


def test_fork_while_other_threads_update():
    with engine(cluster("web", 50), clock="coarse") as mesh:
        stop = threading.Event()

        def update():
            n = 0
            while not stop.is_set():
                n += 1
                mesh.set_hosts("web", [f"10.0.0.{i}:80" for i in range(1, 2 + n % 50)])
                mesh.choose_host("web").complete(200)

        threads = [threading.Thread(target=update) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):

                def child():
                    mesh.set_hosts("web", ["10.0.0.9:80"])
                    assert mesh.choose_host("web").host.address == "10.0.0.9:80"
                    mesh.events()
                    mesh.stats()

                in_child(child)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert idle(mesh)


FIRST_USE = """
import os, sys, threading
import nexthop

mesh = nexthop.Engine.from_str("clusters: {web: {hosts: ['127.0.0.1:1']}}")
begin, stop = threading.Event(), threading.Event()

def change():
    begin.wait()
    while not stop.is_set():
        mesh.set_hosts("web", ["127.0.0.1:1", "127.0.0.1:2"])
        with mesh.choose_host("web") as attempt:
            attempt.headers, attempt.host.metadata
            attempt.complete(200, {"x": "y"})

threads = [threading.Thread(target=change) for _ in range(3)]
for thread in threads:
    thread.start()
begin.set()
for _ in range(10):
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(20)
        with mesh.choose_host("web") as attempt:
            attempt.headers, attempt.host.metadata
            attempt.complete(200, {"x": "y"})
        mesh.set_hosts("web", ["127.0.0.1:3"])
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        stop.set()
        sys.exit("a child hung")
stop.set()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("run", range(3))
def test_a_fork_in_the_middle_of_a_first_use(run):
    """What the module makes once may be half made by another thread when the fork comes."""
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", FIRST_USE], timeout=120, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
