//! `nexthop check`: are documents understood, and what in them does nothing.

use super::out;
use crate::Text;
use serde_json::Value;
use std::path::PathBuf;

pub(super) fn run(mut parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    let (mut files, mut all) = (Vec::<PathBuf>::new(), false);
    while let Some(argument) = parser.next()? {
        match argument {
            lexopt::Arg::Long("all") => all = true,
            lexopt::Arg::Value(file) => files.push(file.into()),
            other => return Err(other.unexpected()),
        }
    }
    if files.is_empty() {
        return Err("name at least one file".into());
    }
    let report = if all { Text::LoadReportWhole } else { Text::LoadReport };
    let texts =
        super::load(&files).and_then(|engine| Ok((engine.text(report)?, engine.text(Text::Hosts(""))?)));
    match texts {
        Ok((report, hosts)) => {
            told(&report, &hosts);
            Ok(0)
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(1)
        }
    }
}

fn told(report: &str, hosts: &str) {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    let hosts: Value = serde_json::from_str(hosts).unwrap_or_default();
    let entries = report["entries"].as_array().map_or(&[][..], Vec::as_slice);
    let mut idle = 0;
    for entry in entries {
        let what = entry["what"].as_str().unwrap_or("");
        idle += usize::from(what.starts_with("not_"));
        out::line(format_args!(
            "{}:{}: {}: {} ({what})",
            entry["file"].as_str().unwrap_or(""),
            entry["line"],
            entry["path"].as_str().unwrap_or(""),
            entry["text"].as_str().unwrap_or(""),
        ));
    }
    let hosts = hosts.as_array().map_or(0, Vec::len);
    out::line(format_args!("good: {hosts} hosts; {idle} fields were read but do nothing"));
}
