//! The `nexthop:` block.

use crate::{cluster, complaint, read};
use nexthop_config::{Dialect, Source, What, load_in_detail};
use nexthop_engine::spec::{
    ClassName, ClassNext, ClusterOptions, ClusterSpec, CoolDown, DeadlineFirst, HalfOpen, Idempotency,
    Layers, OutcomeAt, PreferBelowLimit, RetryAfter, RetryOptions,
};
use std::time::Duration;

fn options(block: &str) -> ClusterOptions {
    cluster(&format!("nexthop: {{{block}}}")).unwrap_or_else(|error| panic!("{block}: {error}")).options
}

fn retry(block: &str) -> RetryOptions {
    let text =
        format!("clusters: {{web: {{hosts: [10.0.0.1:80], retry: {{on: 5xx, nexthop: {{{block}}}}}}}}}");
    let loaded = read(&text).unwrap_or_else(|error| panic!("{block}: {error}"));
    loaded.specs.clusters[0].retry.as_ref().unwrap().options.clone()
}

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn off_unless_asked_for() {
    assert_eq!(options(""), ClusterOptions::default());
    assert_eq!(retry(""), RetryOptions::default());
    let off = "prefer_below_limit: false, half_open: false, cool_down: off, outcome_at: headers";
    assert_eq!(options(off), ClusterOptions::default());
    assert_eq!(
        retry("deadline_first: false, retry_after: envoy, idempotency: off, classes: []"),
        RetryOptions::default()
    );
    assert_eq!(retry("idempotency: 'off', retry_after: null"), RetryOptions::default());
}

#[test]
fn clusters() {
    assert_eq!(options("half_open: {}").half_open, Some(HalfOpen::default()));
    assert_eq!(options("half_open: true").half_open, Some(HalfOpen::default()));
    let half = HalfOpen { probes: 3, interval: MS(250), max_interval: MS(2000), dry_run: true };
    let text = "half_open: {probes: 3, interval: 250ms, max_interval: 2s, dry_run: true}";
    assert_eq!(options(text).half_open, Some(half));
    assert_eq!(options("half_open: {interval: 600s}").half_open.unwrap().max_interval, MS(600_000));
    assert_eq!(options("cool_down: {}").cool_down, Some(CoolDown::default()));
    let cool = CoolDown {
        on: vec![429, 529],
        from_headers: vec!["x-back".into()],
        default: Duration::ZERO,
        max: MS(60_000),
        dry_run: true,
    };
    let text = "coolDown: {on: [429, 529], fromHeaders: [X-Back], default: 0s, max: 60s, dryRun: true}";
    assert_eq!(options(text).cool_down, Some(cool));
    assert_eq!(options("cool_down: {on: 503}").cool_down.unwrap().on, [503]);
    assert_eq!(options("cool_down: {max: 2s}").cool_down.unwrap().default, MS(2000), "cut to the maximum");
    assert_eq!(options("outcome_at: end").outcome_at, OutcomeAt::End);
    assert_eq!(options("prefer_below_limit: true").prefer_below_limit, Some(PreferBelowLimit::default()));
    assert!(options("prefer_below_limit: {dry_run: true}").prefer_below_limit.unwrap().dry_run);
}

#[test]
fn retries() {
    assert_eq!(retry("deadline_first: true").deadline_first, Some(DeadlineFirst::default()));
    let first = DeadlineFirst { least: MS(20), dry_run: true };
    assert_eq!(retry("deadline_first: {least: 20ms, dry_run: true}").deadline_first, Some(first));
    assert_eq!(retry("retry_after: honour").retry_after, Some(RetryAfter::default()));
    assert_eq!(
        retry("retry_after: {max: 5s}").retry_after,
        Some(RetryAfter { max: MS(5000), dry_run: false })
    );
    assert_eq!(retry("idempotency: guard").idempotency, Some(Idempotency::default()));
    assert_eq!(retry("idempotency: {dry_run: true}").idempotency, Some(Idempotency { dry_run: true }));
    let layers = Layers { header: "x-envoy-attempt-count".into(), max_product: 4, dry_run: false };
    assert_eq!(retry("layers: {max_product: 4}").layers, Some(layers));
    assert_eq!(retry("layers: {header: X-Try, max_product: 1}").layers.unwrap().header, "x-try");
}

