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

/// What choosing and reporting may cost at 100 hosts, in empty calls (minimum over minimum), and the part of it that
/// is for crossing into the engine and back. The rest is four times the minimal engine M, as on the machine that the
/// limits were set on.
const GATES: [(&str, &str, f64, f64); 6] = [
    ("rust", "choose+complete", 4.0, 0.0),
    ("python", "index", 6.0, 2.92),
    ("python", "object", 9.0, 5.92),
    ("node", "choose+complete", 4.0, 1.85),
    ("java", "choose+complete", 16.0, 2.0),
    ("go", "choose+complete", 5.5, 2.98),
];

/// What is lost in the noise of a run.
const TOLERANCE: f64 = 1.15;

fn main() {
    let rows: Vec<Row> =
        std::io::stdin().lock().lines().map_while(Result::ok).filter_map(|line| read(&line)).collect();
    let names = rows.iter().map(|row| row.case.len()).max().unwrap_or(0).max(32);
    println!(
        "{:<8} {:<names$} {:>6} {:>10} {:>10} {:>9} {:>8} {:>8}",
        "face", "case", "hosts", "min ns", "median ns", "x empty", "gate", "here"
    );
    let rust = |hosts: u64| {
        rows.iter().find(|r| r.face == "rust" && r.case == "choose+complete" && r.hosts == hosts)
    };
    let limit = rows.iter().find(|r| r.face == "rust" && r.case == "limit" && r.hosts == 100);
    for row in &rows {
        let unit = rows.iter().find(|r| {
            r.face == row.face
                && (r.case == "empty" || (r.face == "rust" && r.case == "limit" && r.hosts == row.hosts))
        });
        let ratio = unit.map_or(f64::NAN, |unit| row.min / unit.min);
        let gate =
            GATES.iter().find(|(face, case, ..)| *face == row.face && *case == row.case && row.hosts == 100);
        let (mut fixed, mut here) = (String::new(), String::new());
        if let (Some((face, _, most, crossing)), Some(unit), Some(limit)) = (gate, unit, limit) {
            fixed = judged(ratio, *most);
            if *face != "rust" {
                here = judged(ratio, crossing + 4.0 * limit.min / unit.min);
            }
        }
        println!(
            "{:<8} {:<names$} {:>6} {:>10.2} {:>10.2} {:>9.2} {:>8} {:>8}",
            row.face, row.case, row.hosts, row.min, row.med, ratio, fixed, here
        );
        if row.case == "all detectors"
            && let Some(none) = rows.iter().find(|r| r.case == "no detector" && r.hosts == row.hosts)
        {
            let over = row.min / none.min;
            println!(
                "{:<8} all detectors cost {over:.2} times no detector, at most 1.30: {}",
                "",
                judged(over, 1.3)
            );
        }
        if row.case == "sweep" {
            let ms = row.min / 1e6;
            println!(
                "{:<8} a sweep over {} hosts takes {ms:.2} ms, at most 1: {}",
                "",
                row.hosts,
                judged(ms, 1.0)
            );
        }
        if row.face == "c"
            && row.case == "choose+complete"
            && let (Some(rust), Some(unit)) = (rust(row.hosts), unit)
        {
            let over = (row.min - rust.min) / unit.min;
            println!(
                "{:<8} {:<names$} {:>6} {:>10.2} {:>10} {:>9.2} {:>8}",
                "c",
                "  over Rust's, in empty calls",
                row.hosts,
                row.min - rust.min,
                "",
                over,
                judged(over, 5.0)
            );
        }
    }
    println!(
        "\nx empty: empty calls of the same face, in this run (rust: of the minimal engine M at the same number of hosts).\n\
         gate:    the limit in empty calls, with 15 % tolerance; `!` = missed.\n\
         here:    the same limit as crossing + 4 M with this machine's M: where locked instructions are slow next to\n\
         {:9}calls, M weighs more empty calls than on the machine that the limits were set on.",
        ""
    );
}

fn judged(ratio: f64, most: f64) -> String {
    if ratio <= most * TOLERANCE { format!("<= {most:.1}") } else { format!("> {most:.1} !") }
}

fn read(line: &str) -> Option<Row> {
    let row: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(Row {
        face: row["face"].as_str()?.to_owned(),
        case: row["case"].as_str()?.to_owned(),
        hosts: row["hosts"].as_u64().unwrap_or(0),
        min: row["min_ns"].as_f64()?,
        med: row["med_ns"].as_f64()?,
    })
}
