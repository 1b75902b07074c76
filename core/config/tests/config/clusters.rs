//! Clusters: policies, breakers, protocols, and what is noted or refused.

use crate::{cluster, noted, read};
use nexthop_config::What;
use nexthop_engine::spec::{
    Aperture, BackOffSpec, ClientWeights, ConnectionStyle, ConsistentHashing, HashFunction, HashSource,
    LoadAware, LocalityBalancing, OverrideSource, OverrideSpec, PeakEwma, PolicySpec, Protocol, ResetFormat,
    RetryOn, SelectionMethod, SelectorFallback, SlowStart, SubsetFallback, SubsetSelector, Value, ZoneAware,
};
use std::sync::Arc;
use std::time::Duration;

fn typed(x: &str, message: &str, fields: &str) -> Result<PolicySpec, String> {
    let comma = if fields.is_empty() { "" } else { ", " };
    cluster(&format!(
        "load_balancing_policy: {{policies: [{{typed_extension_config: {{name: p, typed_config: {{\"@type\": \
         type.googleapis.com/envoy.extensions.load_balancing_policies.{x}.v3.{message}{comma}{fields}}}}}}}]}}"
    ))
    .map(|cluster| cluster.policy)
    .map_err(|error| error.to_string())
}

#[test]
fn defaults() {
    let web = cluster("type: STATIC").unwrap();
    assert_eq!(web, nexthop_engine::spec::ClusterSpec { name: "web".into(), ..Default::default() });
}

#[test]
fn typed_policies() {
    let weighted = "locality_lb_config: {locality_weighted_lb_config: {}}";
    assert_eq!(
        typed("round_robin", "RoundRobin", weighted),
        Ok(PolicySpec::RoundRobin { locality: LocalityBalancing::Weighted, slow_start: None })
    );
    assert_eq!(
        typed(
            "random",
            "Random",
            "locality_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true, force_local_zone: {}}}"
        ),
        Ok(PolicySpec::Random {
            locality: LocalityBalancing::ZoneAware(ZoneAware {
                fail_traffic_on_panic: true,
                force_local_zone: Some(1),
                ..ZoneAware::default()
            })
        })
    );
    assert_eq!(
        typed(
            "least_request",
            "LeastRequest",
            "choice_count: 0, selection_method: full_scan, active_request_bias: {default_value: 0.5, runtime_key: k}"
        ),
        Ok(PolicySpec::LeastRequest {
            choice_count: 0,
            active_request_bias: 0.5,
            selection: SelectionMethod::FullScan,
            locality: LocalityBalancing::None,
            slow_start: None,
        })
    );
    // Numbers without a name load and make unweighted picks find nothing.
    assert!(matches!(
        typed("least_request", "LeastRequest", "selection_method: 7"),
        Ok(PolicySpec::LeastRequest { choice_count: 0, .. })
    ));
    let hashing = ConsistentHashing { use_hostname: true, balance_factor: 99, hash_policy: vec![] };
    assert_eq!(
        typed(
            "ring_hash",
            "RingHash",
            "hash_function: MURMUR_HASH_2, minimum_ring_size: 0, maximum_ring_size: 9000000, use_hostname_for_hashing: true, hash_balance_factor: 99, locality_weighted_lb_config: {}"
        ),
        Ok(PolicySpec::RingHash {
            hash_function: HashFunction::MurmurHash2,
            minimum_ring_size: 0,
            maximum_ring_size: 9_000_000,
            hashing,
            locality_weighted: true,
        })
    );
    // The newer message hides the older fields.
    assert!(matches!(
        typed("ring_hash", "RingHash", "use_hostname_for_hashing: true, consistent_hashing_lb_config: {}"),
        Ok(PolicySpec::RingHash { hashing: ConsistentHashing { use_hostname: false, .. }, .. })
    ));
    for size in ["1", "0", "8", "65536"] {
        assert!(typed("maglev", "Maglev", &format!("table_size: {size}")).is_err(), "{size}");
    }
    for size in [2, 3, 7, 65_537, 5_000_077_u64] {
        let policy = typed("maglev", "Maglev", &format!("table_size: {size}"));
        assert!(matches!(policy, Ok(PolicySpec::Maglev { table_size, .. }) if table_size == size), "{size}");
    }
    assert!(typed("maglev", "Maglev", "consistent_hashing_lb_config: {hash_policy: [{}]}").is_err());
}

