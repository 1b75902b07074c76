"""Kinds of cases about what becomes of requests: retries, limits, ejections, composite clusters, routes."""

from .kinds_hosts import maybe, plain

BACK_OFF = {"base_interval": "0.001s"}
PREVIOUS_HOSTS = {
    "name": "envoy.retry_host_predicates.previous_hosts",
    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"},
}
OMIT_CANARY = {
    "name": "envoy.retry_host_predicates.omit_canary_hosts",
    "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.retry.host.omit_canary_hosts.v3.OmitCanaryHostsPredicate"
    },
}
CONDITIONS = [
    *("5xx", "gateway-error", "reset", "connect-failure", "retriable-4xx", "refused-stream", "retriable-status-codes"),
    *("retriable-headers", "reset-before-request", "envoy-ratelimited", "http3-post-connect-failure"),
    *("cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"),
]
STATUSES = [200, 200, 200, 201, 302, 400, 404, 408, 409, 418, 425, 429, 500, 501, 502, 503, 504, 599]


def answers(rng, count, dead=0.12):
    """A sequence of answers of one host."""
    seq = []
    for _ in range(count):
        words = [f"status {rng.choice(STATUSES)}"]
        if rng.random() < 0.12:
            words.append("header x-envoy-ratelimited=true")
        if rng.random() < 0.12:
            words.append(f"header x-retry={rng.choice(['yes', 'no', ''])}")
        if rng.random() < 0.12:
            words.append(f"header grpc-status={rng.choice([0, 1, 4, 8, 13, 14, 99])}")
        if rng.random() < 0.05:
            words.append("header x-envoy-overloaded=true")
        seq.append(["reset"] if rng.random() < dead else words)
    return {"seq": seq, "end": rng.choice(["last", "cycle"])}


def retry_policy(rng):
    policy = {"retry_on": ",".join(rng.sample(CONDITIONS, rng.randint(1, 5))), "retry_back_off": BACK_OFF}
    maybe(rng, policy, 0.75, num_retries=rng.choice([0, 1, 1, 2, 3, 4]))
    maybe(rng, policy, 0.4, retriable_status_codes=rng.sample([200, 302, 404, 409, 429, 500, 503], rng.randint(1, 3)))
    if rng.random() < 0.3:
        header = rng.choice(
            [
                {"name": "x-retry", "present_match": True},
                {"name": "x-retry", "string_match": {"exact": "yes"}},
                {"name": ":status", "string_match": {"prefix": "4"}},
                {"name": "x-retry", "string_match": {"exact": "no"}, "invert_match": True},
            ]
        )
        policy["retriable_headers"] = [header]
    if rng.random() < 0.2:
        policy["retriable_request_headers"] = [{"name": "x-may", "string_match": {"exact": "1"}}]
    return policy


def heads(rng, count, paths=("/",)):
    each = []
    for _ in range(count):
        head = {"path": rng.choice(paths), "headers": {}}
        maybe(rng, head, 0.3, method=rng.choice(["POST", "PUT", "DELETE", "HEAD"]))
        maybe(rng, head["headers"], 0.3, **{"x-may": rng.choice(["0", "1"])})
        maybe(rng, head["headers"], 0.15, **{"content-type": rng.choice(["application/grpc", "application/grpc+proto", "text/x"])})
        if head.get("method") == "HEAD" or "content-type" in head["headers"]:
            head["method"] = "POST"
        if head.get("method") in ("POST", "PUT"):
            head["headers"]["content-length"] = "0"
        each.append(head)
    return each


def retry(draft, rng):
    draft.about = "retry conditions against scripted answers; the policy of route or virtual host"
    draft.determinism = "order-up-to-rotation"
    members = []
    for _ in range(rng.randint(1, 4)):
        behaviour = "refuse" if rng.random() < 0.12 else answers(rng, rng.randint(1, 6))
        members.append(draft.endpoint(draft.host(behaviour)))
    cluster = draft.cluster([members])
    if rng.random() < 0.3:
        draft.host_config["retry_policy"] = retry_policy(rng)
        draft.route({"prefix": "/own"}, cluster=cluster, retry_policy=retry_policy(rng))
        draft.route({"prefix": "/"}, cluster=cluster)
        draft.requests(heads(rng, 24, ("/own", "/x")))
    else:
        draft.route({"prefix": "/"}, cluster=cluster, retry_policy=retry_policy(rng))
        draft.requests(heads(rng, 24))


