//! One question, asked.

use super::OtherCheck;
use super::links::{Link, Links, connect};
use crate::check::CheckProtocol;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes of a TCP answer that are kept; more are read and dropped.
const KEPT: usize = 1 << 20;

/// An answer over HTTP.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) trailers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// One request over HTTP or gRPC.
pub(super) async fn request(check: &OtherCheck, links: &Links) -> io::Result<Answer> {
    let http2 = check.protocol() != CheckProtocol::Http;
    let kept = links.take(check);
    let fresh = kept.is_none();
    let mut link = match kept {
        Some(link) => link,
        None => Link::open(check.address(), http2).await?,
    };
    let sent = match link.send(of(check, http2)?).await {
        // The host may have closed the idle connection just now.
        Err(_) if !fresh => {
            link = Link::open(check.address(), http2).await?;
            link.send(of(check, http2)?).await
        }
        sent => sent,
    };
    let (head, mut incoming) = sent.map_err(io::Error::other)?.into_parts();
    let limit = usize::try_from(check.body_limit()).unwrap_or(usize::MAX);
    let (mut body, mut trailers) = (Vec::new(), HeaderMap::new());
    while let Some(frame) = incoming.frame().await {
        match frame.map_err(io::Error::other)?.into_data() {
            Ok(data) => body.extend_from_slice(&data[..data.len().min(limit - body.len())]),
            Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    links.keep(check, link);
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, trailers, body })
}

fn of(check: &OtherCheck, http2: bool) -> io::Result<Request<Full<Bytes>>> {
    let mut request = Request::builder().method(check.method());
    request = if http2 {
        request.uri(format!("http://{}{}", check.authority(), check.path()))
    } else {
        request.uri(check.path()).header(HOST, check.authority())
    };
    for (name, value) in check.headers() {
        request = request.header(name, value);
    }
    let payload = Bytes::copy_from_slice(check.payload());
    request.body(Full::new(payload)).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// A connection that is up, and perhaps answers with the expected bytes. It is reported here.
pub(super) async fn bytes(check: &OtherCheck) -> io::Result<()> {
    let mut stream = connect(check.address()).await?;
    if !check.payload().is_empty() {
        stream.write_all(check.payload()).await?;
        stream.flush().await?;
    }
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    // Over by now is as good as decided.
    while check.data(&received, check.engine().now()) == Ok(false) {
        let n = stream.read(&mut chunk).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received.extend_from_slice(&chunk[..n.min(KEPT - received.len())]);
    }
    Ok(())
}
