"""Requests: the three answers of choosing, iteration, and the ready-made loop."""

from __future__ import annotations

import gc
import weakref

import pytest
from conftest import RETRY, breakers, cluster, counter, engine, gauge, idle, route

import nexthop

FULL = {"circuit_breakers": breakers(max_connections=1, max_pending_requests=1, max_requests=2)}


def test_nothing_is_decided_before_the_first_choice(mesh):
    call = mesh.request("web", path="/a")
    assert (call.cluster, call.route, call.timeout, call.reply) == ("web", None, None, None)
    assert counter(mesh, "upstream_rq_total") == 0
    call.close()
    with pytest.raises(nexthop.UsageError) as raised:
        call.choose_host()
    assert raised.value.code == "ended"


def test_what_it_became():
    routes = [route("web", "/pay", name="pay", timeout="3s"), route("web")]
    with engine(cluster("web"), routes=routes) as mesh:
        call = mesh.request(authority="shop.example", path="/pay/1", method="POST")
        assert call.cluster == ""
        attempt = call.choose_host()
        assert (call.cluster, call.timeout) == ("web", 3.0)
        assert call.route is not None and call.route.endswith("pay")
        assert "web" in repr(call)
        attempt.complete(200)
        named = mesh.request(route="pay").choose_host()
        assert named.cluster == "web" and named.remaining == 3.0


def test_retry_loop_by_hand(mesh):
    call = mesh.request("web", path="/pay")
    assert call.choose_host().complete(503).retry
    wait = call.try_choose_host()
    assert isinstance(wait, nexthop.Wait) and wait.reason == "backoff" and 0 < wait.seconds <= 0.010
    assert "backoff" in repr(wait)
    mesh.advance(wait.seconds)
    second = call.try_choose_host()
    assert isinstance(second, nexthop.Attempt) and second.number == 2
    assert second.complete(200).action == "forward"
    assert counter(mesh, "upstream_rq_retry") == 1 and idle(mesh)


def test_asking_while_one_is_open(mesh):
    call = mesh.request("web")
    attempt = call.choose_host()
    with pytest.raises(nexthop.UsageError) as raised:
        call.choose_host()
    assert raised.value.code == "state"
    assert attempt.complete(200).action == "forward"


def test_iteration_sleeps_the_backoff(mesh, jump):
    slept = jump(mesh)
    numbers = []
    for attempt in mesh.request("web"):
        numbers.append(attempt.number)
        attempt.complete(503 if attempt.number < 3 else 200)
    assert numbers == [1, 2, 3]
    assert len(slept) == 2 and all(0 < seconds <= 0.010 for seconds in slept)
    assert idle(mesh)


def test_iteration_stops_when_retries_are_used_up(mesh, jump):
    jump(mesh)
    verdicts = [attempt.complete(503) for attempt in mesh.request("web")]
    assert [v.action for v in verdicts] == ["retry", "retry", "forward"]
    assert verdicts[-1].reason == "limit_exceeded" and "URX" in verdicts[-1].flags


def test_iteration_cancels_what_is_left_unreported(mesh):
    seen = list(mesh.request("web"))
    assert len(seen) == 1 and seen[0].verdict is None
    assert idle(mesh)


def test_iteration_raises_the_final_refusal(jump):
    with engine(cluster("web", []), routes=[route("web")]) as mesh:
        call = mesh.request("web")
        with pytest.raises(nexthop.Refused) as raised:
            for _ in call:
                pass
        assert raised.value.refusal == "no_healthy_upstream" and raised.value.code == "refused"
        assert (raised.value.reply.status, raised.value.reply.flags) == (503, "UH")
        assert call.reply is not None and call.reply.status == 503


def test_break_and_collect(mesh):
    call = mesh.request("web")
    for attempt in call:
        attempt.complete(503)
        break
    watch = weakref.ref(call)
    del call, attempt
    gc.collect()
    assert watch() is None
    assert "live_requests=0" in repr(mesh)


def test_half_used_iterator_is_collected(mesh):
    attempts = iter(mesh.request("web"))
    next(attempts)
    assert gauge(mesh, "upstream_rq_active") == 1
    del attempts
    gc.collect()
    assert idle(mesh)


def test_generator_close_in_the_middle(mesh):
    def chunks():
        for attempt in mesh.request("web"):
            with attempt:
                attempt.on_headers(200)
                yield b"1"
                yield b"2"

    stream = chunks()
    assert next(stream) == b"1"
    stream.close()
    assert idle(mesh)


def test_final_failure_has_a_reply():
    with engine(cluster("web"), routes=[route("web")]) as mesh:
        call = mesh.request("web")
        with pytest.raises(ConnectionRefusedError):
            for attempt in call:
                with attempt:
                    raise ConnectionRefusedError
        assert call.reply is not None
        assert (call.reply.status, call.reply.flags) == (503, "UF")
        assert call.reply.body and call.reply.details and isinstance(call.reply.headers, dict)
        assert "503" in repr(call.reply)


