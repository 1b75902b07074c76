//! Route configurations.

use crate::{complaint, noted, read};
use nexthop_config::{ConfigError, What};
use nexthop_engine::spec::{
    ClusterSource, ForwardSpec, HashSource, MatchSpec, PathMatch, PriorityGroup, PriorityGroups,
    RedirectSpec, RegexRewrite, RouteAction, RouteTableSpec, RoutingPriority, StringMatch, WeightedCluster,
    WordSource,
};
use std::time::Duration;

fn table(virtual_host: &str) -> Result<RouteTableSpec, ConfigError> {
    read(&format!("- name: c\n- name: d\n- virtual_hosts: [{{name: v, {virtual_host}}}]"))
        .map(|loaded| loaded.specs.route_tables.into_iter().next().unwrap())
}

fn forward(fields: &str) -> Result<ForwardSpec, ConfigError> {
    let table = table(&format!("domains: [\"*\"], routes: [{{match: {{prefix: /}}, route: {{{fields}}}}}]"))?;
    match table.virtual_hosts.into_iter().next().unwrap().routes.into_iter().next().unwrap().action {
        RouteAction::Forward(forward) => Ok(*forward),
        other => panic!("{other:?}"),
    }
}

fn matcher(fields: &str) -> Result<MatchSpec, ConfigError> {
    let table =
        table(&format!("domains: [\"*\"], routes: [{{match: {{{fields}}}, route: {{cluster: c}}}}]"))?;
    Ok(table.virtual_hosts.into_iter().next().unwrap().routes.into_iter().next().unwrap().matcher)
}

fn direct(action: &str) -> Result<RouteAction, ConfigError> {
    let table = table(&format!("domains: [\"*\"], routes: [{{match: {{prefix: /}}, {action}}}]"))?;
    Ok(table.virtual_hosts.into_iter().next().unwrap().routes.into_iter().next().unwrap().action)
}

#[test]
fn domains() {
    let hosts = table("domains: [A.Example.com, \"*.Foo\", \"bar.*\", \"*\"], include_request_attempt_count: true, retry_policy: {retry_on: 5xx}").unwrap();
    let host = &hosts.virtual_hosts[0];
    assert_eq!(host.domains, ["a.example.com", "*.foo", "bar.*", "*"]);
    assert!(host.include_request_attempt_count && host.retry.is_some());
    assert!(table("domains: []").is_err());
    assert!(table("routes: []").is_err());
    let error = table("domains: [a.com, A.com]").unwrap_err();
    assert!(error.message.contains("\"a.com\" already has a virtual host"), "{error}");
    assert!(
        complaint("virtual_hosts: [{name: a, domains: [x]}, {name: b, domains: [x]}]")
            .contains("virtual_hosts[1].domains[0]")
    );
}

#[test]
fn paths() {
    let path = |fields: &str| matcher(fields).map(|matcher| matcher.path).ok();
    assert_eq!(path("prefix: \"\""), Some(PathMatch::Prefix(String::new())));
    assert_eq!(path("path: /a"), Some(PathMatch::Exact("/a".into())));
    assert_eq!(path("path_separated_prefix: /a"), Some(PathMatch::SeparatedPrefix("/a".into())));
    assert_eq!(
        path("safe_regex: {google_re2: {}, regex: \"/v[0-9]+\"}"),
        Some(PathMatch::Regex("/v[0-9]+".into()))
    );
    for bad in [
        "case_sensitive: true",
        "path_separated_prefix: /a/",
        "path_separated_prefix: /",
        "path_separated_prefix: \"/a?b\"",
        "safe_regex: {regex: \"\"}",
        "safe_regex: {regex: \"(\"}",
        "safe_regex: {regex: \"(?=a)\"}",
        "safe_regex: {regex: \"a)(b\"}",
        "connect_matcher: {}",
        "prefix: /, path: /a",
        "prefix: /, cookies: [{name: a}]",
    ] {
        assert_eq!(path(bad), None, "{bad}");
    }
    assert!(matcher("prefix: /, case_sensitive: false").unwrap().case_insensitive);
    assert!(matcher("prefix: /, grpc: {}").unwrap().grpc);
    let fraction = matcher(
        "prefix: /, runtime_fraction: {default_value: {numerator: 5, denominator: TEN_THOUSAND}, runtime_key: k}",
    );
    assert_eq!(fraction.unwrap().fraction, Some((5, 10_000)));
    assert!(matcher("prefix: /, runtime_fraction: {}").is_err());
}

