//! Active checks, performed: HTTP/1.1, HTTP/2, TCP and gRPC over tokio and hyper.

mod ask;
mod links;

use crate::check::{Check, CheckProtocol};
use crate::engine_face::Engine;
use crate::failures::AsFailure;
use crate::header_block::HeaderBlock;
use crate::raw::{self, Outcome, failure};
use links::Links;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A check that somebody else performs and reports.
pub type OtherCheck = Check<Arc<Engine>>;

type Perform = Arc<dyn Fn(OtherCheck) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The longest it sleeps before it looks again: updates of documents and hosts bring checks unannounced.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest: a coarse clock may lag behind its deadline.
const TICK: Duration = Duration::from_millis(1);

/// Performs the active health checks of an engine, in the caller's tokio runtime.
///
/// HTTP (also over HTTP/2 with prior knowledge), TCP and gRPC over plain connections are performed here. Hosts that speak
/// TLS and custom checks are handed to [`others`](Self::others); without that they count as if no connection could be
/// made, and an event of type `nexthop.check_not_performed` tells once per checker. Events and numbers come out of the
/// engine as ever.
///
/// ```no_run
/// use nexthop::{Checker, Engine};
/// use std::sync::Arc;
///
/// # async fn start() -> Result<(), nexthop::Error> {
/// let mesh = Arc::new(Engine::from_file("envoy.yaml")?);
/// let checks = tokio::spawn(Checker::new(Arc::clone(&mesh)).run());
/// // ... and when no host is to be checked any more:
/// checks.abort();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Checker {
    engine: Arc<Engine>,
    others: Option<Perform>,
    links: Arc<Links>,
}

impl Checker {
    /// A checker; one for an engine is enough.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, others: None, links: Arc::default() }
    }

    /// Who performs and reports the checks that this loop cannot: custom ones, and those of hosts that speak TLS. What is
    /// not reported within its time counts as timed out.
    pub fn others<F, R>(self, perform: F) -> Self
    where
        F: Fn(OtherCheck) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let perform: Perform = Arc::new(move |check| Box::pin(perform(check)));
        Self { others: Some(perform), ..self }
    }

    /// Checks until it is dropped. What is under way then counts as timed out when its time is over, and hosts keep the
    /// health that they have: stop it when the engine is not used any more.
    pub async fn run(self) -> Infallible {
        let mut under_way = JoinSet::new();
        let mut told = BTreeSet::new();
        loop {
            while let Some(check) = self.engine.poll_check_arc(self.engine.now()) {
                if check.secure() || check.protocol() == CheckProtocol::Custom {
                    match &self.others {
                        Some(perform) => {
                            under_way.spawn(perform(check));
                        }
                        None => self.give_up(check, &mut told),
                    }
                } else {
                    under_way.spawn(perform(check, Arc::clone(&self.links)));
                }
            }
            let pause = self.engine.checks_deadline(self.engine.now()).unwrap_or(LOOK).clamp(TICK, LOOK);
            // Whichever comes first: a result may have set the next deadline.
            let _ = timeout(pause, async {
                if under_way.join_next().await.is_none() {
                    std::future::pending::<()>().await;
                }
            })
            .await;
        }
    }

    fn give_up(&self, check: OtherCheck, told: &mut BTreeSet<(String, String)>) {
        if told.insert((check.cluster().to_owned(), check.name().to_owned())) {
            let why = if check.secure() { "the host speaks TLS" } else { "it is a custom check" };
            raw::check_not_performed(self.engine.id(), check.cluster(), check.name(), why);
        }
        let now = self.engine.now();
        // The host may have left meanwhile.
        let _ = check.fail(failure::LOCAL_CONNECT_FAILURE, now);
    }
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checker").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Performs one check and reports it. A check that is over meanwhile needs no report.
async fn perform(check: OtherCheck, links: Arc<Links>) {
    let engine = Arc::clone(check.engine());
    let asked = async {
        match check.protocol() {
            CheckProtocol::Tcp => ask::bytes(&check).await.map(|()| None),
            _ => ask::request(&check, &links).await.map(Some),
        }
    };
    let _ = match timeout(check.timeout(), asked).await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(answer))) => {
            let block = HeaderBlock::over(&engine, check.want(), |name, take| {
                for headers in [&answer.headers, &answer.trailers] {
                    headers.get_all(name).iter().for_each(|value| take(value.as_bytes()));
                }
            });
            let outcome = Outcome { headers: block.bytes(), ..Outcome::status(answer.status) };
            check.answer(&outcome, &answer.body, engine.now())
        }
        Ok(Err(error)) => {
            let failure = error.as_failure().unwrap_or(failure::REMOTE_RESET);
            check.fail(failure, engine.now())
        }
        Err(_) => check.fail(failure::TIMEOUT, engine.now()),
    };
}
