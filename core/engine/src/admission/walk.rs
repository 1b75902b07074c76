//! Where requests meet gates. All of it is off the way of requests without any.

use super::{Gate, Overlay, Pass};
use crate::clock::Time;
use crate::engine::Core;
use crate::headers::HeaderView;
use crate::policies::{Policies, RequestPolicy};
use crate::request::{State, Walk, is_grpc, would};
use crate::spec::Value;
use std::sync::Arc;

impl Walk<'_> {
    /// Whether requests of this policy to this cluster (`None`: to none) meet gates.
    #[inline]
    pub(crate) fn is_gated(policies: &Policies, policy: &RequestPolicy, cluster: Option<u32>) -> bool {
        !policy.gates.is_empty() || !Self::gates_of(policies, cluster).is_empty()
    }

    #[inline]
    fn gates_of(policies: &Policies, cluster: Option<u32>) -> &[Arc<Gate>] {
        cluster.and_then(|cluster| policies.cluster(cluster)).map_or(&[], |own| &own.gates)
    }

    /// Passes them. `Err`: refused, by number of `outcome::refusal` and status.
    #[cold]
    pub(crate) fn pass_gates(
        &mut self,
        policies: &Policies,
        policy: &RequestPolicy,
        cluster: Option<u32>,
        st: &mut State,
    ) -> Result<(), (u8, u16)> {
        let own = Self::gates_of(policies, cluster);
        let (mut pass, passed) = Pass::through(&policy.gates, own, self.now, self.random);
        for (name, counter) in pass.take_would() {
            // A gate of the cluster's own, so there is one.
            let Some(mine) = cluster.and_then(|cluster| self.clusters.get(cluster as usize)) else {
                continue;
            };
            mine.counters.count_opt(counter);
            self.core.events.push(would(name, &mine.shared.name).end());
        }
        if !pass.is_empty() {
            st.rare().pass = Some(Box::new(pass));
        }
        passed
    }

    /// An upstream's answer is the final one.
    #[cold]
    pub(crate) fn gates_answered(
        &self,
        st: &mut State,
        status: u16,
        grpc: Option<u8>,
        headers: HeaderView<'_>,
        whole: bool,
    ) {
        let now = self.now;
        if let Some(pass) = st.rare.as_deref_mut().and_then(|rare| rare.pass.as_mut()) {
            let is_grpc =
                grpc.is_some() || (status == 200 && headers.first("content-type").is_some_and(is_grpc));
            pass.answered(status, grpc, is_grpc, now);
            if whole {
                pass.completed(None, now);
            }
        }
    }

    /// The final answer's stream came to its end.
    #[cold]
    pub(crate) fn gates_completed(&self, st: &mut State, grpc: Option<u8>) {
        let now = self.now;
        if let Some(pass) = st.rare.as_deref_mut().and_then(|rare| rare.pass.as_mut()) {
            pass.completed(grpc, now);
        }
    }

    /// The final answer is one of ours.
    #[cold]
    pub(crate) fn gates_local(&self, st: &mut State, status: u16) {
        self.gates_answered(st, status, None, HeaderView::EMPTY, true);
    }

    /// The request is done, whatever became of it.
    #[cold]
    pub(crate) fn leave_gates(&mut self, st: &mut State) {
        if let Some(pass) = st.rare.as_deref_mut().and_then(|rare| rare.pass.take())
            && let Some(due) = pass.leave(self.now, self.random)
        {
            self.core.due_by(due);
        }
    }
}

impl Core {
    /// Runs what is due at the gates. Returns when the next of it is.
    pub(crate) fn tick_gates(&self, now: Time) -> Time {
        let gates = self.gates.lock().clone();
        let next = gates.iter().map(|gate| {
            if gate.deadline() <= now {
                gate.tick(now);
            }
            gate.deadline()
        });
        next.min().unwrap_or(Time::NEVER)
    }

    /// Runtime values changed.
    pub(crate) fn set_gates(&self, values: &[(String, Value)]) {
        let gates = self.gates.lock().clone();
        let runtime = Overlay::new(values);
        for gate in &*gates {
            gate.set_runtime(&runtime);
        }
    }

    /// Whether latency decides anywhere, so that time has to come in precisely.
    pub fn measures_latency(&self) -> bool {
        self.gates.lock().iter().any(|gate| gate.measures())
    }
}
