"""Shapes of keyword arguments."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from logging import Logger, LoggerAdapter
from os import PathLike
from typing import Any, Literal, Protocol, TypedDict, Union

from typing_extensions import Required

Headers = Union[Mapping[str, str], Iterable[tuple[str, str]], Iterable[tuple[bytes, bytes]]]


# `connected`: a connection is there that a queued request of a cluster with strict connections asked for; `sent`: the
# request headers are sent; `body_complete`: a streaming upload is over; `retry_abandoned`: the upload outgrew what the
# caller keeps, no retry any more; `interim`: an interim response arrived.
Note = Union[
    Literal["connected"], Literal["sent"], Literal["body_complete"], Literal["retry_abandoned"], Literal["interim"]
]


class SupportsWrite(Protocol):
    """A file."""

    def write(self, _text: Any, /) -> object: ...


# Where an event log writes to: a path; a logger, at level INFO; something with `write`; a function of a line.
EventSink = Union[
    str, "PathLike[str]", Logger, "LoggerAdapter[Any]", SupportsWrite, Callable[[str], object]
]


Document = Union[str, bytes, tuple[str, Union[str, bytes]]]
Dialect = Union[
    Literal["", "envoy", "nexthop", "istio", "kubernetes"], Literal["nacos", "consul", "eureka", "spring"]
]


class Options(TypedDict, total=False):
    """How an engine is made.

    `dialect`: what the documents are written in; told by their keys when it is not given. `seed`: 0 (default) is the
    system's; with `workers=1` the same seed and calls decide the same. `workers`: 0 (default) is one per thread.
    `clock`: `coarse` (default) ticks every 1 to 4 ms, `manual` moves by `advance` only. `lease`: seconds after a request's
    deadline until an unreported attempt counts as lost, 300 by default. `events`: how many are kept, 1,024 by default.
    `draws`: random words in place of the first worker's, then zeros. `runtime`: runtime keys, or their JSON text; they
    win over those of the documents.
    """

    dialect: Dialect
    seed: int
    workers: int
    clock: Literal["coarse", "precise", "manual"]
    lease: float
    events: int
    draws: Sequence[int]
    runtime: Union[Mapping[str, Any], str, None]


class Head(TypedDict, total=False):
    """What a request is made from. Its texts together may have 60 KiB.

    `method` is GET, `scheme` http and `path` / by default. `headers`: those that a route or cluster reads cross into the
    engine. `route`: `NAME` or `VHOST/NAME`, in place of a cluster. `source`, `local`: `ip` or `ip:port`. `key`: replaces every
    hash policy. `metadata`: `envoy.lb` criteria, types are kept; `filter_metadata`: other namespaces. `override_host`:
    `ip:port` to prefer for the first attempt, `!` before it: that host or none. `timeout`: the caller's own limit in
    seconds; 0 and None are none. `priority`: the route's by default. `body`: `none` by default. `internal`: `x-envoy-*`
    request headers count, False by default. `explain`: keep the whole reason trail, False by default.
    """

    method: str
    scheme: str
    authority: str
    path: str
    headers: Headers
    route: str
    source: str
    local: str
    key: Union[bytes, str]
    metadata: Mapping[str, Any]
    filter_metadata: Mapping[str, Any]
    override_host: str
    timeout: Union[float, None]
    priority: Literal["default", "high"]
    body: Literal["none", "replayable", "once", "streaming"]
    internal: bool
    explain: bool


class HostFields(TypedDict, total=False):
    """A host given from code: `ip:port`, `[v6]:port` or `name:port`.

    `op` is for `apply`: `add` (default) adds or replaces, `change` touches the given fields only, `set` entries replace the
    whole list. `weight`: from 1 (default). `priority`: 0 (default) to 128. `health`: `unknown`, which counts as healthy, by
    default. `metadata`: `envoy.lb` values.
    """

    address: Required[str]
    op: Literal["set", "add", "remove", "change"]
    weight: int
    priority: int
    health: Literal["unknown", "healthy", "unhealthy", "draining", "timeout", "degraded"]
    hostname: str
    region: str
    zone: str
    sub_zone: str
    metadata: Mapping[str, Any]


class Metric(TypedDict):
    """One number of an engine."""

    name: str
    """Such as ``cluster.upstream_rq``."""
    type: Literal["counter", "gauge"]
    value: int
    attributes: dict[str, str]
    """Such as ``envoy.cluster_name``."""
