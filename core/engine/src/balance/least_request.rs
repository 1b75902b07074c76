//! least_request (section 14): the least loaded of some hosts, by weight and load when weights differ.

use super::weighted::{Rule, Unweighted};
use crate::hosts::HostArena;
use crate::random::{Random, Source};
use crate::spec::{LocalityBalancing, PolicySpec, SelectionMethod};

/// The rule of least_request.
pub(super) struct LeastRequest {
    choice_count: u32,
    bias: f64,
    selection: SelectionMethod,
}

impl Rule for LeastRequest {
    fn new(policy: &PolicySpec) -> (Self, &LocalityBalancing) {
        match policy {
            PolicySpec::LeastRequest { choice_count, active_request_bias, selection, locality, .. } => {
                // Negative and NaN biases act as the default.
                let bias = if *active_request_bias >= 0.0 { *active_request_bias } else { 1.0 };
                (Self { choice_count: *choice_count, bias, selection: *selection }, locality)
            }
            _ => (
                Self { choice_count: 2, bias: 1.0, selection: SelectionMethod::NChoices },
                &LocalityBalancing::None,
            ),
        }
    }

    #[inline]
    fn weight(&self, slot: u32, hosts: &HostArena) -> f64 {
        dynamic_weight(hosts.weight(slot), u64::from(hosts.load(slot).active()), self.bias)
    }

    #[inline]
    fn unweighted(&self, list: Unweighted<'_>, random: &mut Source, hosts: &HostArena) -> Option<u32> {
        match self.selection {
            // Told apart once, so that the draws of the common generator stay in registers.
            SelectionMethod::NChoices => match random {
                Source::Xoshiro(random) => self.sample(&list, random, hosts),
                random => self.sample(&list, random, hosts),
            },
            SelectionMethod::FullScan => scan(list.hosts, random, hosts),
        }
    }
}

impl LeastRequest {
    /// The better of `choice_count` draws, the earlier one on a tie. Draws may meet the same host.
    #[inline]
    fn sample(&self, list: &Unweighted<'_>, random: &mut impl Random, hosts: &HostArena) -> Option<u32> {
        if self.choice_count == 0 {
            return None;
        }
        let mut best = list.at(random.next_u64())?;
        let mut least = hosts.load(best).active();
        let mut left = self.choice_count - 1;
        while left > 0 {
            left -= 1;
            let sample = list.at(random.next_u64())?;
            let active = hosts.load(sample).active();
            if active < least {
                (best, least) = (sample, active);
            }
        }
        Some(best)
    }
}

/// The least loaded of all; each of several equal ones is as likely, at one draw per tie met on the way.
#[inline(never)]
fn scan(list: &[u32], random: &mut Source, hosts: &HostArena) -> Option<u32> {
    let (&first, rest) = list.split_first()?;
    let mut best = first;
    let mut least = hosts.load(first).active();
    let mut tied = 1_u64;
    for &slot in rest {
        let active = hosts.load(slot).active();
        if active < least {
            (best, least, tied) = (slot, active, 1);
        } else if active == least {
            tied += 1;
            if random.next_u64().is_multiple_of(tied) {
                best = slot;
            }
        }
    }
    Some(best)
}

/// A host's weight, the less the more requests it has. `bias` is the exponent.
#[expect(clippy::float_cmp, reason = "the two biases that need no power are exact values")]
#[inline]
pub(super) fn dynamic_weight(weight: u32, active: u64, bias: f64) -> f64 {
    let weight = f64::from(weight);
    let active = active.saturating_add(1) as f64;
    if bias == 1.0 {
        weight / active
    } else if bias == 0.0 {
        weight
    } else {
        weight / active.powf(bias)
    }
}
