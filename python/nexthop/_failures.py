"""What an exception says about the upstream, known by names: no HTTP client is imported here."""

import errno
from typing import Union

from ._nexthop import FAILURES

# By top-level package and class; the most derived class that is listed decides.
_NAMES = {
    "httpx": {
        "ConnectError": "connect_failure",
        "ConnectTimeout": "connect_timeout",
        "RemoteProtocolError": "connection_termination",
        "LocalProtocolError": "protocol_error",
        "ReadError": "remote_reset",
        "WriteError": "remote_reset",
        "CloseError": "remote_reset",
        "PoolTimeout": "overflow",
        "TimeoutException": "timeout",
    },
    "aiohttp": {
        "ClientConnectorError": "connect_failure",
        "ConnectionTimeoutError": "connect_timeout",
        "ServerDisconnectedError": "connection_termination",
        "ClientPayloadError": "connection_termination",
        "ClientOSError": "remote_reset",
        "ServerTimeoutError": "timeout",
        "BadHttpMessage": "protocol_error",
    },
    "requests": {
        "ConnectTimeout": "connect_timeout",
        "SSLError": "connect_failure",
        "ConnectionError": "connect_failure",
        "ChunkedEncodingError": "connection_termination",
        "Timeout": "timeout",
    },
    "urllib3": {
        "NewConnectionError": "connect_failure",
        "SSLError": "connect_failure",
        "ConnectTimeoutError": "connect_timeout",
        "ReadTimeoutError": "timeout",
        "IncompleteRead": "connection_termination",
        "InvalidChunkLength": "connection_termination",
        "ProtocolError": "connection_termination",
        "EmptyPoolError": "overflow",
        "TimeoutError": "timeout",
    },
    "http": {
        "RemoteDisconnected": "connection_termination",
        "IncompleteRead": "connection_termination",
        "HTTPException": "protocol_error",
    },
    "builtins": {
        "ConnectionRefusedError": "connect_failure",
        "ConnectionResetError": "remote_reset",
        "BrokenPipeError": "remote_reset",
        "ConnectionAbortedError": "connection_termination",
        "TimeoutError": "timeout",
    },
    "socket": {"gaierror": "connect_failure", "timeout": "timeout"},
    "ssl": {
        "SSLEOFError": "connection_termination",
        "SSLZeroReturnError": "connection_termination",
        "SSLError": "connect_failure",
    },
    "asyncio": {"IncompleteReadError": "connection_termination", "TimeoutError": "timeout"},
    "concurrent": {"TimeoutError": "timeout"},
    "trio": {"TooSlowError": "timeout", "BrokenResourceError": "remote_reset"},
    "anyio": {
        "BrokenResourceError": "remote_reset",
        "EndOfStream": "connection_termination",
        "IncompleteRead": "connection_termination",
    },
}
_NAMES["httpcore"] = _NAMES["httpx"]

_CLIENTS = {"aiohttp", "httpcore", "httpx", "requests", "urllib", "urllib3"}

# Wrappers say less than what they wrap: these words give way to a cause that is known.
_VAGUE = {
    "requests": {"ConnectionError"},
    "urllib3": {"ProtocolError"},
    "aiohttp": {"ClientConnectorError", "ClientOSError"},
}

_ERRNO = {
    errno.ECONNREFUSED: "connect_failure",
    errno.EHOSTUNREACH: "connect_failure",
    errno.ENETUNREACH: "connect_failure",
    errno.ETIMEDOUT: "connect_timeout",
    errno.ECONNRESET: "remote_reset",
    errno.EPIPE: "remote_reset",
    errno.EMFILE: "local_connect_failure",
    errno.ENFILE: "local_connect_failure",
    errno.EADDRNOTAVAIL: "local_connect_failure",
}

# Raised for a response that is whole; where its status is found.
_STATUS = {
    "httpx": ("HTTPStatusError", "response", "status_code"),
    "requests": ("HTTPError", "response", "status_code"),
    "aiohttp": ("ClientResponseError", None, "status"),
    "urllib": ("HTTPError", None, "code"),
}


def _root(kind: type) -> str:
    # `_ssl` and `_socket` are where ssl and socket define their errors.
    return kind.__module__.partition(".")[0].lstrip("_")


def _inner(error: BaseException) -> list[BaseException]:
    """What this exception wraps, nearest first."""
    found = [getattr(error, "reason", None), error.__cause__, *error.args, error.__context__]
    return [one for one in found if isinstance(one, BaseException)]


def _status(error: BaseException) -> Union[int, None]:
    for kind in type(error).__mro__:
        name, holder, field = _STATUS.get(_root(kind), ("", None, ""))
        if kind.__name__ == name:
            status = getattr(getattr(error, holder, None) if holder else error, field, None)
            if isinstance(status, int) and 100 <= status <= 999:
                return status
    return None


def _reset(text: str) -> Union[str, None]:
    """HTTP/2 resets reach us as text; code 7 is REFUSED_STREAM."""
    if "StreamReset" not in text:
        return None
    return "refused_stream" if "error_code:7" in text or "REFUSED_STREAM" in text else "remote_reset"


def _named(error: BaseException) -> tuple[Union[str, None], bool]:
    """The failure by class name, and whether a known cause would say more: a program's own exceptions are not
    looked into, they may have any cause."""
    for kind in type(error).__mro__:
        root = _root(kind)
        found = _NAMES.get(root, {}).get(kind.__name__)
        if found is not None:
            return found, kind.__name__ in _VAGUE.get(root, ())
    return None, any(_root(kind) in _CLIENTS for kind in type(error).__mro__)


def _failure(error: BaseException, seen: set[int]) -> Union[str, None]:
    seen.add(id(error))
    found, vague = _named(error)
    if found == "connection_termination":
        found = _reset(str(error)) or found
    if isinstance(error, OSError) and error.errno in _ERRNO and (vague or found in (None, "connect_failure")):
        return _ERRNO[error.errno]
    if vague or found == "connect_failure":
        for one in _inner(error):
            if id(one) not in seen:
                deeper = _failure(one, seen)
                # Out of descriptors or ports: a connection that failed on our side.
                if deeper is not None and (vague or deeper == "local_connect_failure"):
                    return deeper
    return found


def _gone(error: BaseException) -> bool:
    """The client or the program went away; the upstream has no part in it."""
    return not isinstance(error, Exception)


def classify(error: BaseException) -> tuple[Union[str, int, None], str]:
    """A failure's name, `gone`, a response's status, or None for what is not the upstream's doing; and a detail."""
    detail = f"{type(error).__name__}: {error}"[:256]
    if _gone(error):
        return "gone", detail
    status = _status(error)
    if status is not None:
        return status, detail
    failure = _failure(error, set())
    assert failure is None or failure in FAILURES
    return failure, detail