def retry_headers(draft, rng):
    draft.about = "retry policies asked for by x-envoy headers of internal and external requests"
    draft.determinism = "order-up-to-rotation"
    members = [draft.endpoint(draft.host(answers(rng, rng.randint(2, 6)))) for _ in range(rng.randint(1, 3))]
    action = {"cluster": draft.cluster([members])}
    # Without one of the route's the back-off would be Envoy's 25 ms; still short.
    maybe(rng, action, 0.7, retry_policy=retry_policy(rng))
    draft.route({"prefix": "/"}, **action)
    each = []
    for head in heads(rng, 24):
        own = head["headers"]
        head["internal"] = rng.random() < 0.75
        maybe(rng, own, 0.6, **{"x-envoy-retry-on": ",".join(rng.sample([*CONDITIONS[:9], "nonsense"], 2))})
        maybe(rng, own, 0.2, **{"x-envoy-retry-grpc-on": rng.choice(["unavailable", "cancelled,internal"])})
        maybe(rng, own, 0.5, **{"x-envoy-max-retries": rng.choice(["0", "1", "2", "5", "x", "-1", "3 "])})
        maybe(rng, own, 0.3, **{"x-envoy-retriable-status-codes": rng.choice(["404", "404,200", "x,409", "500, 503"])})
        maybe(rng, own, 0.2, **{"x-envoy-retriable-header-names": rng.choice(["x-retry", "x-none,x-retry"])})
        each.append(head)
    draft.requests(each)


def retry_hosts(draft, rng):
    draft.about = "hosts of retries: previous hosts, canaries, previous priorities"
    draft.determinism = "order-up-to-rotation"
    policy_name = rng.choice(["ROUND_ROBIN", "RING_HASH", "MAGLEV"])
    members = []
    for _ in range(rng.randint(2, 5)):
        behaviour = rng.choice(["ok", "status 503", "status 500", "reset", "refuse", answers(rng, 4)])
        metadata = {"canary": True} if rng.random() < 0.2 else None
        members.append(draft.endpoint(draft.host(behaviour), rng.choice([None, None, 1, 2]), None, metadata))
    policy = {
        "retry_on": "5xx,reset,connect-failure",
        "num_retries": rng.randint(1, 4),
        "retry_back_off": BACK_OFF,
        "retry_host_predicate": rng.choice([[PREVIOUS_HOSTS], [OMIT_CANARY], [PREVIOUS_HOSTS, OMIT_CANARY]]),
    }
    maybe(rng, policy, 0.7, host_selection_retry_max_attempts=rng.choice([1, 2, 3, 5, 10]))
    action = {"cluster": draft.cluster([members], lb_policy=policy_name), "retry_policy": policy}
    if policy_name != "ROUND_ROBIN":
        action["hash_policy"] = [{"header": {"header_name": "x-key"}}]
    draft.route({"prefix": "/"}, **action)
    draft.requests([{"headers": {"x-key": str(rng.randrange(10**6))}} for _ in range(18)])


def timeouts(draft, rng):
    draft.about = "per-try and global time-outs against slow and silent hosts"
    draft.determinism = "order-up-to-rotation"
    members = []
    for _ in range(rng.randint(1, 3)):
        seq = [rng.choice([["ok"], ["hang"], ["delay 0.25"], ["status 503"], ["ok"]]) for _ in range(rng.randint(1, 4))]
        members.append(draft.endpoint(draft.host({"seq": seq, "end": "cycle"})))
    cluster = draft.cluster([members])
    for path in ("/a", "/b"):
        action = {"cluster": cluster, "timeout": rng.choice(["0.16s", "0.4s", "5s"])}
        policy = {"retry_on": rng.choice(["5xx", "reset", "gateway-error", "connect-failure"])}
        policy.update(num_retries=rng.randint(0, 3), retry_back_off=BACK_OFF)
        maybe(rng, policy, 0.8, per_try_timeout="0.06s")
        if "per_try_timeout" not in policy and action["timeout"] == "5s":
            action["timeout"] = "0.16s"
        maybe(rng, action, 0.9, retry_policy=policy)
        if "retry_policy" not in action:
            action["timeout"] = "0.16s"
        draft.route({"prefix": path}, **action)
    draft.requests([{"path": rng.choice(["/a", "/b"])} for _ in range(5)])


