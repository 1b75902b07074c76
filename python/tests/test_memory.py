"""Attempts of every kind leave no memory behind. NEXTHOP_LEAK_ATTEMPTS says how many; the default is quick."""

import gc
import os
import sys

import pytest

import nexthop

ATTEMPTS = int(os.environ.get("NEXTHOP_LEAK_ATTEMPTS", "120000"))
# What the allocator may keep: far below one object for each attempt.
SLACK = max(2 << 20, ATTEMPTS * 4)

DOCUMENT = """
static_resources:
  clusters:
  - name: web
    circuit_breakers: {thresholds: [{max_requests: 2}]}
    load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}},
      {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]}
---
name: routes
virtual_hosts:
- name: all
  domains: ["*"]
  routes:
  - match: {prefix: /}
    route:
      cluster: web
      hash_policy: [{header: {header_name: x-key}}, {cookie: {name: sid, ttl: 60s}}]
      retry_policy: {retry_on: 5xx, num_retries: 1, retry_back_off: {base_interval: 0.001s}}
"""


def resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def picks(mesh, count):
    picker = mesh.picker("web")
    for _ in range(count):
        picker.pick()
        picker.complete(200)


def requests(mesh, count):
    for number in range(count // 8):
        headers = {"x-key": str(number), "cookie": f"sid={number}", "unused": "x" * 40}
        call = mesh.request(authority="a", path=f"/{number}", headers=headers)
        first = call.choose_host()
        if first.complete(503, {"x-answer": "y" * 40}).retry:
            mesh.advance(0.01)
            second = call.choose_host()
            second.explain()
            second.complete(200)


def failures(mesh, count):
    for number in range(count // 16):
        with pytest.raises(nexthop.UsageError):
            mesh.choose_host("web", attempt=-1)
        with pytest.raises(nexthop.Refused):
            mesh.choose_host(f"nowhere{number % 7}")
        held = [mesh.choose_host("web"), mesh.choose_host("web")]
        assert isinstance(mesh.request("web").try_choose_host(), nexthop.Refused)
        # One is cancelled, one is dropped without a word.
        held.pop().cancel()
        del held


def texts(mesh, count):
    for number in range(count // 4000):
        mesh.stats(), mesh.hosts(), mesh.prometheus(), mesh.events(), mesh.load_report()
        mesh.apply("web", [{"address": "10.0.0.3:80", "op": "remove" if number % 2 else "add"}])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
@pytest.mark.parametrize("work", [picks, requests, failures, texts], ids=lambda work: work.__name__)
def test_memory_stays_flat(work):
    with nexthop.Engine.from_str(DOCUMENT, workers=1, seed=7, clock="manual") as mesh:
        for _ in range(2):
            work(mesh, ATTEMPTS // 4)
        gc.collect()
        before = resident()
        work(mesh, ATTEMPTS)
        gc.collect()
        grown = resident() - before
        assert grown < SLACK, f"{grown} bytes more after {ATTEMPTS} attempts"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_engines_give_their_memory_back():
    def work():
        for number in range(150):
            with nexthop.Engine.from_str(DOCUMENT, seed=number + 1, clock="manual") as mesh:
                mesh.choose_host("web").complete(200)
            with pytest.raises(nexthop.ConfigError):
                nexthop.Engine.from_str(DOCUMENT.replace("max_requests: 2", f"max_reqests: {number}"))

    work()
    gc.collect()
    before = resident()
    work()
    gc.collect()
    assert resident() - before < 4 << 20
