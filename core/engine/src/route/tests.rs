//! Matching against recorded facts, and the cases that no proxy lets through.

use super::*;
use crate::headers::pack;
use crate::random::Draws;
use crate::spec::{
    HeaderMatch, MatchSpec, PathMatch, QueryMatch, RegexRewrite, StringMatch, WeightedCluster,
};
use proptest::prelude::*;

mod vectors;

fn draws(words: &[u64]) -> Source {
    Source::Draws(Draws::new(words.to_vec()))
}

fn view<'a>(authority: &'a str, path: &'a str) -> RequestView<'a> {
    RequestView { method: "GET", scheme: "http", authority, path, headers: HeaderView::EMPTY }
}

fn route(path: PathMatch) -> RouteSpec {
    RouteSpec { matcher: MatchSpec { path, ..MatchSpec::default() }, ..RouteSpec::default() }
}

fn prefix(text: &str) -> RouteSpec {
    route(PathMatch::Prefix(text.into()))
}

fn host(name: &str, domains: &[&str], routes: Vec<RouteSpec>) -> VirtualHostSpec {
    VirtualHostSpec {
        name: name.into(),
        domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        routes,
        ..VirtualHostSpec::default()
    }
}

fn table(virtual_hosts: Vec<VirtualHostSpec>) -> RouteTableSpec {
    RouteTableSpec { name: "t".into(), virtual_hosts, ..RouteTableSpec::default() }
}

fn compile(virtual_hosts: Vec<VirtualHostSpec>) -> RouteTables {
    RouteTables::compile(&[table(virtual_hosts)]).unwrap()
}

/// One route under `*`.
fn matches(route: RouteSpec, request: &RequestView<'_>) -> bool {
    compile(vec![host("h", &["*"], vec![route])]).find(request, &mut draws(&[])).is_some()
}

fn forward(rewrite: impl FnOnce(&mut ForwardSpec)) -> RouteAction {
    let mut forward = ForwardSpec::default();
    rewrite(&mut forward);
    RouteAction::Forward(Box::new(forward))
}

#[test]
fn nothing_configured() {
    let tables = RouteTables::compile(&[]).unwrap();
    assert_eq!(tables.find(&view("a", "/"), &mut draws(&[])), None);
    assert!(tables.is_empty() && tables.by_name("").is_none());
    assert_eq!(compile(vec![host("h", &[], vec![prefix("")])]).find(&view("", ""), &mut draws(&[])), None);
}

#[test]
fn authorities() {
    let names = ["a.com", "*.a.com", "[::1]:80", "a.*", "*"];
    let hosts = names.iter().map(|domain| host(domain, &[domain], vec![prefix("/")])).collect();
    let tables = compile(hosts);
    let cases = [
        ("a.com", "a.com"),
        ("A.Com", "a.com"),
        ("b.A.com", "*.a.com"),
        ("a.com.", "a.*"),
        ("a.com:80", "a.*"),
        ("a.", "*"),
        (".a.com", "*"),
        ("[::1]:80", "[::1]:80"),
        ("[::1]", "*"),
        ("", "*"),
        (":", "*"),
        ("ä.a.com", "*.a.com"),
        ("*", "*"),
    ];
    for (authority, expected) in cases {
        let found = tables.find(&view(authority, "/"), &mut draws(&[])).unwrap();
        assert_eq!(tables.get(found).1.name, expected, "{authority:?}");
    }
}

#[test]
fn ports() {
    let cases = [
        ("a", "a"),
        ("a:1", "a"),
        ("a:", "a"),
        (":1", ""),
        ("", ""),
        ("[::1]", "[::1]"),
        ("[::1]:80", "[::1]"),
        ("::1", ":"),
        ("]:[", "]"),
        ("a:b:c", "a:b"),
    ];
    for (authority, expected) in cases {
        assert_eq!(without_port(authority), expected);
    }
}

