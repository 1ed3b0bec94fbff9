//! The rules of one entity: a register with versions that is inserted, replaced, merged, deleted and read.
//!
//! A put stores its value and forgets the merged one, a merge stores its value beside the put one, so a row always
//! shows its last writer, and a merge that lost the row it was merged into is noticed.

use super::search::{Rules, search};
use super::{Condition, Kind, Refusal, Span, Value, Version, Versions, Violation};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Insert (on the condition that there is none), replace, or insert-or-replace.
    Put(Value, Condition),
    /// Merge, or insert-or-merge.
    Merge(Value, Condition),
    /// Delete.
    Delete(Condition),
    /// Read.
    Read,
}

/// What was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The row was written and has this version.
    Written(Version),
    /// The row was removed.
    Removed,
    /// The row was read.
    Found(Row),
    /// The store refused, or there was nothing to read.
    Refused(Refusal),
    /// There was no clear answer: it may have happened, or may happen yet.
    Unknown,
}

/// A row as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What the last put stored; nothing if the row came from a merge.
    pub put: Option<Value>,
    /// What the last merge since then stored.
    pub merged: Option<Value>,
    /// Its version.
    pub version: Version,
}

/// A call on the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub span: Span,
    /// What was asked.
    pub action: Action,
    /// What was answered.
    pub outcome: Outcome,
}

/// Everything that is wrong with the calls on one entity, which was not there before them.
pub(super) fn check(name: &str, calls: &[Call], promise: Versions) -> Vec<Violation> {
    let mut violations = Vec::new();
    let register = Register::new(name, calls, promise, &mut violations);
    violations.extend(updates_lost(name, calls));
    for read in calls {
        if let Outcome::Found(row) = read.outcome {
            violations.extend(register.misread(name, calls, read, row));
        }
        if read.action == Action::Read && read.outcome == Outcome::Refused(Refusal::NotFound) {
            violations.extend(missing(name, calls, read));
        }
    }
    if !violations.is_empty() {
        return violations;
    }
    let start = State { row: None, last: 0 };
    // A read without an answer proves nothing.
    let telling: Vec<Call> =
        calls.iter().copied().filter(|call| call.action != Action::Read || call.outcome != Outcome::Unknown).collect();
    violations.extend(search(&register, start, &telling).violation(name, calls, &telling, list));
    violations
}

/// Two conditional writes that both won on the same version.
fn updates_lost(name: &str, calls: &[Call]) -> Vec<Violation> {
    let mut winners: HashMap<Version, &Call> = HashMap::new();
    let mut violations = Vec::new();
    for call in calls.iter().filter(|call| call.is_acknowledged()) {
        let Some(Condition::Version(version)) = call.condition() else { continue };
        match winners.entry(version) {
            Entry::Occupied(first) => {
                violations.push(Violation::new(Kind::LostUpdate, name, list(&[**first.get(), *call])));
            }
            Entry::Vacant(place) => drop(place.insert(call)),
        }
    }
    violations
}

/// An acknowledged write that a read does not find though no delete can have come between.
fn missing(name: &str, calls: &[Call], read: &Call) -> Option<Violation> {
    let is_after =
        |write: &&Call| write.value().is_some() && write.is_acknowledged() && write.span.end < read.span.begin;
    let write = calls.iter().filter(is_after).max_by_key(|write| write.span.end)?;
    let is_lost = !may_be_deleted(calls, write, read);
    is_lost.then(|| Violation::new(Kind::LostWrite, name, list(&[*write, *read])))
}

/// Whether a delete may have come after one call took effect and before another did.
fn may_be_deleted(calls: &[Call], after: &Call, before: &Call) -> bool {
    calls.iter().any(|delete| {
        let is_unknown = delete.outcome == Outcome::Unknown;
        let is_between = delete.span.begin < before.span.end && (is_unknown || delete.span.end > after.span.begin);
        matches!(delete.action, Action::Delete(_)) && (is_unknown || delete.is_acknowledged()) && is_between
    })
}

/// What all calls together show about the writes.
struct Register {
    promise: Versions,
    versions: HashMap<Value, Version>,
    /// The write of each value, and by when it is known to have happened.
    writes: HashMap<Value, (Call, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// What the last put and the last merge stored.
    row: Option<(Option<Value>, Option<Value>)>,
    /// The highest version that the row ever had and that is known.
    last: Version,
}

impl Register {
    fn new(name: &str, calls: &[Call], promise: Versions, violations: &mut Vec<Violation>) -> Self {
        let mut writes = HashMap::new();
        for call in calls {
            if let Some(value) = call.value() {
                let by = if call.is_acknowledged() { call.span.end } else { u64::MAX };
                writes.insert(value, (*call, by));
            }
        }
        let mut register = Self { promise, versions: HashMap::new(), writes };
        let mut values: HashMap<Version, (Value, Call)> = HashMap::new();
        for call in calls {
            let Some((value, version)) = call.seen() else { continue };
            if let Some((_, by)) = register.writes.get_mut(&value) {
                *by = call.span.end.min(*by);
            }
            if *register.versions.entry(value).or_insert(version) != version {
                let evidence = format!("{}value {value} had another version before\n", list(&[*call]));
                violations.push(Violation::new(Kind::AppliedTwice, name, evidence));
            }
            let (first, by) = *values.entry(version).or_insert((value, *call));
            if first != value {
                violations.push(Violation::new(Kind::VersionReused, name, list(&[by, *call])));
            }
        }
        violations.extend(register.backwards(name, calls));
        register
    }

