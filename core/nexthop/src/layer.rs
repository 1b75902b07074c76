//! nexthop around any tower client of HTTP requests.

use crate::attempt::Attempt;
use crate::driver::{Declined, Driver, Reply};
use crate::engine_face::{Engine, Target};
use crate::failures::{AsFailure, failure_of};
use crate::header_block::HeaderBlock;
use crate::raw::{Head, Outcome, failure};
use http_body::{Body, Frame, SizeHint};
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Chooses the host of each request, retries, and ends each attempt with its body.
///
/// The request's authority, path, method and headers are matched in the route tables, unless a target is given.
/// Request bodies must be cloneable, as every attempt sends its own.
#[derive(Clone, Debug)]
pub struct NexthopLayer {
    driver: Driver,
    target: Target,
}

impl NexthopLayer {
    /// Routes by the route tables.
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { driver: Driver::new(engine), target: 0 }
    }

    /// Sends everything to one cluster or route, see [`Engine::resolve`].
    #[must_use]
    pub fn to(mut self, target: Target) -> Self {
        self.target = target;
        self
    }
}

impl<S> Layer<S> for NexthopLayer {
    type Service = NexthopService<S>;

    fn layer(&self, inner: S) -> NexthopService<S> {
        NexthopService { layer: self.clone(), inner }
    }
}

/// A client behind a [`NexthopLayer`].
#[derive(Clone, Debug)]
pub struct NexthopService<S> {
    layer: NexthopLayer,
    inner: S,
}

impl<B> Reply for http::Response<B> {
    fn status(&self) -> u16 {
        self.status().as_u16()
    }

    fn values(&self, name: &str, take: &mut dyn FnMut(&[u8])) {
        self.headers().get_all(name).iter().for_each(|value| take(value.as_bytes()));
    }
}

/// An error of the inner client.
struct Inner<X>(X);

impl<X: Error + 'static> AsFailure for Inner<X> {
    fn as_failure(&self) -> Option<u8> {
        Some(failure_of(&self.0))
    }
}

impl<S, B, Out> Service<http::Request<B>> for NexthopService<S>
where
    S: Service<http::Request<B>, Response = http::Response<Out>> + Clone + Send + 'static,
    S::Error: Error + Send + 'static,
    S::Future: Send,
    B: Clone + Send + Sync + 'static,
    Out: Body + Unpin + Send + 'static,
{
    type Response = http::Response<NexthopBody<Out>>;
    type Error = Declined<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    /// Always: the inner client is asked for each attempt.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let Self { layer: NexthopLayer { driver, target }, inner } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let authority = match parts.uri.authority() {
                Some(authority) => authority.as_str(),
                None => parts.headers.get(http::header::HOST).and_then(|v| v.to_str().ok()).unwrap_or(""),
            };
            let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            let block = HeaderBlock::of_request(driver.engine(), |name, take| {
                parts.headers.get_all(name).iter().for_each(|value| take(value.as_bytes()));
            });
            let head = Head {
                target,
                method: parts.method.as_str(),
                authority,
                path,
                want: block.set().max(1),
                headers: block.bytes(),
                body: 1,
                ..Head::default()
            };
            let (parts, body) = (&parts, &body);
            let sent = driver.run(&head, move |attempt| {
                let request = upstream_request(parts, body.clone(), path, attempt);
                let mut inner = inner.clone();
                async move {
                    std::future::poll_fn(|cx| inner.poll_ready(cx)).await.map_err(Inner)?;
                    inner.call(request).await.map_err(Inner)
                }
            });
            let (response, attempt) = match sent.await {
                Ok(upstream) => upstream.into_parts(),
                Err(Declined::Failed(Inner(error), reply)) => return Err(Declined::Failed(error, reply)),
                Err(Declined::Refused(refusal, reply)) => return Err(Declined::Refused(refusal, reply)),
                Err(Declined::Late(reply)) => return Err(Declined::Late(reply)),
                Err(Declined::Misuse(misuse)) => return Err(Declined::Misuse(misuse)),
            };
            Ok(response.map(|body| {
                let mut body = NexthopBody { inner: body, attempt: Some(attempt) };
                if body.inner.is_end_stream() {
                    body.end();
                }
                body
            }))
        })
    }
}

/// The request of one attempt: the same, at the chosen host, with the headers that the route adds.
fn upstream_request<B>(
    parts: &http::request::Parts,
    body: B,
    path: &str,
    attempt: &Attempt<Arc<Engine>>,
) -> http::Request<B> {
    let extra = attempt.upstream_headers();
    let rewritten = extra.iter().find(|(name, _)| name == ":path").and_then(|(_, value)| value.as_deref());
    let mut request = http::Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.version_mut() = parts.version;
    *request.headers_mut() = parts.headers.clone();
    *request.extensions_mut() = parts.extensions.clone();
    if let Ok(uri) = attempt.url(rewritten.unwrap_or(path)).parse() {
        *request.uri_mut() = uri;
    }
    for (name, value) in &extra {
        let name = if name == ":authority" { "host" } else { name };
        let Ok(name) = http::HeaderName::try_from(name) else { continue };
        match value.as_deref().map(http::HeaderValue::try_from) {
            Some(Ok(value)) => {
                request.headers_mut().insert(name, value);
            }
            Some(Err(_)) => {}
            None => {
                request.headers_mut().remove(name);
            }
        }
    }
    request
}

/// A response body that ends its attempt: at its end, with its error, or (cancelled) when it is dropped early.
#[derive(Debug)]
pub struct NexthopBody<B> {
    inner: B,
    attempt: Option<Attempt<Arc<Engine>>>,
}

impl<B> NexthopBody<B> {
    fn end(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            let now = attempt.engine().now();
            // An attempt that was lost meanwhile has ended anyway.
            let _ = attempt.end(&Outcome::default(), now);
        }
    }

    fn fail(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            let now = attempt.engine().now();
            let _ = attempt.fail(failure::REMOTE_RESET, now);
        }
    }
}

impl<B: Body + Unpin> Body for NexthopBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.end(),
            Poll::Ready(Some(Err(_))) => self.fail(),
            Poll::Ready(Some(Ok(_))) if self.inner.is_end_stream() => self.end(),
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