#[test]
fn headers_and_query() {
    let header = |fields: &str| {
        matcher(&format!("prefix: /, headers: [{{name: X-A, {fields}}}]"))
            .map(|m| m.headers.into_iter().next().unwrap())
    };
    assert_eq!(header("invert_match: true").unwrap().value, StringMatch::Present(true));
    assert_eq!(header("present_match: false").unwrap().name, "x-a");
    assert_eq!(header("exact_match: \"\"").unwrap().value, StringMatch::Exact(String::new(), false));
    assert_eq!(
        header("string_match: {exact: b, ignore_case: true}").unwrap().value,
        StringMatch::Exact("b".into(), true)
    );
    assert_eq!(
        header("string_match: {contains: b}").unwrap().value,
        StringMatch::Contains("b".into(), false)
    );
    assert_eq!(header("suffix_match: b").unwrap().value, StringMatch::Suffix("b".into(), false));
    assert_eq!(header("range_match: {start: -5, end: 7}").unwrap().value, StringMatch::Range(-5, 7));
    assert_eq!(header("safe_regex_match: {regex: a+}").unwrap().value, StringMatch::Regex("a+".into()));
    assert!(header("treat_missing_header_as_empty: true, exact_match: a").unwrap().treat_missing_as_empty);
    for bad in [
        "prefix_match: \"\"",
        "string_match: {}",
        "string_match: {prefix: \"\"}",
        "string_match: {custom: {name: x}}",
        "exact_match: a, prefix_match: a",
    ] {
        assert!(header(bad).is_err(), "{bad}");
    }
    assert!(matcher("prefix: /, headers: [{exact_match: a}]").is_err());
    let query = matcher("prefix: /, query_parameters: [{name: a, string_match: {prefix: b}}, {name: c}]")
        .unwrap()
        .query;
    assert_eq!(
        (&query[0].value, &query[1].value),
        (&StringMatch::Prefix("b".into(), false), &StringMatch::Present(true))
    );
}

#[test]
fn targets() {
    assert_eq!(forward("cluster_header: X-To").unwrap().cluster, ClusterSource::Header("x-to".into()));
    let weighted = forward(
        "weighted_clusters: {total_weight: 9, clusters: [{name: c, weight: 1}, {name: d, weight: 0}]}",
    )
    .unwrap();
    let ClusterSource::Weighted(entries) = weighted.cluster else { panic!() };
    assert_eq!((entries[0].weight, entries[1].weight), (1, 0));
    for bad in [
        "timeout: 1s",
        "cluster: \"\"",
        "cluster: c, cluster_header: x",
        "weighted_clusters: {clusters: []}",
        "weighted_clusters: {clusters: [{name: c, weight: 0}]}",
        "weighted_clusters: {clusters: [{name: c}]}",
        "weighted_clusters: {clusters: [{name: nobody, weight: 1}]}",
        "cluster: nobody",
        "cluster_header: \"\"",
        "weighted_clusters: {clusters: [{name: c, weight: 4294967295}, {name: d, weight: 1}]}",
        "weighted_clusters: {clusters: [{cluster_header: x, weight: 1}]}",
        "inline_cluster_specifier_plugin: {}",
        "cluster_specifier_plugin: nobody",
    ] {
        assert!(forward(bad).is_err(), "{bad}");
    }
    let error = forward("cluster: cc").unwrap_err();
    assert_eq!((error.line, error.nearest.as_deref()), (3, Some("c")));
    assert!(read("validate_clusters: false\nvirtual_hosts: [{name: v, domains: [a], routes: [{match: {prefix: /}, route: {cluster: nobody}}]}]").is_ok());
}

