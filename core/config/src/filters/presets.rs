//! Presets: the stages that known systems have (`spec/gray-and-nacos.md` section 8).

use super::Filters;
use crate::error::Result;
use crate::read::{At, Msg};
use nexthop_engine::spec::{
    FilterPick, HostKey, MatchRule, NoMatch, PolicySpec, RequestValue, StageRule, StageSpec, WhenAbsent,
};
use std::collections::BTreeMap;

/// Names, and the settings that each takes.
const PRESETS: &[(&str, &[&str])] = &[
    ("gray", &["hostname", "when_empty"]),
    ("gray-2025", &["hostname", "when_empty"]),
    ("gray-2024", &["hostname", "when_empty"]),
    ("env-tag", &["hostname", "when_empty"]),
    ("nacos", &["cluster", "ipv6", "ipv6_rewrite"]),
    ("spring-zone", &["zone"]),
    ("spring-hint", &["hint", "header"]),
    ("spring-sticky", &["cookie"]),
    ("spring-same-instance", &[]),
    ("spring-subset", &["size", "id"]),
    ("spring-weighted", &[]),
    ("spring-retry", &[]),
    ("spring-api-version", &["header", "fallback"]),
];

/// The settings that the preset of this name takes.
pub(super) fn settings(at: &At<'_>) -> Result<&'static [&'static str]> {
    let name = at.text()?;
    let known = PRESETS.iter().find(|(known, _)| *known == name);
    known
        .map(|(_, settings)| *settings)
        .ok_or_else(|| at.unknown_name("preset", &name, PRESETS.iter().map(|(known, _)| *known)))
}

/// Adds a preset's stages and its way to choose.
pub(super) fn preset(msg: &Msg<'_>, into: &mut Filters) -> Result<()> {
    let at = msg.need("preset")?;
    let name = at.text()?;
    let text = |key: &'static str, default: &str| msg.or(key, default.to_owned(), |at| at.filled());
    let flag = |key: &'static str| msg.or(key, false, |flag| flag.bool());
    let no_match = msg.or("when_empty", NoMatch::Input, super::stage::no_match)?;
    let hostname = msg.map("hostname", |name| name.filled())?;
    let draw = FilterPick::Policy(PolicySpec::WeightedRandom);
    match name.as_str() {
        "gray" | "gray-2025" | "gray-2024" => {
            let absent = if name == "gray-2024" { WhenAbsent::Skip } else { WhenAbsent::RequireAbsent };
            let version = matching(vec![RequestValue::Header("version".into())], "version");
            into.stages.push(StageSpec { no_match, ..stage("version", StageRule::Match(version)) });
            let tag = MatchRule {
                absent,
                hostname: Some(hostname),
                ..matching(vec![RequestValue::Header("tag".into())], "tag")
            };
            into.stages.push(StageSpec { no_match, ..stage("tag", StageRule::Match(tag)) });
            into.bring(&at, draw, &name)
        }
        "env-tag" => {
            let tag = MatchRule {
                absent: WhenAbsent::RequireAbsent,
                hostname: hostname.map(Some),
                ..matching(vec![RequestValue::Context("tag".into())], "tag")
            };
            into.stages.push(StageSpec {
                no_match,
                warn_absent: false,
                ..stage("tag", StageRule::Match(tag))
            });
            into.bring(&at, draw, &name)
        }
        "nacos" => {
            let cluster = msg.or("cluster", "DEFAULT".to_owned(), |at| at.text())?;
            let rule = match cluster.trim().is_empty() {
                true => StageRule::CrossCluster,
                false => StageRule::Match(matching(vec![RequestValue::Fixed(cluster)], "nacos.cluster")),
            };
            into.stages.push(quiet("cluster", rule));
            let (ipv6, rewrite) = (flag("ipv6")?, flag("ipv6_rewrite")?);
            if rewrite && !ipv6 {
                return Err(msg
                    .need("ipv6_rewrite")?
                    .fail("needs `ipv6: true`: the client has an IPv6 address"));
            }
            let family = StageRule::IpFamily { ipv6, rewrite };
            into.stages.push(StageSpec { no_match: NoMatch::Fail, ..quiet("ip_family", family) });
            into.bring(&at, draw, &name)
        }
        "spring-zone" => {
            let zone = msg.need("zone")?.filled()?;
            let rule = MatchRule { ignore_case: true, ..matching(vec![RequestValue::Fixed(zone)], "zone") };
            into.stages.push(quiet("zone", StageRule::Match(rule)));
            into.bring(&at, FilterPick::Rotation, &name)
        }
        "spring-hint" => {
            let header = text("header", "x-sc-lb-hint")?.to_ascii_lowercase();
            let values = vec![RequestValue::Header(header), RequestValue::Fixed(text("hint", "default")?)];
            into.stages.push(quiet("hint", StageRule::Match(matching(values, "hint"))));
            into.bring(&at, FilterPick::Rotation, &name)
        }
        "spring-sticky" => {
            let values = vec![RequestValue::Cookie(text("cookie", "sc-lb-instance-id")?)];
            let rule = MatchRule { key: HostKey::Id, ..matching(values, "") };
            into.stages.push(quiet("sticky", StageRule::Match(rule)));
            into.bring(&at, FilterPick::Rotation, &name)
        }
        "spring-same-instance" => {
            into.stages.push(quiet("same_instance", StageRule::SameInstance));
            into.bring(&at, FilterPick::Rotation, &name)
        }
        "spring-subset" => {
            let size = msg.or("size", 100, |n| n.u32_in(1, 1_000_000))?;
            let rule = StageRule::Part { size, id: msg.need("id")?.filled()? };
            into.stages.push(quiet("subset", rule));
            into.bring(&at, FilterPick::Rotation, &name)
        }
        "spring-weighted" => into.bring(&at, FilterPick::Interleave, &name),
        "spring-retry" => {
            into.stages.push(stage("avoid_previous", StageRule::AvoidPrevious));
            into.bring(&at, FilterPick::Rotation, &name)
        }
        // The last one; `settings` knows them all.
        _ => {
            let header = msg.need("header")?.filled()?.to_ascii_lowercase();
            let rule = matching(vec![RequestValue::Header(header)], "API_VERSION");
            let no_match = if flag("fallback")? { NoMatch::Input } else { NoMatch::Fail };
            into.stages.push(StageSpec { no_match, ..quiet("api_version", StageRule::Match(rule)) });
            into.bring(&at, FilterPick::Rotation, &name)
        }
    }
}

fn matching(values: Vec<RequestValue>, key: &str) -> MatchRule {
    MatchRule {
        values,
        key: HostKey::Metadata(key.to_owned()),
        absent: WhenAbsent::Skip,
        ignore_case: false,
        hostname: None,
        value_map: BTreeMap::new(),
    }
}

fn stage(name: &str, rule: StageRule) -> StageSpec {
    StageSpec {
        name: name.to_owned(),
        rule,
        no_match: NoMatch::Input,
        healthy_only: false,
        warn: true,
        warn_absent: true,
    }
}

/// A stage whose fallback is only counted.
fn quiet(name: &str, rule: StageRule) -> StageSpec {
    StageSpec { warn: false, warn_absent: false, ..stage(name, rule) }
}
