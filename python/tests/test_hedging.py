"""Attempts side by side in `run_async`: the first forwarded answer wins, the others are aborted.

The engine's part is played by a script: what it answers to each question, and what it says to each report.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
import trio
from conftest import RETRY, cluster, engine, route

import nexthop
from nexthop._hedging import race

SLEEP = {"asyncio": asyncio.sleep, "trio": trio.sleep}
RUN = {"asyncio": lambda main: asyncio.run(main()), "trio": trio.run}
SOON = 0.01


@pytest.fixture(params=sorted(RUN))
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def backoff():
    """A wait of ten milliseconds at most."""
    with engine(cluster("web"), routes=[route("web", retry_policy=RETRY)]) as mesh:
        call = mesh.request("web")
        call.choose_host().complete(503)
        yield call.try_choose_host()


class Attempt:
    def __init__(self, number, hedge_after=None):
        self.number = number
        self.hedge_after = hedge_after
        self.verdict = None
        self.cancelled = False

    def report(self, action, call=None):
        self.verdict = SimpleNamespace(action=action)
        if call is not None:
            call.waker()

    def complete(self):
        self.report("forward")

    def cancel(self):
        self.cancelled = True

    def _is_open(self):
        return self.verdict is None and not self.cancelled

    async def __aenter__(self):
        return self

    async def __aexit__(self, _kind, error, _trace):
        if isinstance(error, ConnectionError) and self._is_open():
            self.report("retry" if self.number < 3 else "forward")
        return error is not None and self.verdict is not None and self.verdict.action == "retry"


class Call:
    def __init__(self, *answers):
        self.answers = list(answers)
        self.closed = False
        self.waker = lambda: None

    def _step(self, looped):
        assert looped
        answer = self.answers.pop(0)
        return answer

    def _on_ready(self, waker):
        self.waker = waker

    def _not_waiting(self):
        self.waker = lambda: None

    def close(self):
        self.closed = True


def drive(kind, call, first, send):
    async def main():
        return await race(call, first, send)

    return RUN[kind](main)


def test_the_fast_one_wins(kind, backoff):
    first, second = Attempt(1, SOON), Attempt(2)
    ended = []

    async def send(attempt):
        try:
            if attempt is first:
                await SLEEP[kind](30)
            return attempt.number
        finally:
            ended.append(attempt.number)

    assert drive(kind, Call(backoff, second), first, send) == 2
    assert ended == [2, 1] and first.cancelled and not second.cancelled


def test_no_hedge_when_the_first_is_fast(kind):
    async def send(attempt):
        return "fast"

    assert drive(kind, Call(), Attempt(1, 30), send) == "fast"


def test_a_discarded_answer_is_closed(kind, backoff):
    first, second = Attempt(1, SOON), Attempt(2)
    closed = []

    async def send(attempt):
        if attempt is first:
            await SLEEP[kind](0.05)
            attempt.report("discard")
            return SimpleNamespace(close=lambda: closed.append(1))
        while not closed:
            await SLEEP[kind](SOON)
        return "good"

    assert drive(kind, Call(second, backoff, *[backoff] * 999), first, send) == "good"
    assert closed == [1]


def test_losers_stop_when_the_winner_has_headers(kind):
    """The winner's headers end the race, not the end of its body."""
    first, second = Attempt(1, SOON), Attempt(2)
    call = Call(second)
    stopped = []

    async def send(attempt):
        if attempt is first:
            try:
                await SLEEP[kind](30)
            finally:
                stopped.append(1)
        attempt.report("forward", call)
        while not stopped:
            await SLEEP[kind](SOON)
        return "streamed"

    assert drive(kind, call, first, send) == "streamed"
    assert first.cancelled


def test_the_programs_own_exception_ends_it(kind):
    second = Attempt(2)
    aborted = []

    async def send(attempt):
        if attempt is second:
            attempt.cancel()
            raise LookupError("mine")
        try:
            await SLEEP[kind](30)
        finally:
            aborted.append(1)

    with pytest.raises(LookupError, match="mine"):
        drive(kind, Call(second), Attempt(1, SOON), send)
    assert aborted == [1]


def test_failures_are_retried_and_the_last_is_raised(kind, backoff):
    numbers = []

    async def send(attempt):
        numbers.append(attempt.number)
        raise ConnectionResetError(attempt.number)

    with pytest.raises(ConnectionResetError):
        drive(kind, Call(backoff, Attempt(2), backoff, Attempt(3)), Attempt(1, 30), send)
    assert numbers == [1, 2, 3]


def test_a_refusal_aborts_all(kind):
    with engine(cluster("web", [])) as mesh:
        refused = mesh.request("web").try_choose_host()
    first = Attempt(1, SOON)

    async def send(attempt):
        await SLEEP[kind](30)

    with pytest.raises(nexthop.Refused):
        drive(kind, Call(refused), first, send)
    assert first.cancelled


def test_cancelled_from_outside():
    call, first = Call(), Attempt(1, 30)

    async def main():
        task = asyncio.create_task(race(call, first, lambda attempt: asyncio.sleep(30)))
        await asyncio.sleep(SOON)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert call.closed and first.cancelled

    call, first = Call(), Attempt(1, 30)

    async def in_trio():
        with trio.move_on_after(SOON):
            await race(call, first, lambda attempt: trio.sleep(30))

    trio.run(in_trio)
    assert call.closed and first.cancelled
