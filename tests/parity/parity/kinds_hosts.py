"""Kinds of cases about which host is chosen."""

HEALTH = ["HEALTHY", "UNKNOWN", "UNHEALTHY", "DRAINING", "TIMEOUT", "DEGRADED"]
UP = ["HEALTHY", "UNKNOWN"]


def health(rng, sick=0.25, degraded=True):
    """A health status. Degraded hosts beside too few healthy ones are drawn by load: no order is left then."""
    if rng.random() > sick:
        return rng.choice([None, *UP])
    return rng.choice(HEALTH if degraded else HEALTH[:-1])


def weight(rng, most=6, none=0.3):
    return None if rng.random() < none else rng.randint(1, most)


def maybe(rng, fields, chance, **more):
    if rng.random() < chance:
        fields.update(more)
    return fields


def plain(count, **head):
    return [dict(head) for _ in range(count)]


def round_robin(draft, rng):
    draft.about = "round robin over equal or weighted hosts, some not healthy, one or two localities"
    draft.determinism = "order-up-to-rotation"
    weighted = rng.random() < 0.6
    sick = rng.choice([0, 0, 0.3])
    localities, total = [], 0
    for zone in range(rng.choice([1, 1, 2])):
        members = []
        for _ in range(rng.randint(1, 5)):
            heavy = weight(rng) if weighted else None
            total += heavy or 1
            members.append(draft.endpoint(draft.host(), heavy, health(rng, sick, False)))
        localities.append({"locality": {"zone": f"z{zone}"}, "lb_endpoints": members})
    fields = maybe(rng, {}, 0.3, common_lb_config={"healthy_panic_threshold": {"value": rng.choice([0, 30, 50, 100])}})
    draft.route({"prefix": "/"}, cluster=draft.cluster(localities, **fields))
    draft.requests(plain(min(2 * total + 6, 50)))


def least_request(draft, rng):
    draft.about = "least request over idle hosts with different weights: taken in turn by deadline"
    draft.determinism = "order-up-to-rotation"
    weights = [rng.randint(1, 6) for _ in range(rng.randint(2, 5))]
    if len(set(weights)) == 1:
        weights[0] += 1
    members = [draft.endpoint(draft.host(), heavy) for heavy in weights]
    fields = {"lb_policy": "LEAST_REQUEST"}
    config = maybe(rng, {}, 0.5, choice_count=rng.randint(2, 5))
    maybe(rng, config, 0.4, active_request_bias={"default_value": rng.choice([0, 0.5, 1, 2]), "runtime_key": "x"})
    if config:
        fields["least_request_lb_config"] = config
    draft.route({"prefix": "/"}, cluster=draft.cluster([members], **fields))
    draft.requests(plain(min(2 * sum(weights) + 6, 50)))


def locality(draft, rng):
    draft.about = "locality weighted round robin, equal hosts in each locality, availability by health"
    draft.determinism = "order-up-to-rotation"
    localities = []
    for zone in range(rng.randint(2, 3)):
        members = [draft.endpoint(draft.host(), None, health(rng, 0.2, False)) for _ in range(rng.randint(1, 3))]
        entry = {"locality": {"region": "r", "zone": f"z{zone}"}, "lb_endpoints": members}
        maybe(rng, entry, 0.9, load_balancing_weight=rng.randint(1, 4))
        localities.append(entry)
    common = maybe(rng, {"locality_weighted_lb_config": {}}, 0.4, healthy_panic_threshold={"value": 0})
    draft.route({"prefix": "/"}, cluster=draft.cluster(localities, common_lb_config=common))
    draft.requests(plain(30))


