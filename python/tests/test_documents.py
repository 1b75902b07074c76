"""Engines from files and texts: good, bad, huge, changed."""

from __future__ import annotations

import json

import pytest
from conftest import cluster, counter, documents, engine, gauge, idle

import nexthop


def write(path, *clusters):
    path.write_text(documents(list(clusters))[0])
    return path


def test_from_files(tmp_path):
    one = write(tmp_path / "one.json", cluster("web"))
    two = write(tmp_path / "two.json", cluster("api"))
    with nexthop.Engine.from_file(str(one), two, clock="manual") as mesh:
        assert mesh.choose_host("web").cluster == "web"
        assert mesh.choose_host("api").cluster == "api"
        assert mesh.epoch >= 1 and "epoch" in repr(mesh)


def test_from_bytes_and_yaml():
    text = b"clusters:\n- name: web\n  load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: ["
    text += b"{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}\n"
    with nexthop.Engine.from_str(text) as mesh:
        assert mesh.choose_host("web").host.address == "10.0.0.1:80"


def test_the_place_of_an_error(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("static_resources:\n  clusters:\n  - name: web\n    lb_policyy: RANDOM\n")
    with pytest.raises(nexthop.ConfigError) as raised:
        nexthop.Engine.from_file(bad)
    error = raised.value
    assert error.code == "config" and error.file == str(bad)
    assert (error.line, error.column) == (4, 5)
    assert error.path == "static_resources.clusters[0].lb_policyy"
    assert "lb_policy" in str(error) and isinstance(error, ValueError)
    assert (error.found, error.nearest) == ("lb_policyy", "lb_policy")
    assert "load_assignment" in error.allowed


def test_files_that_are_none(tmp_path):
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(nexthop.ConfigError) as raised:
            nexthop.Engine.from_file(path)
        assert raised.value.code == "io" and raised.value.file == str(path)
    empty = tmp_path / "empty.yaml"
    empty.touch()
    with pytest.raises(nexthop.ConfigError) as raised:
        nexthop.Engine.from_file(empty)
    assert raised.value.file == str(empty)


@pytest.mark.parametrize("text", ["", " \n", "\0", "{", "[1, 2", "a: [", "- - -", "42", b"\xff\xfe\x00", "&a [*a]"])
def test_nonsense(text):
    with pytest.raises(nexthop.ConfigError):
        nexthop.Engine.from_str(text)


def test_wrong_arguments():
    for wrong in (7, None, bytearray(b"x"), ["x"]):
        with pytest.raises(TypeError):
            nexthop.Engine.from_str(wrong)
        with pytest.raises(TypeError):
            nexthop.Engine.from_file(wrong)
    with pytest.raises(nexthop.UsageError):
        nexthop.Engine.from_str("\ud800")
    good = documents([cluster("web")])[0]
    for options, kind in (
        ({"clock": "sundial"}, nexthop.UsageError),
        ({"seed": -1}, nexthop.UsageError),
        ({"seed": 2**64}, nexthop.UsageError),
        ({"workers": 2**40}, nexthop.UsageError),
        ({"draws": [1, -1]}, nexthop.UsageError),
        ({"draws": 7}, TypeError),
        ({"colour": 1}, TypeError),
    ):
        with pytest.raises(kind):
            nexthop.Engine.from_str(good, **options)


def test_huge_document():
    """Fifty megabytes are read, not choked on."""
    text = documents([cluster("web")])[0]
    padded = text + " " * (50_000_000 - len(text))
    with nexthop.Engine.from_str(padded.encode()) as mesh:
        assert mesh.choose_host("web").complete(200).action == "forward"
    with pytest.raises(nexthop.ConfigError):
        nexthop.Engine.from_str(b"{" * 50_000_000)


def test_a_hundred_thousand_hosts():
    hosts = [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}:80" for n in range(100_000)]
    with engine(cluster("web", 1), workers=1) as mesh:
        before = mesh.epoch
        assert mesh.set_hosts("web", hosts) > before
        assert gauge(mesh, "membership_total") == 100_000
        seen = set()
        for _ in range(1000):
            attempt = mesh.choose_host("web")
            seen.add(attempt.host.address)
            attempt.complete(200)
        assert len(seen) == 1000
        assert idle(mesh)


def test_updates(tmp_path, mesh):
    held = mesh.choose_host("web")
    report = mesh.update_str(*documents([cluster("web", ["10.9.9.9:80"]), cluster("api")]))
    assert isinstance(report, dict) and report == mesh.load_report()
    assert isinstance(mesh.lint()["findings"], list)
    assert mesh.choose_host("web").host.address == "10.9.9.9:80"
    assert held.host.address.startswith("10.0.0.") and held.complete(200).action == "forward"
    with pytest.raises(nexthop.ConfigError):
        mesh.update_str("clusters: [{nonsense: 1}]")
    assert mesh.choose_host("web").host.address == "10.9.9.9:80"
    mesh.update_file(write(tmp_path / "web.json", cluster("web", ["10.8.8.8:80"])))
    assert mesh.choose_host("web").host.address == "10.8.8.8:80"
    with pytest.raises(nexthop.Refused) as raised:
        mesh.choose_host("api")
    assert raised.value.refusal == "no_cluster"


def test_reload(tmp_path):
    path = write(tmp_path / "web.json", cluster("web", ["10.0.0.1:80"]))
    with nexthop.Engine.from_file(path) as mesh:
        assert mesh.reload() is False
        write(path, cluster("web", ["10.0.0.2:80", "10.0.0.3:80"]))
        assert mesh.reload() is True
        assert mesh.choose_host("web").host.address != "10.0.0.1:80"
        path.write_text("{ bad")
        assert mesh.reload() is False
        assert any(event["type"] == "nexthop.config_rejected" for event in mesh.events())
        assert mesh.events() == []
        assert mesh.choose_host("web").complete(200).action == "forward"


def test_hosts_from_code(mesh):
    first = mesh.set_hosts(
        "web",
        [
            "10.1.0.1:80",
            {
                "address": "10.1.0.2:80",
                "weight": 3,
                "zone": "b",
                "hostname": "two",
                "metadata": {"v": 2, "tags": ["x"], "on": True, "half": 0.5, "no": None, "in": {"a": "1"}},
            },
        ],
    )
    hosts = {}
    for _ in range(8):
        attempt = mesh.choose_host("web")
        hosts[attempt.host.address] = attempt.host
    two = hosts["10.1.0.2:80"]
    assert (two.weight, two.zone, two.hostname) == (3, "b", "two")
    assert dict(two.metadata) == {
        "v": 2, "tags": ["x"], "on": True, "half": 0.5, "no": None, "in": {"a": "1"}
    }
    second = mesh.apply("web", [{"op": "remove", "address": "10.1.0.1:80"}, "10.1.0.3:80"])
    assert second > first
    mesh.apply("web", [{"op": "change", "address": "10.1.0.2:80", "weight": 9}])
    hosts = {}
    for _ in range(30):
        attempt = mesh.choose_host("web")
        hosts[attempt.host.address] = attempt.host
    assert set(hosts) == {"10.1.0.2:80", "10.1.0.3:80"}
    assert hosts["10.1.0.2:80"].weight == 9 and hosts["10.1.0.2:80"].zone == "b"


def test_endpoints_as_envoy_sends_them(mesh):
    assignment = cluster("web", ["10.7.0.1:80"])["load_assignment"]
    mesh.apply_endpoints("web", json.dumps(assignment))
    assert mesh.choose_host("web").host.address == "10.7.0.1:80"


@pytest.mark.parametrize(
    ("hosts", "kind"),
    [
        ([{"address": "10.0.0.1:80", "weight": 0}], nexthop.UsageError),
        ([{"address": "10.0.0.1:80", "weight": 2**32}], nexthop.UsageError),
        ([{"address": "10.0.0.1:80", "priority": 129}], nexthop.UsageError),
        ([{"address": "10.0.0.1:80", "health": "fine"}], nexthop.UsageError),
        ([{"address": "10.0.0.1:80", "colour": "red"}], nexthop.UsageError),
        ([{"address": "10.0.0.1:80", "op": "remove"}], nexthop.UsageError),
        (["nonsense"], nexthop.Error),
        ([7], TypeError),
        (7, TypeError),
    ],
)
def test_bad_hosts_change_nothing(mesh, hosts, kind):
    before = mesh.epoch
    with pytest.raises(kind):
        mesh.set_hosts("web", hosts)
    assert mesh.epoch == before and gauge(mesh, "membership_total") == 3


def test_hosts_of_no_cluster(mesh):
    with pytest.raises(nexthop.UsageError) as raised:
        mesh.set_hosts("wep", ["10.0.0.1:80"])
    assert raised.value.code == "not_found" and "web" in str(raised.value)


def test_numbers_and_texts(mesh):
    mesh.choose_host("web").complete(200)
    assert counter(mesh, "upstream_rq_total") == 1
    assert 'envoy_cluster_upstream_rq_total{envoy_cluster_name="web"} 1' in mesh.prometheus()
    answers = [m for m in mesh.metrics() if m["name"] == "cluster.upstream_rq"]
    attributes = {"envoy.response_code": "200", "envoy.cluster_name": "web"}
    assert answers == [{"name": "cluster.upstream_rq", "type": "counter", "value": 1, "attributes": attributes}]
    assert isinstance(mesh.load_report(), dict)
    assert [host["cluster"] for host in mesh.hosts()] == ["web"] * 3
    assert sum(host["rq_success"] for host in mesh.hosts("web")) == 1
    due = mesh.maintain()
    assert due is None or due >= 0
    mesh.advance(1.5)
    with engine(cluster("web"), clock="coarse") as other, pytest.raises(nexthop.UsageError):
        other.advance(1)


def test_same_seed_same_choices():
    def choices():
        with engine(cluster("web", 50, lb_policy="RANDOM"), seed=11) as mesh:
            return [mesh.choose_host("web").host.address for _ in range(20)]

    assert choices() == choices()


def test_draws_replace_the_generator():
    def first(draw):
        with engine(cluster("web", 5, lb_policy="RANDOM"), draws=[draw] * 16) as mesh:
            return mesh.choose_host("web").host.address

    assert len({first(draw) for draw in range(5)}) == 5


def test_no_documents_are_refused_and_change_nothing(mesh):
    for use in (nexthop.Engine.from_str, nexthop.Engine.from_file, mesh.update_str, mesh.update_file):
        with pytest.raises(nexthop.UsageError, match="no documents") as raised:
            use()
        assert raised.value.code == "invalid"
    for empty in ("", "# nothing", "[]", b"---\n"):
        with pytest.raises(nexthop.ConfigError):
            mesh.update_str(empty)
    with pytest.raises(nexthop.ConfigError, match="path of document 1 is empty") as raised:
        mesh.update_file("")
    assert raised.value.code == "io"
    assert mesh.choose_host("web").complete(200).action == "forward"
    mesh.update_str("clusters: []")
    with pytest.raises(nexthop.Refused):
        mesh.choose_host("web")


def test_endpoints_name_their_cluster():
    with engine(cluster("web"), cluster('o"d\n\x85')) as mesh:
        mesh.apply_endpoints("web", json.dumps(cluster("web", 1)["load_assignment"]))
        epoch = mesh.epoch
        for named in ("api", "WEB"):
            with pytest.raises(nexthop.UsageError) as raised:
                mesh.apply_endpoints("web", json.dumps({"cluster_name": named}))
            assert raised.value.code == "invalid"
            assert '"web"' in str(raised.value) and f'"{named}"' in str(raised.value)
        for bad in ("{endpoints: []}", "{cluster_name: ''}"):
            with pytest.raises(nexthop.ConfigError, match="cluster_name"):
                mesh.apply_endpoints("web", bad)
        assert mesh.epoch == epoch and len(mesh.hosts("web")) == 1
        # Any name survives the way there.
        mesh.set_hosts('o"d\n\x85', [])
        assert mesh.hosts('o"d\n\x85') == []


def test_a_composite_has_no_hosts_of_its_own():
    text = "clusters: {a: {hosts: [10.0.0.1:80]}, x: {composite: [a, b]}}"
    with nexthop.Engine.from_str(text) as mesh:
        for hosts in ([], ["10.0.0.1:80"]):
            with pytest.raises(nexthop.UsageError, match="composite") as raised:
                mesh.set_hosts("x", hosts)
            assert "did you mean" not in str(raised.value)
        entries = mesh.load_report()["entries"]
        assert [entry["path"] for entry in entries] == ["clusters.x.composite[1]"]
        assert "`b`" in entries[0]["text"]


def test_a_raised_limit_wakes_who_waits():
    import threading

    text = "clusters: {web: {hosts: [10.0.0.1:80], limits: {connections: %d}, timeout: 60s}}"
    with nexthop.Engine.from_str(text % 1) as mesh:
        held = mesh.request("web").choose_host()
        call = mesh.request("web")
        assert isinstance(call.try_choose_host(), nexthop.Wait)
        found = []
        thread = threading.Thread(target=lambda: found.append(call.choose_host()))
        thread.start()
        mesh.update_str(text % 2)
        thread.join(30)
        assert found[0].complete(200).action == "forward"
        held.complete(200)


EDS = """
static_resources:
  clusters: [{name: orders, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}, connect_timeout: 1s}]
"""
LIST = '{"hosts": [{"ip": "10.4.0.1", "port": 80, "weight": 1, "healthy": true, "enabled": true}]}'
LIMITED = "clusters: {web: {hosts: [10.0.0.1:80], retry: {on: [5xx], times: 1}}}"


def test_named_documents():
    with nexthop.Engine.from_str(EDS, ("orders", LIST)) as mesh:
        assert mesh.hosts("orders")[0]["address"] == "10.4.0.1:80"
        mesh.update_str(EDS, ("orders", LIST.replace("10.4.0.1", "10.4.0.2").encode()))
        assert mesh.hosts("orders")[0]["address"] == "10.4.0.2:80"
    with pytest.raises(nexthop.ConfigError) as raised:
        nexthop.Engine.from_str(("mine", "clusters: 7"))
    assert (raised.value.file, raised.value.found) == ("mine", "7")
    for wrong in (("a", "b", "c"), ("a",), (1, "clusters: []"), ("a", 1)):
        with pytest.raises(TypeError):
            nexthop.Engine.from_str(wrong)


def test_runtime_values():
    def action(mesh):
        with mesh.request("web") as call:
            return call.choose_host().complete(503).action

    with nexthop.Engine.from_str(LIMITED, runtime={"upstream": {"use_retry": 0}}) as mesh:
        assert action(mesh) == "forward"
        mesh.update_str(runtime='{"upstream.use_retry": 100}')
        assert action(mesh) == "retry"
        mesh.update_str(LIMITED, runtime={"upstream.use_retry": 0})
        assert action(mesh) == "forward"
        with pytest.raises(nexthop.ConfigError) as raised:
            mesh.update_str(runtime="[1]")
        assert (raised.value.file, raised.value.line, raised.value.column) == ("<runtime>", 1, 1)
        assert raised.value.found == "a list"
        with pytest.raises(nexthop.UsageError):
            mesh.update_str(runtime={"a": float("nan")})
        with pytest.raises(nexthop.UsageError, match="no documents"):
            mesh.update_str()
        assert action(mesh) == "forward"
