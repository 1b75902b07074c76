//! Bounded load on top of a ring or table (section 21): a host above its share of the active requests is
//! passed over.

use super::twister::Twister;

/// Requests that the whole cluster may hold: what it has and one more, times the factor, rounded up.
///
/// `factor` is in percent. The arithmetic is 32 bits wide and wraps, as in Envoy.
#[inline]
pub(crate) fn total_slots(active: u32, factor: u32) -> u32 {
    active.wrapping_add(1).wrapping_mul(factor).wrapping_add(99) / 100
}

/// How full a host is; up to 1.0 it takes one more request.
#[inline]
pub(crate) fn load_factor(active: u32, total: u32, weight: f64) -> f64 {
    let slots = (f64::from(total) * weight).ceil().max(1.0);
    f64::from(active) / slots
}

/// The host to use in place of `first`: `first` itself unless it is too full, else the first one of a
/// pseudo-random order that is not, else the least full.
///
/// `order` is room for the numbers of `hosts` hosts; it is reused so that a choice allocates nothing.
#[inline]
pub(crate) fn choose(
    first: u32,
    hosts: u32,
    hash: u64,
    order: &mut Vec<u32>,
    load_factor: impl Fn(u32) -> f64,
) -> u32 {
    let factor = load_factor(first);
    if factor <= 1.0 { first } else { instead_of((first, factor), hosts, hash, order, load_factor) }
}

/// Apart, so that requests to hosts with room do not pay for the generator's place on the stack.
#[inline(never)]
fn instead_of(
    (first, factor): (u32, f64),
    hosts: u32,
    hash: u64,
    order: &mut Vec<u32>,
    load_factor: impl Fn(u32) -> f64,
) -> u32 {
    let (mut best, mut least) = (first, factor);
    let mut probes = Probes::new(hosts, hash, order);
    while let Some(host) = probes.next() {
        if host == first {
            continue;
        }
        let factor = load_factor(host);
        if factor <= 1.0 {
            return host;
        }
        if factor < least {
            (best, least) = (host, factor);
        }
    }
    best
}

/// The order of probes: a shuffle that goes only as far as it is asked.
struct Probes<'a> {
    order: &'a mut Vec<u32>,
    twister: Twister,
    at: usize,
}

impl<'a> Probes<'a> {
    /// Only the low 32 bits of the hash seed the shuffle.
    fn new(hosts: u32, hash: u64, order: &'a mut Vec<u32>) -> Self {
        order.clear();
        order.extend(0..hosts);
        Self { order, twister: Twister::new(hash as u32), at: 0 }
    }

    fn next(&mut self) -> Option<u32> {
        let left = (self.order.len() - self.at) as u64;
        // Words that would favour low positions are drawn again.
        let width = (1_u64 << 32).checked_div(left)?;
        let ahead = loop {
            let ahead = u64::from(self.twister.word()) / width;
            if ahead < left {
                break ahead as usize;
            }
        };
        self.order.swap(self.at, self.at + ahead);
        self.at += 1;
        self.order.get(self.at - 1).copied()
    }
}

/// The whole order of probes.
#[cfg(test)]
pub(crate) fn probe_order(hosts: u32, hash: u64) -> Vec<u32> {
    let mut order = Vec::new();
    let mut probes = Probes::new(hosts, hash, &mut order);
    std::iter::from_fn(|| probes.next()).collect()
}