#[test]
fn classes() {
    let classes = retry(
        "classes: [{when: {status: [429, 5xx], header: {X-A: '1', x-b: null}, body_code: quota}, class: quota, \
         cool_down: 1s, next: cluster}, {when: {header: [x-c]}, class: other, same_host: true, dry_run: true}]",
    )
    .classes;
    let [quota, other] = classes.as_slice() else { panic!() };
    assert_eq!(quota.when.statuses, [(429, 429), (500, 599)]);
    assert_eq!(quota.when.headers, [("x-a".into(), Some("1".into())), ("x-b".into(), None)]);
    assert_eq!(quota.when.body_codes, ["quota"]);
    assert_eq!(
        (quota.class, quota.next, quota.cool_down),
        (ClassName::Quota, Some(ClassNext::Cluster), Some(MS(1000)))
    );
    assert!(!quota.same_host && !quota.dry_run);
    assert_eq!((other.when.headers.len(), other.class, other.next), (1, ClassName::Other, None));
    assert!(other.same_host && other.dry_run);
}

#[test]
fn envoys_retry_policies_have_one_too() {
    let text = "virtual_hosts: [{name: v, domains: ['*'], retry_policy: {retry_on: 5xx, nexthop: {idempotency: guard}}, \
                routes: [{match: {prefix: /}, route: {cluster: web, retry_policy: {retry_on: reset, nexthop: \
                {retry_after: honour}}}}]}]";
    let clusters = "static_resources: {clusters: [{name: web}]}";
    let loaded = read(&format!("{clusters}\n---\n{text}")).unwrap();
    let host = &loaded.specs.route_tables[0].virtual_hosts[0];
    assert!(host.retry.as_ref().unwrap().options.idempotency.is_some());
    let nexthop_engine::spec::RouteAction::Forward(forward) = &host.routes[0].action else { panic!() };
    assert!(forward.retry.as_ref().unwrap().options.retry_after.is_some());
}

fn named<'s>(clusters: &'s [ClusterSpec], name: &str) -> &'s ClusterOptions {
    &clusters.iter().find(|cluster| cluster.name == name).unwrap().options
}

#[test]
fn defaults_fill_what_clusters_leave_open() {
    let loaded = read(
        "clusters: {plain: {hosts: [10.0.0.1:80]}, own: {hosts: [10.0.0.1:80], nexthop: {cool_down: {max: 9s}}}, \
         off: {hosts: [10.0.0.1:80], nexthop: {cool_down: false, outcome_at: headers}}, \
         both: {composite: [plain, own]}}\n\
         nexthop: {defaults: {cool_down: {max: 20s}, outcome_at: end}}\n---\n\
         nexthop: {defaults: {cool_down: {max: 30s}, half_open: {}}}\nclusters: {}",
    )
    .unwrap();
    let clusters = &loaded.specs.clusters;
    let plain = named(clusters, "plain");
    assert_eq!(plain.cool_down.as_ref().unwrap().max, MS(30_000), "the later document wins");
    assert_eq!((plain.outcome_at, plain.half_open.is_some()), (OutcomeAt::End, true));
    let own = named(clusters, "own");
    assert_eq!((own.cool_down.as_ref().unwrap().max, own.outcome_at), (MS(9000), OutcomeAt::End));
    let off = named(clusters, "off");
    assert_eq!((&off.cool_down, off.outcome_at, off.half_open.is_some()), (&None, OutcomeAt::Headers, true));
    assert_eq!(named(clusters, "both"), &ClusterOptions::default(), "a composite has no hosts");
}

