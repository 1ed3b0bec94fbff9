//! The calls of concurrent clients with their answers, and whether a single store could have given these answers.
//!
//! Clients note the beginning and the end of every call in a [`History`]. A check then looks, entity by entity and
//! partition by partition, for an order of the calls that a single store obeys and that does not contradict real
//! time (linearizability, after Wing and Gong, with Lowe's memory of what was tried). Every write carries a value of
//! its own, so a read shows which write it saw. A call without a clear answer (500, 503, a broken connection) may
//! have happened at any later time, once, or never.
//!
//! [`entity`] holds the rules of one entity, [`partition`] those of transactions, `search` the search, and
//! [`Load`] random clients over HTTP that write a history.

pub mod entity;
mod load;
pub mod partition;
mod search;
#[cfg(test)]
mod tests;

pub use load::{Load, Targets, Totals};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What a write stores: no two writes store the same.
pub type Value = u64;
/// The version of a row, as its etag says it.
pub type Version = u64;

/// When a call was under way, in steps that all clients share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Who called.
    pub client: usize,
    /// Before the request was sent.
    pub begin: u64,
    /// After its answer came.
    pub end: u64,
}

/// Why a store refused a write, which then changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such row.
    NotFound,
    /// There is such a row.
    Exists,
    /// The row has another version.
    ConditionFailed,
}

/// The condition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// None.
    Any,
    /// There is no such row.
    Absent,
    /// There is such a row.
    Present,
    /// The row has this version.
    Version(Version),
}

/// What a history shows that no store may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two writes that named the same version both succeeded.
    LostUpdate,
    /// A read, begun after a write was acknowledged, saw what that write had replaced.
    StaleRead,
    /// One write is seen under two versions.
    AppliedTwice,
    /// A read saw a row that was removed before, by a delete that was acknowledged.
    Resurrected,
    /// An acknowledged write is not there, and nothing removed or replaced it.
    LostWrite,
    /// Two writes of a row had the same version, or a later write had a lower one.
    VersionReused,
    /// A read saw a value that no client had written by then.
    Phantom,
    /// Some rows of a transaction are there and others are not.
    HalfTransaction,
    /// No order of the calls explains all answers, for another reason.
    NotLinearizable,
    /// The search gave up: the history has too many calls at once or too many without an answer.
    Undecided,
}

/// One thing that is wrong with a history.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What it is.
    pub kind: Kind,
    /// The entity or partition.
    pub place: String,
    /// The calls that show it.
    pub evidence: String,
}

/// What a store promises of the versions of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// Each is greater than every one that the row ever had.
    #[default]
    Rise,
    /// The same while the row is there. A row that is stored again after it was deleted may have a lower one, though
    /// never one that was used: a store of several servers stamps a write before it knows what became of the row.
    RiseUntilDeleted,
}

/// A history in the making. Clients share it.
#[derive(Debug, Default)]
pub struct History {
    versions: Versions,
    steps: AtomicU64,
    values: AtomicU64,
    entities: Mutex<BTreeMap<String, Vec<entity::Call>>>,
    partitions: Mutex<BTreeMap<String, Vec<partition::Call>>>,
}

impl History {
    /// A history of a store that promises this of its versions.
    #[must_use]
    pub fn new(versions: Versions) -> Self {
        Self { versions, ..Self::default() }
    }

    /// The present step, for the beginning or the end of a call; no two are the same.
    pub fn step(&self) -> u64 {
        self.steps.fetch_add(1, SeqCst)
    }

    /// A value that no write has had.
    pub fn value(&self) -> Value {
        self.values.fetch_add(1, SeqCst) + 1
    }

    /// Notes a call on an entity.
    pub fn entity(&self, name: &str, call: entity::Call) {
        let mut entities = self.entities.lock().expect("no panic while locked");
        entities.entry(name.to_owned()).or_default().push(call);
    }

    /// Notes a call on a whole partition.
    pub fn partition(&self, name: &str, call: partition::Call) {
        let mut partitions = self.partitions.lock().expect("no panic while locked");
        partitions.entry(name.to_owned()).or_default().push(call);
    }

    /// The entities and the partitions that were called.
    #[must_use]
    pub fn places(&self) -> (Vec<String>, Vec<String>) {
        let entities = self.entities.lock().expect("no panic while locked").keys().cloned().collect();
        let partitions = self.partitions.lock().expect("no panic while locked").keys().cloned().collect();
        (entities, partitions)
    }

    /// All that is wrong. Entities are independent of each other, and so are partitions.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let entities = self.entities.lock().expect("no panic while locked");
        let partitions = self.partitions.lock().expect("no panic while locked");
        let of_entities = entities.iter().flat_map(|(name, calls)| entity::check(name, calls, self.versions));
        of_entities
            .chain(partitions.iter().flat_map(|(name, calls)| partition::check(name, calls, self.versions)))
            .collect()
    }

    /// Checks the history.
    ///
    /// # Panics
    /// If anything is wrong with it, with the calls that show it.
    #[track_caller]
    pub fn check(&self) {
        let violations = self.violations();
        let evidence: Vec<String> = violations.iter().take(5).map(Violation::to_string).collect();
        assert!(violations.is_empty(), "{} violations, such as\n{}", violations.len(), evidence.join("\n"));
    }
}

impl Condition {
    /// Why the condition does not hold for a row of this version, or for no row; nothing if it holds. A version that
    /// no answer ever named is `Some(None)`: no condition names it either.
    fn refusal(self, found: Option<Option<Version>>) -> Option<Refusal> {
        match (self, found) {
            (Self::Any, _) | (Self::Absent, None) | (Self::Present, Some(_)) => None,
            (Self::Absent, Some(_)) => Some(Refusal::Exists),
            (Self::Present | Self::Version(_), None) => Some(Refusal::NotFound),
            (Self::Version(expected), Some(found)) => (found != Some(expected)).then_some(Refusal::ConditionFailed),
        }
    }
}

impl Violation {
    fn new(kind: Kind, place: &str, evidence: impl Into<String>) -> Self {
        Self { kind, place: place.to_owned(), evidence: evidence.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}:\n{}", self.kind, self.place, self.evidence)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:>6}..{:<6} client {:>2}", self.begin, self.end, self.client)
    }
}
