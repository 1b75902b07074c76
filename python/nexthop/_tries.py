"""One try, and what becomes of its answer."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, Union

from ._nexthop import Attempt

T = TypeVar("T")


def settle(attempt: Attempt) -> None:
    """A function that returns without a report has succeeded."""
    if attempt._is_open():
        attempt.complete()


def goes_on(attempt: Attempt) -> bool:
    """Whether this attempt's answer is to be dropped and another asked for."""
    verdict = attempt.verdict
    return verdict is not None and verdict.action in ("retry", "discard")


async def one(attempt: Attempt, send: Callable[[Attempt], Awaitable[T]]) -> Union[T, None]:
    """One try; None when it failed and a retry follows."""
    value: Union[T, None] = None
    async with attempt:
        value = await send(attempt)
        settle(attempt)
    return value


async def drop(value: object) -> None:
    """Closes an answer that nobody will read."""
    close = getattr(value, "aclose", None) or getattr(value, "close", None)
    if callable(close):
        pending = close()
        if hasattr(pending, "__await__"):
            await pending
