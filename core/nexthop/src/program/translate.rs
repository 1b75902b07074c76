//! `nexthop translate`: documents of other systems in Envoy's form.

use super::out;
pub(super) fn run(parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    let texts = match super::texts(&super::files(parser)?) {
        Ok(texts) => texts,
        Err(sentence) => {
            eprintln!("{sentence}");
            return Ok(1);
        }
    };
    match nexthop_config::translate(&super::sources(&texts)) {
        Ok(yaml) => {
            out::print(&yaml);
            Ok(0)
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(1)
        }
    }
}
