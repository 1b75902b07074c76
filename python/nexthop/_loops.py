"""The ready-made loops."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ._hedging import race
from ._nexthop import Attempt, Request
from ._tries import drop, goes_on, one, settle

T = TypeVar("T")


def run(call: Request, send: Callable[[Attempt], T]) -> T:
    attempts = iter(call)
    while True:
        attempt = next(attempts)
        value: Any = None
        with attempt:
            value = send(attempt)
            settle(attempt)
        if not goes_on(attempt):
            return value  # type: ignore[no-any-return]
        close = getattr(value, "close", None)
        if callable(close):
            close()


async def run_async(call: Request, send: Callable[[Attempt], Awaitable[T]]) -> T:
    attempts = aiter(call)
    while True:
        attempt = await anext(attempts)
        if attempt.hedge_after is not None:
            return await race(call, attempt, send)
        value = await one(attempt, send)
        if not goes_on(attempt):
            return value  # type: ignore[return-value]
        await drop(value)