def panic(draft, rng):
    draft.about = "one priority, some hosts healthy or degraded, a panic threshold"
    draft.determinism = "order-up-to-rotation"
    count = rng.randint(2, 6)
    members = [draft.endpoint(draft.host(), None, rng.choice(HEALTH)) for _ in range(count)]
    policy = rng.choice(["ROUND_ROBIN", "RING_HASH", "MAGLEV"])
    threshold = rng.choice([0, 10, 25.9, 33.4, 50, 50, 67, 100])
    common = {"healthy_panic_threshold": {"value": threshold}}
    if rng.random() < 0.3 and policy == "ROUND_ROBIN":
        common["zone_aware_lb_config"] = {"fail_traffic_on_panic": True}
    action = {"cluster": draft.cluster([members], lb_policy=policy, common_lb_config=common)}
    if policy != "ROUND_ROBIN":
        action["hash_policy"] = [{"header": {"header_name": "x-key"}}]
    draft.route({"prefix": "/"}, **action)
    # Degraded beside healthy hosts are drawn by load when there are too few healthy ones.
    spread = [m for m in members if m.get("health_status") == "DEGRADED"]
    if policy == "ROUND_ROBIN" and spread:
        draft.determinism = "statistical"
        draft.requests(plain(200))
    else:
        draft.requests([{"headers": {"x-key": f"k{rng.randrange(10**6)}"}} for _ in range(18)])


def keyed(draft, rng, policy, fields):
    """A hashing cluster with a header policy, and its requests."""
    localities = []
    sick = rng.choice([0, 0, 0.3])
    for zone in range(rng.choice([1, 1, 2, 3])):
        members = []
        for _ in range(rng.randint(1, 5)):
            metadata = {"hash_key": f"key-{rng.randrange(1000)}"} if rng.random() < 0.15 else None
            members.append(draft.endpoint(draft.host(), weight(rng), health(rng, sick), metadata))
        entry = {"locality": {"zone": f"z{zone}"}, "lb_endpoints": members}
        entry["load_balancing_weight"] = rng.randint(1, 4)
        localities.append(entry)
    common = {}
    if rng.random() < 0.3:
        common["locality_weighted_lb_config"] = {}
    if rng.random() < 0.2:
        common["healthy_panic_threshold"] = {"value": rng.choice([0, 100])}
    if rng.random() < 0.2:
        common["consistent_hashing_lb_config"] = {"hash_balance_factor": rng.choice([100, 120, 150, 200])}
    if common:
        fields["common_lb_config"] = common
    cluster = draft.cluster(localities, lb_policy=policy, **fields)
    draft.route({"prefix": "/"}, cluster=cluster, hash_policy=[{"header": {"header_name": "x-key"}}])
    draft.requests([{"headers": {"x-key": f"{rng.randrange(10**rng.randint(1, 12))}"}} for _ in range(30)])


def ring_hash(draft, rng):
    draft.about = "ring hash by a header: sizes, functions, weights, localities, health"
    ring = maybe(rng, {}, 0.6, minimum_ring_size=rng.choice([1, 5, 16, 100, 1024, 3000]))
    if rng.random() < 0.4:
        ring["maximum_ring_size"] = max(ring.get("minimum_ring_size", 1024), rng.choice([16, 200, 5000]))
    maybe(rng, ring, 0.4, hash_function=rng.choice(["XX_HASH", "MURMUR_HASH_2"]))
    keyed(draft, rng, "RING_HASH", {"ring_hash_lb_config": ring} if ring else {})


def maglev(draft, rng):
    draft.about = "maglev by a header: table sizes, weights, localities, health"
    size = rng.choice([None, None, 7, 31, 101, 503, 2039])
    keyed(draft, rng, "MAGLEV", {"maglev_lb_config": {"table_size": size}} if size else {})


