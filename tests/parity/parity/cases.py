"""Generated cases: one for each seed, in the form of `tests/vectors/envoy-live`.

`determinism.class` says how a case is compared: `exact`, `order-up-to-rotation` (some random start of nexthop gives
Envoy's whole run) or `statistical`."""

import random

from . import kinds_hosts, kinds_requests

PORT = 18311

KINDS = {**kinds_hosts.KINDS, **kinds_requests.KINDS}
# What a round of seeds plays. Kinds with more to vary come more often.
ROUND = [
    *("round_robin", "ring_hash", "maglev", "retry", "outlier", "routing", "subset", "composite"),
    *("locality", "priority_hash", "retry", "outlier", "timeouts", "least_request", "hash_policy", "sweep"),
    *("ring_hash", "subset", "retry", "panic", "random", "composite", "retry_headers", "outlier"),
    *("round_robin", "priority_spread", "maglev", "retry_hosts", "weighted_clusters", "breaker", "updates"),
]


class Draft:
    """A case in the making: names, addresses and documents."""

    def __init__(self, seed, kind):
        self.rng = random.Random(f"{kind} {seed}")
        self.seed, self.kind = seed, kind
        self.name = f"parity_{kind}_{seed}"
        self.hosts, self.behaviours, self.clusters, self.routes = {}, {}, [], []
        self.script, self.host_config, self.eds = [], {}, {}
        self.about, self.determinism = "", "exact"

    def host(self, behaviour="ok"):
        """A new host's name."""
        number = len(self.hosts)
        name = chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")
        self.hosts[name] = f"127.{1 + self.seed // 250 % 250}.{1 + self.seed % 250}.{2 + number}:{PORT}"
        self.behaviours[name] = behaviour
        return name

    def endpoint(self, name, weight=None, health=None, metadata=None):
        ip, port = self.hosts[name].split(":")
        made = {"endpoint": {"address": {"socket_address": {"address": ip, "port_value": int(port)}}}}
        if weight is not None:
            made["load_balancing_weight"] = weight
        if health is not None:
            made["health_status"] = health
        if metadata is not None:
            made["metadata"] = {"filter_metadata": {"envoy.lb": metadata}}
        return made

    def cluster(self, localities, **fields):
        """A static cluster. `localities` are `LocalityLbEndpoints`, or plain lists of endpoints."""
        name = f"{self.kind}{self.seed}c{len(self.clusters)}"
        localities = [item if isinstance(item, dict) else {"lb_endpoints": item} for item in localities]
        made = {"name": name, "connect_timeout": "5s"}
        made["load_assignment"] = {"cluster_name": name, "endpoints": localities}
        self.clusters.append({**made, **fields})
        return name

    def route(self, match, **action):
        self.routes.append({"match": match, "route": action})

    def requests(self, each):
        self.script.append({"do": "requests", "label": f"s{len(self.script)}", "each": each})

    def sleep(self, seconds):
        self.script.append({"do": "sleep", "s": seconds})

    def case(self):
        host = {"name": "v", "domains": ["*"], "include_request_attempt_count": True}
        return {
            "format": "envoy-live/1",
            "name": self.name,
            "topic": self.kind,
            "about": self.about,
            "determinism": {"class": self.determinism},
            "hosts": self.hosts,
            "config": {
                "clusters": self.clusters,
                "eds_at_start": self.eds,
                "virtual_host": {**host, **self.host_config, "routes": self.routes},
            },
            "behaviours": self.behaviours,
            "script": self.script,
        }


def make(seed, kind=None):
    """The case of a seed."""
    kind = kind or ROUND[seed % len(ROUND)]
    draft = Draft(seed, kind)
    KINDS[kind](draft, draft.rng)
    return draft.case()
