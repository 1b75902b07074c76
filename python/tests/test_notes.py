"""Facts between a choice and the report."""

from __future__ import annotations

import asyncio

import pytest
from conftest import counter, gauge, idle

import nexthop

STRICT = """
clusters: {b: {hosts: ["10.0.0.1:80"], limits: {connections: 2, pending: 2}, timeout: 0s, nexthop: {connections: strict}}}
"""


def strict() -> nexthop.Engine:
    return nexthop.Engine.from_str(STRICT, clock="manual", workers=1, seed=1)


def test_a_connection_lets_a_waiter_go_on():
    with strict() as mesh:
        calls = [mesh.request("b") for _ in range(20)]
        answers = [call.try_choose_host() for call in calls]
        waits = [call for call, answer in zip(calls, answers) if isinstance(answer, nexthop.Wait)]
        assert len(waits) == 2 and sum(isinstance(answer, nexthop.Refused) for answer in answers) == 18
        for call in waits:
            call.note("connected")
        attempts = [call.choose_host() for call in waits]
        for attempt in attempts:
            attempt.note("sent")
            attempt.note("interim")
            assert not attempt.complete(200).retry
            attempt.note("sent")
        waits[0].note("connected")
        assert idle(mesh, "b") and counter(mesh, "upstream_rq_total", "b") == 2


def test_a_connection_wakes_who_awaits():
    async def main() -> None:
        with strict() as mesh:
            calls = [mesh.request("b") for _ in range(2)]
            tasks = [asyncio.create_task(call.choose_host_async()) for call in calls]
            while gauge(mesh, "upstream_rq_pending_active", "b") < 2:
                await asyncio.sleep(0)
            calls[0].note("connected")
            calls[1].note("connected")
            for attempt in await asyncio.wait_for(asyncio.gather(*tasks), 0.9):
                attempt.complete(200)

    asyncio.run(main())


def test_wrong_notes_are_usage_errors():
    with strict() as mesh:
        call = mesh.request("b")
        for what, code in [("connected", "state"), ("sneezed", "invalid")]:
            with pytest.raises(nexthop.UsageError) as raised:
                call.note(what)
            assert raised.value.code == code
        assert isinstance(call.try_choose_host(), nexthop.Wait)
        call.note("connected")
        with call.choose_host() as attempt:
            with pytest.raises(nexthop.UsageError, match="body_complete, retry_abandoned") as raised:
                attempt.note("sneezed")
            assert raised.value.code == "invalid"
            attempt.complete(200)
