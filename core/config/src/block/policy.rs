//! Policies that Envoy 1.40 does not have.

use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{Aperture, PeakEwma, PolicySpec};
use std::time::Duration;

const PEAK_EWMA: Fields = Fields::ours("peak_ewma", &["decay", "default_rtt", "choices", "penalty"]);
const RENDEZVOUS_HASH: Fields = Fields::ours("rendezvous_hash", &[]);
const WEIGHTED_RANDOM: Fields = Fields::ours("weighted_random", &[]);
const APERTURE: Fields = Fields::ours("deterministic_aperture", &["size", "id", "peers"]);

/// Such a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnPolicy {
    PeakEwma,
    RendezvousHash,
    DeterministicAperture,
    WeightedRandom,
}

impl OwnPolicy {
    /// By the names people write.
    pub(crate) const ALL: &[(&str, Self)] = &[
        ("peak_ewma", Self::PeakEwma),
        ("rendezvous_hash", Self::RendezvousHash),
        ("deterministic_aperture", Self::DeterministicAperture),
        ("weighted_random", Self::WeightedRandom),
    ];

    /// Reads its fields.
    pub(crate) fn read(self, at: &At<'_>) -> Result<PolicySpec> {
        match self {
            Self::PeakEwma => peak_ewma(at),
            Self::RendezvousHash => at.message(&RENDEZVOUS_HASH).map(|_| PolicySpec::RendezvousHash),
            Self::DeterministicAperture => aperture(at),
            Self::WeightedRandom => at.message(&WEIGHTED_RANDOM).map(|_| PolicySpec::WeightedRandom),
        }
    }
}

/// Reads `policy` of the block: a name, or a mapping from one name to its fields.
pub(super) fn policy(at: &At<'_>) -> Result<PolicySpec> {
    let find = |at: &At<'_>, name: &str| {
        let known = OwnPolicy::ALL.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, policy)| *policy)
            .ok_or_else(|| at.unknown_name("policy", name, OwnPolicy::ALL.iter().map(|(known, _)| *known)))
    };
    at.named_fields("peak_ewma: {decay: 10s}", |at, name, fields| find(at, name)?.read(fields))
}

fn peak_ewma(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&PEAK_EWMA)?;
    let default = PeakEwma::default();
    let positive = |at: &At<'_>| match at.short_millis()? {
        Duration::ZERO => Err(at.expected("a duration of at least 1ms")),
        duration => Ok(duration),
    };
    Ok(PolicySpec::PeakEwma(PeakEwma {
        decay: msg.or("decay", default.decay, positive)?,
        default_rtt: msg.or("default_rtt", default.default_rtt, |d| d.short_millis())?,
        penalty: msg.or("penalty", default.penalty, |d| d.short_millis())?,
        choices: msg.or("choices", default.choices, |n| n.u32_in(1, 1000))?,
    }))
}

fn aperture(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&APERTURE)?;
    let peers = msg.need("peers")?.u32_in(1, u32::MAX)?;
    let id = msg.need("id")?;
    Ok(PolicySpec::DeterministicAperture(Aperture {
        size: msg.or("size", 12, |n| n.u32_in(1, u32::MAX))?,
        id: id.u32_in(0, peers - 1)?,
        peers,
    }))
}
