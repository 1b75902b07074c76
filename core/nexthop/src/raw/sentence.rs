//! What hot calls answered, in words. They keep no sentence themselves: who shows an error asks for it here.

use super::LAST_NUMBER;
use super::registry;
use nexthop_engine::ids::{engine_of, is_attempt, request_of};
use nexthop_engine::outcome::{Head, Misuse, Outcome, failure, note};

/// A hot call that was misused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A stateless choice.
    Pick,
    /// The next attempt of a request.
    Choose,
    /// Blocking until a request may go on.
    Wait,
    /// Response headers.
    Headers,
    /// A whole report.
    Complete,
    /// A failure.
    Fail,
    /// The end of an answered attempt.
    End,
    /// Dropping an attempt.
    Cancel,
    /// Ending a request.
    Finish,
    /// Handing an attempt over to its response's body.
    Body,
    /// A fact about either.
    Note,
}

impl Call {
    const fn is_about_request(self) -> bool {
        matches!(self, Self::Choose | Self::Wait | Self::Finish)
    }
}

/// What a hot call was given.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Which call.
    pub call: Call,
    /// The request or attempt; of a pick the engine.
    pub id: u64,
    /// Status, failure, reason of a finish, note, or attempt number of a pick.
    pub number: u32,
    /// Target of a pick.
    pub target: u32,
    /// Failure of a whole report.
    pub failure: u32,
    /// Whether headers came along.
    pub headers: bool,
}

impl Asked {
    /// A call with nothing but a handle.
    pub const fn about(call: Call, id: u64) -> Self {
        Self { call, id, number: 0, target: 0, failure: 0, headers: false }
    }

    /// A call with a number.
    pub const fn with(call: Call, id: u64, number: u32) -> Self {
        Self { number, ..Self::about(call, id) }
    }

    /// A pick.
    pub const fn pick(engine: u64, target: u32, number: u32) -> Self {
        Self { target, ..Self::with(Call::Pick, engine, number) }
    }

    /// A report.
    pub fn report(call: Call, attempt: u64, outcome: &Outcome<'_>) -> Self {
        let failure = u32::from(outcome.failure);
        let number = if call == Call::Fail { failure } else { outcome.status.into() };
        Self { failure, headers: !outcome.headers.is_empty(), ..Self::with(call, attempt, number) }
    }
}

/// The sentence of a misuse when nothing is known of the call.
pub fn sentence(misuse: Misuse) -> &'static str {
    match misuse {
        Misuse::Invalid => {
            "an argument is out of range: a zero or foreign handle, a malformed header block, a status that is not 0 \
             or 100 to 999, or an unknown number"
        }
        Misuse::Ended => "the attempt or request has ended; report an attempt once, and begin a new request",
        Misuse::State => {
            "not legal in this state: an attempt is open (report or cancel it first), or was answered (use end)"
        }
        Misuse::Closed => "the engine was closed; make a new one",
        Misuse::NotFound => "no such target, set or host; resolve names again after an update",
        Misuse::Limit => "a fixed limit is reached: 4 million live requests, or 60 KiB of head text",
        _ => "a bug in nexthop, contained; this request is lost, its permits are back",
    }
}

/// The sentence of a misuse of this call: what was wrong, what was found, what to do.
#[cold]
pub fn sentence_of(asked: &Asked, misuse: Misuse) -> String {
    match misuse {
        Misuse::Invalid => invalid(asked),
        Misuse::Ended if asked.call.is_about_request() => "the request has ended; begin a new one".into(),
        Misuse::Ended => {
            "the attempt has ended; report an attempt once, and choose again for another one".into()
        }
        Misuse::State => state(asked),
        Misuse::NotFound if asked.call == Call::Pick => {
            format!("there is no target {}; take it from resolving a name of this engine", asked.target)
        }
        Misuse::Limit => "4 million requests are live, which is the most; report or close some".into(),
        _ => sentence(misuse).into(),
    }
}

