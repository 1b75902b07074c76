use super::*;

fn one(text: &str) -> Node<'_> {
    let mut nodes = parse(text.as_bytes()).unwrap();
    assert_eq!(nodes.len(), 1);
    nodes.remove(0)
}

fn fault(text: &[u8]) -> String {
    let fault = parse(text).unwrap_err();
    format!("{}:{}: {}", fault.place.line, fault.place.column, fault.message)
}

fn value<'n>(node: &'n Node<'n>, key: &str) -> &'n Node<'n> {
    let entry = node.entries().unwrap().iter().rev().find(|entry| entry.key == key);
    entry.unwrap().value.resolve()
}

#[test]
fn places_count_lines_and_characters_from_one() {
    let node = one("a: 1\nöö: {b: [x, \"y\"]}\n");
    let entries = node.entries().unwrap();
    assert_eq!((entries[1].place, entries[1].value.place), (Place::new(2, 1), Place::new(2, 5)));
    let list = value(&entries[1].value, "b");
    assert_eq!(list.items().unwrap()[1].place, Place::new(2, 13));
    let json = one("{\n\t\"ö\": {\"b\": [1,\n 2]}}");
    assert_eq!(json.entries().unwrap()[0].place, Place::new(2, 2));
    assert_eq!(value(value(&json, "ö"), "b").items().unwrap()[1].place, Place::new(3, 2));
}

#[test]
fn styles_and_tags() {
    let node = one(
        "a: 5\nb: \"5\"\nc: '5'\nd: |\n  5\ne: !!str 5\nf: ! 5\ng: !!int \"5\"\nh: ~\ni:\nj: !!str null\nk: Null\n",
    );
    let style = |key| match &value(&node, key).kind {
        Kind::Scalar(_, style) => Some(*style),
        Kind::Null => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(style("a"), Some(Style::Plain));
    for key in ["b", "c", "d", "f"] {
        assert_eq!(style(key), Some(Style::Quoted), "{key}");
    }
    for key in ["e", "g", "j"] {
        assert_eq!(style(key), Some(Style::Plain), "{key}");
    }
    for key in ["h", "i", "k"] {
        assert_eq!(style(key), None, "{key}");
    }
}

#[test]
fn ignored_keys_leave_their_anchors() {
    let node = one("!ignore defs: &d {x: 1}\nuse: *d\n");
    assert_eq!(node.entries().unwrap().len(), 1);
    assert_eq!(value(value(&node, "use"), "x").text(), Some("1"));
    let node = one("{!ignore a: 1, b: 2}");
    assert_eq!(node.entries().unwrap().len(), 1);
}

#[test]
fn merge_keys_are_plain_keys_and_duplicates_stay() {
    let node = one("<<: {a: 1}\nb: 1\nb: 2\n");
    assert_eq!(node.entries().unwrap()[0].key, "<<");
    assert_eq!(value(&node, "b").text(), Some("2"));
}

#[test]
fn json_escapes_and_numbers() {
    let node = one(r#"{"a": "\ud83d\ude00\u0041\/\"\\\b\f\n\r\t", "n": -1.5e3, "t": true, "z": null}"#);
    assert_eq!(value(&node, "a").text(), Some("😀A/\"\\\u{8}\u{c}\n\r\t"));
    assert_eq!(value(&node, "n").kind, Kind::Scalar("-1.5e3".into(), Style::Json));
    assert_eq!(value(&node, "t").kind, Kind::Scalar("true".into(), Style::Json));
    assert!(value(&node, "z").is_null());
}

#[test]
fn what_only_looks_like_json_is_yaml() {
    assert_eq!(value(&one("{a: 010}"), "a").kind, Kind::Scalar("010".into(), Style::Plain));
    assert_eq!(one("[1, 2,]").items().unwrap().len(), 2);
    assert_eq!(one("{\"a\": 1} # comment").entries().unwrap().len(), 1);
    assert_eq!(parse(b"{\"a\": 1}\n---\n{\"b\": 2}").unwrap().len(), 2);
}

#[test]
fn faults_have_places() {
    assert_eq!(fault(b"a: b\nc: \xff"), "2:4: expected UTF-8 text, found bytes that are not UTF-8");
    assert_eq!(fault("a: ö\0".as_bytes()), "1:5: expected UTF-8 text, found a NUL byte");
    assert!(fault(b"\xff\xfea\0").contains("looks like UTF-16"));
    assert_eq!(fault(b"a: &a [*a]"), "1:8: an alias stands inside the value it names");
    assert!(fault(b"a: [1, 2\nb: 3").starts_with("2:"));
    assert!(fault(b"? [a]\n: b").contains("a key must be text"));
}

#[test]
fn nesting_and_aliases_are_bounded() {
    let deep = "values are nested more than 128 levels deep";
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000)]
    {
        assert!(fault(text.as_bytes()).ends_with(deep));
    }
    let chain: String = (1..1000).map(|i| format!("- &a{i} [*a{}]\n", i - 1)).collect();
    assert!(fault(format!("- &a0 [x]\n{chain}").as_bytes()).ends_with(deep));
    let mut bomb = "- &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for i in 1..12 {
        let aliases = format!("*a{}", i - 1);
        bomb.push_str(&format!("- &a{i} [{}]\n", [aliases.as_str(); 10].join(",")));
    }
    assert!(fault(bomb.as_bytes()).ends_with("aliases stand for more than 1000000 values"));
    let honest: String = (0..10_000).map(|_| "- *a\n").collect();
    assert_eq!(
        parse(format!("- &a {{x: 1, y: 2}}\n{honest}").as_bytes()).unwrap()[0].items().unwrap().len(),
        10_001
    );
}

#[test]
fn empty_streams_have_no_documents() {
    for text in ["", " \n", "# only words\n", "---\n---\n...\n", "~", "null", "\u{feff}"] {
        assert_eq!(parse(text.as_bytes()), Ok(vec![]), "{text:?}");
    }
}
