"""Events on their way to a log, on a clock moved by hand: rounds are made by `flush`."""

import asyncio
import io
import json
import logging
import os
import threading

import pytest
from conftest import cluster, engine

import nexthop

NEVER = 3600.0


def failing() -> nexthop.Engine:
    """Two failures eject a host, for 30 s."""
    detection = {
        "consecutive_5xx": 2,
        "base_ejection_time": "30s",
        "interval": "10s",
        "max_ejection_percent": 100,
    }
    return engine(cluster("web", 2, outlier_detection=detection))


def eject_all(mesh: nexthop.Engine) -> None:
    for _ in range(4):
        mesh.choose_host("web").complete(500)


def actions(text: str) -> list[str]:
    events = [json.loads(line) for line in text.splitlines()]
    assert all(event["cluster_name"] == "web" for event in events)
    return [event["action"] for event in events]


BOTH = ["EJECT"] * 2
BACK = ["UNEJECT"] * 2


def test_a_file_that_is_moved_away_and_the_engines_end(tmp_path):
    path, old = tmp_path / "events.jsonl", tmp_path / "events.jsonl.1"
    with failing() as mesh:
        log = mesh.log_events(path, every=NEVER)
        log.flush()
        eject_all(mesh)
        assert log.flush() == 2
        path.rename(old)
        mesh.advance(31)  # Nobody calls but the log: their time is over.
    assert actions(old.read_text()) == BOTH
    assert actions(path.read_text()) == BACK, "the engine's end writes what is left"
    log.close()
    assert log.error is None and mesh._logs == []


@pytest.mark.parametrize("binary", [False, True])
def test_open_files(binary):
    stream = io.BytesIO() if binary else io.StringIO()
    with failing() as mesh, mesh.log_events(stream, every=NEVER):
        eject_all(mesh)
    found = stream.getvalue()
    assert actions(found.decode() if isinstance(found, bytes) else found) == BOTH


def test_loggers(caplog):
    with caplog.at_level(logging.INFO, "events"), failing() as mesh:
        mesh.log_events(logging.getLogger("events"), every=NEVER)
        eject_all(mesh)
    assert actions("\n".join(caplog.messages)) == BOTH
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_a_line_that_could_not_be_written_comes_first():
    lines: list[str] = []
    full = [False]

    def sink(line: str) -> None:
        if full[0]:
            raise OSError("no space left")
        lines.append(line)

    with failing() as mesh:
        log = mesh.log_events(sink, every=NEVER)
        log.flush()
        full[0] = True
        eject_all(mesh)
        with pytest.raises(OSError, match="no space"):
            log.flush()
        assert isinstance(log.error, OSError) and lines == []
        full[0] = False
        assert log.flush() == 2 and log.error is None
    assert actions("\n".join(lines)) == BOTH


def test_the_thread_writes_by_itself():
    came = threading.Semaphore(0)
    with failing() as mesh:
        log = mesh.log_events(lambda line: came.release(), every=0.001)
        eject_all(mesh)
        assert came.acquire(timeout=30) and came.acquire(timeout=30)
        log.close()
        mesh.advance(31)
        assert log.flush() == 2, "a closed log can still be flushed"


def test_tasks():
    lines: list[str] = []

    async def main() -> None:
        with failing() as mesh:
            task = asyncio.ensure_future(mesh.log_events_async(lines.append, every=0.001))
            eject_all(mesh)
            while len(lines) < 2:
                await asyncio.sleep(0)
            mesh.advance(31)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert actions("\n".join(lines)) == BOTH + BACK, "a cancelled task writes what is left"

    asyncio.run(asyncio.wait_for(main(), 60))


def test_tasks_of_trio():
    trio = pytest.importorskip("trio")
    lines: list[str] = []

    async def main() -> None:
        with failing() as mesh:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(mesh.log_events_async, lines.append)
                await trio.lowlevel.checkpoint()
                eject_all(mesh)
                nursery.cancel_scope.cancel()

    trio.run(main)
    assert actions("\n".join(lines)) == BOTH


def test_a_task_ends_with_its_engine():
    async def main() -> None:
        mesh = failing()
        task = asyncio.ensure_future(mesh.log_events_async(lambda line: None, every=0.001))
        await asyncio.sleep(0)
        mesh.close()
        await task

    asyncio.run(asyncio.wait_for(main(), 60))


def test_wrong_use():
    with failing() as mesh:
        for every in (0, -1, float("nan"), float("inf"), "1"):
            with pytest.raises(nexthop.UsageError) as raised:
                mesh.log_events("x", every=every)
            assert raised.value.code == "invalid"
        with pytest.raises(TypeError, match="a path, a logging.Logger"):
            mesh.log_events(7)
    with pytest.raises(nexthop.UsageError) as raised:
        mesh.log_events("x")
    assert raised.value.code == "closed" and not os.path.exists("x")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_logs_go_on_in_a_child(tmp_path):
    path = tmp_path / "events.jsonl"
    with failing() as mesh:
        log = mesh.log_events(path, every=NEVER)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                eject_all(mesh)
                assert log._thread is not None and log._thread.is_alive()
                mesh.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert actions(path.read_text()) == BOTH