/// A policy list of one entry.
fn listed(x: &str, message: &str, fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { ", " };
    format!(
        "{{policies: [{{typed_extension_config: {{name: p, typed_config: {{\"@type\": \
         type.googleapis.com/envoy.extensions.load_balancing_policies.{x}.v3.{message}{comma}{fields}}}}}}}]}}"
    )
}

#[test]
fn overrides() {
    let fallback = format!("fallback_policy: {}", listed("random", "Random", ""));
    let read = |sources: &str| {
        typed("override_host", "OverrideHost", &format!("override_host_sources: [{sources}], {fallback}"))
    };
    let policy = read("{header: X-To}, {metadata: {key: ns, path: [{key: a}, {key: b}]}}").unwrap();
    let expect = OverrideSpec {
        sources: vec![
            OverrideSource::Header("x-to".into()),
            OverrideSource::Metadata("ns".into(), vec!["a".into(), "b".into()]),
        ],
        fallback: PolicySpec::Random { locality: LocalityBalancing::None },
    };
    assert_eq!(policy, PolicySpec::OverrideHost(Arc::new(expect)));
    for bad in ["", "{}", "{header: x, metadata: {key: a, path: [{key: b}]}}", "{metadata: {key: a}}"] {
        assert!(read(bad).is_err(), "{bad}");
    }
    assert!(typed("override_host", "OverrideHost", "override_host_sources: [{header: x}]").is_err());
    let nested = format!(
        "override_host_sources: [{{header: x}}], fallback_policy: {}",
        listed("cluster_provided", "ClusterProvided", "")
    );
    assert!(typed("override_host", "OverrideHost", &nested).is_err());
}

#[test]
fn policies_that_read_load_reports() {
    let own = "error_utilization_penalty: 2, metric_names_for_computing_utilization: [named_metrics.a], blackout_period: 0s, weight_update_period: 0.01s";
    let weights = ClientWeights {
        error_penalty: 2.0,
        metric_names: vec!["named_metrics.a".into()],
        blackout: Duration::ZERO,
        period: Duration::from_millis(100),
        ..ClientWeights::default()
    };
    let (x, message) = ("client_side_weighted_round_robin", "ClientSideWeightedRoundRobin");
    assert_eq!(typed(x, message, own), Ok(PolicySpec::ClientSideWeighted(Arc::new(weights.clone()))));
    assert!(typed(x, message, "error_utilization_penalty: -1").is_ok());
    let child = |policy: &str| format!("endpoint_picking_policy: {policy}");
    let around = typed("wrr_locality", "WrrLocality", &child(&listed(x, message, own)));
    let weighted = ClientWeights { locality: LocalityBalancing::Weighted, ..weights };
    assert_eq!(around, Ok(PolicySpec::ClientSideWeighted(Arc::new(weighted))));
    assert!(typed("wrr_locality", "WrrLocality", &child(&listed("random", "Random", ""))).is_err());
    assert!(typed("wrr_locality", "WrrLocality", "").is_err());

    let random = child(&listed("random", "Random", ""));
    let aware = |fields: &str| typed("load_aware_locality", "LoadAwareLocality", fields);
    let spec =
        LoadAware { child: PolicySpec::Random { locality: LocalityBalancing::None }, ..LoadAware::default() };
    assert_eq!(aware(&random), Ok(PolicySpec::LoadAwareLocality(Arc::new(spec))));
    for bad in [
        "weight_update_period: 0.05s",
        "utilization_variance_threshold: 1.5",
        "utilization_variance_threshold: -0.1",
        "remote_probe_fraction: 1",
        "remote_probe_fraction: NaN",
        "smoothing_time_constant: 0s",
        "weight_expiration_period: -1s",
    ] {
        assert!(aware(&format!("{random}, {bad}")).is_err(), "{bad}");
    }
    assert!(aware("").is_err());
    assert!(aware(&child(&listed("cluster_provided", "ClusterProvided", ""))).is_err());
    let itself = listed("load_aware_locality", "LoadAwareLocality", &random);
    assert!(aware(&child(&itself)).is_err());
    let module = typed("dynamic_modules", "DynamicModulesLoadBalancerConfig", "").unwrap_err();
    assert!(module.ends_with("is known, but not available in this version"), "{module}");
}

