//! Ports, connections, control requests.

use crate::behaviour::{Behaviour, Counts, PORTS};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How a lab is set up.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Added to every port.
    pub offset: u16,
    /// Ports (as in [`PORTS`]) that do not listen: connections to them are refused.
    pub refuse: Vec<u16>,
}

/// Listening ports; they stop when this is dropped.
pub struct Lab {
    tasks: JoinSet<()>,
}

impl Lab {
    /// Listens on every port of 127.0.0.1. When this returns, all of them accept connections.
    pub async fn start(settings: &Settings) -> io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let mut tasks = JoinSet::new();
        for (port, behaviour) in PORTS {
            if settings.refuse.contains(&port) {
                continue;
            }
            let named = |error: io::Error, at: &dyn std::fmt::Display| {
                io::Error::new(error.kind(), format!("127.0.0.1:{at}: {error}; is another lab running?"))
            };
            let Some(at) = port.checked_add(settings.offset) else {
                return Err(named(
                    io::ErrorKind::InvalidInput.into(),
                    &format!("{port}+{}", settings.offset),
                ));
            };
            let listener =
                TcpListener::bind((Ipv4Addr::LOCALHOST, at)).await.map_err(|error| named(error, &at))?;
            tasks.spawn(accept(listener, port, behaviour, Arc::clone(&counts)));
        }
        Ok(Self { tasks })
    }

    /// Closes every port and every connection.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn accept(listener: TcpListener, port: u16, behaviour: Behaviour, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, port, behaviour, Arc::clone(&counts)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, port: u16, behaviour: Behaviour, counts: Arc<Counts>) {
    // Answers are one small segment each; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, port, behaviour, &counts));
    // A client that goes away mid-request is no event here.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An error closes the connection without an answer.
async fn answer(
    request: Request<Incoming>,
    port: u16,
    behaviour: Behaviour,
    counts: &Counts,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let (head, body) = request.into_parts();
    // Read to its end, so that the connection can be kept.
    body.collect().await.map_err(io::Error::other)?;
    match (&head.method, head.uri.path()) {
        (&Method::POST, "/__lab/reset") => {
            counts.reset();
            return Ok(Response::new(Full::from("reset\n")));
        }
        (&Method::GET, "/__lab/counts") => return Ok(Response::new(Full::from(counts.json()))),
        _ => {}
    }
    let answer = behaviour.answer(counts.next(port), &head.headers);
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    let status = answer.status.ok_or_else(|| io::Error::other("asked to close"))?;
    let mut response = Response::new(Full::from(format!("{port}\n")));
    *response.status_mut() = hyper::StatusCode::from_u16(status).map_err(io::Error::other)?;
    Ok(response)
}
