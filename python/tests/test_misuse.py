"""Wrong use gets a clear error, and nothing has changed."""

from __future__ import annotations

import math

import pytest
from conftest import cluster, engine, idle

import nexthop
from nexthop import _nexthop


@pytest.mark.parametrize("timeout", [math.nan, -0.001, -math.inf])
def test_bad_timeouts(mesh, timeout):
    for use in (
        lambda: mesh.request("web", timeout=timeout),
        lambda: mesh.request("web").choose_host(timeout=timeout),
        lambda: mesh.choose_host("web", timeout=timeout),
        lambda: mesh.advance(timeout),
        lambda: engine(cluster("web"), lease=timeout),
    ):
        with pytest.raises(nexthop.UsageError) as raised:
            use()
        assert raised.value.code == "invalid"


def test_good_timeouts(mesh):
    assert mesh.request("web", timeout=math.inf).choose_host().remaining == 10.0
    assert mesh.request("web", timeout=None).choose_host().remaining == 10.0
    assert mesh.request("web", timeout=0).choose_host().remaining == 10.0
    assert mesh.request("web", timeout=1e-12).choose_host().remaining == 1e-9
    assert mesh.request("web", timeout=3).choose_host().remaining == 3.0
    refused = mesh.request("web", timeout=1e300).choose_host()
    assert refused.remaining == 10.0


@pytest.mark.parametrize("field", ["path", "authority", "method", "override_host", "source"])
def test_oversized_heads(mesh, field):
    with pytest.raises(nexthop.UsageError) as raised:
        mesh.request("web", **{field: "/" + "x" * 100_000}).choose_host()
    assert raised.value.code in ("limit", "invalid")
    assert idle(mesh)


def test_oversized_headers_and_detail(mesh):
    attempt = mesh.request("web").choose_host()
    attempt.fail("remote_reset", "é" * 100_000)
    mesh.choose_host("web").fail(ConnectionResetError("x" * 1_000_000))
    mesh.choose_host("web").complete(200, {"x" * 1_000_000: "y" * 1_000_000})
    assert idle(mesh)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ({"priority": "urgent"}, nexthop.UsageError),
        ({"body": "twice"}, nexthop.UsageError),
        ({"metadata": {"a": math.nan}}, nexthop.UsageError),
        ({"metadata": {"a": object()}}, nexthop.UsageError),
        ({"path": "\ud800"}, nexthop.UsageError),
        ({"path": b"/"}, TypeError),
        ({"key": 7}, TypeError),
        ({"metadata": 7}, TypeError),
        ({"internal": "yes"}, TypeError),
        ({"timeout": "1"}, TypeError),
        ({"unknown": 1}, TypeError),
        ({"unknown": None}, TypeError),
    ],
)
def test_bad_heads(mesh, words, kind):
    with pytest.raises(kind):
        mesh.request("web", **words)
    with pytest.raises(kind):
        mesh.choose_host("web", **words)


def test_good_heads(mesh):
    call = mesh.request(
        "web",
        method="PUT",
        scheme="http",
        authority="a.example",
        path="/",
        headers={},
        source="10.1.1.1:99",
        local="10.1.1.2:80",
        key="k",
        metadata={"stage": "prod", "n": 1},
        filter_metadata={"other": {"x": [1, None, True]}},
        priority="high",
        body="replayable",
        internal=True,
        explain=True,
    )
    assert call.choose_host().complete(200).action == "forward"


def test_a_wrong_state_says_what_to_do(mesh):
    def state(match, use):
        with pytest.raises(nexthop.UsageError, match=match) as raised:
            use()
        assert raised.value.code == "state"

    call = mesh.request("web")
    attempt = call.choose_host()
    state("attempt 1 is open; report or cancel it", call.choose_host)
    state("no response headers were reported; report them first", attempt.end)
    attempt.on_headers(200)
    state("the attempt was answered; use end", lambda: attempt.complete(200))
    state("the response of attempt 1 was forwarded", call.choose_host)
    attempt.end()
    with pytest.raises(nexthop.UsageError, match="the attempt has ended"):
        attempt.complete(200)
    with pytest.raises(nexthop.UsageError, match="the request has ended"):
        call.choose_host()
    assert idle(mesh)