fn invalid(asked: &Asked) -> String {
    let Asked { call, id, number, .. } = *asked;
    match call {
        Call::Pick if id == 0 => return "the engine handle is zero; make an engine first".into(),
        Call::Pick if asked.target == 0 => {
            return "the target is zero; resolve a cluster's name first".into();
        }
        Call::Pick => return wrong_number(number),
        _ => {}
    }
    let (wanted, other) =
        if call.is_about_request() { ("request", "attempt") } else { ("attempt", "request") };
    if engine_of(id) == 0 {
        return match id {
            0 => format!("the {wanted} handle is zero; take one from a decision"),
            _ => format!("{id} is no {wanted} handle; take one from a decision"),
        };
    }
    if call != Call::Note && is_attempt(id) == call.is_about_request() {
        return format!("{id} is the handle of {} {other}; give that of the {wanted}", article(other));
    }
    let failures = failure::NAMES.len() - 1;
    match call {
        Call::Finish => format!("the reason is {number}; there are 1 to 5"),
        Call::Note => format!("the note is {number}; there are 1 to {}", note::NAMES.len() - 1),
        Call::Fail if number == 0 || number as usize > failures => {
            format!("the failure is {number}; there are 1 to {failures}")
        }
        _ if asked.failure as usize > failures => {
            format!("the failure is {}; there are 1 to {failures}, and 0 for none", asked.failure)
        }
        Call::Complete | Call::Headers if !matches!(number, 0 | 100..=999) => {
            // Callers with signed numbers see theirs.
            let number = number.cast_signed();
            format!("the status is {number}; it is 100 to 999, or 0 for a success without one")
        }
        Call::Complete if (100..=199).contains(&number) && number != 101 => {
            format!(
                "the status is {number}, of an interim response, which completes nothing; report its headers"
            )
        }
        Call::Headers if number == 0 => "the status is 0; headers come with one of 100 to 999".into(),
        _ if asked.headers => {
            "the headers are no block over the set of wanted headers that the decision named".into()
        }
        _ => sentence(Misuse::Invalid).into(),
    }
}

const fn article(of: &str) -> &'static str {
    if matches!(of.as_bytes().first(), Some(b'a')) { "an" } else { "a" }
}

fn state(asked: &Asked) -> String {
    match asked.call {
        Call::Body => {
            "the attempt has no response yet; report its headers before handing over the body".into()
        }
        Call::End => "no response headers were reported; report them first, or complete the attempt".into(),
        Call::Choose => {
            let engine = registry::at_index(engine_of(asked.id));
            match engine.and_then(|engine| engine.core.open_attempt(request_of(asked.id))) {
                Some((number, false)) => {
                    format!("attempt {number} is open; report or cancel it before the next choice")
                }
                Some((number, true)) => {
                    format!(
                        "the response of attempt {number} was forwarded and goes on; end it instead of choosing"
                    )
                }
                None => "an attempt is open; report or cancel it before the next choice".into(),
            }
        }
        _ => "the attempt was answered; use end, or fail when its body broke".into(),
    }
}

fn wrong_number(number: u32) -> String {
    format!("the attempt number is {number}; attempts count from 1 to {LAST_NUMBER}")
}

/// The sentence of a `begin` that refused this head, by the field that was wrong.
#[cold]
pub fn sentence_of_head(head: &Head<'_>, misuse: Misuse) -> String {
    match misuse {
        Misuse::Invalid if head.number > LAST_NUMBER => wrong_number(head.number),
        Misuse::Invalid if head.override_host == "!" => {
            "override_host is \"!\"; give an address, with `!` before it when no other host will do".into()
        }
        Misuse::Invalid
            if !head.metadata.is_empty() && nexthop_config::parse_metadata_json(head.metadata).is_err() =>
        {
            format!("metadata is {:?}; give a JSON object of names and values", head.metadata)
        }
        Misuse::Invalid if !(-1..=1).contains(&head.priority) => {
            format!("priority is {}; -1 stands for the route's, 0 for DEFAULT, 1 for HIGH", head.priority)
        }
        Misuse::Invalid if head.body > 3 => {
            format!("body is {}; 0 is none, 1 replayable, 2 once, 3 streaming", head.body)
        }
        Misuse::Invalid if !head.headers.is_empty() => format!(
            "the headers are no block over the set {} of wanted headers, or there is no such set; ask for set 0",
            head.want
        ),
        Misuse::Limit if head.text_len() > Head::TEXT_LIMIT => format!(
            "the texts of the head have {} bytes together; {} (60 KiB) are possible",
            head.text_len(),
            Head::TEXT_LIMIT
        ),
        Misuse::Limit => "4 million requests are live, which is the most; report or close some".into(),
        Misuse::NotFound => {
            format!("there is no target {}; take it from resolving a name of this engine", head.target)
        }
        _ => sentence(misuse).into(),
    }
}