#[test]
fn settings() {
    let route = forward("cluster: c, timeout: 0s, priority: HIGH, cluster_not_found_response_code: NOT_FOUND, prefix_rewrite: /x, host_rewrite_literal: h, retry_policy: {num_retries: 4}, hash_policy: [{cookie: {name: sid, ttl: 0s, path: /, attributes: [{name: a, value: b}]}}, {query_parameter: {name: q}}, {filter_state: {key: k}}]").unwrap();
    assert_eq!(
        (route.timeout, route.priority, route.cluster_not_found_status),
        (Duration::ZERO, RoutingPriority::High, 404)
    );
    assert_eq!((route.prefix_rewrite.as_str(), route.host_rewrite.as_str()), ("/x", "h"));
    assert_eq!(route.hash_policy.len(), 3);
    assert_eq!(
        route.hash_policy[0].source,
        HashSource::Cookie {
            name: "sid".into(),
            ttl: Some(Duration::ZERO),
            path: "/".into(),
            attributes: vec![("a".into(), "b".into())]
        }
    );
    assert_eq!(forward("cluster: c").unwrap().timeout, Duration::from_secs(15));
    assert_eq!(
        forward("cluster: c, regex_rewrite: {pattern: {regex: a}, substitution: b}")
            .unwrap()
            .regex_rewrite
            .unwrap()
            .substitution,
        "b"
    );
    for bad in [
        "timeout: -1s",
        "priority: 7",
        "cluster_not_found_response_code: 9",
        "hash_policy: [{}]",
        "hash_policy: [{terminal: true}]",
        "hash_policy: [{header: {header_name: \"\"}}]",
        "hash_policy: [{cookie: {name: a, ttl: -1s}}]",
        "hash_policy: [{query_parameter: {}}]",
        "hash_policy: [{header: {header_name: x, regex_rewrite: {substitution: a}}}]",
        "prefix_rewrite: /a, regex_rewrite: {pattern: {regex: a}}",
        "hedge_policy: {initial_requests: 0}",
        "max_stream_duration: {grpc_timeout_header_offset: -1s}",
        "host_rewrite_literal: a, auto_host_rewrite: true",
    ] {
        assert!(forward(&format!("cluster: c, {bad}")).is_err(), "{bad}");
    }
    assert_eq!(forward("cluster: c, hedge_policy: {initial_requests: 3}").unwrap().hedge, Some(false));
    let hedging = forward("cluster: c, hedge_policy: {hedge_on_per_try_timeout: true}").unwrap();
    assert_eq!((hedging.hedge, forward("cluster: c").unwrap().hedge), (Some(true), None));
    let stream = |fields: &str| {
        let read = forward(&format!("cluster: c, max_stream_duration: {{{fields}}}")).unwrap();
        (read.max_stream_duration, read.grpc_timeout_header)
    };
    let ms = Duration::from_millis;
    let limited = stream("grpc_timeout_header_max: 0.1s, grpc_timeout_header_offset: 0.05s");
    assert_eq!(limited, (Some(Duration::ZERO), Some((ms(100), ms(50)))));
    assert_eq!(stream("max_stream_duration: 1s"), (Some(ms(1000)), None));
}

