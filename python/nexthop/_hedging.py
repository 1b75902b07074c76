"""Attempts side by side: the first answer that is forwarded wins, the others are aborted."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, Union

from ._errors import Refused
from ._nexthop import Attempt, Request, Wait
from ._tries import drop, goes_on, one
from ._waiting import LONGEST, running_trio, sleeper

T = TypeVar("T")


class _Race:
    """Tasks of one request; `finished` fills as they end, and each end wakes whoever waits."""

    def __init__(self, send: Callable[[Attempt], Awaitable[Any]]) -> None:
        self.send = send
        self.running: dict[Attempt, Any] = {}
        self.finished: list[tuple[Attempt, Any, Union[Exception, None]]] = []
        self.wake: Callable[[], None] = lambda: None

    async def work(self, attempt: Attempt) -> None:
        value, error = None, None
        try:
            value = await one(attempt, self.send)
        except Exception as raised:
            error = raised
        self.running.pop(attempt, None)
        self.finished.append((attempt, value, error))
        self.wake()

    def abort(self, keep: Union[Attempt, None] = None) -> None:
        """Aborts all but one; their attempts end first, so that their scopes have nothing to say."""
        for attempt, task in list(self.running.items()):
            if attempt is not keep:
                attempt.cancel()
                task.cancel()
                del self.running[attempt]


class _Asyncio(_Race):
    async def __aenter__(self) -> "_Asyncio":
        self.tasks: list[asyncio.Task[None]] = []
        return self

    def start(self, attempt: Attempt) -> None:
        task = asyncio.get_running_loop().create_task(self.work(attempt))
        self.running[attempt] = task
        self.tasks.append(task)

    async def __aexit__(self, *exc: object) -> None:
        self.abort()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class _Trio(_Race):
    async def __aenter__(self) -> "_Trio":
        self.trio = running_trio()
        self.manager = self.trio.open_nursery()
        self.nursery = await self.manager.__aenter__()
        return self

    def start(self, attempt: Attempt) -> None:
        scope = self.trio.CancelScope()
        self.running[attempt] = scope

        async def task() -> None:
            with scope:
                await self.work(attempt)

        self.nursery.start_soon(task)

    async def __aexit__(self, *exc: Any) -> None:
        self.abort()
        await self.manager.__aexit__(None, None, None)


async def race(call: Request, first: Attempt, send: Callable[[Attempt], Awaitable[T]]) -> T:
    """Runs `first` and whatever the engine adds; returns the winner's value."""
    group = _Asyncio(send) if running_trio() is None else _Trio(send)
    error: Union[BaseException, None] = None
    value: Any = None
    async with group:
        try:
            value = await _decide(call, first, group)
        except BaseException as raised:  # Leaves the group first: trio would wrap it.
            if not isinstance(raised, Exception):
                call.close()
            error = raised
        finally:
            call._not_waiting()
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


async def _decide(call: Request, first: Attempt, group: Union[_Asyncio, _Trio]) -> Any:
    group.start(first)
    ask = time.monotonic() + (first.hedge_after or 0.0)
    while True:
        here = sleeper()
        group.wake = here.wake
        call._on_ready(here.wake)
        for attempt in list(group.running):
            if attempt.verdict is not None and attempt.verdict.action == "forward":
                group.abort(keep=attempt)
                ask = float("inf")
        if not group.finished:
            await here.sleep(min(max(ask - time.monotonic(), 0.0), LONGEST))
        while group.finished:
            attempt, value, error = group.finished.pop(0)
            if not goes_on(attempt):
                group.abort()
                if error is not None:
                    raise error
                return value
            await drop(value)
            ask = min(ask, time.monotonic())
        if time.monotonic() < ask:
            continue
        answer = call._step(True)
        if isinstance(answer, Refused):
            group.abort()
            raise answer
        if isinstance(answer, Wait):
            ask = time.monotonic() + min(answer.seconds, LONGEST)
        else:
            group.start(answer)
            ask = time.monotonic() + (float("inf") if answer.hedge_after is None else answer.hedge_after)
