//! What RE2 takes, refuses and matches, as Envoy 1.40 runs it.

use super::*;
use proptest::prelude::*;

fn matches(pattern: &str, text: &str) -> bool {
    whole(pattern).unwrap_or_else(|e| panic!("{e}")).is_match(text.as_bytes())
}

#[test]
fn whole_text_only() {
    assert!(matches("a|ab", "ab"));
    assert!(!matches("a", "ab"));
    assert!(!matches("b", "ab"));
    assert!(matches("", ""));
    assert!(!matches("a$", "a\n"));
    assert!(!matches(".*", "a\nb"));
    assert!(matches("(?s).*", "a\nb"));
}

#[test]
fn perl_classes_are_ascii() {
    assert!(matches(r"\d+", "0123") && !matches(r"\d+", "\u{663}"));
    assert!(matches(r"\w+", "aZ_9") && !matches(r"\w+", "é"));
    assert!(matches(r"\s", "\t") && !matches(r"\s", "\u{b}") && !matches(r"\s+", "\u{a0}"));
    assert!(matches(r"[\w.]+", "a.b") && matches(r"[\D]+", "é") && !matches(r"[^\d]", "3"));
}

#[test]
fn bytes_are_characters() {
    assert!(matches("..", "é") && matches(r"\W\W", "é") && matches("é", "é") && matches(r"\xC3\x{A9}", "é"));
    assert!(matches("[éü]+", "éü") && matches("(?i)é", "é") && !matches("(?i)é", "É"));
    assert!(matches(r"\pL+", "abc") && !matches(r"\pL+", "é") && matches(r"[\p{Lu}\d]+", "A1"));
    assert!(matches(r"\PL+", "12") && matches(r"\p{^L}", "1") && !matches(r"\p{Greek}+", "α"));
    assert!(whole(".").unwrap().is_match(b"\xff"));
}

#[test]
fn brackets_are_plain_inside_classes() {
    assert!(matches("[[]", "[") && matches("[]a]+", "]a") && matches("[^]]", "x"));
    assert!(matches("[a&&b]+", "a&b") && matches("[a~~b]+", "~"));
    assert!(matches("[[:alpha:]_]+", "ab_") && !matches("[[:alpha:]]", "1"));
    assert!(matches("[--/]+", "-./"));
}

#[test]
fn braces_octal_and_quotes() {
    assert!(matches("a{", "a{") && matches("a{,2}", "a{,2}") && matches("{x}", "{x}"));
    assert!(matches("a{2}", "aa") && matches("a{2,}", "aaa") && !matches("a{2,3}", "aaaa"));
    assert!(matches(r"\101\x41\x{41}", "AAA") && matches(r"\0", "\0"));
    assert!(matches(r"\Qa.b(\E+", "a.b((") && !matches(r"\Qa.b\E", "axb"));
    assert!(matches(r"\<\>\/\_", "<>/_") && matches(r"a\bb|c", "c"));
    assert!(matches(r"(?i)AB", "aB") && matches(r"(?P<n>a)(?:b)", "ab"));
}

