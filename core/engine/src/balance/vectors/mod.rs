//! Every case of the expectation files that this part decides (`tests/vectors/lb`).

mod hashing;
mod hosts;
mod priorities;
mod retries;
mod schedules;
mod starting;
mod subsets;
mod zones;
