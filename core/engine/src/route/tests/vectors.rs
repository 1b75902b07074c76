//! The recorded facts of `tests/vectors/route`.

use super::*;
use serde_json::Value;

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Reads a `StringMatcher`.
fn string_match(value: &Value) -> StringMatch {
    let fold = value["ignore_case"].as_bool().unwrap_or(false);
    let of = |key: &str| value[key].as_str().map(str::to_owned);
    None.or_else(|| of("exact").map(|t| StringMatch::Exact(t, fold)))
        .or_else(|| of("prefix").map(|t| StringMatch::Prefix(t, fold)))
        .or_else(|| of("suffix").map(|t| StringMatch::Suffix(t, fold)))
        .or_else(|| of("contains").map(|t| StringMatch::Contains(t, fold)))
        .unwrap_or_else(|| StringMatch::Regex(text(&value["safe_regex"]["regex"])))
}

/// Reads what a header or query matcher says about the value.
fn condition(matcher: &Value) -> StringMatch {
    if matcher["string_match"].is_object() {
        string_match(&matcher["string_match"])
    } else if let Some(wanted) = matcher["present_match"].as_bool() {
        StringMatch::Present(wanted)
    } else if matcher["range_match"].is_object() {
        let bound = |key| matcher["range_match"][key].as_i64().unwrap();
        StringMatch::Range(bound("start"), bound("end"))
    } else {
        // Nothing said, or the deprecated empty `exact_match`: any value.
        StringMatch::Present(true)
    }
}

fn header(matcher: &Value) -> HeaderMatch {
    let flag = |key| matcher[key].as_bool().unwrap_or(false);
    HeaderMatch {
        name: text(&matcher["name"]),
        value: condition(matcher),
        invert: flag("invert_match"),
        treat_missing_as_empty: flag("treat_missing_header_as_empty"),
    }
}

fn matcher(value: &Value) -> MatchSpec {
    let of = |key: &str| value[key].as_str().map(str::to_owned);
    let path = None
        .or_else(|| of("prefix").map(PathMatch::Prefix))
        .or_else(|| of("path").map(PathMatch::Exact))
        .or_else(|| of("path_separated_prefix").map(PathMatch::SeparatedPrefix))
        .unwrap_or_else(|| PathMatch::Regex(text(&value["safe_regex"]["regex"])));
    MatchSpec {
        path,
        case_insensitive: value["case_sensitive"] == Value::Bool(false),
        ..MatchSpec::default()
    }
}

/// Tries one match on each list of values of one header.
fn on_values(spec: MatchSpec, name: &str, cases: &Value, at: RequestView<'_>) -> Vec<bool> {
    let tables = compile(vec![host("h", &["*"], vec![RouteSpec { matcher: spec, ..RouteSpec::default() }])]);
    let names: Vec<Box<str>> = vec![name.into()];
    let try_one = |values: &Value| {
        let mut block = Vec::new();
        for value in list(values) {
            pack(&mut block, 0, text(value).as_bytes());
        }
        let headers = HeaderView::new(&names, &block).unwrap();
        tables.find(&RequestView { headers, ..at }, &mut draws(&[])).is_some()
    };
    list(cases).iter().map(try_one).collect()
}

fn booleans(value: &Value) -> Vec<bool> {
    list(value).iter().map(|v| v.as_bool().unwrap()).collect()
}

fn hosts(given: &Value) -> Vec<Value> {
    let hosts = list(&given["virtual_hosts"]).iter().map(|v| {
        let domains: Vec<String> = list(&v["domains"]).iter().map(text).collect();
        let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
        host(&text(&v["name"]), &domains, vec![prefix("")])
    });
    let mut spec = table(hosts.collect());
    spec.ignore_port_in_host_matching = given["ignore_port_in_host_matching"].as_bool().unwrap();
    let tables = RouteTables::compile(&[spec]).unwrap();
    let find = |authority: &Value| {
        let index = tables.find(&view(&text(authority), "/"), &mut draws(&[])).unwrap();
        tables.get(index).1.name.clone().into()
    };
    list(&given["hosts"]).iter().map(find).collect()
}

