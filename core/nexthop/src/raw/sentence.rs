//! What hot calls answered, in words. They keep no sentence themselves.

use nexthop_engine::outcome::{Head, Misuse};

/// The sentence of a misuse code of a hot call: what was wrong and what to do.
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

/// The sentence of a `begin` that refused this head, by the field that was wrong.
#[cold]
pub fn sentence_of_head(head: &Head<'_>, misuse: Misuse) -> String {
    match misuse {
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