def test_refusals_are_values(mesh):
    no = mesh.request("wep").try_choose_host()
    assert isinstance(no, nexthop.Refused)
    assert no.refusal == "no_cluster" and no.reply.status == 503 and no.reply.flags == "NC"
    with pytest.raises(nexthop.Refused):
        mesh.choose_host("wep")
    missed = mesh.request(authority="x", path="*").try_choose_host()
    assert isinstance(missed, nexthop.Refused) and missed.refusal == "no_route"
    assert missed.reply.status == 404


def test_overflow_names_the_limit():
    with engine(cluster("web", 1, **FULL), routes=[route("web")]) as mesh:
        held = mesh.request("web").choose_host()
        queued = mesh.request("web")
        waiting = queued.try_choose_host()
        assert isinstance(waiting, nexthop.Wait) and waiting.reason == "queue" and waiting.seconds <= 1.0
        no = mesh.request("web").try_choose_host()
        assert isinstance(no, nexthop.Refused)
        assert (no.refusal, no.resource) == ("overflow", "pending")
        assert no.reply.headers.get("x-envoy-overloaded") == "true"
        held.complete(200)
        granted = queued.try_choose_host()
        assert isinstance(granted, nexthop.Attempt)
        granted.complete(200)
        assert idle(mesh)


def test_choosing_with_a_limit_of_time():
    with engine(cluster("web", 1, **FULL), routes=[route("web")]) as mesh:
        held = mesh.request("web").choose_host()
        queued = mesh.request("web")
        with pytest.raises(TimeoutError):
            queued.choose_host(timeout=0)
        held.complete(200)
        assert queued.choose_host(timeout=0).complete(200).action == "forward"
        assert idle(mesh)


def test_stateless_never_waits(mesh):
    second = mesh.choose_host("web", attempt=2, tried=["10.0.0.1:80"], path="/x")
    assert second.number == 2 and second.url().endswith("/x")
    assert second.complete(503).retry
    assert not mesh.choose_host("web", attempt=3).complete(503).retry


def test_run(mesh, jump):
    jump(mesh)
    tried = []

    def send(attempt):
        tried.append(attempt.number)
        if attempt.number == 1:
            raise ConnectionResetError
        if attempt.number == 2:
            attempt.complete(503)
            return "dropped"
        return "kept"

    assert mesh.request("web").run(send) == "kept"
    assert tried == [1, 2, 3]
    assert idle(mesh) and counter(mesh, "upstream_rq_retry") == 2


def test_run_raises_the_clients_own_exception():
    with engine(cluster("web"), routes=[route("web")]) as mesh:
        call = mesh.request("web")

        def send(attempt):
            raise ConnectionResetError("by the test")

        with pytest.raises(ConnectionResetError, match="by the test"):
            call.run(send)
        assert call.reply is not None and call.reply.flags == "UR"


def test_run_closes_what_it_drops(mesh, jump):
    jump(mesh)

    class Answer:
        closed = False

        def close(self):
            self.closed = True

    answers = []

    def send(attempt):
        answers.append(Answer())
        attempt.on_headers(503 if attempt.number == 1 else 200)
        return answers[-1]

    assert mesh.request("web").run(send) is answers[1]
    assert [answer.closed for answer in answers] == [True, False]
    assert idle(mesh)


def test_run_leaves_a_cancelled_attempt_alone(mesh):
    def send(attempt):
        attempt.cancel()
        return 7

    assert mesh.request("web").run(send) == 7


def test_an_upload_that_is_over_before_the_first_choice(mesh):
    running = mesh.request("web", body="streaming").choose_host()
    assert running.remaining is None
    call = mesh.request("web", body="streaming")
    call.body_complete()
    assert call.choose_host().remaining == 10.0


def test_response_headers_and_upload(mesh):
    call = mesh.request("web", body="streaming")
    attempt = call.choose_host()
    call.body_complete()
    assert isinstance(call.response_headers(), dict)
    attempt.complete(200)


def test_composite_by_attempt_number():
    chain = {
        "name": "providers",
        "cluster_type": {
            "name": "envoy.clusters.composite",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig",
                "clusters": [{"name": "first"}, {"name": "second"}],
            },
        },
        "lb_policy": "CLUSTER_PROVIDED",
    }
    policy = {**RETRY, "retry_on": "5xx"}
    clusters = [cluster("first", ["10.0.0.1:80"]), cluster("second", ["10.0.0.2:80"]), chain]
    with engine(*clusters, routes=[route("providers", retry_policy=policy)]) as mesh:
        attempt = mesh.choose_host("providers", attempt=2)
        assert (attempt.host.address, attempt.cluster) == ("10.0.0.2:80", "second")
        attempt.complete(200)
        with pytest.raises(nexthop.Refused) as raised:
            mesh.choose_host("providers", attempt=3)
        assert raised.value.resource == "past_last_sub_cluster"
        with pytest.raises(nexthop.Refused) as raised:
            mesh.choose_host("providers", attempt=0)
        assert raised.value.resource == "no_attempt_number"
        with pytest.raises(nexthop.UsageError, match="number is 0; attempts count from 1"):
            mesh.choose_host("providers", attempt=0, path="/")


def test_seconds_become_the_nearest_nanosecond(mesh):
    for seconds in (1.049, 0.3, 1.1, 4.35, 2.675):
        attempt = mesh.request("web", timeout=seconds).choose_host()
        assert attempt.timeout == seconds
        attempt.complete(200)
