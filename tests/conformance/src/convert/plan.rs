//! From the words of a backend to steps.

use crate::json::Json;
use crate::object;
use crate::script::{Act, Script, span};

/// After so long without any limit a client goes away.
const PATIENCE: u64 = 600_000_000_000;

/// The documents of cluster `c` alone, all requests led to it, and an engine over them.
pub(crate) fn open_one(script: &mut Script, cluster: Json) {
    let resources = object! {"clusters" => Json::List(vec![cluster])};
    script.add(["doc", &object! {"static_resources" => resources}.to_string()]);
    let route = object! {"match" => object! {"prefix" => "/"}, "route" => object! {"cluster" => "c"}};
    let host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(vec![route]),
    };
    script.add(["doc", &object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])}.to_string()]);
    script.add(["open", "1", ""]);
}

/// An answer in one piece.
fn complete(after: u64, status: u16, headers: &[(String, String)]) -> Act {
    answer(after, "complete", status, "", headers)
}

/// An answer or its headers.
fn answer(after: u64, kind: &str, status: u16, grpc: &str, headers: &[(String, String)]) -> Act {
    let status = status.to_string();
    let words = [kind, &status, grpc].into_iter();
    Act::new(after, words.chain(headers.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()])))
}

fn fail(after: u64, failure: &str) -> Vec<Act> {
    vec![Act::new(after, ["fail", failure])]
}

fn hang() -> Vec<Act> {
    vec![Act::new(PATIENCE, ["gone"])]
}

/// Even a prompt backend takes this long; clients that run side by side need it to overlap as recorded.
const PROMPT: u64 = 400_000;

/// A behaviour of `envoy-live`: words apart by blanks. Several plans: the backend cycles through them.
pub(crate) fn behaviour(text: &str) -> Result<Vec<Vec<Act>>, String> {
    let mut words = text.split_whitespace();
    let (mut after, mut status, mut headers, mut percent) = (0, 200_u16, Vec::new(), None);
    let need =
        |word: Option<&str>| word.map(str::to_owned).ok_or_else(|| format!("{text}: a word is missing"));
    let number = |word: String| word.parse::<u16>().map_err(|error| format!("{text}: {error}"));
    while let Some(word) = words.next() {
        match word {
            "ok" => {}
            "status" => status = number(need(words.next())?)?,
            "delay" => after += span(&need(words.next())?),
            "header" => {
                let pair = need(words.next())?;
                let (name, value) =
                    pair.split_once('=').ok_or_else(|| format!("{pair}: name=value wanted"))?;
                headers.push((name.to_owned(), value.to_owned()));
            }
            "fail" => {
                percent = Some(number(need(words.next())?.trim_end_matches('%').to_owned())?);
                status = 500;
            }
            "reset" => return Ok(vec![fail(after, "connection_termination")]),
            "refuse" => return Ok(vec![fail(after, "connect_failure")]),
            "hang" => return Ok(vec![hang()]),
            "rst" => return Ok(vec![fail(after, reset(&need(words.next())?))]),
            code if code.parse::<u16>().is_ok() => status = number(code.to_owned())?,
            other => return Err(format!("{text}: unknown word {other}")),
        }
    }
    let after = after.max(PROMPT);
    let bad = vec![complete(after, status, &headers)];
    let Some(percent) = percent else { return Ok(vec![bad]) };
    let good = vec![complete(after, 200, &headers)];
    let fails = |k: u16| k * percent / 100 > (k - 1) * percent / 100;
    Ok((1..=100).map(|k| if fails(k) { bad.clone() } else { good.clone() }).collect())
}

/// What an HTTP/2 reset code means.
fn reset(code: &str) -> &'static str {
    if code == "7" { "refused_stream" } else { "remote_reset" }
}

/// Adds the rules of one host.
pub(crate) fn rules(
    script: &mut Script,
    host: &str,
    prefix: &str,
    behaviour_of: &Json,
) -> Result<(), String> {
    if let Some(text) = behaviour_of.str() {
        let plans = behaviour(text)?;
        let ending = if plans.len() > 1 { "cycle" } else { "last" };
        return rule(script, host, "0", prefix, ending, &plans);
    }
    if behaviour_of.has("seq") {
        let mut plans = Vec::new();
        for item in behaviour_of.get("seq").items() {
            plans.extend(behaviour(item.str().ok_or_else(|| format!("{item}: a text wanted"))?)?);
        }
        let ending = behaviour_of.get("end").str().unwrap_or("last").to_owned();
        return rule(script, host, "0", prefix, &ending, &plans);
    }
    for (path, inner) in behaviour_of.get("by_path").entries() {
        rules(script, host, path, inner)?;
    }
    // Any other path is answered plainly.
    let plain = "ok".into();
    let other = if behaviour_of.has("else") { behaviour_of.get("else") } else { &plain };
    rules(script, host, prefix, other)
}

