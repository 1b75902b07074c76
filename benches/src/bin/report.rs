//! The table of all faces, from their JSON lines on stdin: what each case costs, and in how many empty calls.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::io::BufRead;

/// One measured case.
struct Row {
    face: String,
    case: String,
    hosts: u64,
    min: f64,
    med: f64,
}

/// What is at most allowed at 100 hosts, in empty calls (minimum over minimum).
const GATES: [(&str, &str, f64); 6] = [
    ("rust", "choose+complete", 4.0),
    ("python", "index", 6.0),
    ("python", "object", 9.0),
    ("node", "choose+complete", 4.0),
    ("java", "choose+complete", 16.0),
    ("go", "choose+complete", 5.5),
];

fn main() {
    let rows: Vec<Row> =
        std::io::stdin().lock().lines().map_while(Result::ok).filter_map(|line| read(&line)).collect();
    println!(
        "{:<8} {:<28} {:>6} {:>10} {:>10} {:>9} {:>6}",
        "face", "case", "hosts", "min ns", "median ns", "x empty", "gate"
    );
    let rust = |hosts: u64| {
        rows.iter().find(|r| r.face == "rust" && r.case == "choose+complete" && r.hosts == hosts)
    };
    for row in &rows {
        let unit = rows.iter().find(|r| {
            r.face == row.face
                && (r.case == "empty" || (r.face == "rust" && r.case == "limit" && r.hosts == row.hosts))
        });
        let ratio = unit.map_or(f64::NAN, |unit| row.min / unit.min);
        let gate =
            GATES.iter().find(|(face, case, _)| *face == row.face && *case == row.case && row.hosts == 100);
        let verdict = match gate {
            Some((_, _, most)) if ratio <= most * 1.15 => format!("<= {most}"),
            Some((_, _, most)) => format!("> {most}!"),
            None => String::new(),
        };
        println!(
            "{:<8} {:<28} {:>6} {:>10.2} {:>10.2} {:>9.2} {:>6}",
            row.face, row.case, row.hosts, row.min, row.med, ratio, verdict
        );
        if row.face == "c"
            && row.case == "choose+complete"
            && let (Some(rust), Some(unit)) = (rust(row.hosts), unit)
        {
            println!(
                "{:<8} {:<28} {:>6} {:>10.2} {:>10} {:>9.2} {:>6}",
                "c",
                "  over Rust's, in empty calls",
                row.hosts,
                row.min - rust.min,
                "",
                (row.min - rust.min) / unit.min,
                "<= 5"
            );
        }
    }
    println!(
        "\nx empty: of the same face, in this run (rust: of the minimal engine M at the same number of hosts)"
    );
}

/// A flat JSON object of text and numbers.
fn read(line: &str) -> Option<Row> {
    let field = |name: &str| {
        let at = line.find(&format!("\"{name}\":"))? + name.len() + 3;
        let rest = line[at..].trim_start();
        let end = rest.find([',', '}'])?;
        Some(rest[..end].trim().trim_matches('"').to_owned())
    };
    Some(Row {
        face: field("face")?,
        case: field("case")?,
        hosts: field("hosts").and_then(|text| text.parse().ok()).unwrap_or(0),
        min: field("min_ns")?.parse().ok()?,
        med: field("med_ns")?.parse().ok()?,
    })
}
