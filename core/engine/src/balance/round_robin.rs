//! round_robin (section 13): hosts in turn, by weight when weights differ.

use super::weighted::{Rule, Unweighted};
use crate::hosts::HostArena;
use crate::random::Source;
use crate::spec::{LocalityBalancing, PolicySpec};

/// The rule of round_robin.
pub(super) struct RoundRobin;

impl Rule for RoundRobin {
    fn new(policy: &PolicySpec) -> (Self, &LocalityBalancing) {
        match policy {
            PolicySpec::RoundRobin { locality, .. } => (Self, locality),
            PolicySpec::ClientSideWeighted(spec) => (Self, &spec.locality),
            _ => (Self, &LocalityBalancing::None),
        }
    }

    #[inline]
    fn weight(&self, slot: u32, hosts: &HostArena) -> f64 {
        f64::from(hosts.weight(slot))
    }

    #[inline]
    fn unweighted(&self, list: Unweighted<'_>, _: &mut Source, _: &HostArena) -> Option<u32> {
        let host = list.at(*list.turn);
        *list.turn = list.turn.wrapping_add(1);
        host
    }
}
