"""`with` and `async with` around engines, requests and attempts."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from conftest import counter, gauge, idle

import nexthop


def test_reported_inside(mesh):
    with mesh.choose_host("web") as attempt:
        attempt.complete(200)
    assert idle(mesh)


def test_unreported_warns_once_per_call_site(mesh):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default", nexthop.UnreportedWarning)
        for _ in range(5):
            with mesh.choose_host("web"):
                pass
        with mesh.choose_host("web"):
            pass
    assert [w.category for w in seen] == [nexthop.UnreportedWarning] * 2
    assert all(w.filename == __file__ for w in seen)
    assert seen[0].lineno != seen[1].lineno
    assert idle(mesh)


def test_unreported_in_async_with_warns_here(mesh):
    async def leave():
        async with mesh.choose_host("web"):
            pass

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        asyncio.run(leave())
    assert [(w.category, w.filename) for w in seen] == [(nexthop.UnreportedWarning, __file__)]
    assert idle(mesh)


def test_warning_turned_into_an_error_still_releases(mesh):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(nexthop.UnreportedWarning):
            with mesh.choose_host("web"):
                pass
    assert idle(mesh)


def test_exception_becomes_the_failure(mesh):
    attempt = mesh.request("web").choose_host()
    with pytest.raises(ConnectionRefusedError):
        with attempt:
            raise ConnectionRefusedError
    assert attempt.verdict is not None and attempt.verdict.retry
    assert idle(mesh)


def test_only_iterations_swallow(mesh, jump):
    jump(mesh)
    seen = []
    for attempt in mesh.request("web"):
        with attempt:
            seen.append(attempt.number)
            if attempt.number < 2:
                raise ConnectionRefusedError
            attempt.complete(200)
    assert seen == [1, 2]


def test_foreign_exceptions_cancel(mesh):
    attempt = mesh.request("web").choose_host()
    with pytest.raises(KeyError):
        with attempt:
            raise KeyError("mine")
    assert attempt.verdict is None
    assert idle(mesh) and counter(mesh, "upstream_rq_5xx") == 0


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_client_gone(mesh, kind):
    call = mesh.request("web")
    attempt = call.choose_host()
    with pytest.raises(kind):
        with attempt:
            raise kind
    assert idle(mesh)
    with pytest.raises(nexthop.UsageError) as raised:
        call.choose_host()
    assert raised.value.code == "ended"


def test_answered_ends_at_the_end(mesh):
    with mesh.request("web").choose_host() as attempt:
        attempt.on_headers(200)
        assert gauge(mesh, "upstream_rq_active") == 1
    assert idle(mesh)


def test_answered_and_broken(mesh):
    with pytest.raises(ConnectionResetError):
        with mesh.request("web").choose_host() as attempt:
            attempt.on_headers(200)
            raise ConnectionResetError
    assert idle(mesh)


def test_a_late_report_hides_nothing(mesh):
    with pytest.raises(ValueError):
        with mesh.request("web").choose_host() as attempt:
            attempt.complete(200)
            raise ValueError


def test_request_scope(mesh):
    with mesh.request("web") as call:
        call.choose_host()
        assert isinstance(call, nexthop.Request)
    assert idle(mesh)

    async def scope():
        async with mesh.request("web") as call:
            await call.choose_host_async()

    asyncio.run(scope())
    assert idle(mesh)


def test_dropped_request(mesh):
    call = mesh.request("web")
    attempt = call.choose_host()
    del call
    gc.collect()
    assert gauge(mesh, "upstream_rq_active") == 1, "an attempt holds its request"
    assert attempt.complete(200).action == "forward"
    del attempt
    assert idle(mesh)


def test_dropped_in_backoff_gives_the_retry_slot_back(mesh):
    call = mesh.request("web")
    assert call.choose_host().complete(503).retry
    assert gauge(mesh, "upstream_rq_active") == 0
    del call
    assert "live_requests=0" in repr(mesh)


def test_engine_scope():
    from conftest import cluster, engine

    with engine(cluster("web")) as mesh:
        attempt = mesh.choose_host("web")
    for use in (
        lambda: mesh.choose_host("web"),
        lambda: mesh.request("web").choose_host(),
        lambda: mesh.stats(),
        lambda: mesh.maintain(),
        lambda: attempt.complete(200),
    ):
        with pytest.raises(nexthop.UsageError) as raised:
            use()
        assert raised.value.code == "closed"
    mesh.close()
    assert "closed" in repr(mesh)

    async def scope():
        async with engine(cluster("web")) as mesh:
            mesh.choose_host("web").complete(200)

    asyncio.run(scope())
