"""What retries do: the same backends, four retry policies, read from an unchanged Envoy document.

CONFIG is the document, REQUESTS how many requests each experiment sends. The lab's backends must be running.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from time import perf_counter_ns as clock

import nexthop

LAB = ("127.0.0.1", 18101)
EXPERIMENTS = {"a": "/a", "b": "/b", "c": "/c", "chain": "/chain"}


class HttpClient:
    """`http.client` with connections that stay open, where httpx is not installed."""

    def __init__(self) -> None:
        self.open: dict[str, http.client.HTTPConnection] = {}

    def get(self, url: str, headers: dict[str, str], timeout: float | None) -> int:
        address, _, path = url.removeprefix("http://").partition("/")
        connection = self.open.setdefault(address, http.client.HTTPConnection(address))
        connection.timeout = timeout
        try:
            connection.request("GET", f"/{path}", headers=headers)
            reply = connection.getresponse()
            reply.read()
            return reply.status
        except BaseException:
            connection.close()
            raise


class HttpxClient:
    def __init__(self) -> None:
        self.client = httpx.Client(trust_env=False)

    def get(self, url: str, headers: dict[str, str], timeout: float | None) -> int:
        return self.client.get(url, headers=headers, timeout=timeout).status_code


try:
    import httpx

    Client: type[HttpClient] | type[HttpxClient] = HttpxClient
except ImportError:
    Client = HttpClient


def lab(method: str, path: str) -> str:
    connection = http.client.HTTPConnection(*LAB, timeout=10)
    connection.request(method, path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


class Stopwatch:
    """Nanoseconds spent in nexthop: in choices and reports, not in waits."""

    def __init__(self) -> None:
        self.ns = 0

    def attempts(self, call: nexthop.Request) -> Iterator[nexthop.Attempt]:
        """An application writes `for attempt in call`; this is that loop with its waits apart."""
        again = True
        while again:
            begin = clock()
            answer = call.try_choose_host()
            self.ns += clock() - begin
            if isinstance(answer, nexthop.Wait):
                time.sleep(answer.seconds)
                continue
            if isinstance(answer, nexthop.Refused):
                raise answer
            yield answer
            again = answer.verdict is not None and answer.verdict.retry

    def report(self, attempt: nexthop.Attempt, outcome: int | Exception) -> nexthop.Verdict:
        begin = clock()
        verdict = attempt.complete(outcome) if isinstance(outcome, int) else attempt.fail(outcome)
        self.ns += clock() - begin
        return verdict


def experiment(mesh: nexthop.Engine, name: str, requests: int) -> dict[str, object]:
    lab("POST", "/__lab/reset")
    client, watch = Client(), Stopwatch()
    success = tried = 0
    answered_by: dict[int, Counter[str]] = defaultdict(Counter)
    for number in range(requests):
        headers = {"x-fail": str(number % 3)} if name == "chain" else {}
        status = 503
        # The document's routes find cluster and retry policy.
        call = mesh.request(authority="lab.example", path=EXPERIMENTS[name], headers=headers)
        for attempt in watch.attempts(call):
            tried += 1
            added = {name: value for name, value in attempt.headers.items() if value is not None}
            outcome: int | Exception
            try:
                outcome = client.get(attempt.url(), {**headers, **added}, attempt.timeout)
            except Exception as error:
                outcome = error
            verdict = watch.report(attempt, outcome)
            status = verdict.status
            if not verdict.retry:
                answered_by[attempt.number][attempt.host.address] += 1
        success += status < 400
        print(f"\rpython  {name}  {number + 1}/{requests}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {
        "lang": "python",
        "experiment": name,
        "requests": requests,
        "success": success,
        "attempts": tried,
        "retries": tried - requests,
        "backend_requests": sum(json.loads(lab("GET", "/__lab/counts")).values()),
        "us_per_attempt": round(watch.ns / tried / 1000, 3),
        "answered_by": {str(number): dict(hosts) for number, hosts in sorted(answered_by.items())},
    }


def main() -> None:
    requests = int(os.environ.get("REQUESTS", "400"))
    with nexthop.Engine.from_file(os.environ["CONFIG"]) as mesh:
        for name in EXPERIMENTS:
            print(json.dumps(experiment(mesh, name, 60 if name == "chain" else requests)), flush=True)


if __name__ == "__main__":
    main()
