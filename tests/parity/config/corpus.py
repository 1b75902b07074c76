"""The corpus: one good document, and what becomes of it when one field at a time has another value.

Every document is a whole bootstrap, as Envoy validates it: one listener with the route table, the clusters."""

import copy
import pathlib

HERE = pathlib.Path(__file__).resolve().parent

DURATION = ["0s", "1s", "0.001s", "0.0005s", "-1s", "1", "1ms", 1, "0.0000000001s", "315576000001s", None, "", "1.5s"]
U32 = [0, 1, 2, 100, 101, 4294967295, 4294967296, -1, "7", 1.5, 2.0, "x", None, True]
U64 = [0, 1, 18446744073709551615, -1, "9", 0.5, None, "x"]
BOOL = [True, False, "true", "false", "yes", 1, None]
TEXT = ["", "x", "a b", 5, None, True, ["x"]]
PERCENT = [{"value": 0}, {"value": 55.5}, {"value": 100}, {"value": 101}, {"value": -1}, {}, 5, {"value": "50"}, None]
FRACTION = [
    *({"numerator": 5}, {"numerator": 101}, {"numerator": 5, "denominator": "TEN_THOUSAND"}, {"denominator": 7}),
    *({}, 5, None),
]
STRINGS = [
    *({"exact": "x"}, {"exact": ""}, {"prefix": "x"}, {"prefix": ""}, {"suffix": ""}, {"contains": ""}, {"contains": "b"}),
    *({"safe_regex": {"regex": "a+"}}, {"safe_regex": {"regex": "a("}}, {"safe_regex": {"regex": ""}}, {"safe_regex": {}}),
    *({}, {"exact": "x", "prefix": "y"}, {"exact": "x", "ignore_case": True}, "x", None, {"safe_regex": {"regex": "(?=a)"}}),
]
RUNTIME_PERCENT = [
    *({"default_value": {"numerator": 5}}, {"default_value": {"numerator": 5}, "runtime_key": "k"}, {"runtime_key": "k"}, {}),
]
RUNTIME_DOUBLE = [
    *({"default_value": 1.0, "runtime_key": "k"}, {"default_value": 1.0}, {"runtime_key": "k"}, {"default_value": -1.0, "runtime_key": "k"}),
    *({"default_value": "NaN", "runtime_key": "k"}, {}, 1),
]


def enum(*names):
    return [*names, 0, 1, 99, -1, "", names[0].lower(), "NONSENSE", None]


EXACT = {"string_match": {"exact": "x"}}
RETRY = "route.retry_policy"
OUTLIER = "cluster.outlier_detection"
LIMITS = "cluster.circuit_breakers.thresholds.0"
SUBSET = "cluster.lb_subset_config"
PLUGIN = "type.googleapis.com/envoy.extensions.retry"
POLICIES = "type.googleapis.com/envoy.extensions.load_balancing_policies"


def typed(name, at, **fields):
    return {"name": name, "typed_config": {"@type": at, **fields}}


def policy(kind, message, **fields):
    config = typed(f"envoy.load_balancing_policies.{kind}", f"{POLICIES}.{kind}.v3.{message}", **fields)
    return {"policies": [{"typed_extension_config": config}]}


