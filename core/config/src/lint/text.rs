//! Findings as text for people, as JSON, and as SARIF for code scanning.

use super::finding::{Findings, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

impl Findings {
    /// Two lines per finding: `FILE:LINE:COLUMN: severity CODE: PATH: what will happen.` and what to do; then a count.
    pub fn to_human(&self) -> String {
        let mut text = String::new();
        for finding in self {
            let path = if finding.path.is_empty() { String::new() } else { format!("{}: ", finding.path) };
            let _ = writeln!(
                text,
                "{}:{}:{}: {} {}: {path}{}\n    {}",
                finding.file,
                finding.line,
                finding.column,
                finding.severity.as_str(),
                finding.code,
                finding.effect,
                finding.advice
            );
        }
        let count = |severity| self.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings, notes) =
            (count(Severity::Error), count(Severity::Warning), count(Severity::Note));
        let _ = writeln!(text, "errors: {errors}, warnings: {warnings}, notes: {notes}");
        text
    }

    /// `{"findings": [{"file", "line", "column", "path", "code", "severity", "effect", "advice"}]}`
    pub fn to_json(&self) -> Value {
        let findings: Vec<Value> = self
            .iter()
            .map(|finding| {
                json!({
                    "file": finding.file,
                    "line": finding.line,
                    "column": finding.column,
                    "path": finding.path,
                    "code": finding.code,
                    "severity": finding.severity.as_str(),
                    "effect": finding.effect,
                    "advice": finding.advice,
                })
            })
            .collect();
        json!({ "findings": findings })
    }

    /// A SARIF 2.1.0 log with one run.
    pub fn to_sarif(&self) -> Value {
        let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
        let mut results = Vec::new();
        for finding in self {
            rules.entry(finding.code).or_insert_with(|| json!({ "id": finding.code }));
            results.push(json!({
                "ruleId": finding.code,
                "level": finding.severity.as_str(),
                "message": { "text": format!("{}. {}.", finding.effect, capital(&finding.advice)) },
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": { "uri": finding.file.replace('\\', "/") },
                        "region": { "startLine": finding.line, "startColumn": finding.column },
                    },
                    "logicalLocations": [{ "fullyQualifiedName": finding.path }],
                }],
            }));
        }
        json!({
            "version": "2.1.0",
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "runs": [{
                "tool": { "driver": {
                    "name": "nexthop",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules.into_values().collect::<Vec<_>>(),
                }},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }],
        })
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
