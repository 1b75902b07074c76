"""Attempts: what they show, and each way to report them."""

from __future__ import annotations

import http
import math

import pytest
from conftest import RETRY, cluster, counter, engine, gauge, idle, route

import nexthop


def test_shows_where_to_send(mesh):
    attempt = mesh.choose_host("web")
    assert attempt.number == 1
    assert attempt.host.address.startswith("10.0.0.")
    assert (attempt.host.port, attempt.host.cluster, attempt.cluster) == (80, "web", "web")
    assert (attempt.host.weight, attempt.host.priority, attempt.host.hostname) == (1, 0, "")
    assert attempt.host.secure is False and attempt.host.zone == ""
    assert attempt.host.connect_timeout == 1.0
    assert dict(attempt.host.metadata) == {}
    assert attempt.verdict is None and attempt.hedge_after is None
    assert attempt.url() == f"http://{attempt.host.address.removesuffix(':80')}/"
    assert attempt.url("/a?b=c").endswith("/a?b=c")
    assert "open" in repr(attempt)


def test_the_same_host_is_the_same_object(mesh):
    hosts = {}
    for _ in range(9):
        attempt = mesh.choose_host("web")
        assert hosts.setdefault(attempt.host.address, attempt.host) is attempt.host
        attempt.complete(200)
    assert len(hosts) == 3


def test_complete_is_the_whole_report(mesh):
    attempt = mesh.choose_host("web")
    assert gauge(mesh, "upstream_rq_active") == 1
    verdict = attempt.complete(200)
    assert (verdict.action, verdict.retry, verdict.status, verdict.flags) == ("forward", False, 200, "-")
    assert verdict.reason == "success" and verdict.after == 0.0
    assert attempt.verdict is verdict
    assert attempt.complete.__self__ is attempt and "ended" in repr(attempt)
    assert idle(mesh) and counter(mesh, "upstream_rq_200") == 1


def test_success_without_status(mesh):
    assert mesh.choose_host("web").complete().action == "forward"


def test_an_enum_is_a_status(mesh):
    assert mesh.choose_host("web").complete(http.HTTPStatus.CREATED).status == 201


def test_two_phases(mesh):
    attempt = mesh.request("web").choose_host()
    assert attempt.on_headers(200, {"a": "b"}).action == "forward"
    assert "answered" in repr(attempt)
    assert gauge(mesh, "upstream_rq_active") == 1
    attempt.end(trailers=[("grpc-status", "0")])
    assert idle(mesh)
    attempt.end()
    attempt.cancel()
    with pytest.raises(nexthop.UsageError) as raised:
        attempt.on_headers(200)
    assert raised.value.code == "ended"


def test_interim_headers_leave_it_open(mesh):
    attempt = mesh.request("web").choose_host()
    assert attempt.on_headers(103).action == "none"
    assert attempt.verdict is None
    assert attempt.complete(200).action == "forward"


@pytest.mark.parametrize("status", [500, 502, 503])
def test_retry_verdict(mesh, status):
    attempt = mesh.request("web").choose_host()
    verdict = attempt.complete(status)
    assert verdict.retry and verdict.action == "retry" and verdict.reason == "backoff"
    assert 0 <= verdict.after <= 0.010 and verdict.status == status


def test_failures_by_name(mesh):
    verdict = mesh.request("web").choose_host().fail("connect_failure", "refused by the test")
    assert verdict.retry and verdict.status == 503
    with pytest.raises(nexthop.UsageError, match="connect_failure"):
        mesh.choose_host("web").fail("no_such_failure")


def test_every_failure_has_a_verdict():
    from nexthop import _nexthop

    with engine(cluster("web")) as mesh:
        for name in _nexthop.FAILURES:
            verdict = mesh.request("web").choose_host().fail(name)
            assert verdict.action == "forward" and verdict.status >= 400, name
        assert idle(mesh)


def test_broken_body_after_headers(mesh):
    attempt = mesh.request("web").choose_host()
    attempt.on_headers(200)
    attempt.fail("remote_reset")
    assert idle(mesh)


