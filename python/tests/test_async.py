"""asyncio and trio: iteration, queues, cancellation before and after a turn was given."""

from __future__ import annotations

import asyncio
import threading

import pytest
import trio
from conftest import breakers, cluster, counter, engine, gauge, idle, route

import nexthop

ONE = {"circuit_breakers": breakers(max_connections=1, max_pending_requests=64, max_requests=64)}
RUNNERS = {"asyncio": lambda main: asyncio.run(main()), "trio": trio.run}


def narrow(**options):
    """One connection at a time; more wait."""
    return engine(cluster("web", 1, **ONE), routes=[route("web", timeout="60s")], **options)


@pytest.fixture(params=sorted(RUNNERS))
def run(request):
    return RUNNERS[request.param]


def test_async_iteration(mesh, jump, run):
    slept = jump(mesh)
    numbers = []

    async def main():
        async for attempt in mesh.request("web"):
            async with attempt:
                numbers.append(attempt.number)
                attempt.complete(503 if attempt.number < 3 else 200)

    run(main)
    assert numbers == [1, 2, 3] and len(slept) == 2 and idle(mesh)


def test_async_with_swallows_a_retried_exception(mesh, jump, run):
    jump(mesh)
    numbers = []

    async def main():
        async for attempt in mesh.request("web"):
            async with attempt:
                numbers.append(attempt.number)
                raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        run(main)
    assert numbers == [1, 2, 3] and idle(mesh)


def test_backoff_really_sleeps(run):
    from conftest import RETRY

    with engine(cluster("web"), routes=[route("web", retry_policy=RETRY)], clock="precise") as mesh:

        async def main():
            verdicts = []
            async for attempt in mesh.request("web"):
                verdicts.append(attempt.complete(503).action)
            return verdicts

        assert run(main) == ["retry", "retry", "forward"]
        assert [a.complete(503).action for a in mesh.request("web")] == ["retry", "retry", "forward"]


def test_refusal_ends_an_async_iteration(run):
    with engine(cluster("web", []), routes=[route("web")]) as mesh:

        async def main():
            async for _ in mesh.request("web"):
                pass

        with pytest.raises(nexthop.Refused):
            run(main)


def test_queue_in_one_loop():
    with narrow() as mesh:
        order = []

        async def one(n):
            async for attempt in mesh.request("web"):
                async with attempt:
                    order.append(n)
                    await asyncio.sleep(0)
                    attempt.complete(200)

        async def main():
            await asyncio.gather(*(one(n) for n in range(20)))

        asyncio.run(main())
        assert order == list(range(20)), "the oldest waiter goes first"
        assert idle(mesh)


def test_queue_in_trio():
    with narrow() as mesh:
        order = []

        async def one(n):
            attempt = await mesh.request("web").choose_host_async()
            order.append(n)
            await trio.lowlevel.checkpoint()
            attempt.complete(200)

        async def main():
            with trio.fail_after(20):
                async with trio.open_nursery() as nursery:
                    for n in range(20):
                        nursery.start_soon(one, n)

        trio.run(main)
        assert sorted(order) == list(range(20)) and idle(mesh)


def test_woken_from_another_thread(run):
    with narrow() as mesh:
        held = mesh.request("web").choose_host()
        asked = threading.Event()

        def finish():
            asked.wait(10)
            held.complete(200)

        other = threading.Thread(target=finish)
        other.start()

        async def main():
            call = mesh.request("web")
            assert isinstance(call.try_choose_host(), nexthop.Wait)
            asked.set()
            return (await call.choose_host_async()).complete(200)

        assert run(main).action == "forward"
        other.join()
        assert idle(mesh)


def test_cancelled_while_queued():
    with narrow() as mesh:
        held = mesh.request("web").choose_host()

        async def main():
            waiting = asyncio.create_task(mesh.request("web").choose_host_async())
            await asyncio.sleep(0)
            assert gauge(mesh, "upstream_rq_pending_active") == 1
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert gauge(mesh, "upstream_rq_pending_active") == 0

        asyncio.run(main())
        held.complete(200)
        assert idle(mesh)