FIELDS = {
    "cluster.name": TEXT,
    "cluster.connect_timeout": DURATION,
    "cluster.type": enum("STATIC", "STRICT_DNS", "LOGICAL_DNS", "EDS"),
    "cluster.lb_policy": enum("ROUND_ROBIN", "LEAST_REQUEST", "RING_HASH", "RANDOM", "MAGLEV", "CLUSTER_PROVIDED"),
    "cluster.nonsense": [1],
    "cluster.load_assignment.cluster_name": TEXT,
    "cluster.load_assignment.policy.overprovisioning_factor": U32,
    "cluster.load_assignment.policy.weighted_priority_health": BOOL,
    "cluster.load_assignment.endpoints.0.priority": [0, 1, 128, 129, -1],
    "cluster.load_assignment.endpoints.0.load_balancing_weight": U32,
    "cluster.load_assignment.endpoints.0.lb_endpoints.0.load_balancing_weight": U32,
    "cluster.load_assignment.endpoints.0.lb_endpoints.0.health_status": enum("HEALTHY", "DRAINING", "DEGRADED"),
    "cluster.load_assignment.endpoints.0.lb_endpoints.0.endpoint.hostname": TEXT,
    "cluster.load_assignment.endpoints.0.lb_endpoints.0.endpoint.address.socket_address.address": [
        *("10.0.0.1", "::1", "host.example", "", "10.0.0", "10.0.0.256", 5, None),
    ],
    "cluster.load_assignment.endpoints.0.lb_endpoints.0.endpoint.address.socket_address.port_value": [
        *(0, 1, 65535, 65536, -1, "80", 1.5, None),
    ],
    "cluster.load_assignment.endpoints.0.lb_endpoints.0.metadata.filter_metadata": [
        *({"envoy.lb": {"a": 1}}, {"envoy.lb": {"a": [1, "x", None]}}, {"envoy.lb": 5}, {}, [], None),
    ],
    **{
        f"cluster.common_lb_config.{name}": values
        for name, values in {
            "healthy_panic_threshold": PERCENT,
            "update_merge_window": DURATION,
            "zone_aware_lb_config": [{}, {"routing_enabled": {"value": 101}}, {"min_cluster_size": 0}, 5],
            "locality_weighted_lb_config": [{}, None, 5, {"x": 1}],
            "ignore_new_hosts_until_first_hc": BOOL,
            "close_connections_on_host_set_change": BOOL,
            "consistent_hashing_lb_config": [{}, {"hash_balance_factor": 99}, {"hash_balance_factor": 100}],
            "override_host_status": [{}, {"statuses": ["HEALTHY"]}, {"statuses": ["X"]}, {"statuses": []}],
        }.items()
    },
    **{f"{LIMITS}.{name}": U32 for name in ("max_connections", "max_pending_requests", "max_requests", "max_retries")},
    f"{LIMITS}.priority": enum("DEFAULT", "HIGH"),
    f"{LIMITS}.track_remaining": BOOL,
    f"{LIMITS}.max_connection_pools": U32,
    f"{LIMITS}.retry_budget": [
        *({}, {"budget_percent": {"value": 120}}, {"min_retry_concurrency": 0}, {"budget_percent": {"value": 20}}, 5, None),
        *({"budget_interval": "1s"}, {"budget_interval": "-1s"}),
    ],
    "cluster.circuit_breakers.per_host_thresholds": [
        *([{"max_connections": 1}], [{"max_requests": 1}], [{"max_connections": 1, "priority": "HIGH"}], [], {}, None),
    ],
    **{
        f"{OUTLIER}.{name}": U32
        for name in (
            *("consecutive_5xx", "max_ejection_percent", "enforcing_consecutive_5xx", "enforcing_success_rate"),
            *("success_rate_minimum_hosts", "success_rate_request_volume", "success_rate_stdev_factor"),
            *("consecutive_gateway_failure", "enforcing_consecutive_gateway_failure", "consecutive_local_origin_failure"),
            *("enforcing_consecutive_local_origin_failure", "enforcing_local_origin_success_rate"),
            *("failure_percentage_threshold", "enforcing_failure_percentage", "failure_percentage_minimum_hosts"),
            *("failure_percentage_request_volume", "enforcing_failure_percentage_local_origin"),
        )
    },
    **{f"{OUTLIER}.{name}": DURATION for name in ("interval", "base_ejection_time", "max_ejection_time", "max_ejection_time_jitter")},
    **{
        f"{OUTLIER}.{name}": BOOL
        for name in ("split_external_local_origin_errors", "successful_active_health_check_uneject_host", "always_eject_one_host")
    },
    "cluster.ring_hash_lb_config": [
        *({}, {"minimum_ring_size": 0}, {"minimum_ring_size": 8388608}, {"minimum_ring_size": 8388609}),
        *({"maximum_ring_size": 1}, {"minimum_ring_size": 5, "maximum_ring_size": 4}, {"hash_function": "MURMUR_HASH_2"}),
        *({"hash_function": "MD5"}, 5, None),
    ],
    "cluster.maglev_lb_config": [
        *({}, {"table_size": 7}, {"table_size": 8}, {"table_size": 0}, {"table_size": 5000011}, {"table_size": 5000012}),
    ],
    "cluster.least_request_lb_config": [
        *({}, {"choice_count": 1}, {"choice_count": 2}, {"choice_count": 0}, {"slow_start_config": {}}),
        *({"active_request_bias": value} for value in RUNTIME_DOUBLE),
    ],
    "cluster.round_robin_lb_config": [
        *({}, {"slow_start_config": {"slow_start_window": "1s"}}, {"slow_start_config": {"slow_start_window": "-1s"}}),
        *({"slow_start_config": {"slow_start_window": "1s", "aggression": value}} for value in RUNTIME_DOUBLE),
        *({"slow_start_config": {"min_weight_percent": value}} for value in PERCENT),
    ],
    SUBSET: [
        *({}, {"fallback_policy": "ANY_ENDPOINT"}, {"fallback_policy": "X"}, {"subset_selectors": [{}]}),
        *({"subset_selectors": [{"keys": []}]}, {"subset_selectors": [{"keys": ["a"]}]}, {"subset_selectors": [{"keys": ["a", "a"]}]}),
        {"subset_selectors": [{"keys": ["a"], "fallback_policy": "KEYS_SUBSET"}]},
        {"subset_selectors": [{"keys": ["a", "b"], "fallback_policy": "KEYS_SUBSET", "fallback_keys_subset": ["a"]}]},
        {"subset_selectors": [{"keys": ["a"], "fallback_policy": "KEYS_SUBSET", "fallback_keys_subset": ["a"]}]},
        {"subset_selectors": [{"keys": ["a"], "fallback_policy": "KEYS_SUBSET", "fallback_keys_subset": ["c"]}]},
        {"subset_selectors": [{"keys": ["a"], "single_host_per_subset": True}]},
        {"subset_selectors": [{"keys": ["a", "b"], "single_host_per_subset": True}]},
        {"default_subset": {"a": 1}, "fallback_policy": "DEFAULT_SUBSET"},
        *({"locality_weight_aware": True}, {"panic_mode_any": True}, {"list_as_any": True}, {"scale_locality_weight": True}),
    ],
    "cluster.load_balancing_policy": [
        *({}, {"policies": []}, policy("round_robin", "RoundRobin"), policy("random", "Random"), policy("nonsense", "X")),
        *(policy("least_request", "LeastRequest", choice_count=value) for value in (0, 1, 2)),
        policy("least_request", "LeastRequest", selection_method="FULL_SCAN"),
        *(policy("ring_hash", "RingHash", minimum_ring_size=value) for value in (0, 1, 8388609)),
        *(policy("maglev", "Maglev", table_size=value) for value in (5, 6)),
        policy("ring_hash", "RingHash", consistent_hashing_lb_config={"hash_balance_factor": 50}),
        policy("round_robin", "RoundRobin", locality_lb_config={"locality_weighted_lb_config": {}}),
        policy("round_robin", "RoundRobin", locality_lb_config={"zone_aware_lb_config": {}}),
        policy("round_robin", "RoundRobin", locality_lb_config={}),
        policy("subset", "Subset"),
        policy("subset", "Subset", subset_lb_policy=policy("round_robin", "RoundRobin")),
    ],
    "route.timeout": DURATION,
    "route.idle_timeout": DURATION,
    "route.max_grpc_timeout": DURATION,
    "route.max_stream_duration": [{}, {"max_stream_duration": "1s"}, {"max_stream_duration": "-1s"}, {"max_stream_duration": "0s"}, 5],
    "route.priority": enum("DEFAULT", "HIGH"),
    "route.cluster": ["c", "", "nowhere", 5, None],
    "route.prefix_rewrite": ["/x", "", 5, "a\rb"],
    "route.host_rewrite_literal": ["x", "", "a\nb"],
    "route.regex_rewrite": [
        *({"pattern": {"regex": "a"}, "substitution": "b"}, {"pattern": {"regex": "a("}, "substitution": "b"}),
        *({"substitution": "b"}, {"pattern": {"regex": "(a)"}, "substitution": r"\2"}, {"pattern": {"regex": "a"}}, {}),
        *({"pattern": {"regex": "a"}, "substitution": r"x\q"}, {"pattern": {"regex": "a"}, "substitution": "x\ny"}),
    ],
    "route.metadata_match": [{"filter_metadata": {"envoy.lb": {"a": 1}}}, {"filter_metadata": {}}, {}, 5, None],
    "route.cluster_not_found_response_code": enum("SERVICE_UNAVAILABLE", "NOT_FOUND", "INTERNAL_SERVER_ERROR"),
    "route.hash_policy": [
        *([], [{}], [{"header": {"header_name": "x"}}], [{"header": {"header_name": ""}}], [{"header": {}}]),
        *([{"cookie": {"name": "x"}}], [{"cookie": {"name": ""}}], [{"cookie": {"name": "x", "ttl": "-1s"}}]),
        *([{"query_parameter": {"name": ""}}], [{"query_parameter": {"name": "q"}}], [{"connection_properties": {}}]),
        *([{"connection_properties": {"source_ip": True}, "terminal": True}], [{"filter_state": {"key": ""}}]),
        [{"header": {"header_name": "x"}, "cookie": {"name": "x"}}],
        [{"header": {"header_name": "x", "regex_rewrite": {"pattern": {"regex": "("}, "substitution": ""}}}],
    ],
    f"{RETRY}.retry_on": ["5xx", "", "nonsense", "5xx,nonsense", 5, None, " 5xx , reset "],
    f"{RETRY}.num_retries": U32,
    f"{RETRY}.per_try_timeout": DURATION,
    f"{RETRY}.per_try_idle_timeout": DURATION,
    f"{RETRY}.host_selection_retry_max_attempts": [0, 1, -1, 9223372036854775807, "5", 1.5, None],
    f"{RETRY}.retriable_status_codes": [[], [503], [0], [99], [4294967295], ["503"], 503, [-1], None],
    f"{RETRY}.retry_back_off": [
        *({}, {"base_interval": "0.001s"}, {"base_interval": "0s"}, {"base_interval": "-1s"}, {"max_interval": "1s"}),
        *({"base_interval": "1s", "max_interval": "0.5s"}, {"base_interval": "1s", "max_interval": "0s"}, {"base_interval": "0.0001s"}),
    ],
    f"{RETRY}.rate_limited_retry_back_off": [
        *({}, {"reset_headers": []}, {"reset_headers": [{"name": "x"}]}, {"reset_headers": [{"name": ""}]}),
        *({"reset_headers": [{"name": "x", "format": "UNIX_TIMESTAMP"}]}, {"reset_headers": [{"name": "x", "format": "X"}]}),
        *({"reset_headers": [{"name": "x"}], "max_interval": "0s"}, {"reset_headers": [{"name": "x"}], "max_interval": "1s"}),
    ],
    f"{RETRY}.retriable_headers": [[], [{"name": "x"}], [{"name": ""}], [{"name": "x", "present_match": True}], [{"name": "x", **EXACT}]],
    f"{RETRY}.retry_host_predicate": [
        *([], [{}], [{"name": "envoy.retry_host_predicates.previous_hosts"}]),
        [typed("x", f"{PLUGIN}.host.previous_hosts.v3.PreviousHostsPredicate")],
        [typed("x", f"{PLUGIN}.host.omit_canary_hosts.v3.OmitCanaryHostsPredicate")],
        [typed("x", f"{PLUGIN}.host.omit_host_metadata.v3.OmitHostMetadataConfig")],
        [typed("x", f"{PLUGIN}.host.nonsense.v3.Nonsense")],
    ],
    f"{RETRY}.retry_priority": [
        typed("x", f"{PLUGIN}.priority.previous_priorities.v3.PreviousPrioritiesConfig", update_frequency=value)
        for value in (1, 2, -1)
    ],
    "route.hedge_policy": [
        *({}, {"initial_requests": 1}, {"initial_requests": 0}),
        *({"additional_request_chance": {"numerator": 1}}, 5),
    ],
    "match": [
        *({"prefix": "/"}, {"prefix": ""}, {"path": "/x"}, {"path": ""}, {"safe_regex": {"regex": "/.*"}}, {}),
        *({"safe_regex": {"regex": "("}}, {"path_separated_prefix": "/x"}, {"path_separated_prefix": "/x/"}),
        *({"path_separated_prefix": "x"}, {"path_separated_prefix": "/"}, {"prefix": "/", "path": "/"}, {"connect_matcher": {}}),
        *({"prefix": "/", "case_sensitive": value} for value in BOOL),
        *({"prefix": "/", "runtime_fraction": value} for value in RUNTIME_PERCENT),
        *({"prefix": "/", "grpc": {}}, {"prefix": "/?x"}, {"path": "/x?y"}, {"path_separated_prefix": "/x?"}),
        *({"prefix": "/", "headers": [{"name": "x", "string_match": value}]} for value in STRINGS),
        *({"prefix": "/", "headers": [value]} for value in (
            *({}, {"name": ""}, {"name": "x"}, {"name": "x", "present_match": False}, {"name": "x", "invert_match": True}),
            *({"name": "x", "range_match": {"start": 1, "end": 1}}, {"name": "x", "range_match": {"start": 2, "end": 1}}),
            *({"name": "x", "exact_match": "y"}, {"name": "x", "exact_match": "", "present_match": True}),
            *({"name": "X-Y", **EXACT}, {"name": "x y", **EXACT}, {"name": "x", "treat_missing_header_as_empty": True}),
        )),
        *({"prefix": "/", "query_parameters": [{"name": "q", "string_match": value}]} for value in STRINGS[:12]),
        *({"prefix": "/", "query_parameters": [value]} for value in ({}, {"name": ""}, {"name": "q"}, {"name": "q", "present_match": True})),
    ],
    "action": [
        *({}, {"redirect": {}}, {"redirect": {"https_redirect": True}}, {"redirect": {"path_redirect": "/x"}}),
        *({"redirect": {"path_redirect": "/x", "prefix_rewrite": "/y"}}, {"redirect": {"response_code": "X"}}),
        *({"redirect": {"https_redirect": True, "scheme_redirect": "x"}}, {"redirect": {"port_redirect": 65536}}),
        *({"redirect": {"host_redirect": "a\nb"}}, {"direct_response": {"status": 200}}, {"direct_response": {"status": 199}}),
        *({"direct_response": {"status": 600}}, {"direct_response": {}}, {"direct_response": {"status": 200, "body": {}}}),
        *({"direct_response": {"status": 200, "body": {"inline_string": "x"}}}, {"route": {}}, {"route": {"cluster_header": ""}}),
        *({"route": {"cluster_header": "x-y"}}, {"route": {"cluster_header": "x y"}}, {"route": {"cluster": "c", "cluster_header": "x"}}),
        *({"route": {"weighted_clusters": value}} for value in (
            *({}, {"clusters": []}, {"clusters": [{"name": "c", "weight": 1}]}, {"clusters": [{"name": "c", "weight": 0}]}),
            *({"clusters": [{"name": "c"}]}, {"clusters": [{"name": "", "weight": 1}]}, {"clusters": [{"name": "nowhere", "weight": 1}]}),
            {"clusters": [{"name": "c", "weight": 4294967295}, {"name": "c", "weight": 1}]},
            {"clusters": [{"name": "c", "weight": 1}], "total_weight": 5},
        )),
        *({"route": {"cluster": "c"}, "redirect": {}}, {"non_forwarding_action": {}}),
    ],
    "host.domains": [["*"], [], ["a.example"], ["*.a"], ["a.*"], [""], ["a", "a"], ["*", "*"], ["a*b"], ["**"], "a", ["A.Example"]],
    "host.require_tls": enum("NONE", "EXTERNAL_ONLY", "ALL"),
    "host.include_request_attempt_count": BOOL,
    "host.retry_policy": [{"retry_on": "5xx"}, {"num_retries": -1}, {}, 5, {"retry_on": "x", "nonsense": 1}],
    # A repeated field whose value is no list.
    "cluster.circuit_breakers.thresholds": [{"max_requests": 5}, [[{"max_requests": 5}]], 5, "x", None, [None]],
    "host.routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c"}}, {}, None, "x", [None]],
    "table.name": TEXT,
    "table.virtual_hosts": [[], [{"name": "v", "domains": ["*"]}], [{"name": "", "domains": ["*"]}], {}, None],
    "table.validate_clusters": BOOL,
    "table.ignore_port_in_host_matching": BOOL,
    "table.most_specific_header_mutations_wins": BOOL,
}


