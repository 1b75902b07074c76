//! The smallest engine that still does the physical work of one routed request (reference M): a host set in an
//! arc-swap snapshot, the better of two random hosts, one count up; later one count down and one success.

use arc_swap::ArcSwap;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A host, alone in its cache lines.
#[derive(Default)]
#[repr(align(128))]
pub struct Host {
    active: AtomicU32,
    ok: AtomicU64,
}

thread_local! { static RANDOM: Cell<u64> = const { Cell::new(0x9E37_79B9_7F4A_7C15) }; }

/// xorshift64 in a thread-local cell.
#[inline(always)]
fn random() -> u64 {
    RANDOM.with(|cell| {
        let mut s = cell.get();
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        cell.set(s);
        s
    })
}

/// The limit.
pub struct Limit {
    hosts: ArcSwap<Vec<Host>>,
}

impl Limit {
    /// With `n` hosts.
    pub fn new(n: usize) -> Self {
        Self { hosts: ArcSwap::new(Arc::new(std::iter::repeat_with(Host::default).take(n).collect())) }
    }

    /// Chooses a host.
    #[inline(always)]
    pub fn pick(&self) -> usize {
        let hosts = self.hosts.load();
        let r = random();
        let n = hosts.len() as u64;
        let (a, b) = ((((r & 0xffff_ffff) * n) >> 32) as usize, (((r >> 32) * n) >> 32) as usize);
        let i = if hosts[a].active.load(Relaxed) <= hosts[b].active.load(Relaxed) { a } else { b };
        hosts[i].active.fetch_add(1, Relaxed);
        i
    }

    /// Ends its request.
    #[inline(always)]
    pub fn finish(&self, i: usize) {
        let hosts = self.hosts.load();
        hosts[i].active.fetch_sub(1, Relaxed);
        hosts[i].ok.fetch_add(1, Relaxed);
    }
}
