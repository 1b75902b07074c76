//! The experiment of the demo in Rust: requests with and without retry against a half-failing backend, and a chain
//! of three providers. Needs the lab (`cargo run -p nexthop-lab`). Prints one JSON line per experiment.
#![expect(clippy::print_stdout, reason = "a program speaks on stdout")]

use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use nexthop::{Driver, Engine, Outcome, RequestHead, failure, failure_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Http = Client<HttpConnector, Empty<bytes::Bytes>>;

const LAB: &str = "http://127.0.0.1:18101";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = std::env::var("CONFIG").unwrap_or_else(|_| "examples/envoy.yaml".into());
    let requests: u32 = std::env::var("REQUESTS").map_or(Ok(400), |text| text.parse())?;
    let mesh = Arc::new(Engine::from_file(config)?);
    let http = Client::builder(TokioExecutor::new()).build_http();
    for (name, requests) in [("a", requests), ("b", requests), ("c", requests), ("chain", 60)] {
        println!("{}", experiment(&mesh, &http, name, requests).await?);
    }
    Ok(())
}

async fn experiment(
    mesh: &Arc<Engine>,
    http: &Http,
    name: &str,
    requests: u32,
) -> Result<Value, Box<dyn Error>> {
    lab(http, "POST", "/__lab/reset").await?;
    let path = format!("/{name}");
    let driver = Driver::new(Arc::clone(mesh));
    let (mut success, mut attempts, mut spent) = (0, 0, Duration::ZERO);
    let mut answered_by = BTreeMap::<u32, BTreeMap<String, u32>>::new();
    for i in 0..requests {
        let head = RequestHead { authority: "lab.example", path: &path, ..RequestHead::default() };
        let fail = (i % 3).to_string();

        // The loop by hand, so that the time inside nexthop can be taken; `gateway.rs` has the ready-made one.
        let begin = Instant::now();
        let mut call = mesh.request_arc(&head, mesh.now());
        spent += begin.elapsed();
        loop {
            // Chooses again after the back-off; the wait is not nexthop's work, so this is not timed.
            let Ok(attempt) = driver.choose::<u8>(&mut call).await else { break };
            attempts += 1;
            let number = attempt.plan().number;
            let address = attempt.host().address.clone();
            let answer = get(http, &attempt.url(&path), &fail).await;
            let begin = Instant::now();
            let outcome = answer.map_or_else(Outcome::failed, Outcome::status);
            let verdict = attempt.complete(&outcome, mesh.now())?;
            spent += begin.elapsed();
            if !verdict.retry() {
                success += u32::from(verdict.status == 200);
                *answered_by.entry(number).or_default().entry(address).or_default() += 1;
                break;
            }
        }
        if i % 20 == 19 || i + 1 == requests {
            eprint!("\rrust  {name}  {}/{requests}   ", i + 1);
        }
    }
    let counts: BTreeMap<String, u64> = serde_json::from_slice(&lab(http, "GET", "/__lab/counts").await?)?;
    Ok(json!({
        "lang": "rust", "experiment": name, "requests": requests, "success": success, "attempts": attempts,
        "retries": attempts - requests, "backend_requests": counts.values().sum::<u64>(),
        "us_per_attempt": spent.as_secs_f64() * 1e6 / f64::from(attempts), "answered_by": answered_by,
    }))
}

/// The status, or the failure to report. The body is read to its end, so that the connection can be used again.
async fn get(http: &Http, url: &str, fail: &str) -> Result<u16, u8> {
    let request = hyper::Request::get(url)
        .header("x-fail", fail)
        .body(Empty::new())
        .map_err(|_| failure::LOCAL_RESET)?;
    let response = http.request(request).await.map_err(|error| failure_of(&error))?;
    let status = response.status().as_u16();
    response.collect().await.map_err(|error| failure_of(&error))?;
    Ok(status)
}

async fn lab(http: &Http, method: &str, path: &str) -> Result<bytes::Bytes, Box<dyn Error>> {
    let request = hyper::Request::builder().method(method).uri(format!("{LAB}{path}")).body(Empty::new())?;
    Ok(http.request(request).await?.collect().await?.to_bytes())
}
