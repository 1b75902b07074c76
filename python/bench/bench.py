"""Cost of a choice and its report, in calls of an empty function.

Prints JSON lines: {"face": "python", "case": ..., "hosts": N, "min_ns": ..., "med_ns": ...}. Every round runs
every case once, so that a slow moment hits all alike; the cheapest empty loop is subtracted. ROUNDS (60) and
CALLS (20000 per case and round) come from the environment. With GATES=1 the exit code says whether, at 100 hosts,
the index interface costs at most 6 empty calls and the object interface at most 9 (minimum over minimum).
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

import nexthop
from nexthop import _nexthop

ROUNDS = int(os.environ.get("ROUNDS", "60"))
CALLS = int(os.environ.get("CALLS", "20000"))
SIZES = (3, 100, 1000)
GATES = {"index": 6.0, "object": 9.0}


def mesh(hosts: int) -> nexthop.Engine:
    """LEAST_REQUEST, circuit breakers, a retry budget and outlier detection, as a mesh would have them."""
    endpoints = [
        {"endpoint": {"address": {"socket_address": {"address": f"10.0.{n >> 8}.{n & 255}", "port_value": 80}}}}
        for n in range(hosts)
    ]
    budget = {"budget_percent": {"value": 20.0}, "min_retry_concurrency": 3}
    limits = {"max_connections": 100_000, "max_pending_requests": 100_000, "max_requests": 100_000}
    cluster = {
        "name": "web",
        "connect_timeout": "1s",
        "lb_policy": "LEAST_REQUEST",
        "load_assignment": {"cluster_name": "web", "endpoints": [{"lb_endpoints": endpoints}]},
        "circuit_breakers": {"thresholds": [{**limits, "retry_budget": budget}]},
        "outlier_detection": {"consecutive_5xx": 5, "interval": "10s"},
    }
    policy = {"retry_on": "5xx,connect-failure", "num_retries": 2}
    route = {"match": {"prefix": "/"}, "route": {"cluster": "web", "retry_policy": policy}}
    hosts_of = {"name": "r", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]}
    return nexthop.Engine.from_str(json.dumps({"static_resources": {"clusters": [cluster]}}), json.dumps(hosts_of))


def loop(body: str, **names: Any) -> Callable[[int], float]:
    """A function that runs `body` n times and returns nanoseconds per run."""
    given = ", ".join(f"{name}={name}" for name in names)
    source = f"def run(n, pc=pc, repeat=repeat, {given}):\n t = pc()\n for _ in repeat(None, n):\n  {body}\n return (pc() - t) / n\n"
    scope: dict[str, Any] = {"pc": time.perf_counter_ns, "repeat": repeat, **names}
    exec(source, scope)
    made: Callable[[int], float] = scope["run"]
    return made


def main() -> int:
    engines = {hosts: mesh(hosts) for hosts in SIZES}
    cases: list[tuple[str, int, Callable[[int], float]]] = [("empty", 0, loop("f()", f=_nexthop._empty))]
    for hosts, engine in engines.items():
        picker = engine.picker("web")
        cases += [
            ("index", hosts, loop("p.pick(); p.complete(200)", p=picker)),
            # The cheapest way to an object: a stateless choice by name, one attribute read, one report.
            ("object", hosts, loop("a = e.choose_host('web'); a.host; a.complete(200)", e=engine)),
            ("object_address", hosts, loop("a = e.choose_host('web'); a.host.address; a.complete(200)", e=engine)),
            ("request", hosts, loop("a = e.request('web').choose_host(); a.host; a.complete(200)", e=engine)),
            ("iteration", hosts, loop("\n  for a in e.request('web'): a.complete(200)", e=engine)),
        ]
    blank = loop("pass")
    for _, _, case in cases:
        case(CALLS // 10)
    times: list[list[float]] = [[] for _ in cases]
    nothing = []
    for _ in range(ROUNDS):
        nothing.append(blank(CALLS))
        for at, (_, _, case) in enumerate(cases):
            times[at].append(case(CALLS))
    least = min(nothing)
    found = {}
    for (name, hosts, _), all_of_it in zip(cases, times):
        cost, middle = min(all_of_it) - least, statistics.median(all_of_it) - least
        found[name, hosts] = cost
        line = {"face": "python", "case": name, "hosts": hosts, "min_ns": round(cost, 1), "med_ns": round(middle, 1)}
        line["calls"] = round(cost / found["empty", 0], 2)
        print(json.dumps(line), flush=True)
    missed = [name for name, most in GATES.items() if found[name, 100] > most * found["empty", 0]]
    return 1 if os.environ.get("GATES") and missed else 0


if __name__ == "__main__":
    sys.exit(main())
