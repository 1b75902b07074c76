//! Tasks that wait for their request's turn. Whoever completes, wakes: no thread stands behind this.

use crate::raw::{self, Ready};
use nexthop_engine::sync::Mutex;
use std::collections::{HashMap, VecDeque};
#[cfg(feature = "tokio")]
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire};
use std::task::Waker;

/// Ready requests without a waker that are kept for [`take`](Wakers::take).
const SPARE: usize = 1024;

#[derive(Default)]
pub(crate) struct Wakers {
    waiting: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_request: HashMap<u64, Waker>,
    /// Ready requests of callers who wait by other means.
    spare: VecDeque<Ready>,
}

impl Wakers {
    /// Who is woken when this request's turn comes. Ask once more after this: the turn may have come before.
    #[cfg(feature = "tokio")]
    pub(crate) fn register(&self, request: u64, waker: &Waker) {
        let mut inner = self.inner.lock();
        match inner.by_request.get_mut(&request) {
            Some(known) => known.clone_from(waker),
            None => {
                inner.by_request.insert(request, waker.clone());
                self.waiting.fetch_add(1, AcqRel);
            }
        }
    }

    /// The request waits no longer.
    #[cfg(feature = "tokio")]
    pub(crate) fn forget(&self, request: u64) {
        if self.inner.lock().by_request.remove(&request).is_some() {
            self.waiting.fetch_sub(1, AcqRel);
        }
    }

    /// Wakes the tasks whose turn has come.
    pub(crate) fn wake(&self, engine: u64) {
        if self.waiting.load(Acquire) == 0 {
            return;
        }
        let mut ready = [Ready::default(); 16];
        loop {
            let Ok(n) = raw::with_local(|local| raw::poll_ready(local, engine, &mut ready)) else { return };
            let mut woken = Vec::with_capacity(n);
            let mut inner = self.inner.lock();
            for ready in &ready[..n] {
                match inner.by_request.get(&ready.request) {
                    Some(waker) => woken.push(waker.clone()),
                    None => {
                        if inner.spare.len() == SPARE {
                            inner.spare.pop_front();
                        }
                        inner.spare.push_back(*ready);
                    }
                }
            }
            // Wakers are foreign code: none runs under the lock.
            drop(inner);
            woken.into_iter().for_each(Waker::wake);
            if n < ready.len() {
                return;
            }
        }
    }

    /// Wakes all: a clock was moved by hand.
    pub(crate) fn wake_all(&self) {
        let all: Vec<Waker> = self.inner.lock().by_request.values().cloned().collect();
        all.into_iter().for_each(Waker::wake);
    }

    /// Ready requests that have no waker here.
    pub(crate) fn take(&self, engine: u64, out: &mut Vec<Ready>) {
        self.wake(engine);
        out.extend(self.inner.lock().spare.drain(..));
        let mut ready = [Ready::default(); 16];
        while let Ok(n) = raw::with_local(|local| raw::poll_ready(local, engine, &mut ready)) {
            let mut woken = Vec::new();
            let inner = self.inner.lock();
            for ready in &ready[..n] {
                match inner.by_request.get(&ready.request) {
                    Some(waker) => woken.push(waker.clone()),
                    None => out.push(*ready),
                }
            }
            drop(inner);
            woken.into_iter().for_each(Waker::wake);
            if n < ready.len() {
                return;
            }
        }
    }
}
