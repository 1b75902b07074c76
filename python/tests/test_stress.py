"""Everything at once (tests/stress), with threads and with tasks that wait for their turn."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path

import nexthop

DOCUMENTS = [Path(__file__).parents[2] / "tests" / "stress" / f"{name}.yaml" for name in ("first", "second")]
CLUSTERS = ("web", "narrow")
REQUESTS = 6  # of both clusters in both documents
GAUGES = ("upstream_rq_active", "upstream_rq_pending_active", "rq_open", "rq_pending_open", "rq_retry_open")


class Open:
    """Counts open attempts."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now: Counter[str] = Counter()

    def one(self, cluster: str) -> None:
        with self.lock:
            self.now[cluster] += 1
            assert self.now[cluster] <= REQUESTS, "over the limit"

    def over(self, cluster: str) -> None:
        with self.lock:
            self.now[cluster] -= 1


def report(attempt: nexthop.Attempt, draw: random.Random) -> bool:
    """Ends an attempt somehow; whether a retry follows."""
    what = draw.randrange(8)
    if what in (0, 1):
        return attempt.complete(503).retry
    if what == 2:
        return attempt.fail("connect_failure").retry
    if what == 3:
        attempt.on_headers(200)
        attempt.end()
    elif what == 4:
        attempt.cancel()
    else:
        attempt.complete(200)
    return False


def is_over(mesh: nexthop.Engine) -> None:
    stats = mesh.stats()
    found = {name: value for name, value in stats.items() if name.rpartition(".")[2] in GAUGES}
    assert len(found) >= 10 and not any(found.values()), found
    assert "live_requests=0" in repr(mesh)
    for cluster in CLUSTERS:
        answer = mesh.request(cluster).try_choose_host()
        assert isinstance(answer, nexthop.Attempt), f"{cluster} is stuck: {answer}"
        answer.complete(200)


def test_threads():
    with nexthop.Engine.from_file(DOCUMENTS[0]) as mesh:
        opened, failed, answered = Open(), [], []

        def one(draw: random.Random) -> None:
            cluster = draw.choice(CLUSTERS)
            with mesh.request(cluster) as call:
                retry = True
                while retry:
                    # Some are gone before their turn comes.
                    attempt = call.choose_host(timeout=draw.choice([0.001, 5, 5]))
                    opened.one(cluster)
                    opened.over(cluster)
                    retry = report(attempt, draw)

        def work(seed: int) -> None:
            draw = random.Random(seed)
            try:
                for _ in range(250):
                    try:
                        one(draw)
                    except nexthop.Refused as refused:
                        assert refused.refusal == "overflow", refused
                    except TimeoutError:
                        pass
                    answered.append(1)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        at = 0
        while any(thread.is_alive() for thread in threads):
            at += 1
            mesh.update_file(DOCUMENTS[at % 2])
            threads[at % 6].join(0.002)
        assert failed == [] and len(answered) == 6 * 250
        is_over(mesh)


def test_tasks():
    async def main(mesh: nexthop.Engine) -> None:
        opened, draw = Open(), random.Random(3)
        ended = Counter()

        async def one() -> None:
            cluster = draw.choice(CLUSTERS)
            with mesh.request(cluster) as call:
                retry = True
                while retry:
                    attempt = await call.choose_host_async()
                    opened.one(cluster)
                    try:
                        await asyncio.sleep(0)
                    finally:
                        opened.over(cluster)
                    retry = report(attempt, draw)

        for batch in range(30):
            tasks = [asyncio.ensure_future(one()) for _ in range(40)]
            for task in draw.sample(tasks, 8):
                await asyncio.sleep(0)
                task.cancel()
            mesh.update_file(DOCUMENTS[batch % 2])
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                assert result is None or isinstance(result, (nexthop.Refused, asyncio.CancelledError)), result
                if isinstance(result, nexthop.Refused):
                    assert result.refusal == "overflow", result
                ended[type(result)] += 1
        assert sum(ended.values()) == 30 * 40 and ended[type(None)] > 0, ended

    with nexthop.Engine.from_file(DOCUMENTS[0]) as mesh:
        asyncio.run(asyncio.wait_for(main(mesh), 60))
        is_over(mesh)
