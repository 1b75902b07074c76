//! Several attempts of one request at once (`hedge_policy.hedge_on_per_try_timeout`), all in the caller's task.

use crate::attempt::Attempt;
use crate::choice::Choice;
use crate::driver::{Declined, Driver, Reply, Sent, Turn, Upstream, judge};
use crate::engine_face::Engine;
use crate::failures::AsFailure;
use crate::request::Request;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Sleep, Timeout, sleep, timeout};

/// Longer than any request.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365);

/// An attempt and what is being sent for it.
struct Flight<F> {
    attempt: Attempt<Arc<Engine>>,
    sending: Pin<Box<Timeout<F>>>,
}

impl<F: Future> Flight<F> {
    fn new(attempt: Attempt<Arc<Engine>>, sending: F) -> Self {
        let limit = attempt.plan().timeout.unwrap_or(FOR_EVER);
        Self { attempt, sending: Box::pin(timeout(limit, sending)) }
    }
}

/// What happens next.
enum Event<O> {
    /// The attempt at this place has an outcome; `None` = its time is over.
    Landed(usize, Option<O>),
    /// Asking again makes sense.
    Ask,
}

/// Runs `first` and whatever the engine adds; losers are dropped.
pub(crate) async fn race<T, X, F, S>(
    driver: &Driver,
    mut call: Request<Arc<Engine>>,
    first: Attempt<Arc<Engine>>,
    send: &mut F,
) -> Result<Upstream<T>, Declined<X>>
where
    T: Reply,
    X: AsFailure,
    F: FnMut(&Attempt<Arc<Engine>>) -> S,
    S: Future<Output = Result<T, X>>,
{
    let engine = driver.engine();
    let mut turn = Turn { engine, request: call.id(), registered: false };
    let mut ask = first.plan().hedge_after;
    let sending = send(&first);
    let mut flights = vec![Flight::new(first, sending)];
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    loop {
        if let Some(after) = ask.take() {
            timer = Some(Box::pin(sleep(after)));
        }
        let mut slept = false;
        let event = poll_fn(|cx| {
            turn.register(cx.waker());
            for (at, flight) in flights.iter_mut().enumerate() {
                if let Poll::Ready(outcome) = flight.sending.as_mut().poll(cx) {
                    return Poll::Ready(Event::Landed(at, outcome.ok()));
                }
            }
            let due = timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
            // Somebody may have woken a request that queues.
            if due || std::mem::replace(&mut slept, true) {
                return Poll::Ready(Event::Ask);
            }
            Poll::Pending
        })
        .await;
        let again = match event {
            Event::Landed(at, outcome) => {
                let Flight { attempt, .. } = flights.swap_remove(at);
                match judge(engine, &call, attempt, outcome)? {
                    Sent::Answer(response, attempt) => return Ok(Upstream::new(call, response, attempt)),
                    Sent::Retry => true,
                    Sent::Dropped => flights.is_empty(),
                }
            }
            Event::Ask => true,
        };
        if !again {
            continue;
        }
        timer = None;
        match call.choose_host(engine.now())? {
            Choice::Attempt(attempt) => {
                ask = attempt.plan().hedge_after;
                let sending = send(&attempt);
                flights.push(Flight::new(attempt, sending));
            }
            Choice::Refused(refusal) => return Err(Declined::Refused(refusal, refusal.local_reply())),
            Choice::Wait(wait) => ask = wait.after,
        }
    }
}
