//! Only wanted headers cross into the engine.

use crate::engine_face::Engine;
use nexthop_engine::headers::pack;

/// The wanted headers of one request or response, picked out of whatever holds them all.
///
/// ```
/// use nexthop::{Engine, HeaderBlock, RequestHead};
///
/// let mesh = Engine::from_text("clusters: {web: {hosts: [10.0.0.1:80], policy: {maglev: {}}, hash: [{header: x-user}]}}")?;
/// let incoming = [("x-user", "42"), ("accept", "*/*")];
/// let block = HeaderBlock::of_request(&mesh, |name, take| {
///     incoming.iter().filter(|(key, _)| *key == name).for_each(|(_, value)| take(value.as_bytes()));
/// });
/// let head = RequestHead {
///     target: mesh.resolve("web")?,
///     want: block.set(),
///     headers: block.bytes(),
///     ..RequestHead::default()
/// };
/// # let _ = mesh.request(&head, mesh.now());
/// # Ok::<(), nexthop::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HeaderBlock {
    set: u32,
    bytes: Vec<u8>,
}

impl HeaderBlock {
    /// The headers that routes and hash policies read. `values` calls its second argument with each value of the
    /// header it is asked for (a lower-case name).
    pub fn of_request(engine: &Engine, values: impl FnMut(&str, &mut dyn FnMut(&[u8]))) -> Self {
        Self::over(engine, 0, values)
    }

    /// The headers of the numbered set (a plan's `want_ok` or `want_err`).
    pub fn over(engine: &Engine, set: u32, mut values: impl FnMut(&str, &mut dyn FnMut(&[u8]))) -> Self {
        let Some((set, names)) = engine.wanted(set) else { return Self::default() };
        let mut bytes = Vec::new();
        for (index, name) in (0u16..).zip(names.iter()) {
            values(name, &mut |value| pack(&mut bytes, index, value));
        }
        Self { set, bytes }
    }

    /// Number of the set, for [`RequestHead::want`](crate::RequestHead::want).
    pub fn set(&self) -> u32 {
        self.set
    }

    /// The block itself; empty when no wanted header is present.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
