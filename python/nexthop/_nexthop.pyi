"""The compiled half. Everything here is safe to use from any thread."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from os import PathLike
from ssl import SSLContext
from types import TracebackType
from typing import Any, Final, Literal, TypeVar, final

from typing_extensions import Self, Unpack

from ._checks import Checks
from ._errors import Refused
from ._event_log import EventLog
from ._types import Dialect, Document, EventSink, Head, Headers, HostFields, Metric, Note, Options

_T = TypeVar("_T")

UNAVAILABLE: Final[LocalReply]
FAILURES: Final[list[str]]
__version__: Final[str]

def _empty() -> None: ...
def _after_fork_in_child() -> None: ...
@final
class Engine:
    """Clusters, routes and everything learned about them.

    Every call may raise `UsageError` (`code` is `invalid`, `state`, `closed`, `not_found` or `limit`) and has then changed
    nothing. Durations are seconds.
    """

    @classmethod
    def from_file(cls, *paths: str | PathLike[str], **options: Unpack[Options]) -> Engine:
        """An engine from files, at least one; `ConfigError` when one is refused or cannot be read."""
    @classmethod
    def from_str(cls, *documents: Document, **options: Unpack[Options]) -> Engine:
        """An engine from texts, at least one, or pairs of a name and a text; `ConfigError` when one is refused."""
    @property
    def epoch(self) -> int: ...
    def request(self, cluster: str | None = None, **head: Unpack[Head]) -> Request:
        """A request to a cluster, by a route, or, with neither, by the route tables."""
    def choose_host(
        self,
        cluster: str,
        *,
        attempt: int = 1,
        tried: Iterable[str] = (),
        wait: float | None = None,
        **head: Unpack[Head],
    ) -> Attempt:
        """A stateless attempt with this number, 1 to 2147483647; `tried` are addresses that earlier ones used.

        It waits only where the cluster says that it queues, at most `wait` seconds (then `TimeoutError`). Raises `Refused`.
        """
    def picker(self, cluster: str) -> Picker: ...
    def update_file(
        self, *paths: str | PathLike[str], dialect: Dialect = "", runtime: Mapping[str, Any] | str | None = None
    ) -> dict[str, Any]:
        """Replaces all documents, whole or not at all (`ConfigError`); the load report. `runtime` may come alone."""
    def update_str(
        self, *documents: Document, dialect: Dialect = "", runtime: Mapping[str, Any] | str | None = None
    ) -> dict[str, Any]:
        """The same from texts."""
    def reload(self) -> bool:
        """Reads changed files again; whether anything was taken over. Bad content is an event."""
    def set_hosts(self, cluster: str, hosts: Iterable[str | HostFields]) -> int:
        """Replaces the hosts of a cluster; the new epoch."""
    def apply(self, cluster: str, changes: Iterable[str | HostFields]) -> int: ...
    def apply_endpoints(self, cluster: str, document: str) -> int: ...
    def stats(self) -> dict[str, Any]: ...
    def metrics(self) -> list[Metric]: ...
    def prometheus(self) -> str: ...
    def load_report(self, *, whole: bool = False) -> dict[str, Any]: ...
    def effective(self, name: str) -> dict[str, Any]: ...
    def explain(
        self, cluster: str | None = None, *, attempt: int = 1, tried: Iterable[str] = (), **head: Unpack[Head]
    ) -> dict[str, Any]: ...
    def lint(self) -> dict[str, Any]: ...
    def hosts(self, cluster: str = "") -> list[dict[str, Any]]:
        """The hosts of a cluster (`not_found` for a name that nothing has), or of all."""
    def checks(self) -> list[Check]:
        """The active checks that are due, each handed out once.

        The first call begins active checking: before it hosts count as if no cluster had `health_checks`; those that
        serve at that moment go on until their first result.
        """
    def checks_deadline(self) -> float | None:
        """Seconds until checks are due; None when nothing is checked, or before the first `checks`.

        Updates of documents and hosts may bring checks that are due at once: look at least every second.
        """
    def run_checks(
        self, *, others: Callable[[Check], object] | None = None, ssl: SSLContext | None = None
    ) -> Coroutine[Any, Any, None]:
        """Performs active checks in the running asyncio loop until it is cancelled or the engine closed.

        HTTP/1.1 and TCP, with TLS by `ssl` (the default context without it), a connection each. Checks over HTTP/2 (gRPC
        too) and custom ones go to `others`, a function or coroutine function that reports them; without it their hosts
        count as unreachable, with a `RuntimeWarning` per checker.
        """
    def start_checks(
        self, *, others: Callable[[Check], object] | None = None, ssl: SSLContext | None = None
    ) -> Checks:
        """The same in a daemon thread."""
    def events(self) -> list[dict[str, Any]]:
        """Takes what happened since the last call, oldest first."""
    def log_events(self, sink: EventSink, *, every: float = 1.0) -> EventLog:
        """Starts a daemon thread that every so many seconds runs due maintenance and hands each event to `sink`, as a line
        of JSON, until the log or the engine is closed or the interpreter ends.

        `sink` is a path (appended to, opened for each line), a `logging.Logger` (level INFO), an open file, or a function.
        A line whose sink raises is kept for the next round; `EventLog.error` tells.
        """
    def log_events_async(self, sink: EventSink, *, every: float = 1.0) -> Coroutine[Any, Any, None]:
        """The same as a task of asyncio or trio, until it is cancelled or the engine is closed."""
    def _event(self) -> str | None: ...
    @property
    def _logs(self) -> list[EventLog]: ...
    def maintain(self) -> float | None:
        """Runs what is due; seconds until it is due again, None when nothing is."""
    def advance(self, seconds: float) -> None:
        """Moves a manual clock by seconds from 0 on; `state` for other clocks."""
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exc: object) -> None: ...
    def __aenter__(self) -> Awaitable[Self]: ...
    def __aexit__(self, *_exc: object) -> Awaitable[None]: ...

@final
class Request:
    """One downstream request. Iterate over it for its attempts."""

    @property
    def cluster(self) -> str: ...
    @property
    def route(self) -> str | None: ...
    @property
    def timeout(self) -> float | None:
        """Seconds of the global limit, None for none or before the first choice."""
    @property
    def reply(self) -> LocalReply | None: ...
    def choose_host(self, timeout: float | None = None) -> Attempt:
        """The next attempt; waits at most `timeout` seconds (then `TimeoutError`; ask again). Raises `Refused`."""
    def choose_host_async(self) -> Coroutine[Any, Any, Attempt]: ...
    def try_choose_host(self) -> Attempt | Wait | Refused:
        """Never waits, and returns refusals."""
    def run(self, send: Callable[[Attempt], _T]) -> _T: ...
    def run_async(self, send: Callable[[Attempt], Awaitable[_T]]) -> Coroutine[Any, Any, _T]: ...
    def response_headers(self) -> dict[str, str]: ...
    def body_complete(self) -> None:
        """A streaming upload is over: time-outs begin, before the first choice with it."""
    def note(self, what: Note) -> None: ...
    def close(self) -> None: ...
    def _step(self, looped: bool) -> Attempt | Wait | Refused: ...
    def _on_ready(self, waker: Callable[[], object]) -> None: ...
    def _not_waiting(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exc: object) -> None: ...
    def __aenter__(self) -> Awaitable[Self]: ...
    def __aexit__(self, *_exc: object) -> Awaitable[None]: ...
    def __iter__(self) -> Attempts: ...
    def __aiter__(self) -> Attempts: ...

@final
class Attempts:
    """Walks over a request's attempts while the last one's verdict is retry."""

    def __iter__(self) -> Self: ...
    def __aiter__(self) -> Self: ...
    def __next__(self) -> Attempt: ...
    def __anext__(self) -> Awaitable[Attempt]: ...
    def _keep(self, attempt: Attempt) -> None: ...

@final
class Attempt:
    """One upstream try: host, time-outs, and where to report."""

    @property
    def number(self) -> int: ...
    @property
    def host(self) -> Host: ...
    @property
    def cluster(self) -> str: ...
    @property
    def verdict(self) -> Verdict | None: ...
    @property
    def headers(self) -> Mapping[str, str | None]: ...
    @property
    def timeout(self) -> float | None:
        """Seconds to the response headers, None for no limit."""
    @property
    def remaining(self) -> float | None:
        """Seconds to the end of the body, None for no limit."""
    @property
    def idle_timeout(self) -> float | None:
        """Seconds that the response may be silent, None for no limit."""
    @property
    def hedge_after(self) -> float | None:
        """Seconds until asking for another attempt, None for never."""
    def url(self, path: str | None = None) -> str: ...
    def complete(
        self,
        status: int | None = None,
        headers: Headers | None = None,
        *,
        grpc_status: int | None = None,
        latency: float | None = None,
        detail: str | None = None,
    ) -> Verdict: ...
    def on_headers(
        self,
        status: int,
        headers: Headers | None = None,
        *,
        grpc_status: int | None = None,
        detail: str | None = None,
    ) -> Verdict: ...
    def end(self, *, trailers: Headers | None = None, grpc_status: int | None = None) -> None:
        """The response is over; `state` before `on_headers`, nothing when the attempt has ended."""
    def fail(self, failure: str | BaseException, detail: str = "") -> Verdict: ...
    def note(self, what: Note) -> None: ...
    def cancel(self) -> None: ...
    def body(
        self, chunks: AsyncIterator[_T], close: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator[_T]: ...
    def body_sync(
        self, chunks: Iterator[_T], close: Callable[[], object] | None = None
    ) -> Iterator[_T]: ...
    def explain(self) -> dict[str, Any]: ...
    def _is_open(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> bool: ...
    def __aenter__(self) -> Awaitable[Self]: ...
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Awaitable[bool]: ...

@final
class Picker:
    """The raw layer: one open attempt, no objects, small numbers."""

    def pick(self, attempt: int = 1, key: bytes | None = None, /) -> int: ...
    def complete(self, status: int = 0, /) -> int: ...

@final
class Verdict:
    """What to do with an attempt's result."""

    @property
    def retry(self) -> bool: ...
    @property
    def after(self) -> float:
        """Seconds of back-off."""
    @property
    def action(self) -> Literal["forward", "retry", "discard", "none"]: ...
    @property
    def reason(self) -> str: ...
    @property
    def status(self) -> int: ...
    @property
    def flags(self) -> str: ...

