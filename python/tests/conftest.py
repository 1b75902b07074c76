"""Documents and engines for the tests. Time stands still unless a test moves it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nexthop
from nexthop import _waiting


def cluster(name: str, hosts: int | list[str] = 3, **fields: Any) -> dict[str, Any]:
    """An Envoy cluster over 10.0.0.x, or over the given addresses."""
    if isinstance(hosts, int):
        hosts = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}:80" for n in range(1, hosts + 1)]
    endpoints = []
    for address in hosts:
        ip, _, port = address.rpartition(":")
        socket = {"address": ip, "port_value": int(port)}
        endpoints.append({"endpoint": {"address": {"socket_address": socket}}})
    assignment = {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]}
    base = {"name": name, "type": "STATIC", "connect_timeout": "1s", "load_assignment": assignment}
    return {**base, **fields}


def breakers(**limits: int) -> dict[str, Any]:
    return {"thresholds": [limits]}


def route(to: str, prefix: str = "/", name: str | None = None, **action: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"match": {"prefix": prefix}, "route": {"cluster": to, **action}}
    return found if name is None else {**found, "name": name}


RETRY = {
    "retry_on": "5xx,connect-failure,reset",
    "num_retries": 2,
    "retry_back_off": {"base_interval": "0.010s", "max_interval": "0.010s"},
}


def documents(clusters: list[dict[str, Any]], routes: list[dict[str, Any]] | None = None) -> list[str]:
    texts = [json.dumps({"static_resources": {"clusters": clusters}})]
    if routes is not None:
        hosts = [{"name": "all", "domains": ["*"], "routes": routes}]
        texts.append(json.dumps({"name": "routes", "virtual_hosts": hosts}))
    return texts


def engine(
    *clusters: dict[str, Any], routes: list[dict[str, Any]] | None = None, **options: Any
) -> nexthop.Engine:
    options = {"clock": "manual", "workers": 1, "seed": 1, **options}
    return nexthop.Engine.from_str(*documents(list(clusters), routes), **options)


@pytest.fixture
def mesh() -> Iterator[nexthop.Engine]:
    """Cluster `web` of three hosts; its route retries twice."""
    with engine(cluster("web"), routes=[route("web", retry_policy=RETRY, timeout="10s")]) as made:
        yield made


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Callable[[nexthop.Engine], list[float]]:
    """Waits move the engine's clock instead of taking time; returns the list of their lengths."""

    def install(mesh: nexthop.Engine) -> list[float]:
        slept: list[float] = []

        def pass_by(seconds: float) -> None:
            slept.append(seconds)
            mesh.advance(seconds)

        async def pass_by_async(_self: object, seconds: float) -> None:
            pass_by(seconds)

        monkeypatch.setattr(_waiting._Threads, "sleep", lambda _self, seconds: pass_by(seconds))
        monkeypatch.setattr(_waiting.AsyncioSleeper, "sleep", pass_by_async)
        monkeypatch.setattr(_waiting.TrioSleeper, "sleep", pass_by_async)
        return slept

    return install


def gauge(mesh: nexthop.Engine, name: str, of: str = "web") -> int:
    return int(mesh.stats().get(f"cluster.{of}.{name}", 0))


def counter(mesh: nexthop.Engine, name: str, of: str = "web") -> int:
    return int(mesh.stats().get(f"cluster.{of}.{name}", 0))


def idle(mesh: nexthop.Engine, of: str = "web") -> bool:
    """Whether every permit is back."""
    names = ("upstream_rq_active", "upstream_rq_pending_active")
    return all(gauge(mesh, name, of) == 0 for name in names)