#[test]
fn answers_without_a_cluster() {
    let answer = |action: &str| direct(action).ok();
    assert_eq!(
        answer("direct_response: {status: 299, body: {inline_string: hi}}"),
        Some(RouteAction::Direct { status: 299, body: "hi".into() })
    );
    let redirect = |fields: &str| match answer(&format!("redirect: {{{fields}}}")) {
        Some(RouteAction::Redirect(to)) => *to,
        other => panic!("{other:?}"),
    };
    let plain = RedirectSpec { status: 301, ..RedirectSpec::default() };
    assert_eq!(redirect(""), plain);
    assert_eq!(
        redirect(
            "https_redirect: true, host_redirect: a.com, port_redirect: 8443, path_redirect: \"/x?y\", response_code: FOUND, strip_query: true"
        ),
        RedirectSpec {
            status: 302,
            scheme: "https".into(),
            host: "a.com".into(),
            port: 8443,
            path: "/x?y".into(),
            strip_query: true,
            ..RedirectSpec::default()
        }
    );
    let scheme = redirect("scheme_redirect: ftp, prefix_rewrite: /p, response_code: 4");
    assert_eq!((scheme.scheme.as_str(), scheme.prefix_rewrite.as_str(), scheme.status), ("ftp", "/p", 308));
    let rewrite = RegexRewrite { pattern: "a(b)".into(), substitution: r"\1".into() };
    let regex = redirect(r"regex_rewrite: {pattern: {regex: 'a(b)'}, substitution: '\1'}");
    assert_eq!(regex, RedirectSpec { regex_rewrite: Some(rewrite), ..plain });
    assert_eq!(
        answer("redirect: {path_rewrite: \"/%REQ(x)%\"}"),
        Some(RouteAction::Direct { status: 301, body: String::new() })
    );
    for bad in [
        "direct_response: {status: 199}",
        "direct_response: {status: 600}",
        "direct_response: {status: 200, body: {}}",
        "direct_response: {status: 200, body: {filename: /etc/passwd}}",
        "redirect: {response_code: 9}",
        "redirect: {path_redirect: /a, prefix_rewrite: /b}",
        "non_forwarding_action: {}",
        "name: x",
    ] {
        assert_eq!(answer(bad), None, "{bad}");
    }
}

#[test]
fn what_is_noted() {
    let text = "- name: c\n- {virtual_hosts: [{name: v, domains: [a], cors: {}, routes: [{match: {prefix: /}, route: {cluster: c, rate_limits: [], idle_timeout: 1s}}]}]}";
    assert_eq!(
        noted(text, What::NotUsed),
        ["[1].virtual_hosts[0].cors", "[1].virtual_hosts[0].routes[0].route.rate_limits"]
    );
    let place = "[1].virtual_hosts[0].routes[0].route.idle_timeout";
    assert_eq!(noted(text, What::NotAvailable), [place]);
}

/// What becomes a header line holds no line end.
#[test]
fn texts_of_header_lines() {
    for text in ["\"/a\\nb\"", "\"/a\\rb\"", "\"/a\\0b\""] {
        for field in ["prefix_rewrite", "host_rewrite_literal"] {
            assert!(forward(&format!("cluster: c, {field}: {text}")).is_err(), "{field} {text}");
        }
        assert!(
            forward(&format!("cluster: c, regex_rewrite: {{pattern: {{regex: a}}, substitution: {text}}}"))
                .is_err()
        );
        for field in ["host_redirect", "path_redirect", "prefix_rewrite"] {
            assert!(direct(&format!("redirect: {{{field}: {text}}}")).is_err(), "{field} {text}");
        }
    }
    assert!(direct("redirect: {port_redirect: 65536}").is_ok());
}

const GROUPS: &str = "type.googleapis.com/envoy.extensions.router.cluster_specifiers.priority_group.v3.PriorityGroupClusterSpecifier";

fn plugin(fields: &str) -> String {
    format!("{{extension: {{name: p, typed_config: {{\"@type\": {GROUPS}, {fields}}}}}}}")
}

#[test]
fn several_clusters_by_another_word() {
    let word = |fields: &str| {
        forward(&format!("weighted_clusters: {{clusters: [{{name: c, weight: 1}}], {fields}}}"))
            .map(|f| f.word)
    };
    assert_eq!(word("header_name: X-Rand").unwrap(), WordSource::Header("x-rand".into()));
    assert_eq!(word("use_hash_policy: true").unwrap(), WordSource::HashPolicy);
    assert_eq!(word("use_hash_policy: false").unwrap(), WordSource::Drawn);
    assert!(word("use_hash_policy: true, header_name: x").is_err());
}