def test_cancelled_as_granted():
    """The turn of one who was cancelled in the same instant goes to the next."""
    with narrow() as mesh:
        held = mesh.request("web").choose_host()

        async def main():
            first = asyncio.create_task(mesh.request("web").choose_host_async())
            second = asyncio.create_task(mesh.request("web").choose_host_async())
            await asyncio.sleep(0)
            held.complete(200)
            first.cancel()
            attempt = await asyncio.wait_for(second, 10)
            assert first.cancelled()
            attempt.complete(200)

        asyncio.run(main())
        assert idle(mesh)


def test_cancelled_in_trio():
    with narrow() as mesh:
        held = mesh.request("web").choose_host()

        async def main():
            with trio.move_on_after(0.01) as scope:
                await mesh.request("web").choose_host_async()
            assert scope.cancelled_caught

        trio.run(main)
        assert gauge(mesh, "upstream_rq_pending_active") == 0
        held.complete(200)
        assert idle(mesh)


def test_deadline_over_while_queued(jump, run):
    clusters = [cluster("web", 1, **ONE)]
    with engine(*clusters, routes=[route("web", timeout="2s")]) as mesh:
        jump(mesh)
        held = mesh.request("web").choose_host()
        call = mesh.request("web")

        async def main():
            await call.choose_host_async()

        with pytest.raises(nexthop.Refused) as raised:
            run(main)
        assert raised.value.refusal == "timeout" and raised.value.reply.status == 504
        assert call.reply is not None and call.reply.status == 504
        held.complete(200)
        assert idle(mesh)


def test_client_gone_inside_async_with():
    with narrow() as mesh:

        async def main():
            async def handler():
                async for attempt in mesh.request("web"):
                    async with attempt:
                        await asyncio.sleep(60)

            task = asyncio.create_task(handler())
            await asyncio.sleep(0)
            assert gauge(mesh, "upstream_rq_active") == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert idle(mesh)


def test_close_from_outside_wakes_the_waiter(run):
    with narrow() as mesh:
        held = mesh.request("web").choose_host()
        call = mesh.request("web")
        assert isinstance(call.try_choose_host(), nexthop.Wait)
        timer = threading.Timer(0.01, call.close)
        timer.start()

        async def main():
            await call.choose_host_async()

        with pytest.raises(nexthop.UsageError) as raised:
            run(main)
        assert raised.value.code == "ended"
        timer.join()
        held.complete(200)
        assert idle(mesh)


def test_storm():
    """Many tasks over few permits; some are cancelled wherever they are."""
    limits = {"circuit_breakers": breakers(max_connections=4, max_pending_requests=1000, max_requests=1000)}
    with engine(cluster("web", 2, **limits), routes=[route("web")], clock="precise") as mesh:
        done = []

        async def one(n):
            async for attempt in mesh.request("web"):
                async with attempt:
                    for _ in range(n % 3):
                        await asyncio.sleep(0)
                    attempt.complete(200)
                    done.append(n)

        async def main():
            tasks = [asyncio.create_task(one(n)) for n in range(600)]
            for turn in range(60):
                await asyncio.sleep(0)
                for task in tasks[turn::97]:
                    task.cancel()
            return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)

        ends = asyncio.run(main())
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ends)
        assert done and idle(mesh) and "live_requests=0" in repr(mesh)
        assert counter(mesh, "upstream_rq_total") >= len(done)


def test_run_async(mesh, jump, run):
    jump(mesh)

    async def send(attempt):
        if attempt.number == 1:
            raise ConnectionResetError
        attempt.complete(503 if attempt.number == 2 else 200)
        return attempt.number

    async def main():
        return await mesh.request("web").run_async(send)

    assert run(main) == 3 and idle(mesh)


def test_run_async_closes_what_it_drops(mesh, jump, run):
    jump(mesh)
    closed = []

    class Answer:
        async def aclose(self):
            closed.append(self)

    async def send(attempt):
        attempt.on_headers(503 if attempt.number == 1 else 200)
        return Answer()

    async def main():
        return await mesh.request("web").run_async(send)

    kept = run(main)
    assert len(closed) == 1 and kept is not closed[0] and idle(mesh)