def hash_policy(draft, rng):
    draft.about = "hash policies: header, rewritten header, cookie, query, address, terminal ones, several at once"
    members = [draft.endpoint(draft.host()) for _ in range(rng.randint(3, 7))]
    cluster = draft.cluster([members], lb_policy=rng.choice(["RING_HASH", "MAGLEV"]))
    choices = [
        {"header": {"header_name": "x-key"}},
        {"header": {"header_name": "x-other"}},
        {
            "header": {
                "header_name": "x-long",
                "regex_rewrite": {"pattern": {"regex": r"^/v(\d+)/([a-z]*).*"}, "substitution": r"\2-\1"},
            }
        },
        {"cookie": {"name": "sid"}},
        {"query_parameter": {"name": "q"}},
        {"connection_properties": {"source_ip": True}},
    ]
    for prefix in ("/a", "/b", "/c"):
        policies = [dict(policy) for policy in rng.sample(choices, rng.randint(1, 4))]
        for policy in policies:
            maybe(rng, policy, 0.3, terminal=True)
        if not any("connection_properties" in policy for policy in policies):
            policies.append({"connection_properties": {"source_ip": True}})
        draft.route({"prefix": prefix}, cluster=cluster, hash_policy=policies)
    each = []
    for _ in range(40):
        headers = {}
        if rng.random() < 0.6:
            values = [rng.choice(["", "x", "Y y", "7", "zz"]) + str(rng.randrange(30)) for _ in range(rng.randint(1, 3))]
            headers["x-key"] = values if len(values) > 1 else values[0]
        maybe(rng, headers, 0.4, **{"x-other": str(rng.randrange(9))})
        maybe(rng, headers, 0.4, **{"x-long": rng.choice(["/v1/abc", "/v23/", "nothing", "/v7/q/r"])})
        maybe(rng, headers, 0.5, cookie=rng.choice(["sid=1", 'a=b; sid="x y"', "sid=; sid=2", "other=1", "a=1; sid=9; b"]))
        query = rng.choice(["", "?q=1", "?p=2&q=a%20b", "?q=", "?q", "?q=1&q=2", "?Q=5"])
        source = f"203.0.113.{rng.randint(1, 9)}"
        each.append({"path": rng.choice(["/a", "/b", "/c"]) + query, "headers": headers, "source": source})
    draft.requests(each)


def priorities(draft, rng, levels):
    """Localities of several priorities with mixed health."""
    made = []
    for priority in range(levels):
        members = [draft.endpoint(draft.host(), None, health(rng, 0.45)) for _ in range(rng.randint(1, 4))]
        made.append({"priority": priority, "lb_endpoints": members})
    return made


def priority_hash(draft, rng):
    draft.about = "two to four priorities with mixed health: the hash chooses priority and host"
    localities = priorities(draft, rng, rng.randint(2, 4))
    fields = {"lb_policy": rng.choice(["RING_HASH", "MAGLEV"])}
    maybe(rng, fields, 0.4, common_lb_config={"healthy_panic_threshold": {"value": rng.choice([0, 20, 50, 80, 100])}})
    cluster = draft.cluster(localities, **fields)
    if rng.random() < 0.4:
        factor = rng.choice([100, 120, 200, 300])
        draft.clusters[-1]["load_assignment"]["policy"] = {"overprovisioning_factor": factor}
    draft.route({"prefix": "/"}, cluster=cluster, hash_policy=[{"header": {"header_name": "x-key"}}])
    draft.requests([{"headers": {"x-key": f"{rng.randrange(10**9)}"}} for _ in range(40)])


def priority_spread(draft, rng):
    draft.about = "two or three priorities with mixed health under round robin: shares of hosts"
    draft.determinism = "statistical"
    localities = priorities(draft, rng, rng.randint(2, 3))
    fields = maybe(rng, {}, 0.4, common_lb_config={"healthy_panic_threshold": {"value": rng.choice([0, 30, 70])}})
    draft.route({"prefix": "/"}, cluster=draft.cluster(localities, **fields))
    draft.requests(plain(250))


def random_policy(draft, rng):
    draft.about = "random, or least request over idle equal hosts: shares of hosts"
    draft.determinism = "statistical"
    members = [draft.endpoint(draft.host(), weight(rng, 4, 0.5)) for _ in range(rng.randint(2, 6))]
    fields = {"lb_policy": "RANDOM"}
    if rng.random() < 0.5:
        for member in members:
            member.pop("load_balancing_weight", None)
        fields = {"lb_policy": "LEAST_REQUEST"}
        if rng.random() < 0.4:
            fields["least_request_lb_config"] = {"choice_count": rng.randint(2, 6)}
    draft.route({"prefix": "/"}, cluster=draft.cluster([members], **fields))
    draft.requests(plain(250))