#[test]
fn the_first_known_policy_wins() {
    let entry = |kind: &str| {
        format!(
            "{{typed_extension_config: {{name: p, typed_config: {{\"@type\": type.googleapis.com/{kind}}}}}}}"
        )
    };
    let random = entry("envoy.extensions.load_balancing_policies.random.v3.Random");
    let peak = entry("envoy.extensions.load_balancing_policies.peak_ewma.v3.PeakEwma");
    let subset = entry("envoy.extensions.load_balancing_policies.subset.v3.Subset");
    let policies =
        |list: &str| cluster(&format!("lb_policy: MAGLEV, load_balancing_policy: {{policies: [{list}]}}"));
    assert!(matches!(
        policies(&format!("{peak}, {random}, {subset}")).unwrap().policy,
        PolicySpec::Random { .. }
    ));
    assert!(policies(&peak).unwrap_err().message.contains("none of the policies [p] is known"));
    assert!(policies("").is_err());
    assert!(policies("{typed_extension_config: {name: p}}").is_err());
    assert!(cluster("lb_policy: LOAD_BALANCING_POLICY_CONFIG").is_err());
    for partial in [
        "common_lb_config: {zone_aware_lb_config: {}}",
        "common_lb_config: {consistent_hashing_lb_config: {}}",
        "lb_subset_config: {}",
    ] {
        assert!(
            cluster(&format!("load_balancing_policy: {{policies: [{random}]}}, {partial}")).is_err(),
            "{partial}"
        );
    }
    assert!(
        cluster(&format!(
            "load_balancing_policy: {{policies: [{random}]}}, common_lb_config: {{update_merge_window: 0s}}"
        ))
        .is_ok()
    );
    let wrapped = "{typed_extension_config: {name: p, typed_config: {\"@type\": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/envoy.extensions.load_balancing_policies.maglev.v3.Maglev, value: {table_size: 7}}}}";
    assert!(matches!(policies(wrapped).unwrap().policy, PolicySpec::Maglev { table_size: 7, .. }));
}

#[test]
fn legacy_policies() {
    let policy = |fields: &str| cluster(fields).map(|cluster| cluster.policy);
    assert!(matches!(
        policy(
            "lb_policy: RING_HASH, ring_hash_lb_config: {minimum_ring_size: 7}, common_lb_config: {locality_weighted_lb_config: {}, consistent_hashing_lb_config: {use_hostname_for_hashing: true, hash_balance_factor: 150}}"
        ),
        Ok(PolicySpec::RingHash {
            minimum_ring_size: 7,
            locality_weighted: true,
            hashing: ConsistentHashing { use_hostname: true, balance_factor: 150, .. },
            ..
        })
    ));
    assert!(matches!(
        policy("common_lb_config: {zone_aware_lb_config: {fail_traffic_on_panic: true}}"),
        Ok(PolicySpec::RoundRobin {
            locality: LocalityBalancing::ZoneAware(ZoneAware { fail_traffic_on_panic: true, .. }),
            ..
        })
    ));
    assert!(policy("common_lb_config: {zone_aware_lb_config: {force_local_zone: {}}}").is_err());
    assert!(policy("common_lb_config: {consistent_hashing_lb_config: {hash_balance_factor: 99}}").is_err());
    // Sizes that do not fit each other matter only to the policy that uses them.
    let crossed = "ring_hash_lb_config: {minimum_ring_size: 20, maximum_ring_size: 10}";
    assert!(policy(crossed).is_ok());
    assert!(policy(&format!("lb_policy: RING_HASH, {crossed}")).is_err());
    assert!(policy("maglev_lb_config: {table_size: 8}").is_ok());
    assert!(policy("lb_policy: MAGLEV, maglev_lb_config: {table_size: 8}").is_err());
    assert!(policy("lb_policy: MAGLEV, maglev_lb_config: {table_size: 7}").is_ok());
}

