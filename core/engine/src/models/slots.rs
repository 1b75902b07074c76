//! Request slots: a value is one thread's at a time, and a slot is one request's.

use super::{both, explore, whole};
use crate::request::slab::{Slab, Stock};
use std::sync::Arc;

/// What a request does: takes a slot, works in it, leaves it parked, and the next one of its worker takes it again.
fn requests(slab: &Arc<Slab>, n: usize) -> Vec<u32> {
    let mut stock = Stock::new(Arc::clone(slab));
    let mut seen = Vec::new();
    for _ in 0..n {
        let mut taken = slab.take(&mut stock, 0).unwrap();
        taken.state.number += 1;
        seen.push(taken.index);
        stock.put(taken.index, slab);
        taken.state.park();
    }
    seen
}

#[test]
fn two_workers_never_have_one_slot() {
    explore(|| {
        let slab = Arc::<Slab>::default();
        let worker = || {
            let slab = Arc::clone(&slab);
            move || requests(&slab, 2)
        };
        let (one, other) = both(worker(), worker());
        // A worker stays at its slot. When both have the same, one was over before the other began.
        assert!(one[0] == one[1] && other[0] == other[1], "{one:?} {other:?}");
        drop(whole(slab));
    });
}

/// Whoever has an old id, and maintenance, look at slots that their owners use and park.
#[test]
fn a_strangers_look_meets_the_owner() {
    explore(|| {
        let slab = Arc::<Slab>::default();
        let mut stock = Stock::new(Arc::clone(&slab));
        let taken = slab.take(&mut stock, 0).unwrap();
        let index = taken.index;
        stock.put(index, &slab);
        taken.state.park();
        let looks = Arc::clone(&slab);
        let stranger = move || {
            let slot = looks.get(index).unwrap();
            let seen = slot.state.lock().map(|mut state| state.number += 1).is_some();
            seen || slot.state.try_lock().map(|mut state| state.number += 1).is_ok()
        };
        let uses = Arc::clone(&slab);
        let owner = move || {
            let mut taken = uses.take(&mut stock, 0).unwrap();
            taken.state.number += 10;
            drop(taken);
        };
        both(stranger, owner);
        let number = slab.get(index).unwrap().state.lock().unwrap().number;
        assert!((10..=12).contains(&number), "{number}");
    });
}