@pytest.mark.parametrize("twice", ["complete", "on_headers", "fail"])
def test_a_second_report_is_a_bug(mesh, twice):
    attempt = mesh.choose_host("web")
    attempt.complete(200)
    argument = "remote_reset" if twice == "fail" else 200
    with pytest.raises(nexthop.UsageError) as raised:
        getattr(attempt, twice)(argument)
    assert raised.value.code == "ended"
    assert counter(mesh, "upstream_rq_completed") == 1


def test_end_before_headers(mesh):
    attempt = mesh.request("web").choose_host()
    with pytest.raises(nexthop.UsageError) as raised:
        attempt.end()
    assert raised.value.code == "state"
    assert attempt.complete(200).action == "forward"


@pytest.mark.parametrize("status", [1, 99, 1000, -1, 2**40, -(2**70), True])
def test_bad_status(mesh, status):
    attempt = mesh.choose_host("web")
    with pytest.raises(nexthop.UsageError) as raised:
        attempt.complete(status)
    assert raised.value.code == "invalid"
    assert attempt.complete(200).action == "forward"


@pytest.mark.parametrize("status", ["200", 200.5, b"200", object()])
def test_wrong_type_of_status(mesh, status):
    with pytest.raises(TypeError):
        mesh.choose_host("web").complete(status)


@pytest.mark.parametrize("latency", [math.nan, -1.0, -math.inf])
def test_bad_latency(mesh, latency):
    with pytest.raises(nexthop.UsageError):
        mesh.choose_host("web").complete(200, latency=latency)


def test_good_latency(mesh):
    assert mesh.choose_host("web").complete(200, latency=0.25).action == "forward"


def test_grpc_status_counts():
    policy = {**RETRY, "retry_on": "unavailable"}
    with engine(cluster("web"), routes=[route("web", retry_policy=policy)]) as mesh:
        head = {"headers": {"content-type": "application/grpc"}}
        assert mesh.request("web", **head).choose_host().complete(200, grpc_status=14).retry
        headers = {"Grpc-Status": "14"}
        assert mesh.request("web", **head).choose_host().complete(200, headers).retry
        assert not mesh.request("web", **head).choose_host().complete(200, grpc_status=-7).retry
        assert not mesh.request("web", **head).choose_host().complete(200, grpc_status=2**90).retry
        attempt = mesh.request("web", **head).choose_host()
        attempt.on_headers(200)
        attempt.end(grpc_status=14)


def test_dropped_counts_as_cancelled(mesh):
    attempt = mesh.choose_host("web")
    assert gauge(mesh, "upstream_rq_active") == 1
    del attempt
    assert idle(mesh)


def test_dropped_while_answered(mesh):
    attempt = mesh.request("web").choose_host()
    attempt.on_headers(200)
    del attempt
    assert idle(mesh)


def test_pipes_have_no_url():
    pipe = {"endpoint": {"address": {"pipe": {"path": "/run/web.sock"}}}}
    assignment = {"cluster_name": "web", "endpoints": [{"lb_endpoints": [pipe]}]}
    with engine({"name": "web", "load_assignment": assignment}) as mesh:
        attempt = mesh.choose_host("web")
        assert attempt.host.address == "/run/web.sock"
        with pytest.raises(nexthop.UsageError, match="pipe"):
            attempt.url()


def test_ipv6_url():
    with engine(cluster("web", ["::1:8080"])) as mesh:
        assert mesh.choose_host("web").url("x") == "http://[::1]:8080/x"


def test_explain(mesh):
    attempt = mesh.request("web", explain=True).choose_host()
    why = attempt.explain()
    assert why["chosen"] == attempt.host.address and why["hosts"]["candidates"]
    asked = mesh.explain("web", attempt=1, headers={"x-a": "b"})
    assert asked["refusal"] is None and asked["clusters"][0]["cluster"] == "web" and "host" in asked["text"]
    assert any(row["field"] == "connect_timeout" for row in mesh.effective("web")["values"])
    whole = mesh.load_report(whole=True)["entries"]
    assert {"used", "default"} <= {entry["what"] for entry in whole}


def test_path_and_timeouts_come_from_the_request(mesh):
    attempt = mesh.request("web", path="/pay?x=1", timeout=2.5).choose_host()
    assert attempt.url().endswith("/pay?x=1")
    assert attempt.timeout == 2.5 and attempt.remaining == 2.5
    assert attempt.idle_timeout is None or attempt.idle_timeout > 0
    assert isinstance(dict(attempt.headers), dict)