def outlier(draft, rng):
    draft.about = "consecutive failures of several kinds: ejection, its cap, enforcement, panic"
    draft.determinism = "order-up-to-rotation"
    members, retried = [], rng.random() < 0.4
    # Envoy's main thread ejects: a retry that is chosen or fails before it has done so would go by chance.
    slow = ["delay 0.004"] if retried else []
    for _ in range(rng.randint(1, 6)):
        fate = rng.random()
        behaviour = "ok"
        if fate < 0.15 and not retried:
            behaviour = "refuse"
        elif fate < 0.6:
            words = ["status 500", "status 502", "status 503", "status 504", "reset", "status 404"]
            seq = [[*slow, rng.choice(words) if rng.random() < 0.85 else "ok"] for _ in range(9)]
            behaviour = {"seq": seq, "end": "cycle"}
        members.append(draft.endpoint(draft.host(behaviour), rng.choice([None, None, None, 2])))
    rules = {"interval": "300s", "base_ejection_time": "300s"}
    maybe(rng, rules, 0.8, consecutive_5xx=rng.choice([1, 2, 3, 4]))
    maybe(rng, rules, 0.6, consecutive_gateway_failure=rng.choice([1, 2, 3]))
    maybe(rng, rules, 0.5, enforcing_consecutive_gateway_failure=rng.choice([0, 100]))
    maybe(rng, rules, 0.2, enforcing_consecutive_5xx=0)
    maybe(rng, rules, 0.8, max_ejection_percent=rng.choice([0, 10, 20, 33, 34, 50, 60, 100]))
    maybe(rng, rules, 0.3, always_eject_one_host=True)
    if rng.random() < 0.3:
        rules["split_external_local_origin_errors"] = True
        maybe(rng, rules, 0.7, consecutive_local_origin_failure=rng.choice([1, 2, 3]))
        maybe(rng, rules, 0.3, enforcing_consecutive_local_origin_failure=0)
    common = {"update_merge_window": "0s"}
    maybe(rng, common, 0.7, healthy_panic_threshold={"value": rng.choice([0, 0, 50, 100])})
    policy = rng.choice(["ROUND_ROBIN", "ROUND_ROBIN", "RING_HASH", "MAGLEV"])
    cluster = draft.cluster([members], lb_policy=policy, outlier_detection=rules, common_lb_config=common)
    action = {"cluster": cluster}
    if retried:
        late = {"base_interval": "0.03s"}
        action["retry_policy"] = {"retry_on": "5xx,reset", "num_retries": 1, "retry_back_off": late}
    if policy != "ROUND_ROBIN":
        action["hash_policy"] = [{"header": {"header_name": "x-key"}}]
    draft.route({"prefix": "/"}, **action)
    draft.requests([{"headers": {"x-key": str(rng.randrange(10**6))}} for _ in range(36)])


def sweep(draft, rng):
    draft.about = "success rate and failure percentage after one interval"
    draft.determinism = "order-up-to-rotation"
    members = []
    for _ in range(rng.randint(3, 6)):
        behaviour = "ok"
        if rng.random() < 0.6:
            good = rng.randint(0, 5)
            seq = [["ok"]] * good + [[rng.choice(["status 500", "status 503", "reset"])]] * (6 - good)
            rng.shuffle(seq)
            behaviour = {"seq": seq, "end": "cycle"}
        members.append(draft.endpoint(draft.host(behaviour)))
    rules = {"interval": "4s", "base_ejection_time": "300s", "consecutive_5xx": 1000, "consecutive_gateway_failure": 1000}
    rules.update(success_rate_minimum_hosts=rng.randint(1, 5), success_rate_request_volume=rng.choice([5, 11, 12, 13]))
    maybe(rng, rules, 0.5, success_rate_stdev_factor=rng.choice([500, 1000, 1500, 1900]))
    maybe(rng, rules, 0.2, enforcing_success_rate=0)
    rules.update(failure_percentage_minimum_hosts=rng.randint(1, 5), failure_percentage_request_volume=rng.choice([5, 12, 13]))
    maybe(rng, rules, 0.7, enforcing_failure_percentage=100)
    maybe(rng, rules, 0.6, failure_percentage_threshold=rng.choice([30, 50, 67, 83, 100]))
    # With a smaller cap the order of Envoy's hash map decides who is ejected.
    rules["max_ejection_percent"] = 100
    common = {"update_merge_window": "0s", "healthy_panic_threshold": {"value": 0}}
    cluster = draft.cluster([members], outlier_detection=rules, common_lb_config=common)
    draft.route({"prefix": "/"}, cluster=cluster)
    draft.requests(plain(12 * len(members)))
    draft.sleep(4.6)
    draft.requests(plain(10))


