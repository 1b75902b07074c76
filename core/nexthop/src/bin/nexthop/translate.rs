//! `nexthop translate`: documents of other systems in Envoy's form.

use nexthop_config::{Dialect, Source};
use std::process::ExitCode;

pub(crate) fn run(parser: lexopt::Parser) -> Result<ExitCode, lexopt::Error> {
    let texts = match super::texts(&super::files(parser)?) {
        Ok(texts) => texts,
        Err(sentence) => {
            eprintln!("{sentence}");
            return Ok(ExitCode::FAILURE);
        }
    };
    match nexthop_config::translate(&sources(&texts)) {
        Ok(yaml) => {
            print!("{yaml}");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What the reader of documents takes.
pub(crate) fn sources(texts: &[(String, Vec<u8>)]) -> Vec<Source<'_>> {
    texts.iter().map(|(name, text)| Source { name, text, dialect: Dialect::Auto }).collect()
}