#[test]
fn priority_groups() {
    let inline = |fields: &str| forward(&format!("inline_cluster_specifier_plugin: {}", plugin(fields)));
    let group = |name: &str, clusters: &[(&str, u32)]| {
        let cluster = |(name, weight): &(&str, u32)| WeightedCluster {
            name: (*name).into(),
            weight: *weight,
            metadata_match: None,
        };
        PriorityGroup { name: name.into(), clusters: clusters.iter().map(cluster).collect() }
    };
    let both = "priority_groups: [{name: near, clusters: [{cluster_name: c, weight: 1}, {cluster_name: d, weight: 3}]}, \
                {name: far, clusters: [{cluster_name: d, weight: 4294967295}]}]";
    let list = vec![group("near", &[("c", 1), ("d", 3)]), group("far", &[("d", u32::MAX)])];
    let groups = |namespace: &str| {
        let groups = PriorityGroups { list: list.clone(), override_namespace: namespace.into() };
        ClusterSource::Groups(Box::new(groups))
    };
    let forward = inline(both).unwrap();
    assert_eq!((forward.cluster, forward.word), (groups(""), WordSource::Drawn));
    let more = inline(&format!("{both}, header_name: X, override_metadata_namespace: ns")).unwrap();
    assert_eq!((&more.cluster, &more.word), (&groups("ns"), &WordSource::Header("x".into())));
    assert_eq!((more.cluster.names(), more.cluster.is_open()), (vec!["c", "d", "d"], true));
    assert_eq!(inline(&format!("{both}, use_hash_policy: true")).unwrap().word, WordSource::HashPolicy);
    for (bad, place) in [
        ("priority_groups: []", ".typed_config"),
        ("priority_groups: [{name: a, clusters: []}]", ".priority_groups[0]"),
        (
            "priority_groups: [{name: \"\", clusters: [{cluster_name: c, weight: 1}]}]",
            ".priority_groups[0].name",
        ),
        ("priority_groups: [{name: a, clusters: [{cluster_name: c, weight: 0}]}]", ".clusters[0].weight"),
        ("priority_groups: [{name: a, clusters: [{cluster_name: c}]}]", ".clusters[0]"),
        (
            "priority_groups: [{name: a, clusters: [{cluster_name: \"\", weight: 1}]}]",
            ".clusters[0].cluster_name",
        ),
        (
            "priority_groups: [{name: a, clusters: [{cluster_name: nobody, weight: 1}]}]",
            ".clusters[0].cluster_name",
        ),
        ("priority_groups: [{name: a, clusters: [{name: c, weight: 1}]}]", ".clusters[0].name"),
    ] {
        let error = inline(bad).expect_err(bad);
        assert!(error.path.ends_with(place), "{bad}: {error}");
    }
    assert!(inline(&format!("{both}, use_hash_policy: true, header_name: x")).is_err());
}

#[test]
fn named_cluster_specifiers() {
    let both = "priority_groups: [{name: a, clusters: [{cluster_name: c, weight: 1}]}]";
    let table = |plugins: &str, name: &str| {
        read(&format!(
            "- name: c\n- cluster_specifier_plugins: [{plugins}]\n  virtual_hosts: [{{name: v, domains: [\"*\"], routes: \
             [{{match: {{prefix: /}}, route: {{cluster_specifier_plugin: {name}}}}}]}}]"
        ))
    };
    let known = plugin(both);
    let loaded = table(&known, "p").unwrap();
    let RouteAction::Forward(forward) = &loaded.specs.route_tables[0].virtual_hosts[0].routes[0].action
    else {
        panic!()
    };
    assert_eq!(forward.cluster.names(), ["c"]);
    assert!(table(&known, "q").unwrap_err().path.ends_with(".cluster_specifier_plugin"));
    assert!(table(&format!("{known}, {known}"), "p").unwrap_err().message.contains("already"));
    let other = "extension: {name: p, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.router.cluster_specifiers.lua.v3.LuaConfig}}";
    assert!(table(&format!("{{{other}}}"), "p").unwrap_err().message.contains("LuaConfig"));
    // An optional one is refused where it is used.
    let error = table(&format!("{{{other}, is_optional: true}}"), "p").unwrap_err();
    assert!(error.path.ends_with(".cluster_specifier_plugin"), "{error}");
    let optional = other.replace("name: p", "name: o");
    assert!(table(&format!("{known}, {{{optional}, is_optional: true}}"), "p").is_ok());
}
