//! The hosts of a cluster in their order, and what is kept so that an update need not look at all of them.

use crate::hash::xxh64;
use crate::hosts::HostEntry;
use crate::spec::{Endpoint, Locality};
use std::ops::Deref;
use std::sync::Arc;

/// A host with what decides whether a new endpoint is the same host.
pub(crate) struct HostMember {
    pub(crate) entry: Arc<HostEntry>,
    pub(crate) spec: Endpoint,
    /// Shared with the neighbours.
    pub(crate) locality: Arc<Locality>,
    pub(crate) priority: u32,
}

/// All hosts of a cluster.
pub(crate) struct Roster {
    list: Vec<HostMember>,
    /// What views hold; the same one until somebody comes, goes or moves.
    entries: Arc<[Arc<HostEntry>]>,
    /// Where addresses stand, once somebody asks; void when somebody comes, goes or moves.
    index: Option<Index>,
    highest: u32,
}

impl Default for Roster {
    fn default() -> Self {
        Self { list: Vec::new(), entries: Arc::from([]), index: None, highest: 0 }
    }
}

impl Deref for Roster {
    type Target = [HostMember];

    fn deref(&self) -> &[HostMember] {
        &self.list
    }
}

impl Roster {
    /// The slots' owners, for a view.
    pub(super) fn entries(&self) -> Arc<[Arc<HostEntry>]> {
        Arc::clone(&self.entries)
    }

    /// The highest priority that has hosts; 0 without any.
    pub(super) fn highest(&self) -> u32 {
        self.highest
    }

    /// Takes all hosts out, for [`Roster::set`] to bring back who stays.
    pub(super) fn take(&mut self) -> Vec<HostMember> {
        std::mem::take(&mut self.list)
    }

    /// The same, with the places of their addresses.
    pub(super) fn take_indexed(&mut self) -> (Vec<HostMember>, Index) {
        let index = self.index.take().unwrap_or_else(|| Index::of(&self.list));
        (self.take(), index)
    }

    /// Other hosts, or another order of them.
    pub(super) fn set(&mut self, list: Vec<HostMember>) {
        let same = self.entries.len() == list.len()
            && self.entries.iter().zip(&list).all(|(entry, member)| Arc::ptr_eq(entry, &member.entry));
        if !same {
            self.entries = list.iter().map(|member| Arc::clone(&member.entry)).collect();
        }
        self.highest = list.iter().map(|member| member.priority).max().unwrap_or(0);
        self.index = None;
        self.list = list;
    }

    /// Takes one host out.
    pub(crate) fn remove(&mut self, at: usize) -> HostMember {
        let mut list = self.take();
        let member = list.remove(at);
        self.set(list);
        member
    }

    /// One host is listed otherwise, at the same address.
    pub(super) fn relist(&mut self, at: usize, spec: Endpoint, priority: u32) {
        let member = &mut self.list[at];
        member.spec = spec;
        if std::mem::replace(&mut member.priority, priority) != priority {
            self.highest = self.list.iter().map(|member| member.priority).max().unwrap_or(0);
        }
    }

    /// The first host at an address that `fits` takes, by its slot.
    pub(super) fn find(&mut self, address: &str, fits: impl Fn(u32) -> bool) -> Option<usize> {
        let index = self.index.get_or_insert_with(|| Index::of(&self.list));
        index.find(&self.list, address).find(|at| fits(self.list[*at].entry.slot))
    }
}

/// Places of hosts by address.
pub(super) struct Index {
    /// By hash, with free places behind: the first host at each address, [`NOBODY`] = free.
    table: Vec<u32>,
    /// The next host at the same address; empty while no address stands twice.
    next: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;

impl Index {
    pub(super) fn of(list: &[HostMember]) -> Self {
        let mut index = Self { table: vec![NOBODY; (list.len() * 2).next_power_of_two()], next: Vec::new() };
        // Backwards, so that the first of several comes last and stands before the others.
        for (at, member) in list.iter().enumerate().rev() {
            let place = index.place(list, &member.spec.address);
            let before = std::mem::replace(&mut index.table[place], at as u32);
            if before != NOBODY {
                index.next.resize(list.len(), NOBODY);
                index.next[at] = before;
            }
        }
        index
    }

    /// Where an address stands, or would stand. At least half of the table is free.
    fn place(&self, list: &[HostMember], address: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut place = xxh64(address.as_bytes(), 0) as usize & mask;
        while self.table[place] != NOBODY && list[self.table[place] as usize].spec.address != address {
            place = (place + 1) & mask;
        }
        place
    }

    /// Whether some address stands twice.
    pub(super) fn has_twins(&self) -> bool {
        !self.next.is_empty()
    }

    /// The hosts at an address, in their order.
    pub(super) fn find<'s>(
        &'s self,
        list: &[HostMember],
        address: &str,
    ) -> impl Iterator<Item = usize> + use<'s> {
        let known = |at: u32| (at != NOBODY).then_some(at as usize);
        let first = known(self.table[self.place(list, address)]);
        std::iter::successors(first, move |at| known(self.next.get(*at).copied().unwrap_or(NOBODY)))
    }
}
