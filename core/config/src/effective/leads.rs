//! Where a route leads.

use super::Rows;
use nexthop_engine::spec::{ClusterSource, ForwardSpec, RedirectSpec, WeightedCluster, WordSource};
use serde_json::{Value, json};

fn shares(list: &[WeightedCluster]) -> Value {
    list.iter().map(|entry| json!({"cluster": entry.name, "weight": entry.weight})).collect()
}

impl Rows<'_> {
    pub(super) fn leads(&mut self, forward: &ForwardSpec) {
        let to = match &forward.cluster {
            ClusterSource::Name(name) => json!(name),
            ClusterSource::Header(name) => json!(format!("by header {name}")),
            ClusterSource::Weighted(list) => shares(list),
            ClusterSource::Groups(groups) => {
                let group = |name: &str, list| json!({"group": name, "clusters": shares(list)});
                groups.list.iter().map(|of| group(&of.name, &of.clusters)).collect()
            }
        };
        let ends = ["cluster", "weighted_clusters", "cluster_header", "priority_groups"];
        self.put("cluster", to, &[&ends[..], &["cluster_specifier_plugin"]].concat());
        if forward.cluster.shares().is_empty() {
            return;
        }
        let word = match &forward.word {
            WordSource::Drawn => json!("drawn"),
            WordSource::Header(name) => json!(format!("by header {name}")),
            WordSource::HashPolicy => json!("by hash policy"),
        };
        self.put("cluster.chosen", word, &["header_name", "use_hash_policy"]);
        if let ClusterSource::Groups(groups) = &forward.cluster {
            let namespace = Some(&groups.override_namespace).filter(|name| !name.is_empty());
            let field = "override_metadata_namespace";
            self.put(&format!("cluster.{field}"), json!(namespace), &[field]);
        }
    }

    pub(super) fn redirect(&mut self, to: &RedirectSpec) {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let regex = to.regex_rewrite.as_ref().map(|regex| &regex.pattern);
        let rows: [(&str, Value, &[&str]); 8] = [
            ("response_code", json!(to.status), &["response_code"]),
            ("scheme", json!(text(&to.scheme)), &["https_redirect", "scheme_redirect"]),
            ("host", json!(text(&to.host)), &["host_redirect"]),
            ("port", json!(Some(to.port).filter(|port| *port > 0)), &["port_redirect"]),
            ("path", json!(text(&to.path)), &["path_redirect"]),
            ("prefix_rewrite", json!(text(&to.prefix_rewrite)), &["prefix_rewrite"]),
            ("regex_rewrite", json!(regex), &["regex_rewrite"]),
            ("strip_query", json!(to.strip_query), &["strip_query"]),
        ];
        for (name, value, ends) in rows {
            self.put(&format!("redirect.{name}"), value, ends);
        }
    }
}
