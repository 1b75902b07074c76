"""The raw layer."""

from __future__ import annotations

import pytest
from conftest import breakers, cluster, counter, engine, gauge, idle

import nexthop


def test_pick_and_complete(mesh):
    picker = mesh.picker("web")
    slots = set()
    for _ in range(9):
        slots.add(picker.pick())
        assert picker.complete(200) == 1
    assert len(slots) == 3 and min(slots) >= 0
    assert idle(mesh) and counter(mesh, "upstream_rq_200") == 9


def test_arguments(mesh):
    picker = mesh.picker("web")
    assert picker.pick(2, b"key") >= 0
    assert picker.complete() == 1
    assert picker.pick(1) >= 0
    assert picker.complete(503) == 2


def test_one_open_pick_at_a_time(mesh):
    picker = mesh.picker("web")
    with pytest.raises(nexthop.UsageError) as raised:
        picker.complete(200)
    assert raised.value.code == "ended"
    picker.pick()
    with pytest.raises(nexthop.UsageError) as raised:
        picker.pick()
    assert raised.value.code == "state"
    with pytest.raises(nexthop.UsageError) as raised:
        picker.complete(77)
    assert raised.value.code == "invalid"
    assert picker.complete(200) == 1


def test_dropped_picker_gives_back(mesh):
    picker = mesh.picker("web")
    picker.pick()
    assert gauge(mesh, "upstream_rq_active") == 1
    del picker
    assert idle(mesh)


def test_refusals_are_negative():
    with engine(cluster("none", []), cluster("web", 1, circuit_breakers=breakers(max_requests=1))) as mesh:
        assert mesh.picker("none").pick() == -2
        held = mesh.choose_host("web")
        assert mesh.picker("web").pick() == -3
        held.complete(200)


def test_unknown_cluster(mesh):
    with pytest.raises(nexthop.UsageError) as raised:
        mesh.picker("wep")
    assert raised.value.code == "not_found"


def test_closed_engine():
    mesh = engine(cluster("web"))
    picker = mesh.picker("web")
    picker.pick()
    mesh.close()
    with pytest.raises(nexthop.UsageError) as raised:
        picker.complete(200)
    assert raised.value.code == "closed"
    with pytest.raises(nexthop.UsageError):
        picker.pick()