#[test]
fn breakers_by_priority() {
    let web = cluster("circuit_breakers: {thresholds: [{priority: HIGH, max_requests: 1, retry_budget: {}}, {max_retries: 0, track_remaining: yes}, {priority: 1, max_requests: 2}], per_host_thresholds: [{max_connections: 5, track_remaining: true}, {priority: high}, {max_connections: 6}]}").unwrap();
    let [low, high] = &web.breakers.thresholds;
    assert_eq!((low.max_retries, low.track_remaining, low.max_requests), (0, true, 1024));
    assert_eq!((high.max_requests, high.retry_budget.unwrap().budget_percent), (1, 20.0));
    assert_eq!(web.breakers.per_host_max_connections, [Some(5), None]);
}

fn options(fields: &str) -> Result<nexthop_engine::spec::ClusterSpec, nexthop_config::ConfigError> {
    let key = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    cluster(&format!(
        "typed_extension_protocol_options: {{{key}: {{\"@type\": type.googleapis.com/{key}, {fields}}}}}"
    ))
}

#[test]
fn protocols() {
    let h2 = options("explicit_http_config: {http2_protocol_options: {max_concurrent_streams: 7}}, common_http_protocol_options: {idle_timeout: 0s}").unwrap();
    assert_eq!(
        (h2.protocol, h2.max_concurrent_streams, h2.idle_timeout),
        (Protocol::Http2, 7, Duration::ZERO)
    );
    assert_eq!(
        options("explicit_http_config: {http_protocol_options: {}}").unwrap().protocol,
        Protocol::Http1
    );
    for bad in [
        "http_filters: []",
        "explicit_http_config: {}",
        "explicit_http_config: {http3_protocol_options: {}}",
        "explicit_http_config: {http2_protocol_options: {max_concurrent_streams: 0}}",
        "explicit_http_config: {http2_protocol_options: {max_concurrent_streams: 2147483648}}",
        "explicit_http_config: {http_protocol_options: {}}, auto_config: {}",
        "explicit_http_config: {http_protocol_options: {}}, common_http_protocol_options: {idle_timeout: -1s}",
    ] {
        assert!(options(bad).is_err(), "{bad}");
    }
    assert_eq!(
        cluster("http2_protocol_options: {max_concurrent_streams: 9}").unwrap().max_concurrent_streams,
        9
    );
    assert_eq!(cluster("http2_protocol_options: {}").unwrap().protocol, Protocol::Http2);
    let most = |fields: &str| cluster(fields).unwrap().max_requests_per_connection;
    assert_eq!(most("max_requests_per_connection: 2"), 2);
    assert_eq!(most("common_http_protocol_options: {max_requests_per_connection: 3}"), 3);
    assert_eq!((most(""), most("max_requests_per_connection: 0")), (0, 0), "any number");
    let typed = "explicit_http_config: {http2_protocol_options: {}}, common_http_protocol_options: {max_requests_per_connection: 4}";
    assert_eq!(options(typed).unwrap().max_requests_per_connection, 4);
    assert!(cluster("http_protocol_options: {}, http2_protocol_options: {}").is_err());
    assert!(cluster("typed_extension_protocol_options: {foo: {}}").is_err());
    // Typed options replace the older fields.
    let key = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    let both = cluster(&format!("http2_protocol_options: {{}}, common_http_protocol_options: {{idle_timeout: 1s}}, typed_extension_protocol_options: {{{key}: {{\"@type\": type.googleapis.com/{key}, explicit_http_config: {{http_protocol_options: {{}}}}}}}}")).unwrap();
    assert_eq!((both.protocol, both.idle_timeout), (Protocol::Http1, Duration::from_secs(3600)));
}

