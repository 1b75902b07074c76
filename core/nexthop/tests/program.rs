//! The `nexthop` program as a shell sees it.
#![cfg(feature = "cli")]

use std::path::PathBuf;
use std::process::{Command, Output};

const DOCUMENT: &str = "clusters: {first: {hosts: [10.0.0.1:80]}, second: {hosts: [10.0.0.2:80]}, \
    chain: {composite: [first, second]}, pair: {hosts: [10.0.0.3:80, 10.0.0.4:80], \
    retry: {on: [5xx], times: 1, avoid_tried: true}}}";

/// A document in the folder of this test binary, for one test.
fn document(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn nexthop(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nexthop")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn choose_prints_the_host_of_an_attempt() {
    let path = document("choose.yaml", DOCUMENT);
    let path = path.to_str().unwrap();
    let out = nexthop(&["choose", "--config", path, "--cluster", "chain", "--attempt", "2"]);
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), "10.0.0.2:80\n"));
    let out = nexthop(&["choose", "--config", path, "--cluster", "chain", "--attempt", "3"]);
    let line = "no attempt: no_healthy_upstream (past_last_sub_cluster); the local reply is 503 UH, no_healthy_upstream\n";
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(1), line));
    for tried in ["10.0.0.3:80", "10.0.0.4:80"] {
        let words =
            ["choose", "--config", path, "--cluster", "pair", "--attempt", "2", "--tried", tried, "--json"];
        let out = nexthop(&words);
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(
            (&json["kind"], &json["number"], &json["cluster"]),
            (&"go".into(), &2.into(), &"pair".into())
        );
        assert_ne!(json["address"], tried);
    }
}

