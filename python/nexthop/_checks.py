"""The loop that performs active checks, on asyncio; a thread of its own runs the same."""

import asyncio
import contextlib
import http.client
import inspect
import io
import ssl as tls
import threading
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, Union

from ._errors import UsageError
from ._nexthop import Check, Engine

LOOK = 1.0
TICK = 0.001
HEAD = 1 << 17
KEPT = 1 << 20

Others = Callable[[Check], Union[Awaitable[object], object]]


def _split(address: str) -> tuple[str, int]:
    name, _, port = address.rpartition(":")
    return name.strip("[]"), int(port)


async def _connect(check: Check, ssl: Union[tls.SSLContext, None]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    secure: dict[str, Any] = {}
    if check.secure:
        name = check.authority or check.host.hostname or check.address
        name = name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() else name
        secure = {"ssl": ssl or tls.create_default_context(), "server_hostname": name.strip("[]")}
    if check.address.startswith("/"):
        return await asyncio.open_unix_connection(check.address, limit=HEAD, **secure)
    host, port = _split(check.address)
    return await asyncio.open_connection(host, port, limit=HEAD, **secure)


async def _bytes(check: Check, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(check.payload)
    await writer.drain()
    received = b""
    while not check.data(received):
        chunk = await reader.read(1 << 16)
        if not chunk:
            raise ConnectionAbortedError("closed before the expected bytes came")
        received += chunk[: KEPT - len(received)]


def _request(check: Check) -> bytes:
    lines = [f"{check.method} {check.path} HTTP/1.1", f"host: {check.authority}", "connection: close"]
    if check.payload:
        lines.append(f"content-length: {len(check.payload)}")
    lines += [f"{name}: {value}" for name, value in check.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + check.payload


class _Body:
    """What is kept of a body; the rest is read and dropped."""

    def __init__(self, reader: asyncio.StreamReader, limit: Union[int, None]) -> None:
        self.reader = reader
        self.limit = KEPT if limit is None else limit
        self.kept = b""

    async def some(self, most: int) -> int:
        chunk = await self.reader.read(min(most, 1 << 16))
        self.kept += chunk[: max(0, self.limit - len(self.kept))]
        return len(chunk)

    async def exactly(self, left: int) -> None:
        while left:
            n = await self.some(left)
            if n == 0:
                raise http.client.IncompleteRead(self.kept, left)
            left -= n

    async def chunks(self) -> None:
        while size := int((await self.reader.readuntil(b"\n")).partition(b";")[0], 16):
            await self.exactly(size)
            await self.reader.readuntil(b"\n")
        while (await self.reader.readuntil(b"\n")).strip():
            pass


async def _answer(check: Check, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_request(check))
    await writer.drain()
    status = 100
    while 100 <= status < 200 and status != 101:
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
            first, _, rest = raw.partition(b"\r\n")
            status = int(first.split(b" ", 2)[1])
        except (asyncio.LimitOverrunError, ValueError, IndexError) as error:
            raise http.client.HTTPException("no head of a response") from error
    headers = http.client.parse_headers(io.BytesIO(rest))
    body = _Body(reader, check.body_limit)
    length = headers.get("content-length", "").strip()
    if check.method == "HEAD" or status in (101, 204, 304):
        pass
    elif "chunked" in headers.get("transfer-encoding", "").lower():
        try:
            await body.chunks()
        except (asyncio.LimitOverrunError, ValueError) as error:
            raise http.client.HTTPException("a malformed chunk") from error
    elif length.isdigit():
        await body.exactly(int(length))
    else:
        while await body.some(1 << 16):
            pass
    check.answer(status, list(headers.items()), body.kept)


async def _ask(check: Check, ssl: Union[tls.SSLContext, None]) -> None:
    reader, writer = await _connect(check, ssl)
    try:
        await (_bytes if check.protocol == "tcp" else _answer)(check, reader, writer)
    finally:
        # Nothing is to be waited for: an answer is there, or there will be none.
        writer.transport.abort()


class _Loop:
    def __init__(self, mesh: Engine, others: Union[Others, None], ssl: Union[tls.SSLContext, None]) -> None:
        self.mesh = mesh
        self.others = others
        self.ssl = ssl
        self.told: set[tuple[str, str]] = set()

    async def _perform(self, check: Check) -> None:
        if check.protocol != "custom" and not check.http2:
            return await _ask(check, self.ssl)
        if self.others is not None:
            answer = self.others(check)
            if inspect.isawaitable(answer):
                await answer
            return None
        if (check.cluster, check.name) not in self.told:
            self.told.add((check.cluster, check.name))
            what = f"custom ({check.extension})" if check.extension else f"{check.protocol} over HTTP/2"
            warnings.warn(
                f"the health check {check.name!r} of cluster {check.cluster!r} is {what}, which Python's standard library "
                "cannot perform: pass `others=` to run_checks or start_checks; until then its hosts count as unreachable",
                RuntimeWarning,
                stacklevel=2,
            )
        check.fail("local_connect_failure")

    async def one(self, check: Check) -> None:
        # A check that is over meanwhile (`ended`), or whose engine is closed, needs no report.
        with contextlib.suppress(UsageError):
            try:
                await asyncio.wait_for(self._perform(check), check.timeout)
            except (asyncio.TimeoutError, TimeoutError):
                check.fail("timeout")
            except UsageError:
                raise
            except Exception as error:
                check.fail(error)

    async def run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                try:
                    tasks.update(asyncio.ensure_future(self.one(check)) for check in self.mesh.checks())
                    due = self.mesh.checks_deadline()
                except UsageError as error:
                    if error.code == "closed":
                        return
                    raise
                # Updates bring checks unannounced; results set the next deadline.
                pause = min(max(LOOK if due is None else due, TICK), LOOK)
                if tasks:
                    _, tasks = await asyncio.wait(tasks, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(pause)
        finally:
            for task in tasks:
                task.cancel()


async def run_checks(
    mesh: Engine, others: Union[Others, None] = None, ssl: Union[tls.SSLContext, None] = None
) -> None:
    await _Loop(mesh, others, ssl).run()


class Checks:
    """Active checks that a thread performs. `close` ends it; so does closing the engine."""

    def __init__(self, mesh: Engine, others: Union[Others, None], ssl: Union[tls.SSLContext, None]) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=self._main, args=(mesh, others, ssl), name="nexthop-checks", daemon=True
        )
        self._loop: Union[asyncio.AbstractEventLoop, None] = None
        self._task: Union[asyncio.Task[None], None] = None
        self._thread.start()
        self._ready.wait()

    def _main(self, mesh: Engine, others: Union[Others, None], ssl: Union[tls.SSLContext, None]) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.ensure_future(run_checks(mesh, others, ssl))
            self._ready.set()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

        asyncio.run(main())

    def close(self) -> None:
        """Ends the thread. Hosts keep the health that they have."""
        if self._loop is not None and self._task is not None:
            # A loop that has ended meanwhile is what is wanted.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> "Checks":
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def start_checks(
    mesh: Engine, others: Union[Others, None] = None, ssl: Union[tls.SSLContext, None] = None
) -> Checks:
    return Checks(mesh, others, ssl)
