//! Colours, for people at a terminal.

use std::io::IsTerminal;

/// Whether standard output is a terminal that wants colours.
pub(super) fn on() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Findings with their severity in colour.
pub(super) fn findings(text: &str, coloured: bool) -> String {
    const WORDS: [(&str, &str); 3] =
        [("error ", "\u{1b}[31;1m"), ("warning ", "\u{1b}[33;1m"), ("note ", "\u{1b}[36;1m")];
    if !coloured {
        return text.to_owned();
    }
    let line = |line: &str| {
        let at =
            WORDS.iter().filter_map(|(word, code)| Some((line.find(&format!(": {word}"))? + 2, word, code)));
        match at.min() {
            Some((at, word, code)) => {
                let word = word.trim_end();
                format!("{}{code}{word}\u{1b}[0m{}", &line[..at], &line[at + word.len()..])
            }
            None => line.to_owned(),
        }
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

/// The first word of each line in bold, hosts that are left out dimmed.
pub(super) fn explanation(text: &str, coloured: bool) -> String {
    if !coloured {
        return text.to_owned();
    }
    let line = |line: &str| {
        let (label, rest) = line.split_at(line.len().min(11));
        let dim = label.starts_with("host") && !rest.contains("may be chosen");
        let rest = if dim { format!("\u{1b}[2m{rest}\u{1b}[0m") } else { rest.to_owned() };
        format!("\u{1b}[1m{label}\u{1b}[0m{rest}\n")
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_where_wanted() {
        let text = "a.yaml:1: warning NX-001: it is an error to think so\n  what to do\n";
        assert_eq!(findings(text, false), text);
        let painted = findings(text, true);
        assert!(
            painted.starts_with("a.yaml:1: \u{1b}[33;1mwarning\u{1b}[0m NX-001: it is an error"),
            "{painted:?}"
        );
        assert_eq!(
            explanation("host       a: left\n", true),
            "\u{1b}[1mhost       \u{1b}[0m\u{1b}[2ma: left\u{1b}[0m\n"
        );
    }
}