def test_names_that_nothing_has(mesh):
    with pytest.raises(nexthop.UsageError, match='no cluster "wbe"; did you mean "web"') as raised:
        mesh.hosts("wbe")
    assert raised.value.code == "not_found"
    sentence = (
        'no attempt: no_cluster; no cluster or route "wbe"; did you mean "web"?; '
        "the local reply is 503 NC, cluster_not_found"
    )
    for use in (lambda: mesh.choose_host("wbe"), lambda: mesh.request("wbe").choose_host()):
        with pytest.raises(nexthop.Refused) as refused:
            use()
        assert str(refused.value) == sentence


def test_the_last_attempt_of_a_loop_ends_with_it(mesh):
    for attempt in mesh.request("web"):
        attempt.on_headers(200)
    assert repr(attempt).endswith("ended>")
    assert idle(mesh)


def test_two_targets(mesh):
    with pytest.raises(nexthop.UsageError, match="both a cluster and a route are named"):
        mesh.request("web", route="all")


@pytest.mark.parametrize("attempt", [-1, 2**31, 2**32, 2**70])
def test_bad_attempt_numbers(mesh, attempt):
    picker = mesh.picker("web")
    for use in (lambda at: mesh.choose_host("web", attempt=at), lambda at: mesh.choose_host("web", attempt=at, path="/")):
        with pytest.raises(nexthop.UsageError, match=f"number is {attempt}; attempts count from 1 to 2147483647"):
            use(attempt)
    with pytest.raises(nexthop.UsageError, match=f"number is {attempt}; attempts count from 1 to 2147483647"):
        picker.pick(attempt)
    for wrong in ("2", 1.5, b"1"):
        with pytest.raises(TypeError):
            mesh.choose_host("web", attempt=wrong)
        with pytest.raises(TypeError):
            picker.pick(wrong)
    assert idle(mesh)


@pytest.mark.parametrize("status", [-1, 99, 1000, 2**70])
def test_bad_statuses(mesh, status):
    picker = mesh.picker("web")
    picker.pick()
    with pytest.raises(nexthop.UsageError, match="the status is .*; it is 100 to 999"):
        picker.complete(status)
    with pytest.raises(TypeError):
        picker.complete("200")
    # It is still open.
    assert picker.complete(200) == 1
    attempt = mesh.choose_host("web")
    for report in (attempt.complete, attempt.on_headers):
        with pytest.raises(nexthop.UsageError, match="the status is .*; it is 100 to 999"):
            report(status)
    attempt.complete(200)
    assert idle(mesh)


def test_what_a_head_is_refused_for(mesh):
    for use in (
        lambda: mesh.request("web", override_host="!").choose_host(),
        lambda: mesh.choose_host("web", override_host="!"),
    ):
        with pytest.raises(nexthop.UsageError, match="override_host"):
            use()
    with pytest.raises(nexthop.UsageError, match="70004 bytes together"):
        mesh.request("web", path="/" + "x" * 70_000, method="GET").choose_host()
    assert idle(mesh)


def test_text_that_is_none(mesh):
    half = "\ud800"
    attempt, call = mesh.choose_host("web"), mesh.request("web")
    for use in (
        lambda: nexthop.Engine.from_file(half),
        lambda: mesh.update_file(half),
        lambda: mesh.update_str("clusters: []", dialect=half),
        lambda: mesh.set_hosts(half, []),
        lambda: mesh.apply(half, []),
        lambda: mesh.apply_endpoints(half, ""),
        lambda: mesh.hosts(half),
        lambda: call.note(half),
        lambda: attempt.note(half),
        lambda: attempt.url(half),
        lambda: attempt.fail("remote_reset", half),
    ):
        with pytest.raises(nexthop.UsageError, match="UTF-8 can carry") as raised:
            use()
        assert raised.value.code == "invalid"
    with pytest.raises(TypeError, match="mapping"):
        mesh.request("web", metadata="a")
    attempt.cancel()
    assert idle(mesh)