    /// A write that began after another was acknowledged, and has a lower version.
    fn backwards(&self, name: &str, calls: &[Call]) -> Option<Violation> {
        let mut written: Vec<(&Call, Version)> = calls
            .iter()
            .filter_map(|call| match call.outcome {
                Outcome::Written(version) => Some((call, version)),
                _ => None,
            })
            .collect();
        written.sort_by_key(|(_, version)| *version);
        let mut latest: Option<&Call> = None;
        for (call, _) in written {
            let is_backwards = |lower: &&Call| call.span.end < lower.span.begin && !self.is_excused(calls, call, lower);
            if let Some(lower) = latest.filter(is_backwards) {
                return Some(Violation::new(Kind::VersionReused, name, list(&[*call, *lower])));
            }
            if latest.is_none_or(|lower| lower.span.begin < call.span.begin) {
                latest = Some(call);
            }
        }
        None
    }

    /// What is wrong with a read by itself.
    fn misread(&self, name: &str, calls: &[Call], read: &Call, row: Row) -> Option<Violation> {
        let (write, by) = match row.writer().and_then(|value| self.writes.get(&value)) {
            Some((write, by)) if write.span.begin < read.span.end && !write.is_refused() => (write, *by),
            found => {
                let calls: Vec<Call> = found.map(|(write, _)| *write).into_iter().chain([*read]).collect();
                return Some(Violation::new(Kind::Phantom, name, list(&calls)));
            }
        };
        let is_newer = |call: &&Call| match call.outcome {
            Outcome::Written(version) => {
                version > row.version && call.span.end < read.span.begin && !self.is_excused(calls, call, read)
            }
            _ => false,
        };
        if let Some(newer) = calls.iter().find(is_newer) {
            return Some(Violation::new(Kind::StaleRead, name, list(&[*write, *newer, *read])));
        }
        let removes =
            |call: &&Call| call.outcome == Outcome::Removed && by < call.span.begin && call.span.end < read.span.begin;
        let delete = calls.iter().find(removes)?;
        Some(Violation::new(Kind::Resurrected, name, list(&[*write, *delete, *read])))
    }

    /// Whether a row may have a lower version after one call and by the end of another.
    fn is_excused(&self, calls: &[Call], after: &Call, before: &Call) -> bool {
        self.promise == Versions::RiseUntilDeleted && may_be_deleted(calls, after, before)
    }

    fn version(&self, row: (Option<Value>, Option<Value>)) -> Option<Version> {
        self.versions.get(&row.1.or(row.0)?).copied()
    }
}

impl Rules for Register {
    type State = State;
    type Call = Call;

    fn span(&self, call: &Call) -> Span {
        call.span
    }

    fn is_open(&self, call: &Call) -> bool {
        call.outcome == Outcome::Unknown
    }

    fn apply(&self, state: &State, call: &Call) -> Option<State> {
        let refusal = match call.condition() {
            Some(condition) => condition.refusal(state.row.map(|row| self.version(row))),
            None => state.row.is_none().then_some(Refusal::NotFound),
        };
        match (call.outcome, refusal) {
            (Outcome::Refused(stated), _) => (refusal == Some(stated)).then(|| state.clone()),
            (_, Some(_)) => None,
            (Outcome::Found(row), None) => {
                let is_so = state.row == Some((row.put, row.merged)) && state.last == row.version;
                is_so.then(|| state.clone())
            }
            (Outcome::Written(_) | Outcome::Removed | Outcome::Unknown, None) => self.write(state, call),
        }
    }
}

impl Register {
    fn write(&self, state: &State, call: &Call) -> Option<State> {
        let row = match call.action {
            Action::Put(value, _) => Some((Some(value), None)),
            Action::Merge(value, _) => Some((state.row.and_then(|row| row.0), Some(value))),
            Action::Delete(_) => None,
            Action::Read => return None,
        };
        let version = row.and_then(|row| self.version(row));
        if version.is_some_and(|version| version <= state.last) {
            return None;
        }
        let is_new = row.is_none() && self.promise == Versions::RiseUntilDeleted;
        let last = if is_new { 0 } else { version.unwrap_or(state.last) };
        let after = State { row, last };
        (call.outcome != Outcome::Unknown || after != *state).then_some(after)
    }
}

impl Row {
    const fn writer(&self) -> Option<Value> {
        if self.merged.is_some() { self.merged } else { self.put }
    }
}

impl Call {
    const fn condition(&self) -> Option<Condition> {
        match self.action {
            Action::Put(_, condition) | Action::Merge(_, condition) | Action::Delete(condition) => Some(condition),
            Action::Read => None,
        }
    }

    const fn value(&self) -> Option<Value> {
        match self.action {
            Action::Put(value, _) | Action::Merge(value, _) => Some(value),
            Action::Delete(_) | Action::Read => None,
        }
    }

    /// The write that the answer shows, and its version.
    fn seen(&self) -> Option<(Value, Version)> {
        match self.outcome {
            Outcome::Written(version) => self.value().map(|value| (value, version)),
            Outcome::Found(row) => row.writer().map(|value| (value, row.version)),
            Outcome::Removed | Outcome::Refused(_) | Outcome::Unknown => None,
        }
    }

    const fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Outcome::Written(_) | Outcome::Removed)
    }

    const fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(_))
    }
}

fn list(calls: &[Call]) -> String {
    let mut text = String::new();
    for call in calls {
        let _ = writeln!(text, "{} {:?} -> {:?}", call.span, call.action, call.outcome);
    }
    text
}