@final
class Wait:
    """Nothing now: ask again then."""

    @property
    def seconds(self) -> float:
        """Until asking again makes sense; infinite: only after a report."""
    @property
    def reason(self) -> Literal["queue", "backoff", "hedge", "attempts"]: ...

@final
class Host:
    """An upstream address with what the documents say about it."""

    @property
    def address(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def hostname(self) -> str: ...
    @property
    def cluster(self) -> str: ...
    @property
    def weight(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def zone(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def secure(self) -> bool: ...
    @property
    def connect_timeout(self) -> float | None: ...

@final
class Check:
    """A check to perform now: connect to `address`, ask, report once.

    What is not reported within `timeout` seconds counts as timed out. Every report may raise `UsageError` with the code
    `ended`: reported before, out of time, or the host has left; nothing has changed then.
    """

    @property
    def id(self) -> int: ...
    @property
    def host(self) -> Host: ...
    @property
    def cluster(self) -> str: ...
    @property
    def name(self) -> str:
        """Of the checker; empty when its cluster has one."""
    @property
    def protocol(self) -> Literal["http", "tcp", "grpc", "custom"]: ...
    @property
    def http2(self) -> bool: ...
    @property
    def secure(self) -> bool:
        """Whether the host speaks TLS."""
    @property
    def may_reuse(self) -> bool:
        """Whether one connection may carry many checks."""
    @property
    def extension(self) -> str:
        """Name of a custom check's extension; empty for others."""
    @property
    def address(self) -> str:
        """`ip:port` to connect to: the host's, unless the documents name another to check."""
    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def authority(self) -> str: ...
    @property
    def headers(self) -> list[tuple[str, str]]:
        """Of the request, besides its authority."""
    @property
    def payload(self) -> bytes:
        """A body, a framed gRPC message, or plain bytes to send."""
    @property
    def timeout(self) -> float: ...
    @property
    def body_limit(self) -> int | None:
        """Bytes of a response's body that are looked at; None for all."""
    def result(
        self,
        result: Literal["success", "degraded", "failed", "network", "timeout", "retriable", "passive"],
    ) -> None:
        """A result that the caller judged. `failed` fails the host at once; `network`, `timeout` and `retriable` count
        towards the threshold; `passive` is about data traffic: the check itself is still out.
        """
    def answer(
        self,
        status: int,
        headers: Headers | None = None,
        body: bytes | str = b"",
        *,
        grpc_status: int | None = None,
    ) -> None:
        """An answer over HTTP or gRPC, judged by the engine; `headers` may hold trailers, too."""
    def data(self, received: bytes | str) -> bool:
        """Everything that a TCP connection has brought so far, nothing once it is up; whether that decides the check."""
    def fail(self, failure: str | BaseException) -> None:
        """No (whole) answer. Time-outs count as such, everything else as a matter of the network."""

@final
class LocalReply:
    """What Envoy would answer by itself."""

    @property
    def status(self) -> int: ...
    @property
    def flags(self) -> str: ...
    @property
    def details(self) -> str: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def body(self) -> str: ...

@final
class Done:
    """An awaitable whose answer is there already."""

    def __await__(self) -> Generator[Any, Any, Any]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

def _program(arguments: list[str]) -> int: ...