def test_text_is_no_list(mesh):
    for use in (
        lambda: mesh.set_hosts("web", "10.0.0.1:80"),
        lambda: mesh.set_hosts("web", {"address": "10.0.0.1:80"}),
        lambda: mesh.apply("web", "10.0.0.1:80"),
        lambda: mesh.choose_host("web", tried="10.0.0.1:80"),
    ):
        with pytest.raises(TypeError, match="list"):
            use()
    assert idle(mesh)


def test_the_clock(mesh):
    for far in (1e30, math.inf):
        with pytest.raises(nexthop.UsageError, match="292 years") as raised:
            mesh.advance(far)
        assert raised.value.code == "invalid"
    with engine(cluster("web"), clock="coarse") as real:
        with pytest.raises(nexthop.UsageError, match='clock="manual"') as raised:
            real.advance(1)
        assert raised.value.code == "state"


def test_cluster_names(mesh):
    for name in (7, None, b"web"):
        with pytest.raises(TypeError):
            mesh.choose_host(name)
    with pytest.raises(nexthop.UsageError):
        mesh.choose_host("\ud800")
    with pytest.raises(nexthop.Refused, match="web"):
        mesh.choose_host("wep")


def test_objects_are_made_by_the_engine_only():
    for kind in (
        nexthop.Engine,
        nexthop.Request,
        nexthop.Attempt,
        nexthop.Picker,
        nexthop.Verdict,
        nexthop.Wait,
        nexthop.Host,
        nexthop.LocalReply,
    ):
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            type("Sub", (kind,), {})


def test_objects_do_not_change(mesh):
    attempt = mesh.choose_host("web")
    for thing, name in ((attempt, "number"), (attempt.host, "address"), (nexthop.UNAVAILABLE, "status")):
        with pytest.raises(AttributeError):
            setattr(thing, name, 1)
    with pytest.raises(TypeError):
        attempt.host.metadata["x"] = 1


def test_the_plain_503():
    assert (nexthop.UNAVAILABLE.status, nexthop.UNAVAILABLE.flags) == (503, "-")
    assert nexthop.UNAVAILABLE.headers == {} and nexthop.UNAVAILABLE.body == ""


def test_errors_are_of_one_family():
    assert issubclass(nexthop.ConfigError, (nexthop.Error, ValueError))
    assert issubclass(nexthop.UsageError, (nexthop.Error, RuntimeError))
    assert issubclass(nexthop.Refused, nexthop.Error)
    assert issubclass(nexthop.InternalError, nexthop.Error)
    assert issubclass(nexthop.UnreportedWarning, ResourceWarning)
    assert _nexthop._empty() is None


def test_failing_with_what_is_no_failure(mesh):
    for wrong in (None, 7, ValueError):
        with pytest.raises(TypeError):
            mesh.choose_host("web").fail(wrong)


def test_a_waker_that_raises_is_reported_and_harms_nobody(monkeypatch):
    from conftest import breakers, gauge, route

    seen = []
    monkeypatch.setattr("sys.unraisablehook", lambda what: seen.append(what.exc_type))
    limits = {"circuit_breakers": breakers(max_connections=1)}
    with engine(cluster("web", 1, **limits), routes=[route("web")]) as mesh:
        held = mesh.request("web").choose_host()
        queued = mesh.request("web")
        assert isinstance(queued.try_choose_host(), nexthop.Wait)

        def waker():
            raise LookupError

        queued._on_ready(waker)
        assert held.complete(200).action == "forward"
        assert seen == [LookupError]
        queued.choose_host().complete(200)
        assert gauge(mesh, "upstream_rq_active") == 0
