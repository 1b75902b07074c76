"""Waiting for the next attempt: threads, asyncio, trio.

Whoever completes an attempt wakes; a sleeper also asks again by itself every second. It listens before it
asks a last time, so a turn given in between is not missed.
"""

import asyncio
import sys
import threading
import time
from typing import Any, Union

from ._errors import Refused
from ._nexthop import Attempt, Attempts, Request, Wait

LONGEST = 1.0


class _Threads:
    """Sleeps in a thread; `threading.Event` is what gevent and eventlet replace."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.wake = self.event.set

    def sleep(self, seconds: float) -> None:
        self.event.wait(seconds)


class AsyncioSleeper:
    """Sleeps in an asyncio task; woken from its own loop or from any thread."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.future: asyncio.Future[None] = self.loop.create_future()

    def _done(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def wake(self) -> None:
        if threading.get_ident() == self.thread:
            self._done()
            return
        try:
            self.loop.call_soon_threadsafe(self._done)
        except RuntimeError:
            pass  # The loop is closed: nobody sleeps there any more.

    async def sleep(self, seconds: float) -> None:
        timer = self.loop.call_later(seconds, self._done)
        try:
            await self.future
        finally:
            timer.cancel()


class TrioSleeper:
    """Sleeps in a trio task; a foreign thread must go through the token."""

    def __init__(self, trio: Any) -> None:
        self.trio = trio
        self.thread = threading.get_ident()
        self.token = trio.lowlevel.current_trio_token()
        self.event = trio.Event()

    def wake(self) -> None:
        if threading.get_ident() == self.thread:
            self.event.set()
            return
        try:
            self.token.run_sync_soon(self.event.set)
        except self.trio.RunFinishedError:
            pass

    async def sleep(self, seconds: float) -> None:
        with self.trio.move_on_after(seconds):
            await self.event.wait()


def running_trio() -> Any:
    """The module trio when this code runs in a trio task, else None. Never imports it."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


def sleeper() -> Union[AsyncioSleeper, TrioSleeper]:
    trio = running_trio()
    return AsyncioSleeper() if trio is None else TrioSleeper(trio)


def _attempt(answer: Union[Attempt, Refused]) -> Attempt:
    if isinstance(answer, Refused):
        raise answer
    return answer


def choose(call: Request, wait: Wait, limit: Union[float, None], looped: bool) -> Attempt:
    """Waits in this thread until there is an attempt, or `limit` seconds are over."""
    until = None if limit is None else time.monotonic() + limit
    answer: Union[Attempt, Wait, Refused] = wait
    try:
        while isinstance(answer, Wait):
            here = _Threads()
            call._on_ready(here.wake)
            answer = call._step(looped)
            if isinstance(answer, Wait):
                seconds = min(answer.seconds, LONGEST)
                if until is not None:
                    left = until - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(f"no attempt within {limit} s ({answer.reason})")
                    seconds = min(seconds, left)
                here.sleep(seconds)
                answer = call._step(looped)
    except Exception:
        raise
    except BaseException:
        call.close()
        raise
    finally:
        call._not_waiting()
    return _attempt(answer)


async def choose_async(call: Request, looped: bool = False) -> Attempt:
    """Waits in this task; a cancelled one gives its place up."""
    try:
        answer = call._step(looped)
        while isinstance(answer, Wait):
            here = sleeper()
            call._on_ready(here.wake)
            answer = call._step(looped)
            if isinstance(answer, Wait):
                await here.sleep(min(answer.seconds, LONGEST))
                answer = call._step(looped)
    except Exception:
        raise
    except BaseException:
        call.close()
        raise
    finally:
        call._not_waiting()
    return _attempt(answer)


async def next_async(attempts: Attempts, call: Request, wait: Wait) -> Attempt:
    """The next step of an `async for` that has to wait."""
    attempt = await choose_async(call, True)
    attempts._keep(attempt)
    return attempt
