"""What is raised."""

from typing import Union

from ._nexthop import Host, LocalReply


class Error(Exception):
    """The base of all; `code` says which kind in one word."""

    code: str = "error"

    def __init__(self, message: str, code: Union[str, None] = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class ConfigError(Error, ValueError):
    """A document was refused whole, or a file could not be read (`code` is `config` or `io`).

    `line` and `column` count from 1, `path` is the place inside the document; `found` stands there, `allowed` may,
    and `nearest` is the known name nearest to an unknown one. What is not known is empty, 0 or None.
    """

    code = "config"

    def __init__(
        self,
        message: str,
        code: str = "config",
        *,
        file: str = "",
        line: int = 0,
        column: int = 0,
        path: str = "",
        found: str = "",
        allowed: str = "",
        nearest: Union[str, None] = None,
    ) -> None:
        super().__init__(message, code)
        self.file = file
        self.line = line
        self.column = column
        self.path = path
        self.found = found
        self.allowed = allowed
        self.nearest = nearest


class Refused(Error):
    """There will be no attempt; `reply` is what Envoy would answer."""

    code = "refused"

    def __init__(
        self,
        refusal: str,
        resource: Union[str, None],
        retry_after: Union[float, None],
        reply: LocalReply,
        host: Union[Host, None] = None,
        detail: str = "",
    ) -> None:
        what = f"{refusal} ({resource})" if resource else refusal
        hint = f"; {detail}" if detail else ""
        super().__init__(f"no attempt: {what}{hint}; the local reply is {reply.status} {reply.flags}, {reply.details}")
        self.refusal = refusal
        self.resource = resource
        self.retry_after = retry_after
        self.reply = reply
        self.host = host


class UsageError(Error, RuntimeError):
    """A call that is wrong here; nothing has changed."""

    code = "invalid"


class InternalError(Error):
    """A bug in nexthop, contained."""

    code = "panic"


class UnreportedWarning(ResourceWarning):
    """A `with` block ended without exception and without a report."""
