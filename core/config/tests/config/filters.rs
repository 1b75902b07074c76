//! `filters`, `protect_threshold` and `lifecycle_events` of the `nexthop:` mapping.

use super::{complaint, read};
use nexthop_engine::spec::{
    ClusterSpec, FilterPick, FilterSpec, HostKey, NoMatch, PolicySpec, RequestValue, StageRule, WhenAbsent,
};
use std::sync::Arc;

fn short(block: &str) -> String {
    format!("clusters: {{web: {{hosts: [10.0.0.1:80], policy: random, nexthop: {{{block}}}}}}}")
}

fn spec(block: &str) -> ClusterSpec {
    read(&short(block)).unwrap_or_else(|error| panic!("{error}")).specs.clusters.remove(0)
}

fn filters(list: &str) -> Arc<FilterSpec> {
    match spec(&format!("filters: {list}")).policy {
        PolicySpec::Filtered(filters) => filters,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stage_field_by_field() {
    let all = filters(
        "[{name: v, match: {first: [{header: X-Version}, {cookie: v}, {context: v}, {fixed: old}], metadata: version}, \
           when_absent: require_absent, when_empty: all, compare: ignore_case, value_map: {canary: v2}, \
           placeholders: [hostname], hostname: box, healthy_only: true, warn: false}, {health: ignore}]",
    );
    assert!(all.ignore_health);
    assert!(matches!(all.pick, FilterPick::Policy(PolicySpec::Random { .. })), "the cluster's own policy");
    let [stage] = &all.stages[..] else { panic!("{all:?}") };
    assert_eq!((stage.name.as_str(), stage.no_match, stage.healthy_only), ("v", NoMatch::All, true));
    assert!(!stage.warn && !stage.warn_absent, "warn_absent follows warn");
    let StageRule::Match(rule) = &stage.rule else { panic!("{stage:?}") };
    assert_eq!(rule.values[0], RequestValue::Header("x-version".into()), "header names are in lower case");
    assert_eq!(rule.values.len(), 4);
    assert_eq!(rule.key, HostKey::Metadata("version".into()));
    assert_eq!((rule.absent, rule.ignore_case), (WhenAbsent::RequireAbsent, true));
    assert_eq!(rule.hostname, Some(Some("box".into())));
    assert_eq!(rule.value_map["canary"], "v2");
    let plain = filters("[{match: {header: a, host: zone}}, {avoid_previous: {}}, {same_instance: {}}]");
    let names: Vec<&str> = plain.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["zone", "avoid_previous", "same_instance"]);
    assert!(plain.stages.iter().all(|stage| stage.warn && stage.no_match == NoMatch::Input));
}

#[test]
fn presets() {
    let draw = FilterPick::Policy(PolicySpec::WeightedRandom);
    let tag_absent = |preset: &str| {
        let filters = filters(&format!("[{{preset: {preset}}}]"));
        assert_eq!(filters.pick, draw, "{preset}");
        match &filters.stages.last().unwrap().rule {
            StageRule::Match(rule) => (filters.stages.len(), rule.absent),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(tag_absent("gray"), (2, WhenAbsent::RequireAbsent));
    assert_eq!(tag_absent("gray-2025"), (2, WhenAbsent::RequireAbsent));
    assert_eq!(tag_absent("gray-2024"), (2, WhenAbsent::Skip));
    assert_eq!(tag_absent("env-tag"), (1, WhenAbsent::RequireAbsent));
    let nacos = filters("[{preset: nacos, cluster: hz, ipv6: true, ipv6_rewrite: true}]");
    assert_eq!(nacos.stages[1].rule, StageRule::IpFamily { ipv6: true, rewrite: true });
    assert_eq!(nacos.stages[1].no_match, NoMatch::Fail);
    assert_eq!(filters("[{preset: nacos, cluster: ' '}]").stages[0].rule, StageRule::CrossCluster);
    let spring = filters("[{preset: spring-zone, zone: b}, {preset: spring-retry}, {preset: spring-hint}]");
    assert_eq!((spring.stages.len(), &spring.pick), (3, &FilterPick::Rotation));
    let weighted =
        filters("[{preset: spring-weighted}, {preset: spring-sticky}, {preset: spring-same-instance}]");
    assert_eq!((weighted.stages.len(), &weighted.pick), (2, &FilterPick::Interleave));
    let api = filters("[{preset: spring-api-version, header: X-Api}]");
    assert_eq!(api.stages[0].no_match, NoMatch::Fail);
    let part = filters("[{preset: spring-subset, id: 'gw:1', size: 3}]");
    assert_eq!(part.stages[0].rule, StageRule::Part { size: 3, id: "gw:1".into() });
}

#[test]
fn beside_filters() {
    let cluster = spec("protect_threshold: 0.6, lifecycle_events: true");
    assert_eq!((cluster.protect_threshold, cluster.lifecycle_events), (Some(0.6), true));
    assert!(matches!(spec("filters: []").policy, PolicySpec::Random { .. }));
    let text = "{nexthop: {defaults: {filters: [{preset: gray}], protect_threshold: 0.5}}, clusters: \
        {a: {hosts: [10.0.0.1:80]}, b: {hosts: [10.0.0.2:80], nexthop: {filters: [{avoid_previous: {}}], protect_threshold: 0}}, \
         c: {composite: [a, b]}, d: {hosts: [10.0.0.3:80], nexthop: {filters: []}}}}";
    let clusters = read(text).unwrap().specs.clusters;
    let stages = |at: usize| match &clusters[at].policy {
        PolicySpec::Filtered(filters) => filters.stages.len(),
        _ => 0,
    };
    assert_eq!([stages(0), stages(1), stages(2), stages(3)], [2, 1, 0, 0], "an empty list wins, too");
    assert_eq!(
        clusters.iter().map(|c| c.protect_threshold).collect::<Vec<_>>(),
        [Some(0.5), Some(0.0), None, Some(0.5)]
    );
}

#[test]
fn what_is_refused() {
    for (list, sentence) in [
        ("[{}]", "a filter needs one of the keys that say what it does"),
        ("[{match: {header: v}}]", "needs `metadata: KEY`, or `host: id | address | zone`"),
        ("[{match: {metadata: v}}]", "needs where the request has the value"),
        ("[{match: {header: v, cookie: v, metadata: v}}]", "`header` and `cookie` exclude each other"),
        ("[{match: {first: [], metadata: v}}]", "needs at least one value"),
        ("[{match: {header: v, metadata: v}, preset: gray}]", "exclude each other"),
        ("[{match: {header: v, metadata: v}, hostname: x}]", "needs `placeholders: [hostname]`"),
        ("[{match: {header: v, metadata: v}, when_absent: never}]", "when_absent"),
        ("[{avoid_previous: {}, compare: exact}]", "means nothing beside `avoid_previous`"),
        ("[{preset: gray, zone: b}]", "means nothing beside `preset`"),
        ("[{preset: grey}]", "did you mean `gray`?"),
        ("[{preset: spring-zone}]", "the field `zone` is required"),
        ("[{preset: gray}, {preset: spring-retry}]", "choose hosts in different ways"),
        ("[{preset: gray}, {preset: gray}]", "two stages are named \"version\""),
        ("[{avoid_previous: {}, name: 'a b'}]", "up to 64 letters, digits"),
        ("[{subset: {size: 0, id: x}}]", "expected a whole number from 1 to 1000000"),
        ("[{ip_family: {rewrite: true}}]", "needs `ipv6: true`"),
    ] {
        let found = complaint(&short(&format!("filters: {list}")));
        assert!(found.contains(sentence), "{list}: {found}");
    }
    let many = format!(
        "[{}]",
        (0..33).map(|n| format!("{{avoid_previous: {{}}, name: a{n}}}")).collect::<Vec<_>>().join(", ")
    );
    assert!(complaint(&short(&format!("filters: {many}"))).contains("more than 32 stages"));
    for block in ["protect_threshold: 1.1", "protect_threshold: NaN", "protect_threshold: -0.1"] {
        assert!(complaint(&short(block)).contains("protect_threshold"), "{block}");
    }
    let composite =
        "clusters: {a: {hosts: [10.0.0.1:80]}, c: {composite: [a], nexthop: {filters: [{preset: gray}]}}}";
    assert!(complaint(composite).contains("a composite cluster chooses among clusters; set this on them"));
}