def composite(draft, rng):
    draft.about = "composite clusters: attempt n to sub-cluster n, with failing, empty and unhealthy ones"
    draft.determinism = "order-up-to-rotation"
    names = []
    for _ in range(rng.randint(1, 4)):
        members = []
        count = rng.choice([0, 1, 1, 1, 2])
        for _ in range(count):
            behaviour = rng.choice(["ok", "status 503", "reset", "refuse", answers(rng, 3)])
            health = rng.choice([None, None, None, None, "UNHEALTHY", "DEGRADED" if count == 1 else "DRAINING"])
            members.append(draft.endpoint(draft.host(behaviour), None, health))
        fields = maybe(rng, {}, 0.4, common_lb_config={"healthy_panic_threshold": {"value": 0}})
        names.append(draft.cluster([members] if members else [], **fields))
    kind = "type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig"
    config = {"@type": kind, "clusters": [{"name": name} for name in names]}
    top = f"composite{draft.seed}top"
    draft.clusters.append(
        {
            "name": top,
            "connect_timeout": "5s",
            "lb_policy": "CLUSTER_PROVIDED",
            "cluster_type": {"name": "envoy.clusters.composite", "typed_config": config},
        }
    )
    policy = {"retry_on": "5xx,reset,connect-failure", "num_retries": rng.randint(0, 5), "retry_back_off": BACK_OFF}
    maybe(rng, policy, 0.3, retry_host_predicate=[PREVIOUS_HOSTS], host_selection_retry_max_attempts=3)
    draft.route({"prefix": "/"}, cluster=top, retry_policy=policy)
    draft.requests(plain(10))