#[test]
fn retry_and_hash_of_the_cluster() {
    let base = "explicit_http_config: {http_protocol_options: {}}";
    let web = options(&format!("{base}, retry_policy: {{}}, hash_policy: [{{header: {{header_name: X-User}}, terminal: true}}, {{connection_properties: {{source_ip: false}}, terminal: true}}]")).unwrap();
    assert_eq!(web.retry.unwrap().on, RetryOn::default());
    assert_eq!(web.hash_policy.len(), 1);
    assert_eq!(web.hash_policy[0].source, HashSource::Header { name: "x-user".into(), rewrite: None });
    assert!(web.hash_policy[0].terminal);

    let predicate = "{name: x, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate}}";
    let retry = options(&format!("{base}, retry_policy: {{retry_on: \"5xx,reset\", num_retries: 4, per_try_timeout: 0.1s, retry_host_predicate: [{predicate}], host_selection_retry_max_attempts: 3, retriable_status_codes: [418], retry_back_off: {{base_interval: 0.03s, max_interval: 0.1s}}}}")).unwrap().retry.unwrap();
    assert_eq!((retry.on, retry.num_retries), (RetryOn::FIVE_XX | RetryOn::RESET, 4));
    assert_eq!(retry.per_try_timeout, Duration::from_millis(100));
    assert!(retry.previous_hosts);
    assert_eq!(retry.host_selection_retry_max_attempts, 3);
    assert_eq!(retry.back_off, Some(BackOffSpec { base_ms: 30, max_ms: 100 }));
    for bad in [
        "retry_host_predicate: [{name: envoy.retry_host_predicates.previous_hosts}]",
        "retry_options_predicates: [{name: x}]",
        "retry_priority: {name: envoy.retry_priorities.previous_priorities}",
        "retry_priority: {name: p, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig, update_frequency: 0}}",
        "rate_limited_retry_back_off: {max_interval: 1s}",
        "rate_limited_retry_back_off: {reset_headers: [{name: a, format: MINUTES}]}",
        "nexthop: {deadline_first: maybe}",
    ] {
        assert!(options(&format!("{base}, retry_policy: {{{bad}}}")).is_err(), "{bad}");
    }
    let host = "type.googleapis.com/envoy.extensions.retry.host";
    let retry = options(&format!(
        "{base}, retry_policy: {{refresh_cluster_on_retry: true, \
         rate_limited_retry_back_off: {{reset_headers: [{{name: Retry-After}}, {{name: b, format: UNIX_TIMESTAMP}}]}}, \
         retry_priority: {{name: p, typed_config: {{\"@type\": type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig, update_frequency: 2}}}}, \
         retry_host_predicate: [\
           {{name: c, typed_config: {{\"@type\": {host}.omit_canary_hosts.v3.OmitCanaryHostsPredicate}}}}, \
           {{name: m, typed_config: {{\"@type\": {host}.omit_host_metadata.v3.OmitHostMetadataConfig, metadata_match: {{filter_metadata: {{envoy.lb: {{v: a}}}}}}}}}}]}}"
    ))
    .unwrap()
    .retry
    .unwrap();
    assert!(retry.refresh_cluster_on_retry && retry.omit_canary_hosts && !retry.previous_hosts);
    assert_eq!(retry.previous_priorities, Some(2));
    assert_eq!(retry.omit_host_metadata, [vec![("v".to_owned(), Value::String("a".into()))]]);
    let reset = retry.rate_limited.unwrap();
    assert_eq!(reset.max_ms, 300_000);
    let names =
        [("retry-after".to_owned(), ResetFormat::Seconds), ("b".to_owned(), ResetFormat::UnixTimestamp)];
    assert_eq!(reset.reset_headers, names);
}

#[test]
fn the_nexthop_block() {
    assert_eq!(cluster("nexthop: {connections: strict}").unwrap().connections, Some(ConnectionStyle::Strict));
    assert_eq!(cluster("nexthop: {}").unwrap().connections, None);
    let later = cluster("nexthop: {zone: shared}").unwrap_err();
    assert_eq!(later.message, "`zone` is known, but not available in this version");
    let slip = cluster("nexthop: {conections: queue}").unwrap_err();
    assert_eq!(slip.nearest.as_deref(), Some("connections"));
    assert!(cluster("nexthop: {connections: wait}").is_err());
    let own = cluster(
        "nexthop: {policy: {deterministic_aperture: {id: 1, peers: 3}}, subset_size: 20, exclude_tried: true}",
    );
    let own = own.unwrap();
    assert_eq!(own.policy, PolicySpec::DeterministicAperture(Aperture { size: 12, id: 1, peers: 3 }));
    assert_eq!((own.subset_size, own.exclude_tried), (Some(20), true));
    let slip = cluster("nexthop: {policy: peak_ewna}").unwrap_err();
    assert_eq!(slip.nearest.as_deref(), Some("peak_ewma"));
    // In subsets it is their policy that is replaced.
    let subsets = cluster(
        "lb_subset_config: {fallback_policy: ANY_ENDPOINT, subset_selectors: [{keys: [v]}]}, \
         nexthop: {policy: peak_ewma}",
    );
    assert_eq!(*subsets.unwrap().policy.chooser(), PolicySpec::PeakEwma(PeakEwma::default()));
}