def base():
    """The parts of a good document."""
    address = {"socket_address": {"address": "10.0.0.1", "port_value": 80}}
    other = {"socket_address": {"address": "10.0.0.2", "port_value": 80}}
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": address}}, {"endpoint": {"address": other}}]}]
    cluster = {"name": "c", "type": "STATIC", "load_assignment": {"cluster_name": "c", "endpoints": endpoints}}
    route = {"cluster": "c"}
    entry = {"match": {"prefix": "/"}, "route": route}
    host = {"name": "v", "domains": ["*"], "routes": [entry]}
    return {"cluster": cluster, "entry": entry, "route": route, "host": host, "table": {"name": "r", "virtual_hosts": [host]}}


def put(node, path, value):
    """Sets a value at a dotted path, making what is missing on the way."""
    *way, last = path.split(".")
    for key, following in zip(way, [*way[1:], last]):
        if isinstance(node, list):
            while len(node) <= int(key):
                node.append({})
            node = node[int(key)]
        else:
            node = node.setdefault(key, [] if following.isdigit() else {})
    node[int(last) if isinstance(node, list) else last] = value


def whole(parts):
    """The bootstrap around the parts."""
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "h",
        "route_config": parts["table"],
        "http_filters": [typed("envoy.filters.http.router", "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router")],
    }
    listener = {
        "name": "l",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 10000}},
        "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}],
    }
    return {"static_resources": {"listeners": [listener], "clusters": [parts["cluster"]]}}


def generated():
    """Name and document of every generated case."""
    yield "base", whole(base())
    for path, values in FIELDS.items():
        for number, value in enumerate(values):
            parts = copy.deepcopy(base())
            # The copy keeps the parts one inside the other.
            parts["host"] = parts["table"]["virtual_hosts"][0]
            parts["entry"] = parts["host"]["routes"][0]
            parts["route"] = parts["entry"]["route"]
            value = copy.deepcopy(value)
            if path == "match":
                parts["entry"]["match"] = value
            elif path == "action":
                del parts["entry"]["route"]
                parts["entry"].update(value)
            else:
                root, rest = path.split(".", 1)
                put(parts[root], rest, value)
            if path == "cluster.name":
                parts["route"]["cluster"] = value if value == "x" else "c"
            yield f"{path}#{number}", whole(parts)


def written():
    """Name and text of the documents that were written by hand."""
    for path in sorted((HERE / "documents").glob("*.yaml")):
        yield path.name, path.read_text(encoding="utf-8")