#[test]
fn complaints_name_place_and_remedy() {
    let block = |block: &str| {
        complaint(&format!("clusters:\n  web:\n    hosts: [10.0.0.1:80]\n    nexthop: {{{block}}}"))
    };
    for (text, says) in [
        ("half_opn: {}", "did you mean `half_open`?"),
        ("half_open: {probe: 1}", "did you mean `probes`?"),
        ("half_open: {probes: 0}", "1"),
        ("half_open: 5", "true, false, or a mapping of its settings"),
        ("half_open: {interval: 10s, max_interval: 5s}", "at least the interval (10000 ms)"),
        ("half_open: {interval: 0s}", "at least 1ms"),
        ("cool_down: {on: [200]}", "400"),
        ("cool_down: {on: []}", "not empty"),
        ("cool_down: {default: 10s, max: 5s}", "at most the maximum (5000 ms)"),
        ("cool_down: {from_headers: ['']}", "not empty"),
        ("outcome_at: trailers", "unknown value `trailers`"),
        ("prefer_below_limit: {dry_run: maybe}", "expected"),
    ] {
        let complaint = block(text);
        assert!(complaint.contains(says), "{text}: {complaint}");
        assert!(complaint.contains(":4:") && complaint.contains("clusters.web.nexthop"), "{complaint}");
    }
    let retry = |block: &str| {
        complaint(&format!(
            "clusters:\n  web:\n    hosts: [10.0.0.1:80]\n    retry:\n      on: 5xx\n      nexthop: {{{block}}}"
        ))
    };
    for (text, says) in [
        ("deadline_frist: true", "did you mean `deadline_first`?"),
        ("retry_after: honor", "did you mean `honour`?"),
        ("retry_after: true", "`envoy`, `honour`, or a mapping"),
        ("idempotency: guarded", "did you mean `guard`?"),
        ("layers: {}", "`max_product` is required"),
        ("layers: {max_product: 0}", "1"),
        ("classes: {}", "a list"),
        ("classes: [{class: auth}]", "`when` is required"),
        ("classes: [{when: {status: 401}}]", "`class` is required"),
        ("classes: [{when: {}, class: auth}]", "to know its answers by"),
        ("classes: [{when: {status: 302}, class: auth}]", "a status from 400 to 599"),
        ("classes: [{when: {status: 9xx}, class: auth}]", "a status from 400 to 599"),
        ("classes: [{when: {status: 401}, class: aut}]", "did you mean `auth`?"),
        ("classes: [{when: {status: 401}, class: auth, next: hosts}]", "did you mean `host`?"),
        ("classes: [{when: {status: 401}, class: auth, next: stop, same_host: true}]", "nothing follows"),
        ("classes: [{when: {status: 401}, class: auth, cool_down: 0s}]", "at least 1ms"),
    ] {
        let complaint = retry(text);
        assert!(complaint.contains(says), "{text}: {complaint}");
        assert!(complaint.contains(":6:") && complaint.contains("clusters.web.retry.nexthop"), "{complaint}");
    }
    let composite = complaint("clusters: {a: {hosts: []}, both: {composite: [a], nexthop: {cool_down: {}}}}");
    assert!(composite.contains("chooses among clusters"), "{composite}");
}

/// Defaults of what only nexthop has are nexthop's, wherever it stands.
#[test]
fn whose_defaults_they_are() {
    let text = "\
clusters:
  web:
    hosts: [10.0.0.1:80]
    policy: {peak_ewma: {}}
    nexthop:
      half_open: {}
      admission: {success_criteria: {http_criteria: {http_success_status: [{start: 100, end: 500}]}, grpc_criteria: {grpc_success_status: [0]}}}
      filters: [{match: {header: v, metadata: v}}]
";
    let source = Source { name: "test.yaml", text: text.as_bytes(), dialect: Dialect::Auto };
    let loaded = load_in_detail(&[source]).unwrap();
    let told = |path: &str| {
        let mut entries = loaded.report.entries.iter().filter(|entry| entry.what == What::Default);
        let entry = entries.find(|entry| entry.path == path).unwrap_or_else(|| panic!("{path}"));
        entry.text.clone()
    };
    for path in [
        "policy.peak_ewma.decay",
        "nexthop.half_open.interval",
        "nexthop.admission.dry_run",
        "nexthop.filters[0].when_absent",
    ] {
        assert!(told(&format!("clusters.web.{path}")).contains("nexthop's"), "{path}");
    }
}
