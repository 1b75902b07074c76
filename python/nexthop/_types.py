"""Shapes of keyword arguments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Union

Headers = Union[Mapping[str, str], Iterable[tuple[str, str]], Iterable[tuple[bytes, bytes]]]


# `connected`: a connection is there that a queued request of a cluster with strict connections asked for; `sent`: the
# request headers are sent; `body_complete`: a streaming upload is over; `retry_abandoned`: the upload outgrew what the
# caller keeps, no retry any more; `interim`: an interim response arrived.
Note = Union[
    Literal["connected"], Literal["sent"], Literal["body_complete"], Literal["retry_abandoned"], Literal["interim"]
]


class Options(TypedDict, total=False):
    """How an engine is made."""

    dialect: str
    seed: int
    workers: int
    clock: Literal["coarse", "precise", "manual"]
    lease: float
    events: int
    draws: Sequence[int]


class Head(TypedDict, total=False):
    """What a request is made from."""

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
    """A host given from code; `address` is required, `op` is for `apply`."""

    address: str
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
