"""Hedging: attempts side by side in `run_async`; the first forwarded answer wins."""

from __future__ import annotations

import asyncio

import pytest
import trio
from conftest import cluster, engine, idle, route

POLICY = {
    "retry_on": "5xx",
    "num_retries": 2,
    "per_try_timeout": "0.030s",
    "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.001s"},
}
HEDGED = {"retry_policy": POLICY, "hedge_policy": {"hedge_on_per_try_timeout": True}, "timeout": "20s"}
SLEEP = {"asyncio": asyncio.sleep, "trio": trio.sleep}
RUN = {"asyncio": lambda main: asyncio.run(main()), "trio": trio.run}


@pytest.fixture
def mesh():
    with engine(cluster("web"), routes=[route("web", **HEDGED)], clock="precise") as made:
        yield made


@pytest.fixture(params=sorted(RUN))
def kind(request):
    return request.param


def drive(mesh, kind, send):
    async def main():
        return await mesh.request("web").run_async(send)

    return RUN[kind](main)


def test_the_fast_one_wins(mesh, kind):
    ended = []

    async def send(attempt):
        assert attempt.hedge_after is None or attempt.hedge_after <= 0.030
        try:
            if attempt.number == 1:
                await SLEEP[kind](30)
            attempt.complete(200)
            return attempt.number
        finally:
            ended.append(attempt.number)

    assert drive(mesh, kind, send) == 2
    assert sorted(ended) == [1, 2], "the loser was cancelled and has ended"
    assert idle(mesh)


def test_no_hedge_when_the_first_is_fast(mesh, kind):
    numbers = []

    async def send(attempt):
        numbers.append(attempt.number)
        attempt.complete(200)
        return "fast"

    assert drive(mesh, kind, send) == "fast"
    assert numbers == [1] and idle(mesh)


def test_a_bad_answer_is_discarded_while_another_runs(mesh, kind):
    async def send(attempt):
        if attempt.number == 1:
            await SLEEP[kind](0.060)
            assert attempt.complete(500).action in ("discard", "retry")
            return "bad"
        await SLEEP[kind](0.200 if attempt.number == 2 else 30)
        attempt.complete(200)
        return "good"

    assert drive(mesh, kind, send) == "good"
    assert idle(mesh)


def test_losers_stop_when_the_winner_streams(mesh, kind):
    """The winner's headers end the race, not the end of its body."""
    stopped = []

    async def send(attempt):
        if attempt.number == 1:
            try:
                await SLEEP[kind](30)
            finally:
                stopped.append(1)
        attempt.on_headers(200)
        for _ in range(200):
            if stopped:
                break
            await SLEEP[kind](0.01)
        attempt.end()
        return list(stopped)

    assert drive(mesh, kind, send) == [1]
    assert idle(mesh)


def test_exceptions_of_the_program_end_it(mesh, kind):
    async def send(attempt):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        drive(mesh, kind, send)
    assert idle(mesh)


def test_failures_are_retried_and_the_last_is_raised(mesh, kind):
    numbers = []

    async def send(attempt):
        numbers.append(attempt.number)
        raise ConnectionResetError(attempt.number)

    with pytest.raises(ConnectionResetError):
        drive(mesh, kind, send)
    assert numbers == [1, 2, 3] and idle(mesh)


def test_cancelled_from_outside(mesh):
    async def send(attempt):
        await asyncio.sleep(30)

    async def main():
        task = asyncio.create_task(mesh.request("web").run_async(send))
        await asyncio.sleep(0.06)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert idle(mesh)

    async def in_trio():
        with trio.move_on_after(0.06):
            await mesh.request("web").run_async(lambda attempt: trio.sleep(30))

    trio.run(in_trio)
    assert idle(mesh)
