//! `coverage.toml`: how each case is replayed. The last entry that fits a case counts; a case without an entry
//! fails.

use crate::vectors::Case;

/// How a case is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// By every language's runner.
    Faces,
    /// By a test of a crate: package and full name.
    WhiteBox(String, String),
    /// Not at all, for this reason.
    NotApplicable(String),
    /// Waits for a mechanism.
    Pending(String),
}

/// One entry.
#[derive(Clone, Debug)]
pub struct Entry {
    files: String,
    cases: String,
    source: String,
    /// What it says.
    pub how: How,
}

/// Reads the entries: `[[cover]]` tables of `key = "value"` lines.
pub fn read(text: &str) -> Result<Vec<Entry>, String> {
    let mut tables: Vec<Vec<(String, String)>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line == "[[cover]]" {
            tables.push(Vec::new());
            continue;
        }
        let pair = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) =
            pair.filter(|(_, value)| value.len() > 1 && value.starts_with('"') && value.ends_with('"'))
        else {
            return Err(format!("line {}: key = \"value\" wanted, found {line}", at + 1));
        };
        let value = crate::json::Json::parse(value)?.text();
        tables.last_mut().ok_or("an entry begins with [[cover]]")?.push((key.to_owned(), value));
    }
    tables.iter().map(|table| entry(table)).collect()
}

fn entry(table: &[(String, String)]) -> Result<Entry, String> {
    let known = ["files", "cases", "source", "as", "reason", "package", "test"];
    if let Some((key, _)) = table.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        return Err(format!("unknown key {key}, allowed: {}", known.join(", ")));
    }
    let get = |key: &str| table.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
    let files = get("files").ok_or("an entry names its files")?;
    let need = |key: &str| get(key).ok_or_else(|| format!("{files}: {key} is missing"));
    let how = match get("as").as_deref() {
        Some("faces") => How::Faces,
        Some("white-box") => How::WhiteBox(need("package")?, need("test")?),
        Some("not-applicable") => How::NotApplicable(need("reason")?),
        Some("pending") => How::Pending(need("reason")?),
        other => {
            return Err(format!(
                "{files}: faces, white-box, not-applicable or pending wanted, found {other:?}"
            ));
        }
    };
    let any = || "*".to_owned();
    Ok(Entry {
        files,
        cases: get("cases").unwrap_or_else(any),
        source: get("source").unwrap_or_else(any),
        how,
    })
}

/// How this case is replayed.
pub fn find<'a>(entries: &'a [Entry], case: &Case) -> Option<&'a How> {
    let fits = |entry: &&Entry| {
        glob(&entry.files, &case.file) && glob(&entry.cases, &case.id) && glob(&entry.source, &case.source)
    };
    entries.iter().rev().find(fits).map(|entry| &entry.how)
}

/// Alternatives apart by `|`, each with `*` for any text.
pub fn glob(pattern: &str, text: &str) -> bool {
    fn one(pattern: &str, text: &str) -> bool {
        let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
        let Some(text) = text.strip_prefix(head) else { return false };
        rest.is_empty() || (0..=text.len()).any(|at| text.is_char_boundary(at) && one(rest, &text[at..]))
    }
    pattern == text || pattern.split('|').any(|pattern| one(pattern, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(glob("lb/*.json", "lb/ring_hash.json"));
        assert!(glob("a|b*", "bcd") && glob("*", "") && glob("*x*y", "axby"));
        assert!(!glob("lb/*.json", "lb2/x.json") && !glob("a", "ab"));
        assert!(glob("a | b", "a | b"));
    }

    #[test]
    fn the_last_fitting_entry_counts() {
        let text = "# words\n[[cover]]\nfiles = \"a/*\"\nas = \"faces\"\n\n[[cover]]\nfiles = \"a/x.json\"\n\
                    cases = \"one*\"\nas = \"pending\"\nreason = \"later\"\n";
        let entries = read(text).unwrap();
        let case = |file: &str, id: &str| Case {
            file: file.into(),
            id: id.into(),
            index: 0,
            source: String::new(),
            value: crate::json::Json::Null,
            path: std::path::PathBuf::new(),
        };
        assert_eq!(find(&entries, &case("a/x.json", "two")), Some(&How::Faces));
        assert_eq!(find(&entries, &case("a/x.json", "one 1")), Some(&How::Pending("later".into())));
        assert_eq!(find(&entries, &case("b/x.json", "one")), None);
        for broken in [
            "files = \"a\"",
            "[[cover]]\nas = \"faces\"",
            "[[cover]]\nfiles = \"a\"\nas = \"white-box\"",
            "[[cover]]\nfiles = a",
        ] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }
}
