//! `cargo run -p nexthop-header` writes `include/nexthop.h`; with `--check` it only compares.
#![expect(clippy::print_stdout, reason = "a command line tool")]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let check = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--check") => true,
        Some(other) => {
            println!("unknown argument {other}; use --check or nothing");
            return ExitCode::from(2);
        }
    };
    let ffi = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let header = ffi.join("../include/nexthop.h");
    let text = match generate(&ffi) {
        Ok(text) => text,
        Err(error) => {
            println!("cannot read the sources: {error}");
            return ExitCode::FAILURE;
        }
    };
    if check {
        let found = std::fs::read(&header).unwrap_or_default();
        if found != text {
            println!("include/nexthop.h differs from ffi/src; run ffi/generate-header.sh");
            return ExitCode::FAILURE;
        }
        println!("include/nexthop.h is up to date");
    } else if let Err(error) = std::fs::write(&header, text) {
        println!("include/nexthop.h: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn generate(ffi: &Path) -> Result<Vec<u8>, String> {
    let config = cbindgen::Config::from_file(ffi.join("cbindgen.toml"))?;
    let mut builder = cbindgen::Builder::new().with_config(config);
    // In the order of the header: words and numbers, structs, functions.
    for file in ["consts", "given", "types", "cold", "ask", "checks", "hot", "memory"] {
        builder = builder.with_src(ffi.join(format!("src/{file}.rs")));
    }
    let bindings = builder.generate().map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    let mut lines = compact(&text);
    lines.push(String::new());
    Ok(lines.join("\n").into_bytes())
}

/// Longest line of the header, as in `cbindgen.toml`.
const WIDTH: usize = 110;
/// Only arguments of a function are indented so much.
const DEEP: &str = "            ";

/// Short documentation in one line, and that of macros and fields behind them, so that they read like tables.
fn compact(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = parenthesised(line);
        match &mut lines[..] {
            [.., open, only] if line.trim() == "*/" && open.trim() == "/**" => {
                let indent = " ".repeat(open.len() - open.trim_start().len());
                let words = only.trim_start().trim_start_matches("* ");
                let whole = format!("{indent}/** {words} */");
                lines.truncate(lines.len() - 2);
                lines.push(whole);
            }
            [.., before, note] if line.starts_with("#define NEXTHOP_") && note.starts_with("/** ") => {
                let after_macro = before.is_empty();
                let whole = format!("{line} {}", note.replacen("/**", "/**<", 1));
                lines.pop();
                if after_macro && lines.iter().rev().nth(1).is_some_and(|l| l.starts_with("#define NEXTHOP_"))
                {
                    lines.pop();
                }
                lines.push(whole);
            }
            [.., note] if line.starts_with("  ") && line.ends_with(';') && note.starts_with("  /** ") => {
                let whole = format!("{line} {}", note.trim_start().replacen("/**", "/**<", 1));
                lines.pop();
                lines.push(whole);
            }
            // Arguments one behind the other while they fit.
            [.., before]
                if before.ends_with(',')
                    && line.starts_with(DEEP)
                    && before.len() + 1 + line.trim_start().len() <= WIDTH =>
            {
                before.push(' ');
                before.push_str(line.trim_start());
            }
            _ => lines.push(line),
        }
    }
    lines
}

/// Negative numbers of macros in parentheses, as C wants them.
fn parenthesised(line: &str) -> String {
    match line.rsplit_once(' ') {
        Some((define, number)) if define.starts_with("#define ") && number.starts_with('-') => {
            format!("{define} ({number})")
        }
        _ => line.to_owned(),
    }
}