/// Envoy 1.40 loads these.
const TAKEN: &[&str] = &[
    r"a+?",
    r"(?:a*)*",
    r"(a*)*",
    r"[[]",
    r"a{,2}",
    r"\101",
    r"\Qa.b\E",
    r"(x+x+)+y",
    r"\C",
    r"(?i)(?:a)",
    r"(?P<n>a)",
    r"(?<n>a)",
    r"(?<n>a)(?<n>b)",
    r"\pL",
    r"[[:word:]]",
    r"^$",
    r"$^",
    r"a$b",
    r"\b{2}",
    r"^*",
    r"(^)*",
    r"(?:)*",
    r"|",
    r"a||b",
    r"()",
    r"(|a)*",
    r"\z*",
    r"(?U)a+",
    r"(?m)^a$",
    r"(?-i)a",
    r"(?i-s:a)",
    r"[\d-z]",
    r"\A",
    r"\pN{2}",
    r"\p{^Greek}",
    r"\x{ff}",
    r"\377",
    r"a\Q\E*",
    r"a*\Q\E*",
    r"\pL*",
    r"a{,2}*",
    r"a{,2}{2}",
    r"{",
    r"^{2}",
    r"(?:^a){3}",
    r"a{2}?",
    r"é",
    r"é{2}",
    r"[é]",
    r"[^é]",
    r"\08",
    r"a{01}",
    r"a{1,02}",
    r"a{1,}",
    r"(?P<a>x)(?P<a>y)",
    r"(?P<1>a)",
    r"[[:^alpha:]]",
    r"[a-]",
    r"[-a]",
    r"[a-b-c]",
    r"[--a]",
    r"[&&]",
    r"[~~]",
    r"\_",
    r"\-",
    r"\ ",
    r"(a|b*)*",
    r"(?:a{3}){3}",
    r"(?s-i)",
    r"a{2}|b{3}",
];
/// These it refuses for the size of their program alone (`re2.max_program_size.error_level`, 100).
const LARGE: &[&str] = &[
    r"(a{10}){100}",
    r"(a{0,3}b{500}){2}",
    r"(a{1}){1000}",
    r"(a{0}){1000}",
    r"(a?){1000}",
    r"(a*){1000}",
    r"(a{1,1}){1000}",
    r"a{1000,}",
    r"(?s).{1000}",
    r"([a-z]{500}|[0-9]{500}){2}",
    r"\d{1000}[^a]{1000}",
    r"(?:a{1000}b){1}",
    r".{1000}.{1000}.{1000}",
    r"((a{30}){2}|b{4}){3}",
];
/// These it refuses.
const REFUSED: &[&str] = &[
    r"(a{1000}){1000}",
    r"((a{100}){100}){100}",
    r"x{1001}",
    r"(a{10}){101}",
    r"(a{2,}){501}",
    r"(a{0,3}b{501}){2}",
    r"a**",
    r"a*+",
    r"a*??",
    r"a{2}{3}",
    r"a{2}*",
    r"a|*",
    r"[[:foo:]]",
    r"(?:(?:[a-z]{900}){900}|b)*",
    r"((a{0}){1000}){1000}",
    r"a{0,1}{1000}",
    r"(?:a{1,}){1000}{2}",
    r"a{1,1001}",
    r"x{2}{500}",
    r"x{2}{501}",
    r"(?i",
    r"\x{10FFFF}",
    r"\x{110000}",
    r"\u0041",
    r"a{1,0}",
    r"a{3,2}",
    r"[a-\d]",
    r"[z-a]",
    r"[]",
    r"[^]",
    r"[a",
    r"\Z",
    r"\G",
    r"[\Q]\E]",
    r"(?#c)a",
    r"(?=a)",
    r"(?>a)",
    r"\1",
    r"(a)\1",
    r"\g1",
    r"\k<n>",
    r"(((((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2}){2})",
    r"\x{3b1}",
    r"\x{100}",
    r"[\x{3b1}]",
    r"\777",
    r"\400",
    r"\Q\E*",
    r"(?i)*",
    r"[a]**",
    r"{2}",
    r"*",
    r"(*)",
    r"(?:*)",
    r"a|{2}",
    r"a{2}??",
    r"a{2}?{2}",
    r"a?{2}",
    r"\x4",
    r"\x",
    r"\x{}",
    r"\p",
    r"\18",
    r"a{1001}",
    r"a{1001,}",
    r"(?P<a",
    r"(?P>a)",
    r"(?Pa)",
    r"(?P=a)",
    r"[[:alpha:]",
    r"\é",
    r"\e",
    r"\h",
    r"\R",
    r"\X",
    r"\K",
    r"\N",
    r"((a{30}){12}|b{4}){3}",
];

#[test]
fn as_envoy_has_it() {
    for pattern in TAKEN.iter().chain(LARGE) {
        check(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    }
    for pattern in REFUSED {
        let error = check(pattern).expect_err(pattern);
        assert!(matches!(&error, SpecError::Regex { pattern: p, .. } if p == pattern));
    }
}

#[test]
fn repetitions_one_inside_the_other() {
    for (pattern, reason) in [
        ("(a{100}){100}", "invalid repetition size"),
        ("a{2}{2}", "bad repetition operator"),
        ("a**", "bad repetition operator"),
        ("|*", "no argument for repetition operator"),
    ] {
        let SpecError::Regex { reason: found, .. } = check(pattern).unwrap_err() else { panic!("{pattern}") };
        assert_eq!(found, reason, "{pattern}");
    }
    assert!(matches("((a{10}){10}|b){10}", &"b".repeat(10)));
}

proptest! {
    #[test]
    fn never_panics(pattern in "[-a-z0-9\\[\\](){}?*+|^$\\\\.:&~<>_éPQE]{0,24}") {
        let _ = whole(&pattern);
        let _ = anywhere(&pattern);
    }
}
