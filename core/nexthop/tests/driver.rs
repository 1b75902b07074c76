//! The driver: waits, wakes, retries, bodies.
#![cfg(feature = "tokio")]

use nexthop::{
    Clock, Declined, Driver, Engine, Error, RefusalKind, RequestHead, Resource, Stat, Text, failure,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

fn mesh(text: &str, clock: Clock) -> Arc<Engine> {
    let built = Engine::builder().text(text).workers(1).seed(7).clock(clock).build();
    Arc::new(built.unwrap_or_else(|error| panic!("{error}")))
}

fn to<'a>(mesh: &Engine, cluster: &str) -> RequestHead<'a> {
    RequestHead { target: mesh.resolve(cluster).unwrap(), ..RequestHead::default() }
}

/// Every gauge of what is in use. Connections are kept open for the next request, as a pool would.
fn in_use(mesh: &Engine) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    mesh.stats(&mut |name, stat| {
        let of_use = name.ends_with("_active") || name.ends_with("_open");
        let of_connections = name.ends_with("upstream_cx_active") || name.ends_with(".cx_open");
        if let (Stat::Gauge(value), true) = (stat, of_use && !of_connections) {
            all.push((name.to_owned(), value));
        }
    });
    all
}

async fn twenty(mesh: Arc<Engine>) {
    let gate = Arc::new(Semaphore::new(0));
    let (started, mut starts) = mpsc::unbounded_channel();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (mesh, gate, started) = (Arc::clone(&mesh), Arc::clone(&gate), started.clone());
            tokio::spawn(async move {
                let head = to(&mesh, "b");
                let driver = Driver::new(mesh);
                let answer = driver.run(&head, |_| {
                    let (gate, started) = (Arc::clone(&gate), started.clone());
                    async move {
                        started.send(true).unwrap();
                        gate.acquire_owned().await.unwrap().forget();
                        Ok::<u16, u8>(200)
                    }
                });
                match answer.await {
                    Ok(upstream) => upstream.end(),
                    Err(declined) => {
                        let Declined::Refused(refusal, reply) = &declined else { panic!("{declined}") };
                        assert_eq!(
                            (refusal.kind, refusal.resource),
                            (RefusalKind::OVERFLOW, Resource::PENDING)
                        );
                        started.send(false).unwrap();
                        reply.status
                    }
                }
            })
        })
        .collect();
    // Two are served and sixteen refused before anybody finishes; the other two wait in the queue.
    let mut seen = [0, 0];
    for _ in 0..18 {
        seen[usize::from(starts.recv().await.unwrap())] += 1;
    }
    assert_eq!(seen, [16, 2]);
    gate.add_permits(4);
    let mut statuses = Vec::new();
    for task in tasks {
        statuses.push(task.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 4);
    assert_eq!(statuses.iter().filter(|status| **status == 503).count(), 16);
    let left: Vec<_> = in_use(&mesh).into_iter().filter(|(_, value)| *value != 0).collect();
    assert_eq!(left, [], "nothing is in use at the end");
    let stats: serde_json::Value = serde_json::from_str(&mesh.text(Text::Stats).unwrap()).unwrap();
    assert_eq!(stats["cluster.b.upstream_rq_pending_overflow"], 16);
    assert_eq!(stats["cluster.b.upstream_rq_200"], 4);
    assert_eq!(stats["nexthop.live_requests"], 0);
}

const NARROW: &str =
    "clusters: {b: {hosts: [10.0.0.1:80], limits: {connections: 2, pending: 2}, timeout: 0s}}";

