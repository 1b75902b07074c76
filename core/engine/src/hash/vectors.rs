//! Every case of the expectation files about hashes of requests (`tests/vectors/lb`).

use super::policy::{GeneratedCookie, HashInput, HashPolicies};
use super::{murmur, xxh64};
use crate::balance::testing::{each_case, word};
use crate::headers::{HeaderView, pack};
use crate::spec::{HashPolicySpec, HashSource, RegexRewrite};
use serde_json::Value;
use std::time::Duration;

#[test]
fn hash_functions() {
    each_case("hash_functions", 29, &[], |name, given, expect| {
        let input = given["input"].as_str().unwrap().as_bytes();
        let seed = word(&given["seed"]);
        let hash = match given["function"].as_str().unwrap() {
            "XXH64" => xxh64(input, seed),
            _ => {
                assert_eq!(seed, murmur::SEED);
                murmur::murmur2(input, seed)
            }
        };
        assert_eq!(hash, word(&expect["value"]), "{name}");
    });
}

/// One policy of a case; `source_ip: false` is none.
fn policy(given: &Value) -> Option<HashPolicySpec> {
    let text = |key: &str| given[key].as_str().map(str::to_owned);
    let source = if let Some(name) = text("header") {
        let rewrite = text("regex")
            .map(|pattern| RegexRewrite { pattern, substitution: text("substitution").unwrap_or_default() });
        HashSource::Header { name, rewrite }
    } else if let Some(name) = text("cookie") {
        HashSource::Cookie {
            name,
            ttl: given["ttl_s"].as_u64().map(Duration::from_secs),
            path: text("path").unwrap_or_default(),
            attributes: Vec::new(),
        }
    } else if let Some(name) = text("query_parameter") {
        HashSource::QueryParameter { name }
    } else if given["source_ip"] == false {
        return None;
    } else {
        assert_eq!(given["source_ip"], true, "an unknown policy: {given}");
        HashSource::SourceIp
    };
    Some(HashPolicySpec { source, terminal: given["terminal"] == true })
}

/// A request of a case: hash and generated cookie.
fn evaluate(given: &Value, headers: &[&Value]) -> (Option<u64>, Option<GeneratedCookie>) {
    let specs: Vec<_> = given["policies"].as_array().unwrap().iter().filter_map(policy).collect();
    let policies = HashPolicies::compile(&specs).unwrap();
    // Only the headers that the policies ask for cross over, as for a real request.
    let mut names: Vec<Box<str>> = Vec::new();
    policies.wanted_headers(&mut |name| names.push(name.into()));
    let mut block = Vec::new();
    for header in headers {
        if let Some(index) = names.iter().position(|name| **name == *header[0].as_str().unwrap()) {
            pack(&mut block, index as u16, header[1].as_str().unwrap().as_bytes());
        }
    }
    let text = |key: &str| given[key].as_str().unwrap_or_default();
    let input = HashInput {
        headers: HeaderView::new(&names, &block).unwrap(),
        method: "GET",
        scheme: "http",
        authority: "example.com",
        path: given["path"].as_str().unwrap_or("/"),
        source: given["downstream_remote_ip"].as_str().unwrap_or_else(|| text("downstream_remote")),
        local: text("downstream_local"),
    };
    let mut cookie = None;
    let hash = policies.evaluate(&input, &mut cookie);
    (hash, cookie)
}

#[test]
fn hash_policy() {
    // There is no filter state without a proxy.
    let elsewhere = ["filter state object supplies the hash itself"];
    each_case("hash_policy", 23, &elsewhere, |name, given, expect| {
        let headers: Vec<&Value> = given["headers"].as_array().into_iter().flatten().collect();
        let (hash, cookie) = evaluate(given, &headers);
        if let Some(form) = expect["set_cookie_form"].as_str() {
            let (before, after) = form.split_once("<16 hex>").unwrap();
            let set_cookie = cookie.unwrap().set_cookie;
            let value = set_cookie.strip_prefix(before).unwrap().strip_suffix(after).unwrap();
            assert!(value.len() == 16 && value.bytes().all(|b| b.is_ascii_hexdigit()), "{name}: {value}");
            assert_eq!(hash, Some(xxh64(value.as_bytes(), 0)), "{name}");
            return;
        }
        assert_eq!(hash, (!expect["hash"].is_null()).then(|| word(&expect["hash"])), "{name}");
        assert_eq!(
            cookie.map(|cookie| cookie.set_cookie).as_deref(),
            expect["set_cookie"].as_str(),
            "{name}"
        );
        if expect["same_for_other_order"] == true {
            let reversed: Vec<&Value> = headers.iter().copied().rev().collect();
            assert_eq!(evaluate(given, &reversed).0, hash, "{name}");
        }
    });
}
