"""A body that was handed the attempt ends it: at its end, by its error, when closed early, when dropped."""

from __future__ import annotations

import asyncio
import gc

import pytest
from conftest import counter, gauge, idle

import nexthop


def answered(mesh):
    call = mesh.request("web")
    attempt = call.choose_host()
    attempt.on_headers(200)
    return call, attempt


def test_read_to_the_end(mesh):
    call, attempt = answered(mesh)
    closed = []
    body = attempt.body_sync(iter([b"a", b"b"]), close=lambda: closed.append(1))
    with attempt, call:
        pass
    call.close()
    assert gauge(mesh, "upstream_rq_active") == 1, "scopes leave it alone"
    del call, attempt
    assert list(body) == [b"a", b"b"]
    assert closed == [1] and idle(mesh)


def test_broken_body(mesh):
    _, attempt = answered(mesh)

    def chunks():
        yield b"a"
        raise ConnectionResetError

    body = attempt.body_sync(chunks())
    assert next(body) == b"a"
    with pytest.raises(ConnectionResetError):
        next(body)
    assert idle(mesh)


def test_closed_early(mesh):
    _, attempt = answered(mesh)
    body = attempt.body_sync(iter([b"a", b"b"]))
    next(body)
    body.close()
    assert idle(mesh)


def test_never_read(mesh):
    _, attempt = answered(mesh)
    body = attempt.body_sync(iter([b"a"]))
    del attempt, _
    assert gauge(mesh, "upstream_rq_active") == 1
    del body
    gc.collect()
    assert idle(mesh)


def test_needs_headers_first(mesh):
    attempt = mesh.request("web").choose_host()
    with pytest.raises(nexthop.UsageError) as raised:
        attempt.body_sync(iter([]))
    assert raised.value.code == "state"
    with pytest.raises(nexthop.UsageError):
        attempt.body(None)


def test_of_an_ended_attempt_passes_through(mesh):
    attempt = mesh.request("web").choose_host()
    attempt.complete(200)
    assert list(attempt.body_sync(iter([1, 2]))) == [1, 2]


def test_async_gateway_hands_over_and_returns(mesh):
    closed = []

    class Upstream:
        async def chunks(self):
            for chunk in (b"a", b"b", b"c"):
                await asyncio.sleep(0)
                yield chunk

        async def aclose(self):
            closed.append(1)

    async def handler():
        up = Upstream()
        async for attempt in mesh.request("web"):
            async with attempt:
                assert not attempt.on_headers(200).retry
                return attempt.body(up.chunks(), close=up.aclose)

    async def main():
        body = await handler()
        gc.collect()
        assert gauge(mesh, "upstream_rq_active") == 1
        return [chunk async for chunk in body]

    assert asyncio.run(main()) == [b"a", b"b", b"c"]
    assert closed == [1] and idle(mesh)


@pytest.mark.parametrize("way", ["aclose", "cancel", "error"])
def test_async_body_that_does_not_end(mesh, way):
    async def chunks():
        yield b"a"
        if way == "error":
            raise ConnectionResetError
        await asyncio.sleep(60)

    async def main():
        _, attempt = answered(mesh)
        body = attempt.body(chunks())
        assert await anext(body) == b"a"
        if way == "aclose":
            await body.aclose()
        elif way == "error":
            with pytest.raises(ConnectionResetError):
                await anext(body)
        else:
            reading = asyncio.ensure_future(anext(body))
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading

    asyncio.run(main())
    assert idle(mesh) and counter(mesh, "upstream_rq_200") == 1
