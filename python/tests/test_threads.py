"""Threads: queues, interrupts, and gauges that are zero at the end."""

from __future__ import annotations

import _thread
import random
import signal
import threading

import pytest
from conftest import RETRY, breakers, cluster, engine, gauge, idle, route

import nexthop


def test_a_thread_waits_for_its_turn():
    limits = {"circuit_breakers": breakers(max_connections=1)}
    with engine(cluster("web", 1, **limits), routes=[route("web")]) as mesh:
        held = mesh.request("web").choose_host()
        call = mesh.request("web")
        assert isinstance(call.try_choose_host(), nexthop.Wait)
        answers = []

        def wait():
            answers.append(call.choose_host().complete(200).action)

        waiting = threading.Thread(target=wait)
        waiting.start()
        held.complete(200)
        waiting.join(20)
        assert answers == ["forward"] and idle(mesh)


def test_closing_the_engine_wakes_whoever_waits(monkeypatch):
    monkeypatch.setattr(nexthop._waiting, "LONGEST", 3600.0)
    limits = {"circuit_breakers": breakers(max_connections=1)}
    with engine(cluster("web", 1, **limits), routes=[route("web")]) as mesh:
        held = mesh.request("web").choose_host()
        call = mesh.request("web")
        assert isinstance(call.try_choose_host(), nexthop.Wait)
        codes = []

        def wait():
            try:
                call.choose_host()
            except nexthop.UsageError as error:
                codes.append(error.code)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        mesh.close()
        waiting.join(20)
        assert codes == ["closed"]
        with pytest.raises(nexthop.UsageError):
            held.complete(200)


def test_interrupt_while_queued():
    limits = {"circuit_breakers": breakers(max_connections=1)}
    with engine(cluster("web", 1, **limits), routes=[route("web")]) as mesh:
        held = mesh.request("web").choose_host()
        call = mesh.request("web")
        assert isinstance(call.try_choose_host(), nexthop.Wait)
        timer = threading.Timer(0.05, _thread.interrupt_main, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            call.choose_host()
        timer.join()
        assert gauge(mesh, "upstream_rq_pending_active") == 0
        held.complete(200)
        assert idle(mesh)


def test_two_threads_report_one_attempt(mesh):
    for _ in range(200):
        attempt = mesh.choose_host("web")
        start = threading.Barrier(2)
        won = []

        def report():
            start.wait()
            try:
                attempt.complete(200)
            except nexthop.UsageError as error:
                assert error.code == "ended"
            else:
                won.append(1)

        threads = [threading.Thread(target=report) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [1]
    assert idle(mesh)


def test_two_threads_begin_one_request(mesh):
    for _ in range(100):
        call = mesh.request("web")
        start = threading.Barrier(2)
        answers = []

        def choose():
            start.wait()
            try:
                answers.append(call.choose_host())
            except nexthop.UsageError as error:
                assert error.code == "state"

        threads = [threading.Thread(target=choose) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 1
        answers.pop().complete(200)
        del call
    assert idle(mesh)


def test_storm():
    limits = breakers(max_connections=3, max_pending_requests=1000, max_requests=1000, max_retries=50)
    policy = {**RETRY, "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.001s"}}
    routes = [route("web", retry_policy=policy, timeout="60s")]
    with engine(cluster("web", 4, circuit_breakers=limits), routes=routes, clock="precise") as mesh:
        failed = []

        def work(seed):
            draw = random.Random(seed)
            try:
                for _ in range(150):
                    one(mesh, draw)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            mesh.set_hosts("web", [f"10.0.0.{n}:80" for n in range(1, random.randint(2, 6))])
            mesh.stats()
            mesh.maintain()
            for thread in threads:
                thread.join(0.005)
        assert failed == []
        assert idle(mesh) and "live_requests=0" in repr(mesh)


def one(mesh, draw):
    call = mesh.request("web")
    try:
        for attempt in call:
            what = draw.randrange(6)
            if what == 0:
                return  # Dropped.
            with attempt:
                if what == 1:
                    raise ConnectionResetError
                if what == 2:
                    attempt.on_headers(200)
                else:
                    attempt.complete(draw.choice([200, 200, 503]))
    except (ConnectionResetError, nexthop.Refused):
        pass