#[test]
fn what_the_block_of_a_document_sets_holds_where_a_cluster_says_nothing() {
    let text = "clusters: {a: {hosts: []}, b: {hosts: [], nexthop: {exclude_tried: false}}, c: {composite: [a]}}\n\
                nexthop: {defaults: {exclude_tried: true, policy: rendezvous_hash, connections: count}}";
    let specs = read(text).unwrap().specs;
    let told: Vec<bool> = specs.clusters.iter().map(|cluster| cluster.exclude_tried).collect();
    assert_eq!(told, [true, false, false]);
    assert!(specs.clusters.iter().all(|cluster| cluster.connections == Some(ConnectionStyle::Count)));
    let policies: Vec<&PolicySpec> = specs.clusters.iter().map(|cluster| &cluster.policy).collect();
    assert_eq!(
        policies,
        [&PolicySpec::RendezvousHash, &PolicySpec::RendezvousHash, &PolicySpec::ClusterProvided]
    );
}

#[test]
fn transport_sockets() {
    let socket = |kind: &str| {
        cluster(&format!("transport_socket: {{name: t, typed_config: {{\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.{kind}}}}}")).unwrap().secure
    };
    assert!(socket("tls.v3.UpstreamTlsContext"));
    assert!(!socket("raw_buffer.v3.RawBuffer"));
    let inner = "tap.v3.Tap, transport_socket: {name: t, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: x}}";
    assert!(socket(inner));
    assert!(cluster("transport_socket: tls").is_err());
}

#[test]
fn what_is_noted() {
    let text = "- {name: a, upstream_bind_config: {}, dns_lookup_family: V4_ONLY, upstream_connection_options: {tcp_keepalive: {}}, transport_socket: {name: x}}";
    assert_eq!(
        noted(text, What::NotUsed),
        [
            "[0].upstream_bind_config",
            "[0].dns_lookup_family",
            "[0].upstream_connection_options",
            "[0].transport_socket"
        ]
    );
    let text = "- {name: a, outlier_detection: {detect_degraded_hosts: true}, common_http_protocol_options: {max_stream_duration: 1s, max_connection_duration: 1s}}";
    assert_eq!(
        cluster("common_http_protocol_options: {max_stream_duration: 1s}").unwrap().max_stream_duration,
        Duration::from_secs(1)
    );
    assert_eq!(noted(text, What::NotAvailable), ["[0].common_http_protocol_options.max_connection_duration"]);
    let json = read(text).unwrap().report.to_json();
    assert_eq!(json["entries"][0]["what"], "not_available");
    assert_eq!(json["entries"][0]["line"], 1);
}