def weighted_clusters(draft, rng):
    draft.about = "weighted clusters, one host each: shares of clusters"
    draft.determinism = "statistical"
    entries = []
    for _ in range(rng.randint(2, 4)):
        cluster = draft.cluster([[draft.endpoint(draft.host())]])
        entries.append({"name": cluster, "weight": rng.choice([0, 1, 2, 5, 10])})
    if not any(entry["weight"] for entry in entries):
        entries[0]["weight"] = 1
    draft.route({"prefix": "/"}, weighted_clusters={"clusters": entries})
    draft.requests(plain(250))


def subset(draft, rng):
    draft.about = "subsets by metadata: selectors, fallbacks, defaults, routes with and without criteria"
    keys = ["stage", "version", "zone"]
    values = {"stage": ["prod", "dev"], "version": ["1", 1, "2", True], "zone": ["a", "b"]}
    members = []
    for _ in range(rng.randint(2, 8)):
        metadata = {key: rng.choice(values[key]) for key in keys if rng.random() < 0.75}
        members.append(draft.endpoint(draft.host(), weight(rng, 3, 0.8), health(rng, 0.1), metadata))
    fallbacks = ["NO_FALLBACK", "ANY_ENDPOINT", "DEFAULT_SUBSET"]
    config = {"fallback_policy": rng.choice(fallbacks), "subset_selectors": []}
    if config["fallback_policy"] == "DEFAULT_SUBSET" or rng.random() < 0.3:
        chosen = rng.sample(keys, rng.randint(0, 2))
        config["default_subset"] = {key: rng.choice(values[key]) for key in chosen}
    seen = set()
    for _ in range(rng.randint(1, 3)):
        chosen = tuple(sorted(rng.sample(keys, rng.randint(1, 3))))
        if chosen in seen:
            continue
        seen.add(chosen)
        selector = {"keys": list(chosen)}
        if rng.random() < 0.5:
            selector["fallback_policy"] = rng.choice(fallbacks)
            if len(chosen) > 1 and rng.random() < 0.5:
                selector["fallback_policy"] = "KEYS_SUBSET"
                selector["fallback_keys_subset"] = list(chosen[:1])
        config["subset_selectors"].append(selector)
    maybe(rng, config, 0.15, list_as_any=True)
    if config["fallback_policy"] != "NO_FALLBACK":
        maybe(rng, config, 0.2, panic_mode_any=True)
    policy = rng.choice(["RING_HASH", "RING_HASH", "MAGLEV"])
    cluster = draft.cluster([members], lb_policy=policy, lb_subset_config=config)
    hashes = [{"header": {"header_name": "x-key"}}]
    draft.route({"prefix": "/none"}, cluster=cluster, hash_policy=hashes)
    for number in range(7):
        chosen = rng.sample(keys, rng.randint(1, 3))
        criteria = {key: rng.choice([*values[key], "absent"]) for key in chosen}
        match = {"filter_metadata": {"envoy.lb": criteria}}
        draft.route({"prefix": f"/m{number}"}, cluster=cluster, hash_policy=hashes, metadata_match=match)
    paths = ["/none", *(f"/m{number}" for number in range(7))]
    draft.requests([{"path": rng.choice(paths), "headers": {"x-key": str(rng.randrange(10**6))}} for _ in range(32)])


KINDS = {
    "round_robin": round_robin,
    "least_request": least_request,
    "locality": locality,
    "panic": panic,
    "ring_hash": ring_hash,
    "maglev": maglev,
    "hash_policy": hash_policy,
    "priority_hash": priority_hash,
    "priority_spread": priority_spread,
    "random": random_policy,
    "weighted_clusters": weighted_clusters,
    "subset": subset,
}
