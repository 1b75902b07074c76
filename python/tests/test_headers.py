"""Headers in any shape a client library has; only wanted ones cross."""

from __future__ import annotations

import types
from collections import ChainMap
from email.message import Message

import aiohttp
import httpx
import multidict
import pytest
import requests
from conftest import RETRY, cluster, engine, route

import nexthop

POLICY = {
    **RETRY,
    "retry_on": "retriable-headers",
    "retriable_headers": [{"name": "x-again", "string_match": {"exact": "yes"}}],
}
HASH = [{"header": {"header_name": "x-user"}}]


@pytest.fixture(scope="module")
def mesh():
    clusters = [cluster("web", 64, lb_policy="RING_HASH")]
    with engine(*clusters, routes=[route("web", retry_policy=POLICY, hash_policy=HASH)]) as made:
        yield made


def message(pairs):
    made = Message()
    for name, value in pairs:
        made[name] = value
    return made


SHAPES = [
    dict,
    list,
    tuple,
    lambda pairs: iter(pairs),
    lambda pairs: ({**dict(pairs)}).items(),
    lambda pairs: [(n.encode(), v.encode()) for n, v in pairs],
    lambda pairs: [[n, v] for n, v in pairs],
    lambda pairs: types.MappingProxyType(dict(pairs)),
    lambda pairs: ChainMap({}, dict(pairs)),
    httpx.Headers,
    lambda pairs: httpx.Headers(pairs).raw,
    multidict.CIMultiDict,
    lambda pairs: multidict.CIMultiDictProxy(multidict.CIMultiDict(pairs)),
    multidict.MultiDict,
    requests.structures.CaseInsensitiveDict,
    message,
]


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("name", ["x-again", "X-Again", "X-AGAIN"])
def test_response_headers(mesh, shape, name):
    make = SHAPES[shape]
    for value, again in (("yes", True), ("no", False)):
        headers = make([("content-type", "text/plain"), (name, value)])
        assert mesh.request("web").choose_host().complete(200, headers).retry is again
    empty = make([("Date", "now")])
    assert not mesh.request("web").choose_host().on_headers(200, empty).retry


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_request_headers(mesh, shape):
    hosts = set()
    for user in ("ann", "bob", "cid", "dee", "eve"):
        found = {
            mesh.request("web", headers=SHAPES[shape]([("X-User", user)])).choose_host().host.address
            for _ in range(3)
        }
        assert len(found) == 1
        hosts |= found
    assert len(hosts) > 1


def test_values_as_octets(mesh):
    """Latin-1 where it fits, else UTF-8: the same octets choose the same host."""

    def host(value):
        return mesh.request("web", headers=[(b"x-user", value)]).choose_host().host

    def text(value):
        return mesh.request("web", headers={"x-user": value}).choose_host().host

    assert text("zoë") is host("zoë".encode("latin-1"))
    assert text("Zoë ☃") is host("Zoë ☃".encode())
    assert host(b"\xff\xfe\x00") is host(b"\xff\xfe\x00")


def test_several_values(mesh):
    headers = [("x-again", "no"), ("x-again", "yes")]
    assert isinstance(mesh.request("web").choose_host().complete(200, headers), nexthop.Verdict)


@pytest.mark.parametrize("bad", [7, [1], [("a",)], [("x-user", 1)], {"x-user": None}, [(1, "a")], ["xy z"]])
def test_wrong_shapes(mesh, bad):
    with pytest.raises((TypeError, ValueError)):
        mesh.request("web", headers=bad)


def test_lone_surrogates(mesh):
    with pytest.raises(nexthop.UsageError) as raised:
        mesh.request("web", headers={"x-user": "\udce4"})
    assert raised.value.code == "invalid"


def test_an_iterator_that_raises(mesh):
    def broken():
        yield "a", "b"
        raise LookupError

    with pytest.raises(LookupError):
        mesh.request("web", headers=broken())
    attempt = mesh.request("web").choose_host()
    with pytest.raises(LookupError):
        attempt.complete(200, broken())
    assert attempt.complete(200).action == "forward"


def test_keys(mesh):
    one = mesh.choose_host("web", key="zoë").host
    assert one is mesh.choose_host("web", key="zoë".encode("latin-1")).host
    assert aiohttp.__version__
