//! A small gateway: every request that comes to `PORT` (8080) goes where the Envoy document `CONFIG` says, with its
//! retries, limits and time-outs. Request bodies up to 1 MiB are kept, so that a retry can send them again.

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nexthop::{Checker, Engine, LocalReply, NexthopBody, NexthopLayer, NexthopService};
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use tower_layer::Layer;
use tower_service::Service;

type Http = Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>;
type Body = Either<NexthopBody<Incoming>, Full<Bytes>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = std::env::var("CONFIG").unwrap_or_else(|_| "examples/envoy.yaml".into());
    let port = std::env::var("PORT").map_or(Ok(8080), |text| text.parse())?;
    let mesh = Arc::new(Engine::from_file(config)?);
    // Performs the health checks of the documents, if they have any.
    tokio::spawn(Checker::new(Arc::clone(&mesh)).run());
    let http: Http = Client::builder(TokioExecutor::new()).build_http();
    let upstream = NexthopLayer::new(mesh).layer(http);

    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let upstream = upstream.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| forward(upstream.clone(), request));
            // A client that goes away drops the service's future, which cancels its attempt.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn forward(
    mut upstream: NexthopService<Http>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, 1 << 20).collect().await else {
        let reply = LocalReply { status: 413, ..LocalReply::default() };
        return Ok(local(&reply));
    };
    Ok(match upstream.call(Request::from_parts(head, Full::new(body.to_bytes()))).await {
        Ok(response) => response.map(Either::Left),
        Err(declined) => local(&declined.reply()),
    })
}

/// What Envoy would answer by itself.
fn local(reply: &LocalReply) -> Response<Body> {
    let mut response = Response::new(Either::Right(Full::from(reply.body.clone())));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in &reply.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<hyper::header::HeaderName>(), value.parse()) {
            response.headers_mut().append(name, value);
        }
    }
    response
}
