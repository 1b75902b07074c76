//! One table that a person understands at a glance.

use crate::languages::Language;
use crate::outcome::Run;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Success in percent, backend requests per client request.
type Figures = (f64, f64);

/// Experiment, what it is, and what was published about Envoy 1.39.3.
const EXPERIMENTS: [(&str, &str, Option<Figures>); 4] = [
    ("a", "no retry", Some((75.5, 1.00))),
    ("b", "retry elsewhere", Some((100.0, 1.28))),
    ("c", "retry anywhere", Some((94.0, 1.25))),
    ("chain", "provider 1, 2, 3", None),
];

const HEAD: [&str; 7] =
    ["experiment", "language", "success", "backend/client", "retries", "answered at attempt", "us/attempt"];

/// What a language told, or why it did not.
pub(crate) type Told<'a> = (&'a Language, Result<Vec<Run>, String>);

/// The whole text.
pub(crate) fn render(runs: &[Told<'_>]) -> String {
    let mut text = String::from(
        "One backend of two fails every second request (a, b, c); three providers of which the request says how many \
         fail (chain).\n\n",
    );
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for (name, about, _) in EXPERIMENTS {
        let mut title = format!("{name}  {about}");
        for (language, run) in runs {
            let Some(run) = run.as_ref().ok().and_then(|all| all.iter().find(|run| run.experiment == name))
            else {
                continue;
            };
            rows.push(vec![
                std::mem::take(&mut title),
                language.name.to_owned(),
                format!("{:.1} %", run.success_rate()),
                format!("{:.2}", run.amplification()),
                run.retries.to_string(),
                answered(&run.answered_by),
                format!("{:.2}", run.us_per_attempt),
            ]);
        }
    }
    columns(&mut text, &rows);
    for (language, run) in runs {
        if let Err(why) = run {
            let _ = writeln!(text, "{}: {why}", language.name);
        }
    }
    published(&mut text, runs);
    judgement(&mut text, runs);
    text
}

/// `1 :18101 200x + :18102 100x, 2 :18101 100x`: the ports tell the hosts apart.
fn answered(by: &BTreeMap<u32, BTreeMap<String, u64>>) -> String {
    let parts: Vec<String> = by
        .iter()
        .map(|(attempt, hosts)| {
            let hosts: Vec<String> = hosts
                .iter()
                .map(|(host, count)| format!(":{} {count}x", host.rsplit(':').next().unwrap_or(host)))
                .collect();
            format!("{attempt} {}", hosts.join(" + "))
        })
        .collect();
    parts.join(", ")
}

fn columns(text: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    for (i, row) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Numbers to the right, words to the left.
            let _ = match column {
                0 | 1 | 5 => write!(line, "{cell:<width$}  "),
                _ => write!(line, "{cell:>width$}  "),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
        if i == 0 {
            let _ = writeln!(text, "{}", "-".repeat(widths.iter().sum::<usize>() + 2 * (HEAD.len() - 1)));
        }
    }
    text.push('\n');
}

/// Published figures beside ours.
fn published(text: &mut String, runs: &[Told<'_>]) {
    text.push_str("                       published, Envoy 1.39.3 (failure pattern unknown)      nexthop, all languages\n");
    for (name, _, figures) in EXPERIMENTS {
        let Some((success, requests)) = figures else { continue };
        let mine = all(runs, name);
        let ours: BTreeSet<String> = mine
            .iter()
            .map(|run| format!("{:>5.1} %  {:.2} backend/client", run.success_rate(), run.amplification()))
            .collect();
        let ours: Vec<String> = ours.into_iter().collect();
        let _ = writeln!(
            text,
            "{name:<23}{:<55}{}",
            format!("{success:>5.1} %  {requests:.2} backend/client"),
            ours.join(" | ")
        );
    }
    text.push('\n');
}

fn all<'a>(runs: &'a [Told<'_>], name: &str) -> Vec<&'a Run> {
    runs.iter()
        .filter_map(|(_, run)| run.as_ref().ok())
        .flatten()
        .filter(|run| run.experiment == name)
        .collect()
}

/// Against the recorded Envoy 1.40, which met the same failure pattern.
fn judgement(text: &mut String, runs: &[Told<'_>]) {
    text.push_str("Recorded Envoy 1.40.0, the same failure pattern, one request at a time: 75 / 100 / 100 %, 1.00 / 1.33 / 1.33.\n");
    let mut wrong = 0;
    for (language, run) in runs {
        for run in run.as_ref().ok().into_iter().flatten().filter(|run| !run.as_envoy()) {
            wrong += 1;
            let _ = writeln!(
                text,
                "DIFFERS  {} {}: expected {}; got {:.1} %, {} retries of {} requests",
                language.name,
                run.experiment,
                Run::expected(&run.experiment),
                run.success_rate(),
                run.retries,
                run.requests,
            );
        }
    }
    let ran: Vec<&str> =
        runs.iter().filter(|(_, run)| run.is_ok()).map(|(language, _)| language.name).collect();
    match (ran.as_slice(), wrong) {
        ([], _) => text.push_str("No language ran.\n"),
        (ran, 0) => {
            let _ = writeln!(text, "The same decisions as that Envoy: {}.", ran.join(", "));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(success: u64) -> Vec<Run> {
        let line = |name: &str, success: u64, retries: u64| {
            format!(
                "{{\"experiment\":\"{name}\",\"requests\":60,\"success\":{success},\"retries\":{retries},\
                 \"backend_requests\":{},\"us_per_attempt\":0.5,\"answered_by\":{{\"1\":{{\"127.0.0.1:18101\":20}},\
                 \"2\":{{\"h:2\":20}},\"3\":{{\"h:3\":20}}}}}}",
                60 + retries
            )
        };
        [("a", success, 0), ("b", 60, 20), ("c", 60, 20), ("chain", 60, 60)]
            .into_iter()
            .map(|(name, success, retries)| Run::parse(&line(name, success, retries)).unwrap())
            .collect()
    }

    #[test]
    fn a_table_at_a_glance() {
        let language = &crate::languages::ALL[0];
        let text = render(&[(language, Ok(runs(45))), (&crate::languages::ALL[1], Err("skipped: x".into()))]);
        assert!(text.contains("b  retry elsewhere"), "{text}");
        assert!(text.contains("1 :18101 20x, 2 :2 20x, 3 :3 20x"), "{text}");
        assert!(
            text.contains("c: skipped: x") && text.contains("The same decisions as that Envoy: rust."),
            "{text}"
        );
        let text = render(&[(language, Ok(runs(44)))]);
        assert!(text.contains("DIFFERS  rust a: expected 75 % succeed; got 73.3 %"), "{text}");
        assert!(!text.contains("The same decisions"));
    }
}