/// Adds a rule.
pub(crate) fn rule(
    script: &mut Script,
    host: &str,
    attempt: &str,
    prefix: &str,
    ending: &str,
    plans: &[Vec<Act>],
) -> Result<(), String> {
    let names: Vec<String> = plans.iter().map(|plan| script.plan(plan)).collect();
    script.add(["rule", host, attempt, prefix, ending].into_iter().chain(names.iter().map(String::as_str)));
    Ok(())
}

/// A plan of the compact records: words apart by commas. `connect` is how long the port takes to connect before
/// it gives up; `None` when it connects at once.
pub(crate) fn backend(text: &str) -> Result<Vec<Act>, String> {
    let (mut after, mut headers, mut acts) = (0, Vec::new(), Vec::new());
    let mut push = |after: &mut u64, act: Act| {
        acts.push(Act { after: *after, ..act });
        *after = 0;
    };
    let mut words = text.split(',').map(str::trim).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        let (key, value) = word.split_once([':', '=']).unwrap_or((word, ""));
        let last = words.peek().is_none();
        match key {
            "sleep" => after += span(value),
            "hdr" => {
                let pair = word.split_once(':').map_or("", |(_, pair)| pair);
                let (name, value) =
                    pair.split_once('=').ok_or_else(|| format!("{pair}: name=value wanted"))?;
                headers.push((name.to_owned(), value.to_owned()));
            }
            "hang" => push(&mut after, Act::new(0, ["gone"])),
            "fin" | "reset" => push(&mut after, Act::new(0, ["fail", "connection_termination"])),
            "refuse" => push(&mut after, Act::new(0, ["fail", "connect_failure"])),
            "refused" => push(&mut after, Act::new(0, ["fail", "refused_stream"])),
            "rst" => push(&mut after, Act::new(0, ["fail", reset(value)])),
            "partial" | "partialrst" => {
                push(&mut after, answer(0, "headers", 200, "", &headers));
                let how = if key == "partial" { "connection_termination" } else { "remote_reset" };
                if words.peek() != Some(&"hang") {
                    push(&mut after, Act::new(0, ["fail", how]));
                }
            }
            "grpc" => push(&mut after, answer(0, "complete", 200, value, &headers)),
            "grpctrail" => {
                push(&mut after, answer(0, "headers", 200, "", &headers));
                push(&mut after, Act::new(0, ["end", value]));
            }
            "100c" => push(&mut after, Act::new(0, ["note", "interim"])),
            code if code.parse::<u16>().is_ok_and(|code| (100..1000).contains(&code)) => {
                let status = code.parse().map_err(|error| format!("{code}: {error}"))?;
                if last {
                    push(&mut after, complete(0, status, &headers));
                } else {
                    push(&mut after, answer(0, "headers", status, "", &headers));
                }
                headers.clear();
            }
            other => return Err(format!("{text}: unknown word {other}")),
        }
    }
    if let Some(act) = acts.last_mut().filter(|act| act.words[0] == "gone") {
        act.after += PATIENCE;
    }
    if acts.last().is_some_and(|act| act.words[0] == "headers") {
        acts.push(Act::new(after, ["end", ""]));
    }
    Ok(acts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_failing_is_ok_fail_ok_fail() {
        let plans = behaviour("fail 50%").unwrap();
        let statuses: Vec<&str> = plans.iter().take(4).map(|plan| plan[0].words[1].as_str()).collect();
        assert_eq!(statuses, ["200", "500", "200", "500"]);
        let plans = behaviour("fail 25%").unwrap();
        assert_eq!(plans.iter().filter(|plan| plan[0].words[1] == "500").count(), 25);
        assert!(plans[3][0].words[1] == "500" && plans[2][0].words[1] == "200");
    }

    #[test]
    fn words_of_backends() {
        assert_eq!(
            backend("sleep=0.5,hdr:a=b,200").unwrap(),
            [Act::new(500_000_000, ["complete", "200", "", "a", "b"])]
        );
        assert_eq!(
            backend("grpctrail:14").unwrap(),
            [Act::new(0, ["headers", "200", ""]), Act::new(0, ["end", "14"])]
        );
        assert_eq!(backend("rst:7").unwrap(), [Act::new(0, ["fail", "refused_stream"])]);
        assert_eq!(
            behaviour("delay 300ms status 503").unwrap(),
            [[Act::new(300_000_000, ["complete", "503", ""])]]
        );
        assert!(backend("dance").is_err() && behaviour("dance").is_err());
    }
}