fn paths(given: &Value) -> Vec<Value> {
    let routes = list(&given["routes"]).iter().map(|r| RouteSpec {
        name: text(&r["name"]),
        matcher: matcher(&r["match"]),
        ..RouteSpec::default()
    });
    let tables = compile(vec![host("h", &["*"], routes.collect())]);
    let find = |path: &Value| match tables.find(&view("h", &text(path)), &mut draws(&[])) {
        Some(index) => tables.get(index).0.name.clone().into(),
        None => Value::Null,
    };
    list(&given["paths"]).iter().map(find).collect()
}

fn rewrites(given: &Value) -> Vec<Value> {
    let routes = list(&given["routes"]).iter().map(|r| {
        let of = |key: &str| r["route"][key].as_str().unwrap_or("").to_owned();
        let regex = &r["route"]["regex_rewrite"];
        let action = forward(|f| {
            f.prefix_rewrite = of("prefix_rewrite");
            f.host_rewrite = of("host_rewrite_literal");
            f.regex_rewrite = regex.is_object().then(|| RegexRewrite {
                pattern: text(&regex["pattern"]["regex"]),
                substitution: text(&regex["substitution"]),
            });
        });
        RouteSpec { action, matcher: matcher(&r["match"]), ..RouteSpec::default() }
    });
    let tables = compile(vec![host("h", &["*"], routes.collect())]);
    let send = |path: &Value| {
        let (path, authority) = (text(path), text(&given["host"]));
        let request = view(&authority, &path);
        let index = tables.find(&request, &mut draws(&[])).unwrap();
        let (new_path, new_authority) = tables.rewrite(index, &request);
        let (path, host) =
            (new_path.as_deref().unwrap_or(&path), new_authority.as_deref().unwrap_or(&authority));
        serde_json::json!({ "path": path, "host": host })
    };
    list(&given["paths"]).iter().map(send).collect()
}

#[test]
fn recorded_facts() {
    for row in nexthop_vectors::cases("route/matching_live.json", 82) {
        let (id, given, expect) = (&row["id"], &row["given"], &row["expect"]);
        let any_path = MatchSpec { path: PathMatch::Prefix(String::new()), ..MatchSpec::default() };
        match given["kind"].as_str().unwrap() {
            "header" => {
                let (authority, path) = (text(&given["request"]["host"]), text(&given["request"]["path"]));
                let spec = MatchSpec { headers: vec![header(&given["matcher"])], ..any_path };
                let got = on_values(spec, "x", &given["values"], view(&authority, &path));
                assert_eq!(got, booleans(&expect["matches"]), "{id} {given}");
            }
            "grpc" => {
                let spec = MatchSpec { grpc: true, ..any_path };
                let got = on_values(spec, "content-type", &given["content_types"], view("h", "/"));
                assert_eq!(got, booleans(&expect["matches"]), "{id}");
            }
            "query" => {
                let (name, value) = (text(&given["matcher"]["name"]), condition(&given["matcher"]));
                let spec = MatchSpec { query: vec![QueryMatch { name, value }], ..any_path };
                let spec = RouteSpec { matcher: spec, ..RouteSpec::default() };
                for (query, expected) in list(&given["queries"]).iter().zip(booleans(&expect["matches"])) {
                    let path = format!("/q{}", text(query));
                    assert_eq!(matches(spec.clone(), &view("h", &path)), expected, "{id}: {path}");
                }
            }
            "regex" => {
                let regex = crate::matching::re2::whole(&text(&given["regex"])).unwrap();
                for (sample, expected) in list(&given["texts"]).iter().zip(booleans(&expect["matches"])) {
                    assert_eq!(regex.is_match(text(sample).as_bytes()), expected, "{id} on {sample}");
                }
            }
            "hosts" => assert_eq!(hosts(given), list(&expect["virtual_hosts"]), "{id}"),
            "paths" => assert_eq!(paths(given), list(&expect["routes"]), "{id}"),
            "rewrites" => assert_eq!(rewrites(given), list(&expect["forwarded"]), "{id}"),
            other => panic!("{other}"),
        }
    }
}
