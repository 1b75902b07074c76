"""Mechanisms beyond Envoy, as this face shows them."""

from __future__ import annotations

import pytest

import nexthop

MODELS = """
clusters:
  first: {hosts: [10.0.0.1:80], nexthop: {cool_down: {}}}
  second: {hosts: [10.0.0.2:80], nexthop: {cool_down: {}}}
  models:
    composite: [first, second]
    retry:
      on: 5xx
      times: 3
      backoff: {base: 1ms}
      nexthop: {classes: [{when: {status: 429, body_code: quota}, class: quota, next: cluster}]}
"""


@pytest.fixture
def mesh():
    with nexthop.Engine.from_str(MODELS, workers=1, seed=1, clock="manual") as made:
        yield made


@pytest.mark.parametrize("report", ["complete", "on_headers"])
def test_a_class_by_the_detail_and_a_refusal_that_says_when(mesh, report):
    call = mesh.request("models")
    first = call.try_choose_host()
    assert getattr(first, report)(429, {"Retry-After": "9"}, detail="quota").retry
    mesh.advance(0.001)
    second = call.try_choose_host()
    assert (first.host.address, second.host.address) == ("10.0.0.1:80", "10.0.0.2:80")
    # Without its code it is an answer like any other.
    assert not getattr(second, report)(429, {"Retry-After": "4.5"}).retry
    refused = mesh.request("models").try_choose_host()
    assert isinstance(refused, nexthop.Refused)
    assert (refused.refusal, refused.retry_after) == ("cooling", 4.5)
    assert refused.reply.status == 503 and refused.reply.headers["retry-after"] == "5"
    assert [event["type"] for event in mesh.events()] == ["nexthop.cool_down"] * 2


def test_a_detail_is_text(mesh):
    attempt = mesh.request("models").try_choose_host()
    with pytest.raises(TypeError):
        attempt.complete(429, detail=5)
    assert attempt.complete(200, detail="x" * 10_000).action == "forward"
