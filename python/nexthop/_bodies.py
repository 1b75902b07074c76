"""Response bodies that report their attempt: at their end, by their error, when they are closed early."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar, Union

from ._errors import UsageError
from ._nexthop import Attempt

T = TypeVar("T")


def _broke(attempt: Attempt, error: BaseException) -> None:
    try:
        attempt.fail(error)
    except UsageError:
        pass  # It has ended by other means; the stream's own error is the one to see.


async def stream(
    attempt: Attempt,
    chunks: AsyncIterator[T],
    close: Union[Callable[[], Awaitable[None]], None],
) -> AsyncIterator[T]:
    try:
        async for chunk in chunks:
            yield chunk
    except BaseException as error:
        _broke(attempt, error)
        raise
    else:
        attempt.end()
    finally:
        if close is not None:
            await close()


def stream_sync(
    attempt: Attempt, chunks: Iterator[T], close: Union[Callable[[], object], None]
) -> Iterator[T]:
    try:
        yield from chunks
    except BaseException as error:
        _broke(attempt, error)
        raise
    else:
        attempt.end()
    finally:
        if close is not None:
            close()