def routing(draft, rng):
    draft.about = "route tables: paths, headers, queries, rewrites, redirects, direct answers"
    clusters = [draft.cluster([[draft.endpoint(draft.host())]]) for _ in range(3)]
    segments = ["a", "ab", "b", "c", "A"]

    def path():
        return "/" + "/".join(rng.choice(segments) for _ in range(rng.randint(0, 3)))

    for _ in range(rng.randint(3, 8)):
        match = rng.choice(
            [
                {"prefix": path()},
                {"path": path()},
                {"safe_regex": {"regex": rng.choice([r"/a.*", r"/[ab]+/c", r"/(a|b)(/.*)?", r"/\w+", r"/a?b"])}},
                {"path_separated_prefix": path().rstrip("/") or "/a"},
            ]
        )
        maybe(rng, match, 0.2, case_sensitive=False)
        if rng.random() < 0.4:
            match["headers"] = [header_matcher(rng) for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.3:
            matcher = rng.choice(
                [{"present_match": True}, {"string_match": {"exact": "1"}}, {"string_match": {"prefix": "x"}}]
            )
            match["query_parameters"] = [{"name": rng.choice(["q", "p"]), **matcher}]
        fate = rng.random()
        if fate < 0.12:
            draft.routes.append({"match": match, "direct_response": {"status": rng.choice([200, 404, 503, 418])}})
        elif fate < 0.24:
            redirect = {}
            maybe(rng, redirect, 0.5, host_redirect="other.example")
            maybe(rng, redirect, 0.5, **rng.choice([{"https_redirect": True}, {"scheme_redirect": "ftp"}]))
            maybe(rng, redirect, 0.4, port_redirect=8443)
            maybe(rng, redirect, 0.4, strip_query=True)
            regex = {"pattern": {"regex": rng.choice(["a", "^/a/", "/(b+)"])}, "substitution": rng.choice(["/z", r"/\0"])}
            paths = [{"path_redirect": rng.choice(["/moved?x=1", "/moved"])}, {"prefix_rewrite": "/new"}, {"regex_rewrite": regex}]
            maybe(rng, redirect, 0.7, **rng.choice(paths))
            maybe(rng, redirect, 0.4, response_code=rng.choice(["FOUND", "SEE_OTHER", "PERMANENT_REDIRECT"]))
            draft.routes.append({"match": match, "redirect": redirect})
        else:
            action = {"cluster": rng.choice(clusters)}
            if rng.random() < 0.15:
                action = {"cluster_header": "x-to"}
            rewrite = rng.random()
            if rewrite < 0.25:
                action["prefix_rewrite"] = rng.choice(["/", "/new", "/new/"])
            elif rewrite < 0.45:
                pattern = {"regex": rng.choice(["a", "^/a/", "/(b+)"])}
                action["regex_rewrite"] = {"pattern": pattern, "substitution": rng.choice(["/z", "Z", r"\0\0"])}
            if rng.random() < 0.2:
                action["host_rewrite_literal"] = "rewritten.example"
            draft.route(match, **action)
    each = []
    for _ in range(36):
        query = rng.choice(["", "", "?q=1", "?p=x2&q=1", "?q", "?p=1#f"[:4]])
        headers = {}
        maybe(rng, headers, 0.5, **{"x-a": rng.choice(["1", "10", "abc", "", "-3"])})
        maybe(rng, headers, 0.4, **{"x-b": rng.choice([["1", "abc"], "abc", "ABC", " 7 "])})
        maybe(rng, headers, 0.4, **{"x-to": rng.choice([*clusters, "nowhere"])})
        each.append({"path": path() + query, "headers": headers})
    draft.requests(each)


def breaker(draft, rng):
    draft.about = "requests that overlap at held backends: limits of connections, queue, requests and retries"
    count = rng.randint(1, 2)
    hold = rng.choice([0.3, 0.4])
    fails = rng.random() < 0.4
    answer = ["delay %s" % hold, "status 503" if fails else "status 200"]
    members = [draft.endpoint(draft.host({"seq": [answer], "end": "last"})) for _ in range(count)]
    limits = {}
    maybe(rng, limits, 0.6, max_connections=rng.randint(1, 5))
    maybe(rng, limits, 0.6, max_pending_requests=rng.randint(1, 4))
    maybe(rng, limits, 0.5, max_requests=rng.randint(1, 8))
    maybe(rng, limits, 0.6, max_retries=rng.randint(0, 3))
    thresholds = {"thresholds": [limits]}
    if rng.random() < 0.3:
        thresholds["per_host_thresholds"] = [{"max_connections": rng.randint(1, 3)}]
    action = {"cluster": draft.cluster([members], circuit_breakers=thresholds)}
    if count > 1:
        draft.determinism = "order-up-to-rotation"
    if fails or rng.random() < 0.3:
        action["retry_policy"] = {"retry_on": "5xx", "num_retries": rng.randint(1, 2), "retry_back_off": BACK_OFF}
    draft.route({"prefix": "/"}, **action)
    draft.script.append({"do": "requests", "label": "s0", "stagger": 0.012, "each": plain(rng.randint(4, 12))})


def updates(draft, rng):
    draft.about = "endpoints that come, go, change weight and health while requests go on"
    policy = rng.choice(["RING_HASH", "MAGLEV", "ROUND_ROBIN"])
    names = [draft.host() for _ in range(rng.randint(2, 6))]
    weights = {name: rng.choice([None, None, 1, 2, 3]) for name in names}
    # Envoy does not notice a change between the two before something else changes.
    sick = rng.choice(["UNHEALTHY", "DRAINING"])

    def some():
        chosen = [name for name in names if rng.random() < 0.7] or names[:1]
        if policy == "ROUND_ROBIN":
            return [draft.endpoint(name) for name in chosen]
        healths = [None, None, None, sick]
        return [draft.endpoint(name, weights[name], rng.choice(healths)) for name in chosen]

    common = {"update_merge_window": "0s"}
    cluster = draft.cluster([some()], lb_policy=policy, common_lb_config=common)
    made = draft.clusters[-1]
    made["type"] = "EDS"
    draft.eds[cluster] = made.pop("load_assignment")["endpoints"]
    action = {"cluster": cluster}
    if policy == "ROUND_ROBIN":
        draft.determinism = "order-up-to-rotation"
    else:
        action["hash_policy"] = [{"header": {"header_name": "x-key"}}]
    draft.route({"prefix": "/"}, **action)
    for _ in range(3):
        draft.requests([{"headers": {"x-key": str(rng.randrange(10**6))}} for _ in range(9)])
        for name in names:
            if rng.random() < 0.3:
                weights[name] = rng.choice([None, 1, 2, 3])
        draft.script.append({"do": "eds", "cluster": cluster, "endpoints": [{"lb_endpoints": some()}]})
    draft.requests([{"headers": {"x-key": str(rng.randrange(10**6))}} for _ in range(9)])


def header_matcher(rng):
    matcher = {"name": rng.choice(["x-a", "x-b", ":method"])}
    matcher.update(
        rng.choice(
            [
                {"present_match": True},
                {"present_match": False},
                {"string_match": {"exact": "1"}},
                {"string_match": {"contains": "b"}},
                {"string_match": {"exact": "ABC", "ignore_case": True}},
                {"string_match": {"suffix": "c"}},
                {"string_match": {"safe_regex": {"regex": "[0-9]+"}}},
                {"range_match": {"start": -5, "end": 10}},
                {"string_match": {"exact": "GET"}},
            ]
        )
    )
    maybe(rng, matcher, 0.25, invert_match=True)
    maybe(rng, matcher, 0.2, treat_missing_header_as_empty=True)
    return matcher


KINDS = {
    "retry": retry,
    "retry_headers": retry_headers,
    "retry_hosts": retry_hosts,
    "timeouts": timeouts,
    "outlier": outlier,
    "sweep": sweep,
    "composite": composite,
    "routing": routing,
    "breaker": breaker,
    "updates": updates,
}