#[test]
fn mistakes_are_told() {
    let path = document("mistakes.yaml", DOCUMENT);
    let path = path.to_str().unwrap();
    let out = nexthop(&["choose", "--config", path, "--cluster", "chian"]);
    let hint = "no cluster or route \"chian\"; did you mean \"chain\"?\n";
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(1), hint), "refused, as requests are");
    for command in ["choose", "explain"] {
        let out = nexthop(&[command, "--config", path, "--cluster", "chian", "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!((out.status.code(), &json["refusal"]), (Some(1), &"no_cluster".into()), "{json}");
        assert_eq!(text(&out.stderr), hint);
    }
    for (words, sentence) in [
        (&["--cluster", "pair", "--attempt", "-1"][..], "--attempt is a whole number from 1, not \"-1\""),
        (&["--cluster", "pair", "--attempt", "0"], "attempts are counted from 1"),
        (&["--cluster", "pair", "--metadata", "[1]"], "--metadata is a JSON object, not [1]"),
        (&["--cluster", "pair", "--metadata", "{"], "--metadata is a JSON object: "),
        (
            &["--cluster", "pair", "--tried", "10.0.0.1:80,nonsense"],
            "--tried takes addresses as 10.0.0.1:80, not \"nonsense\"",
        ),
        (&["--cluster", "pair", "--cluster", "chain"], "--cluster is given twice"),
        (&["--cluster", "pair", "--header", "x"], "--header is written 'name: value', not \"x\""),
    ] {
        for command in ["choose", "explain"] {
            let out = nexthop(&[&[command, "--config", path], words].concat());
            assert!(out.status.code() == Some(2) && text(&out.stderr).contains(sentence), "{out:?}");
            assert!(out.stdout.is_empty(), "{out:?}");
        }
    }
    let out = nexthop(&["explain", "--config", path, "--cluster", "pair", "--route", "x"]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("name one of them"), "{out:?}");
    let out = nexthop(&["lint", "--format", "json", "--format", "sarif", path]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("--format is given twice"), "{out:?}");
    let out = nexthop(&["choose", "--cluster", "chain"]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("--config and --cluster are needed"));
    assert_eq!(nexthop(&[]).status.code(), Some(2));
}

#[test]
fn check_reports_and_refuses() {
    let good = document("good.yaml", DOCUMENT);
    let out = nexthop(&["check", good.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(text(&out.stdout), "good: 4 hosts; 0 fields were read but do nothing\n");
    let bad = document("bad.yaml", "clusters: {web: {hots: [10.0.0.1:80]}}");
    let out = nexthop(&["check", bad.to_str().unwrap()]);
    assert!(out.status.code() == Some(1) && text(&out.stderr).contains("did you mean `hosts`?"), "{out:?}");
}

#[test]
fn translate_prints_what_check_reads() {
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a.b, trafficPolicy: \
        {connectionPool: {http: {http2MaxRequests: 7}}}}\n";
    let rule = document("rule.yaml", rule);
    let out = nexthop(&["translate", rule.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let envoy = text(&out.stdout);
    assert!(envoy.starts_with("static_resources:\n  clusters:\n  - name: outbound|8080||a.b\n"), "{envoy}");
    assert!(envoy.contains("max_requests: 7\n"), "{envoy}");
    let envoy = document("envoy.yaml", envoy);
    let out = nexthop(&["check", envoy.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let out = nexthop(&["translate", document("none.yaml", "name: web").to_str().unwrap()]);
    assert!(out.status.code() == Some(1) && text(&out.stderr).contains("nothing to translate"), "{out:?}");
}

#[test]
fn lint_tells_and_fails_as_asked() {
    let text = "clusters: {a: {hosts: [10.0.0.1:80]}, b: {hosts: [10.0.0.2:80]}, chain: {composite: [a, b]}}";
    let path = document("lint.yaml", text);
    let path = path.to_str().unwrap();
    let out = nexthop(&["lint", path]);
    assert_eq!(out.status.code(), Some(1), "a warning fails");
    let line = format!(
        "{path}:1:73: warning NX-016: clusters.chain: only the first 1 of the 2 clusters of chain are ever used\n"
    );
    assert!(self::text(&out.stdout).starts_with(&line), "{out:?}");
    assert!(self::text(&out.stdout).ends_with("errors: 0, warnings: 1, notes: 0\n"), "{out:?}");
    assert_eq!(nexthop(&["lint", "--fail-on", "error", path]).status.code(), Some(0));
    assert_eq!(nexthop(&["lint", "--fail-on", "never", path]).status.code(), Some(0));
    for format in ["json", "sarif"] {
        let out = nexthop(&["lint", "--format", format, path]);
        let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert!(value.to_string().contains("NX-016"), "{value}");
    }
    let clean = document("clean.yaml", "clusters: {a: {hosts: [10.0.0.1:80]}}");
    assert_eq!(nexthop(&["lint", clean.to_str().unwrap()]).status.code(), Some(0));
    let bad = document("lint-bad.yaml", "clusters: {a: {host: []}}");
    assert_eq!(nexthop(&["lint", bad.to_str().unwrap()]).status.code(), Some(2));
    assert_eq!(nexthop(&["lint", "--format", "xml", path]).status.code(), Some(2));
}

#[test]
fn help_is_worth_reading_and_plain() {
    let out = nexthop(&["--help"]);
    assert!(
        out.status.code() == Some(0) && text(&out.stdout).contains("effective  every number in force"),
        "{out:?}"
    );
    for command in ["choose", "explain", "effective", "check", "lint", "translate"] {
        let out = nexthop(&[command, "--help"]);
        let told = text(&out.stdout);
        assert!(
            told.starts_with(&format!("usage: nexthop {command}")) && told.contains("exit code"),
            "{told}"
        );
    }
    for command in ["choose", "lint"] {
        assert_eq!(nexthop(&["help", command]).stdout, nexthop(&[command, "--help"]).stdout);
    }
    assert_eq!(nexthop(&["help", "chose"]).status.code(), Some(2));
    let out = nexthop(&["chose"]);
    assert!(
        out.status.code() == Some(2) && text(&out.stderr).contains("there is no command \"chose\""),
        "{out:?}"
    );
}

#[test]
fn explain_and_effective() {
    let path = document("explain.yaml", DOCUMENT);
    let path = path.to_str().unwrap();
    let out = nexthop(&["explain", "--config", path, "--cluster", "pair", "--header", "a: b"]);
    let told = text(&out.stdout);
    assert!(out.status.code() == Some(0) && told.contains("host       10.0.0.3:80"), "{out:?}");
    assert!(!told.contains('\u{1b}'), "no colours into a pipe");
    let out = nexthop(&["explain", "--config", path, "--cluster", "chain", "--attempt", "3", "--json"]);
    let why: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((out.status.code(), &why["refusal"]), (Some(1), &"no_healthy_upstream".into()));
    let out = nexthop(&["effective", "pair", path]);
    let told = text(&out.stdout);
    assert!(out.status.code() == Some(0) && told.contains("retry.num_retries"), "{out:?}");
    assert!(told.contains("Envoy's default") && told.contains("clusters.pair.retry.times"), "{told}");
    assert_eq!(nexthop(&["effective", "pear", path]).status.code(), Some(1));
    let out = nexthop(&["check", "--all", path]);
    assert!(text(&out.stdout).contains("clusters.pair.retry.times: used: 1 (used)"), "{out:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_mistake() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nexthop"))
        .arg("--help")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.code() == Some(0) && out.stderr.is_empty(), "{out:?}");
}

#[test]
fn choose_takes_what_filters_and_subsets_look_at() {
    let path = document(
        "filters.yaml",
        "clusters: {web: {hosts: [{address: 10.0.0.1:80, metadata: {version: a}}, {address: 10.0.0.2:80, metadata: \
         {version: b}}], nexthop: {filters: [{match: {first: [{header: x-version}, {context: version}], metadata: \
         version}}]}}}",
    );
    let path = path.to_str().unwrap();
    for (version, address) in [("a", "10.0.0.1:80\n"), ("b", "10.0.0.2:80\n")] {
        let (header, metadata) = (format!("X-Version: {version}"), format!("{{\"version\": \"{version}\"}}"));
        for words in [["--header", &header], ["--metadata", &metadata]] {
            for _ in 0..4 {
                let out = nexthop(&[&["choose", "--config", path, "--cluster", "web"][..], &words].concat());
                assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), address), "{words:?}");
            }
        }
    }
}

#[test]
fn a_dash_is_standard_input() {
    use std::io::Write;
    for (words, code) in [
        (&["choose", "--cluster", "first", "--config", "-"][..], 0),
        (&["check", "-"], 0),
        (&["lint", "--fail-on", "never", "-"], 0),
        (&["translate", "-"], 1),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nexthop"))
            .args(words)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(DOCUMENT.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{words:?}: {out:?}");
    }
}