#[test]
fn the_first_table_with_the_authority_decides_alone() {
    let first = table(vec![host("a", &["a"], vec![prefix("/only")])]);
    let second = table(vec![host("a", &["a"], vec![prefix("/")]), host("b", &["b"], vec![prefix("/")])]);
    let tables = RouteTables::compile(&[first, second]).unwrap();
    assert_eq!(tables.find(&view("a", "/only"), &mut draws(&[])), Some(0));
    assert_eq!(tables.find(&view("a", "/"), &mut draws(&[])), None);
    assert_eq!(tables.find(&view("b", "/"), &mut draws(&[])), Some(2));
    assert_eq!(tables.find(&view("c", "/"), &mut draws(&[])), None);
    assert_eq!(tables.len(), 3);
}

#[test]
fn odd_paths() {
    let request = |path| view("a", path);
    // An empty path is the root; anything else stays as it is.
    for (path, root, empty, exact) in [
        ("", true, true, true),
        ("/", true, true, true),
        ("/?x", true, true, true),
        ("?x=1", false, true, false),
        ("#f", false, true, false),
        ("*", false, true, false),
        ("noslash", false, true, false),
        ("//", true, true, false),
    ] {
        assert_eq!(matches(prefix("/"), &request(path)), root, "{path:?}");
        assert_eq!(matches(prefix(""), &request(path)), empty, "{path:?}");
        assert_eq!(matches(route(PathMatch::Exact("/".into())), &request(path)), exact, "{path:?}");
    }
    let options = RequestView { method: "OPTIONS", ..request("*") };
    assert!(matches(prefix("*"), &options) && !matches(prefix("/"), &options));
    assert!(matches(route(PathMatch::Exact("/a".into())), &request("/a#f?x")));
    let separated = || route(PathMatch::SeparatedPrefix("/é".into()));
    assert!(matches(separated(), &request("/é/")) && !matches(separated(), &request("/éé")));
    let fold = RouteSpec {
        matcher: MatchSpec {
            path: PathMatch::Prefix("/Ab".into()),
            case_insensitive: true,
            ..MatchSpec::default()
        },
        ..RouteSpec::default()
    };
    assert!(matches(fold.clone(), &request("/aBc")) && !matches(fold, &request("/é")));
}

