"""Events on their way to a log: a thread or a task that hands each line to a sink."""

import asyncio
import atexit
import io
import logging
import math
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Union

from ._errors import UsageError
from ._nexthop import Engine
from ._types import EventSink
from ._waiting import running_trio

_Write = Callable[[str], object]


def _to_file(path: Union[str, "os.PathLike[str]"]) -> _Write:
    def write(line: str) -> None:
        # Opened for each line, so that whoever rotates logs needs to tell nobody; in one piece, since other processes
        # may append to the same file.
        with open(path, "ab", buffering=0) as file:
            file.write(line.encode() + b"\n")

    return write


def _to_stream(stream: Any) -> _Write:
    binary = isinstance(stream, (io.RawIOBase, io.BufferedIOBase))

    def write(line: str) -> None:
        stream.write(line.encode() + b"\n" if binary else line + "\n")
        flush = getattr(stream, "flush", None)
        if flush is not None:
            flush()

    return write


def _writer(sink: EventSink) -> _Write:
    if isinstance(sink, (str, os.PathLike)):
        return _to_file(sink)
    if isinstance(sink, (logging.Logger, logging.LoggerAdapter)):
        return lambda line: sink.info("%s", line)
    if hasattr(sink, "write"):
        return _to_stream(sink)
    if callable(sink):
        return sink
    kinds = "a path, a logging.Logger, a file or a function"
    raise TypeError(f"sink: expected {kinds}, found {type(sink).__name__}")


class EventLog:
    """A log of an engine's events. It holds the engine until either is closed, which writes what is left.

    Any number of threads may use it. Two logs of one engine share its events: each line goes to one of them.
    """

    def __init__(self, engine: Engine, sink: EventSink, every: float) -> None:
        if not isinstance(every, (int, float)) or not 0 < every < math.inf:
            raise UsageError(f"every is {every!r}; it must be seconds above 0", "invalid")
        self._write = _writer(sink)
        self._every = float(every)
        self._engine = engine
        self._kept: Union[str, None] = None
        self._error: Union[Exception, None] = None
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: Union[threading.Thread, None] = None
        engine.maintain()  # A closed engine has no log.
        engine._logs.append(self)

    @property
    def error(self) -> Union[Exception, None]:
        """Why the sink failed in the newest round; None when it did not."""
        return self._error

    def flush(self) -> int:
        """Writes now what there is, and gives the number of lines. Raises what the sink raises; its line is kept."""
        written = 0
        with self._lock:
            try:
                # Sweeps and the ends of ejections happen here when no request makes them happen.
                self._engine.maintain()
                line = self._kept or self._engine._event()
                while line is not None:
                    self._kept = line
                    self._write(line)
                    self._kept = None
                    written += 1
                    line = self._engine._event()
            except Exception as error:
                self._error = error
                raise
            self._error = None
        return written

    def close(self) -> None:
        """Ends the loop and writes what is left. What the sink raises then is in `error`."""
        if self._stop.is_set():
            return
        self._stop.set()
        atexit.unregister(self.close)
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._round()
        try:
            self._engine._logs.remove(self)
        except ValueError:
            pass  # A child of a fork, or another thread's close.

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _round(self) -> bool:
        """One round of the loop; False when the engine is closed."""
        try:
            self.flush()
        except UsageError as error:
            return error.code != "closed"
        except Exception:
            pass  # `error` tells.
        return True

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="nexthop-events", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._round() and not self._stop.wait(self._every):
            pass

    def _after_fork(self) -> None:
        """The child has neither the parent's threads nor its events."""
        if self._thread is None or self._stop.is_set():
            return
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._kept = None
        self._start()


_threads: "weakref.WeakSet[EventLog]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for log in list(_threads):
        log._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def start(engine: Engine, sink: EventSink, every: float) -> EventLog:
    log = EventLog(engine, sink, every)
    _threads.add(log)
    # The interpreter ends daemon threads wherever they are.
    atexit.register(log.close)
    log._start()
    return log


async def run(engine: Engine, sink: EventSink, every: float) -> None:
    log = EventLog(engine, sink, every)
    trio = running_trio()
    try:
        while log._round() and not log._stop.is_set():
            await (asyncio.sleep(every) if trio is None else trio.sleep(every))
    finally:
        log.close()