#[test]
fn slow_start_and_zones() {
    let slow = |window, aggression, min_weight| Some(SlowStart { window, aggression, min_weight });
    let started = |policy: Result<PolicySpec, String>| policy.map(|policy| policy.slow_start().copied());
    let second = Duration::from_secs(1);
    let fields = "slow_start_config: {slow_start_window: 1s, min_weight_percent: {value: 150}}";
    assert_eq!(started(typed("round_robin", "RoundRobin", fields)), Ok(slow(second, 1.0, 1.5)));
    let fields = "slow_start_config: {slow_start_window: 1s, aggression: {default_value: 2, runtime_key: k}}";
    assert_eq!(started(typed("least_request", "LeastRequest", fields)), Ok(slow(second, 2.0, 0.1)));
    let legacy = |fields: &str| cluster(fields).map(|cluster| cluster.policy).map_err(|e| e.to_string());
    let fields = "round_robin_lb_config: {slow_start_config: {slow_start_window: 1s}}";
    assert_eq!(started(legacy(fields)), Ok(slow(second, 1.0, 0.1)));
    assert_eq!(started(legacy(&format!("lb_policy: LEAST_REQUEST, {fields}"))), Ok(None));
    assert!(legacy("round_robin_lb_config: {slow_start_config: {slow_start_window: -1s}}").is_err());
    let off = "- {name: a, round_robin_lb_config: {slow_start_config: {aggression: {default_value: 2, runtime_key: k}}}}";
    assert_eq!(noted(off, What::NotUsed), ["[0].round_robin_lb_config.slow_start_config"]);

    let zone =
        |fields: &str| match legacy(&format!("common_lb_config: {{zone_aware_lb_config: {{{fields}}}}}")) {
            Ok(PolicySpec::RoundRobin { locality: LocalityBalancing::ZoneAware(zone), .. }) => zone,
            other => panic!("{other:?}"),
        };
    assert_eq!(zone(""), ZoneAware::default());
    assert_eq!(
        zone("routing_enabled: {value: 29}, min_cluster_size: 3"),
        ZoneAware { routing_enabled: 28, min_cluster_size: 3, ..ZoneAware::default() }
    );
    let text = "- {name: a, common_lb_config: {zone_aware_lb_config: {min_cluster_size: 3}}}";
    assert_eq!(noted(text, What::NotUsed), ["[0].common_lb_config.zone_aware_lb_config"]);
    let local = "node: {locality: {zone: z}}\ncluster_manager: {local_cluster_name: a}\nstatic_resources: {clusters: [{name: a, common_lb_config: {zone_aware_lb_config: {min_cluster_size: 3}}}]}";
    let loaded = read(local).unwrap();
    assert_eq!(loaded.report.entries, []);
    assert_eq!(loaded.specs.local_cluster.as_deref(), Some("a"));
    assert_eq!(loaded.specs.locality.map(|locality| locality.zone).as_deref(), Some("z"));
}

#[test]
fn subsets() {
    let child = "subset_lb_policy: {policies: [{typed_extension_config: {name: p, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.load_balancing_policies.random.v3.Random}}}]}";
    let Ok(PolicySpec::Subset(spec)) = typed(
        "subset",
        "Subset",
        &format!(
            "allow_redundant_keys: true, metadata_fallback_policy: FALLBACK_LIST, fallback_policy: DEFAULT_SUBSET, default_subset: {{a: 1}}, {child}"
        ),
    ) else {
        panic!("no subset policy");
    };
    assert!(spec.allow_redundant_keys && spec.fallback_list && !spec.panic_mode_any);
    assert_eq!((spec.fallback, spec.default_subset.len()), (SubsetFallback::Default, 1));
    assert_eq!(spec.child, PolicySpec::Random { locality: LocalityBalancing::None });
    assert!(typed("subset", "Subset", "subset_selectors: [{keys: [a]}]").is_err());

    let legacy = |fields: &str| {
        cluster(&format!("lb_policy: MAGLEV, lb_subset_config: {{{fields}}}"))
            .map(|cluster| cluster.policy)
            .map_err(|error| error.message)
    };
    let Ok(PolicySpec::Subset(spec)) = legacy(
        "subset_selectors: [{keys: [b, a, b]}, {keys: [a, b, c], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [c, a], single_host_per_subset: true}]",
    ) else {
        panic!("no subset policy");
    };
    assert!(matches!(spec.child, PolicySpec::Maglev { .. }));
    assert_eq!(
        spec.selectors[0],
        SubsetSelector { keys: vec!["a".into(), "b".into()], ..SubsetSelector::default() }
    );
    assert_eq!(spec.selectors[1].fallback, Some(SelectorFallback::Keys(vec!["a".into(), "c".into()])));
    assert!(spec.selectors[1].single_host);
    // Without selectors it does nothing.
    assert!(matches!(legacy("fallback_policy: ANY_ENDPOINT"), Ok(PolicySpec::Maglev { .. })));
    for (selector, why) in [
        ("keys: [a], fallback_policy: KEYS_SUBSET", "cannot be empty"),
        ("keys: [a], fallback_keys_subset: [a]", "can be set only"),
        ("keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [c]", "must be a subset"),
        ("keys: [a, b], fallback_policy: KEYS_SUBSET, fallback_keys_subset: [b, a]", "cannot be equal"),
    ] {
        let error = legacy(&format!("subset_selectors: [{{{selector}}}]")).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert!(legacy("subset_selectors: [{keys: [a]}], locality_weight_aware: true").is_err());
    assert!(
        cluster("lb_policy: CLUSTER_PROVIDED, lb_subset_config: {subset_selectors: [{keys: [a]}]}").is_err()
    );
}
