//! Documents that want to hurt.

use crate::{complaint, read};
use nexthop_config::{Dialect, Source, load};
use std::fmt::Write as _;

#[test]
fn nothing_in_it() {
    for text in ["", "\n\n", "# words\n", "---\n", "---\n...\n---\n", "~", "null"] {
        assert_eq!(complaint(text), "test.yaml:1:1: the document is empty", "{text:?}");
    }
    assert!(complaint("hello").contains("expected a mapping or a list of clusters"));
    assert!(load(&[]).unwrap().specs.clusters.is_empty());
}

#[test]
fn bytes_that_are_no_text() {
    let error =
        |text: &[u8]| load(&[Source { name: "x", text, dialect: Dialect::Auto }]).unwrap_err().to_string();
    assert_eq!(error(b"a: 1\nb: \xc3\x28"), "x:2:4: expected UTF-8 text, found bytes that are not UTF-8");
    assert_eq!(error(b"name: a\0\n"), "x:1:8: expected UTF-8 text, found a NUL byte");
    assert!(error(b"\xff\xfen\0").contains("UTF-16"));
}

#[test]
fn deep_nesting() {
    for open in ["[", "{a: ", "{\"a\":", "- ", "? "] {
        let text = complaint(&open.repeat(100_000));
        assert!(text.contains("nested more than 128 levels deep"), "{open}: {text}");
    }
}

#[test]
fn multiplying_aliases() {
    let mut text = "x0: &x0 {a: b, c: d}\n".to_owned();
    for i in 1..40 {
        let _ = writeln!(text, "x{i}: &x{i} [*x{0}, *x{0}]", i - 1);
    }
    assert!(complaint(&text).contains("aliases stand for more than"));
}

#[test]
fn huge_scalars() {
    let digits = "9".repeat(1_000_000);
    for field in
        ["limits: {connections: ", "limits: {connections: 0x", "timeout: ", "panic: 1e", "retry: {on: "]
    {
        let close = if field.contains('{') { "}" } else { "" };
        assert!(
            complaint(&format!("clusters: {{w: {{hosts: [], {field}{digits}{close}}}}}")).len() < 400,
            "{field}"
        );
    }
    assert!(complaint(&format!("clusters: {{w: {{hosts: [], {digits}: 1}}}}")).len() < 400);
    assert!(complaint(&format!("name: a\ntype: {digits}")).len() < 400);
}

/// 50 MB in hosts with fat metadata, in both languages, and many small ones.
#[test]
fn large_documents() {
    let fat = "x".repeat(2_000);
    let mut json = r#"{"clusters":{"web":{"hosts":["#.to_owned();
    let mut yaml = "clusters:\n  web:\n    hosts:\n".to_owned();
    let count: usize = 25_000;
    for i in 0..count {
        let comma = if i == 0 { "" } else { "," };
        let address = format!("10.{}.{}.{}:80", i >> 16, i >> 8 & 255, i & 255);
        let _ = write!(json, r#"{comma}{{"address":"{address}","metadata":{{"fat":"{fat}"}}}}"#);
        let _ = writeln!(yaml, "    - {{address: {address}, metadata: {{fat: {fat}}}}}");
    }
    json.push_str("]}}}");
    for text in [json, yaml] {
        assert!(text.len() > 50_000_000);
        let loaded = read(&text).unwrap();
        assert_eq!(loaded.specs.clusters[0].endpoints.localities[0].endpoints.len(), count);
    }
    let mut many = "clusters:\n".to_owned();
    for i in 0..20_000 {
        let _ = writeln!(many, " w{i}: {{hosts: [1.2.3.4:80]}}");
    }
    assert_eq!(read(&many).unwrap().specs.clusters.len(), 20_000);
}

#[test]
fn repetition_stays_linear() {
    let again = "  hosts: [1.2.3.4:80]\n".repeat(20_000);
    assert!(read(&format!("clusters:\n w:\n{again}")).is_ok());
    let documents = "---\nvirtual_hosts: []\n".repeat(5_000);
    assert_eq!(read(&documents).unwrap().specs.route_tables.len(), 5_000);
    let anchors: String = (0..20_000)
        .fold("clusters:\n w:\n  hosts:\n".into(), |text, i| text + &format!("  - &a{i} 1.2.3.4:80\n"));
    assert!(read(&anchors).is_ok());
}

#[test]
fn line_ends_and_marks() {
    assert!(read("\u{feff}clusters:\r\n  w:\r\n    hosts: [1.2.3.4:80]\r\n").is_ok());
    assert!(read("{\t\"clusters\":\t{\"w\": {\"hosts\": [\"1.2.3.4:80\"]}}}").is_ok());
}