#[tokio::test]
async fn twenty_tasks_on_one_thread() {
    twenty(mesh(NARROW, Clock::Manual)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_tasks_on_two_threads() {
    twenty(mesh(NARROW, Clock::Coarse)).await;
}

const RETRY: &str = "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80], timeout: 0s, \
    retry: {on: [5xx, connect-failure], times: 2, avoid_tried: true, backoff: {base: 20ms, max: 200ms}}}}";

#[tokio::test]
async fn a_manual_clock_ends_back_offs() {
    let mesh = mesh(RETRY, Clock::Manual);
    let head = to(&mesh, "web");
    let tries = Arc::new(AtomicU32::new(0));
    let driver = Driver::new(Arc::clone(&mesh));
    let mut call = std::pin::pin!(driver.run(&head, |attempt| {
        let number = attempt.plan().number;
        tries.store(number, Relaxed);
        async move { if number < 3 { Ok::<u16, u8>(500) } else { Ok(200) } }
    }));
    let mut polls = 0;
    let upstream = loop {
        tokio::select! {
            biased;
            done = &mut call => break done.unwrap_or_else(|declined| panic!("{declined}")),
            () = std::future::ready(()) => {
                // Without a tick of the clock nothing moves.
                let before = tries.load(Relaxed);
                tokio::task::yield_now().await;
                assert_eq!(tries.load(Relaxed), before);
                mesh.advance(Duration::from_millis(1)).unwrap();
                polls += 1;
                assert!(polls < 1000, "stuck");
            }
        }
    };
    assert_eq!((upstream.end(), tries.load(Relaxed)), (200, 3));
    assert!(polls > 0, "there was a back-off");
}

#[tokio::test]
async fn failures_are_reported_and_the_last_one_comes_back() {
    let text = RETRY.replace("backoff: {base: 20ms, max: 200ms}", "backoff: {base: 1ms, max: 1ms}");
    let mesh = mesh(&text, Clock::Precise);
    let driver = Driver::new(Arc::clone(&mesh));
    let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let answer = driver.run(&to(&mesh, "web"), |_| async move { Err::<u16, _>(refused()) }).await;
    let Err(Declined::Failed(error, reply)) = answer else { panic!("{answer:?}") };
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!((reply.status, nexthop::ResponseFlags(reply.flags).to_string().as_str()), (503, "UF,URX"));
    let stats: serde_json::Value = serde_json::from_str(&mesh.text(Text::Stats).unwrap()).unwrap();
    assert_eq!(stats["cluster.web.upstream_rq_retry"], 2);
    assert_eq!(stats["cluster.web.upstream_rq_active"], 0);
}

#[tokio::test]
async fn a_dropped_future_cancels() {
    let mesh = mesh(NARROW, Clock::Manual);
    let driver = Driver::new(Arc::clone(&mesh));
    let head = to(&mesh, "b");
    {
        let mut call = std::pin::pin!(driver.run(&head, |_| std::future::pending::<Result<u16, u8>>()));
        let first =
            std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_ready())).await;
        assert!(!first);
        let active = in_use(&mesh).into_iter().find(|(name, _)| name.ends_with("upstream_rq_active"));
        assert_eq!(active.unwrap().1, 1);
    }
    assert!(in_use(&mesh).iter().all(|(_, value)| *value == 0));
}

#[tokio::test]
async fn an_attempt_over_its_limit_is_late() {
    let mesh = mesh("clusters: {b: {hosts: [10.0.0.1:80], timeout: 0.02s}}", Clock::Precise);
    let head = to(&mesh, "b");
    let answer = Driver::new(mesh).run(&head, |_| std::future::pending::<Result<u16, u8>>()).await;
    let Err(Declined::Late(reply)) = answer else { panic!("{answer:?}") };
    assert_eq!((reply.status, reply.body.as_str()), (504, "upstream request timeout"));
}

#[tokio::test]
async fn a_malformed_head_is_misuse() -> Result<(), Error> {
    let mesh = mesh(NARROW, Clock::Manual);
    let head = RequestHead { body: 9, ..to(&mesh, "b") };
    let answer = Driver::new(mesh).run(&head, |_| async { Err::<u16, _>(failure::TIMEOUT) }).await;
    let declined = answer.map(|_| ()).unwrap_err();
    assert!(matches!(declined, Declined::Misuse(nexthop::Misuse::Invalid)));
    assert_eq!(declined.reply().status, 500);
    Ok(())
}

/// A route that hedges: per try 5 ms, one retry.
const HEDGED: &str = "static_resources: {clusters: [{name: h, load_assignment: {cluster_name: h, endpoints: [{lb_endpoints: \
     [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}, \
     {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]}}]}
---
virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: h, timeout: 10s, \
     hedge_policy: {hedge_on_per_try_timeout: true}, retry_policy: {retry_on: 5xx, num_retries: 1, per_try_timeout: 0.005s, \
     retry_back_off: {base_interval: 0.001s}}}}]}]
";

/// Says when it is dropped.
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_hedge_wins_and_the_first_is_dropped() {
    let mesh = mesh(HEDGED, Clock::Precise);
    let dropped = Arc::new(AtomicU32::new(0));
    let answer = Driver::new(Arc::clone(&mesh))
        .run(&RequestHead::default(), |attempt| {
            let (number, mark) = (attempt.plan().number, Dropped(Arc::clone(&dropped)));
            async move {
                let _mark = mark;
                match number {
                    1 => std::future::pending::<Result<u16, u8>>().await,
                    _ => Ok(200),
                }
            }
        })
        .await
        .unwrap();
    assert_eq!((answer.attempt().plan().number, answer.end()), (2, 200));
    assert_eq!(dropped.load(Relaxed), 2);
    assert!(in_use(&mesh).iter().all(|(_, value)| *value == 0));
}

#[tokio::test(flavor = "current_thread")]
async fn a_hedge_that_fails_leaves_the_first_alone() {
    let mesh = mesh(HEDGED, Clock::Precise);
    let hedged = Arc::new(Semaphore::new(0));
    let answer = Driver::new(Arc::clone(&mesh))
        .run(&RequestHead::default(), |attempt| {
            let (number, hedged) = (attempt.plan().number, Arc::clone(&hedged));
            async move {
                if number == 1 {
                    hedged.acquire().await.unwrap().forget();
                    return Ok::<u16, u8>(204);
                }
                hedged.add_permits(1);
                Err(failure::REMOTE_RESET)
            }
        })
        .await
        .unwrap();
    assert_eq!((answer.attempt().plan().number, answer.end()), (1, 204));
    assert!(in_use(&mesh).iter().all(|(_, value)| *value == 0));
}
