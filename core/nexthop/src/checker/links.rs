//! Connections of checks, kept between them where the check allows it.

use super::OtherCheck;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nexthop_engine::sync::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connection that no check has used for so long is closed: its host may be gone.
const IDLE: Duration = Duration::from_secs(180);

/// Whom a connection belongs to: slot of the host, address, name of the checker.
type Key = (u32, String, String);

/// Idle connections.
#[derive(Default)]
pub(super) struct Links {
    idle: Mutex<BTreeMap<Key, (Link, Instant)>>,
}

/// One connection.
pub(super) enum Link {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// Both directions of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

fn key(check: &OtherCheck) -> Key {
    (check.host_ref().slot, check.address().to_owned(), check.name().to_owned())
}

impl Links {
    /// The idle connection of a check.
    pub(super) fn take(&self, check: &OtherCheck) -> Option<Link> {
        if !check.may_reuse() {
            return None;
        }
        self.idle.lock().remove(&key(check)).map(|(link, _)| link).filter(|link| !link.is_closed())
    }

    /// A connection whose answer has been read whole.
    pub(super) fn keep(&self, check: &OtherCheck, link: Link) {
        if check.may_reuse() {
            let mut idle = self.idle.lock();
            idle.retain(|_, (link, since)| !link.is_closed() && since.elapsed() < IDLE);
            idle.insert(key(check), (link, Instant::now()));
        }
    }
}

impl Link {
    /// A new connection that speaks HTTP.
    pub(super) async fn open(address: &str, http2: bool) -> io::Result<Self> {
        let stream = TokioIo::new(connect(address).await?);
        // The connection lives in a task of its own and ends with its sender.
        if http2 {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), stream).await.map_err(io::Error::other)?;
            tokio::spawn(async move { drop(connection.await) });
            return Ok(Self::Http2(sender));
        }
        let (sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self::Http1(sender))
    }

    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }
}

/// Connects to `ip:port`, `name:port` or the path of a socket.
pub(super) async fn connect(address: &str) -> io::Result<Box<dyn Stream>> {
    #[cfg(unix)]
    if address.starts_with('/') {
        return Ok(Box::new(UnixStream::connect(address).await?));
    }
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
