//! Requests in asynchronous code: waits become timers and wakes of a tokio runtime.

use crate::attempt::Attempt;
use crate::choice::{Choice, Refusal};
use crate::engine_face::Engine;
use crate::failures::AsFailure;
use crate::header_block::HeaderBlock;
use crate::race::race;
use crate::raw::{Head, LocalReply, Misuse, Outcome, failure, flags};
use crate::request::Request;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::time::{Sleep, sleep, timeout};

/// The ready-made loop: choose, wait, send, report, choose again.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), nexthop::Error> {
/// use nexthop::{Driver, Engine, RequestHead, failure};
/// use std::sync::Arc;
///
/// let mesh = Arc::new(Engine::from_text(
///     "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], retry: {on: [connect-failure], times: 1}}}",
/// )?);
/// let head = RequestHead { target: mesh.resolve("web")?, path: "/pay", ..RequestHead::default() };
/// let answer = Driver::new(mesh)
///     .run(&head, |attempt| {
///         let url = attempt.url("/pay");
///         // Here stands your HTTP client. The first host does not answer.
///         async move { if url.contains("10.0.0.1") { Err(failure::CONNECT_FAILURE) } else { Ok(200u16) } }
///     })
///     .await;
/// match answer {
///     Ok(upstream) => assert_eq!(upstream.end(), 200),
///     Err(declined) => panic!("answer {} to the client", declined.reply().status),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Driver {
    engine: Arc<Engine>,
}

/// What comes back from upstream, as far as decisions need it.
pub trait Reply {
    /// HTTP status.
    fn status(&self) -> u16;
    /// Calls `take` with each value of a header (its name is in lower case).
    fn values(&self, name: &str, take: &mut dyn FnMut(&[u8]));
}

/// A status alone.
impl Reply for u16 {
    fn status(&self) -> u16 {
        *self
    }

    fn values(&self, _name: &str, _take: &mut dyn FnMut(&[u8])) {}
}

/// An answer to forward; its body is still to come. Dropping it cancels the attempt.
#[derive(Debug)]
pub struct Upstream<T> {
    /// The client's response.
    pub response: T,
    /// Headers to add for the client (a hash cookie, the attempt count).
    pub headers: Vec<(String, String)>,
    attempt: Attempt<Arc<Engine>>,
}

impl<T> Upstream<T> {
    /// The request ends with this attempt.
    pub(crate) fn new(call: Request<Arc<Engine>>, response: T, attempt: Attempt<Arc<Engine>>) -> Self {
        let headers = call.response_headers();
        call.hand_over();
        Self { response, headers, attempt }
    }

    /// The body is read, or there is none: the attempt ends here.
    pub fn end(self) -> T {
        let now = self.attempt_engine().now();
        // An attempt that was lost to its lease meanwhile has ended anyway.
        let _ = self.attempt.end(&Outcome::default(), now);
        self.response
    }

    /// The response, and the attempt to end (or fail, or drop) with its body.
    pub fn into_parts(self) -> (T, Attempt<Arc<Engine>>) {
        (self.response, self.attempt)
    }

    /// The attempt that was answered.
    pub fn attempt(&self) -> &Attempt<Arc<Engine>> {
        &self.attempt
    }

    fn attempt_engine(&self) -> &Arc<Engine> {
        self.attempt.engine()
    }
}

/// No upstream answered: what to answer instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum Declined<X> {
    /// There was no (other) attempt.
    Refused(Refusal, LocalReply),
    /// The last attempt failed.
    Failed(X, LocalReply),
    /// The last attempt took longer than its limit.
    Late(LocalReply),
    /// The head was malformed, or another task ended the request.
    Misuse(Misuse),
}

impl<X> Declined<X> {
    /// What Envoy would answer by itself; for misuse a plain 500.
    pub fn reply(&self) -> LocalReply {
        match self {
            Self::Refused(_, reply) | Self::Failed(_, reply) | Self::Late(reply) => reply.clone(),
            Self::Misuse(misuse) => LocalReply {
                status: 500,
                details: crate::raw::sentence(*misuse).into(),
                ..LocalReply::default()
            },
        }
    }
}

impl<X: fmt::Display> fmt::Display for Declined<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal, _) => refusal.fmt(f),
            Self::Failed(error, reply) => write!(f, "answered {}: {error}", reply.status),
            Self::Late(reply) => write!(f, "answered {}: the upstream took too long", reply.status),
            Self::Misuse(misuse) => misuse.fmt(f),
        }
    }
}

impl<X: fmt::Debug + fmt::Display> std::error::Error for Declined<X> {}

