//! `nexthop choose`: one stateless decision.

use super::given::{self, Once};
use super::out;
use crate::{Choice, Error, Misuse, NO_SUCH_TARGET, Outcome, RequestHead};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Default)]
struct Arguments {
    config: Vec<PathBuf>,
    cluster: String,
    attempt: u32,
    tried: String,
    key: Option<String>,
    headers: Vec<(String, String)>,
    metadata: String,
    json: bool,
}

fn arguments(mut parser: lexopt::Parser) -> Result<Arguments, lexopt::Error> {
    use lexopt::{Arg, ValueExt};
    let mut out = Arguments { attempt: 1, ..Arguments::default() };
    let mut once = Once::default();
    while let Some(argument) = parser.next()? {
        if let Arg::Long(name) = &argument
            && !matches!(*name, "config" | "header" | "json")
        {
            once.note(name)?;
        }
        match argument {
            Arg::Long("config") => out.config.extend(parser.values()?.map(PathBuf::from)),
            Arg::Long("cluster") => out.cluster = parser.value()?.string()?,
            Arg::Long("attempt") => out.attempt = given::attempt(&mut parser)?,
            Arg::Long("tried") => out.tried = given::tried(&mut parser)?,
            Arg::Long("header") => out.headers.push(given::header(&mut parser)?),
            Arg::Long("metadata") => out.metadata = given::metadata(&mut parser)?.to_string(),
            Arg::Long("key") => out.key = Some(parser.value()?.string()?),
            Arg::Long("json") => out.json = true,
            other => return Err(other.unexpected()),
        }
    }
    if out.config.is_empty() || out.cluster.is_empty() {
        return Err("--config and --cluster are needed".into());
    }
    Ok(out)
}

pub(super) fn run(parser: lexopt::Parser) -> Result<u8, lexopt::Error> {
    let arguments = arguments(parser)?;
    match decide(&arguments) {
        Ok((line, fields, go)) => {
            if arguments.json {
                out::line(fields);
            } else {
                out::line(line);
            }
            Ok(u8::from(!go))
        }
        Err(error) => {
            eprintln!("{error}");
            Ok(2)
        }
    }
}

/// The decision as a line and as JSON with the field names of the decision, and whether it names a host to send to.
fn decide(arguments: &Arguments) -> Result<(String, Value, bool), Error> {
    let mesh = super::load(&arguments.config)?;
    let target = match mesh.resolve(&arguments.cluster) {
        // A refusal, as it is for requests; what may be meant is told beside.
        Err(Error::Misuse(Misuse::NotFound, sentence)) => {
            eprintln!("{sentence}");
            NO_SUCH_TARGET
        }
        found => found?,
    };
    let block = given::block(&mesh, &arguments.headers);
    let head = RequestHead {
        target,
        want: block.set(),
        headers: block.bytes(),
        metadata: &arguments.metadata,
        number: arguments.attempt,
        tried: &arguments.tried,
        key: arguments.key.as_deref().map(str::as_bytes),
        ..RequestHead::default()
    };
    Ok(match mesh.pick_for(&head, mesh.now())? {
        Choice::Attempt(attempt) => {
            let plan = *attempt.plan();
            let host = attempt.host();
            let fields = json!({
                "kind": "go",
                "number": plan.number,
                "address": host.address,
                "cluster": &*host.cluster,
                "hostname": host.hostname,
                "priority": host.priority,
                "zone": host.locality.zone,
                "try_timeout": seconds(plan.timeout),
                "remaining": seconds(plan.remaining),
                "bits": plan.bits,
                "explain": attempt.explain(),
            });
            let line = host.address.clone();
            // Only asked, not sent: the answer is not held against anybody.
            attempt.complete(&Outcome::status(200), mesh.now())?;
            (line, fields, true)
        }
        Choice::Wait(wait) => {
            let reason = wait.reason.to_string();
            let fields = json!({ "kind": "wait", "refusal": reason, "wait": seconds(wait.after) });
            (format!("wait: {reason}"), fields, false)
        }
        Choice::Refused(refusal) => {
            let fields = json!({
                "kind": "refused",
                "number": refusal.attempts,
                "status": refusal.status,
                "refusal": refusal.kind.name(),
                "resource": refusal.resource.name(),
                "flags": refusal.flags.to_string(),
            });
            (refusal.to_string(), fields, false)
        }
    })
}

/// Seconds, `null` = no limit.
fn seconds(span: Option<Duration>) -> Value {
    span.map_or(Value::Null, |span| span.as_secs_f64().into())
}