#[test]
fn pseudo_headers_have_defaults() {
    let on = |name: &str, value: &str| {
        let value = StringMatch::Exact(value.into(), false);
        let header = HeaderMatch { name: name.into(), value, invert: false, treat_missing_as_empty: false };
        RouteSpec {
            matcher: MatchSpec {
                path: PathMatch::Prefix(String::new()),
                headers: vec![header],
                ..MatchSpec::default()
            },
            ..RouteSpec::default()
        }
    };
    let bare = RequestView { method: "", scheme: "", authority: "", path: "", headers: HeaderView::EMPTY };
    for (name, value) in
        [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", ""), ("host", "")]
    {
        assert!(matches(on(name, value), &bare), "{name}");
    }
    assert!(matches(on(":path", "/a?b"), &view("h", "/a?b")) && matches(on("host", "h"), &view("h", "/")));
    assert!(!matches(on(":status", "200"), &bare));
}

#[test]
fn one_word_serves_all_fractions_and_only_when_reached() {
    let share = |path: &str, share| RouteSpec {
        matcher: MatchSpec {
            path: PathMatch::Prefix(path.into()),
            fraction: Some((share, 100)),
            ..MatchSpec::default()
        },
        ..RouteSpec::default()
    };
    let tables =
        compile(vec![host("h", &["*"], vec![share("/a", 0), share("/a", 30), share("/a", 60), prefix("/")])]);
    for (word, expected) in [(0, 1), (29, 1), (30, 2), (159, 2), (60, 3), (99, 3), (u64::MAX, 1)] {
        let (mut kept, mut random) = (None, draws(&[word]));
        assert_eq!(tables.find_drawn(&view("h", "/a"), &mut kept, &mut random), Some(expected), "{word}");
        assert_eq!(kept, Some(word));
        assert!(matches!(random, Source::Draws(draws) if draws.taken() == 1));
    }
    let mut random = draws(&[1]);
    assert_eq!(tables.find(&view("h", "/b"), &mut random), Some(3));
    assert!(matches!(random, Source::Draws(draws) if draws.taken() == 0));
    // A word drawn before is used again.
    assert_eq!(tables.find_drawn(&view("h", "/a"), &mut Some(45), &mut draws(&[0])), Some(2));
    assert!(!matches(share("/", 0), &view("h", "/")));
}

#[test]
fn names() {
    let named = |name: &str| RouteSpec { name: name.into(), ..RouteSpec::default() };
    let tables = compile(vec![
        host("v", &["a"], vec![named("r"), named(""), named("s")]),
        host("w", &["b"], vec![named("r"), named("v/s")]),
    ]);
    assert_eq!(tables.by_name("r"), Some(0));
    assert_eq!(tables.by_name("v/r"), Some(0));
    assert_eq!(tables.by_name("w/r"), Some(3));
    assert_eq!(tables.by_name("s"), Some(2));
    // The plain name wins over the qualified one of another route.
    assert_eq!(tables.by_name("v/s"), Some(4));
    assert_eq!(tables.by_name("w/v/s"), Some(4));
    assert_eq!(tables.by_name(""), None);
    assert_eq!(tables.by_name("v/"), None);
    assert_eq!(tables.get(3), (&named("r"), tables.get(4).1, "t"));
}

#[test]
fn wanted_headers_are_ordinary_and_unique() {
    let header = |name: &str| HeaderMatch {
        name: name.into(),
        value: StringMatch::Present(true),
        invert: false,
        treat_missing_as_empty: false,
    };
    let to = |cluster| forward(|f| f.cluster = cluster);
    let mut routes = vec![prefix("/"), prefix("/"), prefix("/"), prefix("/")];
    routes[0].matcher.headers = vec![header("x-b"), header(":path"), header("host"), header("x-b")];
    routes[1].matcher.grpc = true;
    routes[1].action = to(ClusterSource::Header("x-a".into()));
    routes[2].action = to(ClusterSource::Header(":authority".into()));
    routes[3].action = to(ClusterSource::Weighted(vec![WeightedCluster {
        name: "c".into(),
        weight: 1,
        ..WeightedCluster::default()
    }]));
    let tables = compile(vec![host("h", &["*"], routes)]);
    let mut seen = Vec::new();
    tables.wanted_headers(&mut |name| seen.push(name.to_owned()));
    assert_eq!(seen, ["content-type", "x-a", "x-b"]);
}

#[test]
fn rewrites_only_where_something_changes() {
    let mut routes = vec![prefix("/a"), prefix("/b"), prefix("/c"), prefix("/")];
    routes[0].action = forward(|f| (f.prefix_rewrite, f.host_rewrite) = ("/a".into(), "h".into()));
    let all = RegexRewrite { pattern: "^.*$".into(), substitution: r"\0".into() };
    routes[1].action = forward(|f| f.regex_rewrite = Some(all));
    routes[2].action = RouteAction::Direct { status: 200, body: String::new() };
    let tables = compile(vec![host("h", &["*"], routes)]);
    assert_eq!(tables.rewrite(0, &view("h", "/ab?c")), (None, None));
    assert_eq!(tables.rewrite(0, &view("g", "/ab")), (None, Some("h".into())));
    for index in 1..4 {
        assert_eq!(tables.rewrite(index, &view("g", "/b?q")), (None, None), "{index}");
    }
    // A path that the route would not match is left alone.
    assert_eq!(tables.rewrite(0, &view("h", "")), (None, None));
    let empty = RegexRewrite { pattern: "x*".into(), substitution: "-".into() };
    let action = forward(|f| f.regex_rewrite = Some(empty));
    let tables = compile(vec![host("h", &["*"], vec![RouteSpec { action, ..prefix("/") }])]);
    assert_eq!(tables.rewrite(0, &view("h", "/axxb?x")).0, Some("-/-a-b-?x".into()));
}

#[test]
fn faults_name_the_pattern() {
    let with = |rewrite: RegexRewrite| {
        let action = forward(|f| f.regex_rewrite = Some(rewrite));
        RouteTables::compile(&[table(vec![host("h", &["*"], vec![RouteSpec { action, ..prefix("/") }])])])
    };
    let rewrite = |pattern: &str, substitution: &str| RegexRewrite {
        pattern: pattern.into(),
        substitution: substitution.into(),
    };
    let error = with(rewrite("(", "")).expect_err("a bad pattern");
    assert!(matches!(&error, SpecError::Regex { pattern: p, .. } if p == "("), "{error}");
    // Envoy takes a faulty substitution, and does with it what RE2 does.
    for substitution in [r"$1\1\\", r"\7", r"\x", "\\"] {
        assert!(with(rewrite("(a)", substitution)).is_ok(), "{substitution}");
    }
    assert!(
        RouteTables::compile(&[table(vec![host("h", &["*"], vec![route(PathMatch::Regex("[".into()))])])])
            .is_err()
    );
}

#[test]
fn many_virtual_hosts_and_routes() {
    let hosts =
        (0..10_000).map(|i| host("h", &[&format!("h{i}.com"), &format!("*.h{i}.com")], vec![prefix("/")]));
    let tables = compile(hosts.collect());
    assert_eq!(tables.find(&view("h9999.com", "/"), &mut draws(&[])), Some(9_999));
    assert_eq!(tables.find(&view("x.h1234.com", "/"), &mut draws(&[])), Some(1_234));
    let routes = (0..10_000).map(|i| route(PathMatch::Exact(format!("/{i}")))).collect();
    let tables = compile(vec![host("h", &["*"], routes)]);
    assert_eq!(tables.find(&view("", "/9999"), &mut draws(&[])), Some(9_999));
    assert_eq!(tables.find(&view("", "/10000"), &mut draws(&[])), None);
}

proptest! {
    #[test]
    fn never_panics(
        authority in "[a.*:\\[\\]Aé]{0,8}",
        domain in "[a.*:\\[\\]é]{0,4}",
        path in "[/aé?&=#*%]{0,10}",
        text in "[/aé]{0,4}",
        kind in 0..3,
        fraction: Option<(u32, u32)>,
        substitution in "[a\\\\01]{0,5}",
        value in proptest::collection::vec(any::<u8>(), 0..12),
    ) {
        let path_match = match kind {
            0 => PathMatch::Prefix(text),
            1 => PathMatch::Exact(text),
            _ => PathMatch::SeparatedPrefix(text),
        };
        let mut spec = route(path_match);
        spec.matcher.case_insensitive = kind == 1;
        spec.matcher.fraction = fraction;
        spec.matcher.query = vec![QueryMatch { name: "a".into(), value: StringMatch::Present(kind == 2) }];
        spec.action = forward(|f| match kind {
            0 => f.prefix_rewrite = "/x".into(),
            _ => f.regex_rewrite = Some(RegexRewrite { pattern: "(a)".into(), substitution }),
        });
        let mut spec = table(vec![host("h", &[&domain, "a*", "*"], vec![spec, prefix("")])]);
        spec.ignore_port_in_host_matching = kind == 0;
        let names: Vec<Box<str>> = vec!["content-type".into()];
        let mut block = Vec::new();
        pack(&mut block, 0, &value);
        let headers = HeaderView::new(&names, &block).unwrap();
        let request = RequestView { headers, ..view(&authority, &path) };
        if let Ok(tables) = RouteTables::compile(&[spec]) {
            tables.find(&request, &mut draws(&[7]));
            for index in 0..tables.len() {
                tables.rewrite(index, &request);
            }
        }
    }
}
