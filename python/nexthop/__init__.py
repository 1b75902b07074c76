"""Envoy's upstream decisions as a library: which host, may I, how long, and what now.

    mesh = nexthop.Engine.from_file("envoy.yaml")
    for attempt in mesh.request("checkout", path="/pay"):
        with attempt:
            reply = client.get(attempt.url(), timeout=attempt.timeout)
            attempt.complete(reply.status_code, reply.headers)
"""

import os as _os

from . import _nexthop
from ._errors import ConfigError, Error, InternalError, Refused, UnreportedWarning, UsageError
from ._event_log import EventLog
from ._nexthop import (
    UNAVAILABLE,
    Attempt,
    Check,
    Engine,
    Host,
    LocalReply,
    Picker,
    Request,
    Verdict,
    Wait,
    __version__,
)
from ._types import EventSink, Head, Headers, HostFields, Metric, Note, Options

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_nexthop._after_fork_in_child)

__all__ = [
    "UNAVAILABLE",
    "Attempt",
    "Check",
    "ConfigError",
    "Engine",
    "Error",
    "EventLog",
    "EventSink",
    "Head",
    "Headers",
    "Host",
    "HostFields",
    "InternalError",
    "LocalReply",
    "Metric",
    "Note",
    "Options",
    "Picker",
    "Refused",
    "Request",
    "UnreportedWarning",
    "UsageError",
    "Verdict",
    "Wait",
    "__version__",
]
