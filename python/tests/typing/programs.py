"""The three programs of the manual, as a type checker sees them."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

import httpx

import nexthop


def script(mesh: nexthop.Engine) -> None:
    attempt = mesh.choose_host("providers", attempt=2)
    print(attempt.host.address, attempt.complete(200).retry)


def retries(mesh: nexthop.Engine) -> httpx.Response | None:
    reply = None
    with httpx.Client() as client:
        for attempt in mesh.request("checkout", path="/pay", headers={"x-user": "42"}):
            with attempt:
                reply = client.get(attempt.url(), timeout=attempt.timeout)
                attempt.complete(reply.status_code, reply.headers)
    return reply


class Incoming(Protocol):
    method: str
    url: Any
    headers: Any

    def stream(self) -> AsyncIterator[bytes]: ...


class Response:
    def __init__(self, body: str, status: int, headers: Mapping[str, str]) -> None: ...


class StreamingResponse(Response):
    def __init__(self, body: AsyncIterator[bytes], status: int, headers: Mapping[str, str]) -> None: ...


async def gateway(mesh: nexthop.Engine, pool: httpx.AsyncClient, incoming: Incoming) -> Response:
    call = mesh.request(
        method=incoming.method,
        authority=incoming.url.netloc,
        path=f"{incoming.url.path}?{incoming.url.query}",
        headers=incoming.headers.raw,
        body="once",
    )
    try:
        async for attempt in call:
            async with attempt:
                built = pool.build_request(
                    incoming.method, attempt.url(), content=incoming.stream(), timeout=attempt.timeout
                )
                up = await pool.send(built, stream=True)
                if attempt.on_headers(up.status_code, up.headers.raw).retry:
                    await up.aclose()
                    continue
                body = attempt.body(up.aiter_raw(), close=up.aclose)
                return StreamingResponse(body, up.status_code, dict(up.headers))
    except (nexthop.Refused, httpx.HTTPError):
        pass
    local = call.reply or nexthop.UNAVAILABLE
    return Response(local.body, local.status, dict(local.headers))


async def ready_made(mesh: nexthop.Engine, pool: httpx.AsyncClient) -> httpx.Response:
    async def send(attempt: nexthop.Attempt) -> httpx.Response:
        reply = await pool.get(attempt.url(), timeout=attempt.timeout)
        attempt.complete(reply.status_code, reply.headers)
        return reply

    return await mesh.request("checkout").run_async(send)


def values(mesh: nexthop.Engine) -> float:
    answer = mesh.request("checkout").try_choose_host()
    if isinstance(answer, nexthop.Wait):
        return answer.seconds
    if isinstance(answer, nexthop.Refused):
        return answer.retry_after or 0.0
    verdict = answer.fail("connect_failure")
    return verdict.after


def checks(mesh: nexthop.Engine) -> float | None:
    def others(check: nexthop.Check) -> None:
        check.result("failed")

    with mesh.start_checks(others=others):
        for check in mesh.checks():
            if check.protocol == "tcp" and not check.data(b""):
                check.fail(TimeoutError())
            check.answer(200, {"grpc-status": "0"}, b"", grpc_status=0)
    return mesh.checks_deadline()


async def checks_in_a_task(mesh: nexthop.Engine) -> None:
    await mesh.run_checks()