impl<X> From<Misuse> for Declined<X> {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl Driver {
    /// A driver over an engine; make as many as you like.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The next attempt of a request: waits for its turn in a queue and for back-offs. For loops of your own.
    /// On a manual clock only [`Engine::advance`] ends a back-off.
    pub async fn choose<X>(
        &self,
        call: &mut Request<Arc<Engine>>,
    ) -> Result<Attempt<Arc<Engine>>, Declined<X>> {
        let mut turn = Turn { engine: &self.engine, request: call.id(), registered: false };
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        poll_fn(|cx| {
            loop {
                if turn.registered {
                    turn.register(cx.waker());
                }
                let wait = match call.choose_host(self.engine.now())? {
                    Choice::Attempt(attempt) => return Poll::Ready(Ok(attempt)),
                    Choice::Refused(refusal) => {
                        return Poll::Ready(Err(Declined::Refused(refusal, refusal.local_reply())));
                    }
                    Choice::Wait(wait) => wait,
                };
                if !turn.registered {
                    // The turn may have come before anyone knew whom to wake: ask once more.
                    turn.register(cx.waker());
                    continue;
                }
                let Some(after) = wait.after.filter(|_| !self.engine.is_manual()) else {
                    return Poll::Pending;
                };
                let mut armed = Box::pin(sleep(after));
                let due = armed.as_mut().poll(cx).is_ready();
                timer = Some(armed);
                if !due {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Sends a request: `send` is called for each attempt. The first answer that is not to be retried comes back
    /// with its attempt still open, so that its end is the body's end. Each try is limited to its time-out (not on
    /// a manual clock). Where the route hedges, several attempts may be sent at once, all in the caller's task: the
    /// futures of those that lose are dropped. Dropping the future cancels everything.
    pub async fn run<T, X, F, S>(&self, head: &Head<'_>, mut send: F) -> Result<Upstream<T>, Declined<X>>
    where
        T: Reply,
        X: AsFailure,
        F: FnMut(&Attempt<Arc<Engine>>) -> S,
        S: Future<Output = Result<T, X>>,
    {
        let engine = &self.engine;
        let mut call = engine.request_arc(head, engine.now());
        loop {
            let attempt = self.choose(&mut call).await?;
            if attempt.plan().hedge_after.is_some() && !engine.is_manual() {
                return race(self, call, attempt, &mut send).await;
            }
            let sending = send(&attempt);
            let sent = match attempt.plan().timeout.filter(|_| !engine.is_manual()) {
                Some(limit) => timeout(limit, sending).await.ok(),
                None => Some(sending.await),
            };
            if let Sent::Answer(response, attempt) = judge(engine, &call, attempt, sent)? {
                return Ok(Upstream::new(call, response, attempt));
            }
        }
    }
}

/// What became of an attempt.
pub(crate) enum Sent<T> {
    /// The client's answer.
    Answer(T, Attempt<Arc<Engine>>),
    /// Another attempt is due.
    Retry,
    /// Nobody waits for it: another attempt goes on.
    Dropped,
}

/// Reports what was sent; `None` = its time was over.
pub(crate) fn judge<T: Reply, X: AsFailure>(
    engine: &Arc<Engine>,
    call: &Request<Arc<Engine>>,
    mut attempt: Attempt<Arc<Engine>>,
    sent: Option<Result<T, X>>,
) -> Result<Sent<T>, Declined<X>> {
    let (verdict, error) = match sent {
        Some(Ok(response)) => {
            let status = response.status();
            let set = if status < 400 { attempt.plan().want_ok } else { attempt.plan().want_err };
            let block = match set {
                // Set 1 is the empty one.
                1 => HeaderBlock::default(),
                set => HeaderBlock::over(engine, set, |name, take| response.values(name, take)),
            };
            let outcome = Outcome { status, headers: block.bytes(), ..Outcome::default() };
            let verdict = attempt.on_headers(&outcome, engine.now())?;
            if verdict.action == crate::Action::Forward {
                return Ok(Sent::Answer(response, attempt));
            }
            (verdict, None)
        }
        Some(Err(error)) => match error.as_failure() {
            Some(kind) => (attempt.fail(kind, engine.now())?, Some(error)),
            // Not the upstream's fault: nothing is held against the host, and nothing is tried again.
            None => {
                attempt.cancel(engine.now());
                return Err(Declined::Failed(error, unavailable()));
            }
        },
        None => (attempt.fail(failure::TIMEOUT, engine.now())?, None),
    };
    match (verdict.action, error) {
        (crate::Action::Retry, _) => Ok(Sent::Retry),
        (crate::Action::Discard, _) => Ok(Sent::Dropped),
        (_, Some(error)) => Err(Declined::Failed(error, local_reply(call))),
        (_, None) => Err(Declined::Late(local_reply(call))),
    }
}

fn local_reply(call: &Request<Arc<Engine>>) -> LocalReply {
    call.local_reply().unwrap_or_else(unavailable)
}

fn unavailable() -> LocalReply {
    LocalReply { status: 503, flags: flags::LR, ..LocalReply::default() }
}

/// A task that is registered to be woken, until it stops waiting.
pub(crate) struct Turn<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) request: u64,
    pub(crate) registered: bool,
}

impl Turn<'_> {
    pub(crate) fn register(&mut self, waker: &std::task::Waker) {
        self.registered = true;
        self.engine.wakers.register(self.request, waker);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.registered {
            self.engine.wakers.forget(self.request);
        }
    }
}
