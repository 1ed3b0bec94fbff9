//! The rules of transactions: several rows of one partition written by one value, all or nothing, and rows of it read by
//! one page, which shows them at one moment. What is called a partition here may be several: then pages over all of them
//! have to show one moment too.

use super::search::{Rules, search};
use super::{Condition, Kind, Refusal, Span, Value, Version, Versions, Violation};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A transaction that stores one value in all the rows it puts.
    Transact(Value, Vec<Write>),
    /// A page that shows those of these rows that are there.
    Read(BTreeSet<usize>),
}

/// One operation of a transaction. No two have the same row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The number of the row.
    pub row: usize,
    /// Its condition.
    pub condition: Condition,
    /// Whether the row is removed; it is put otherwise.
    pub is_delete: bool,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The transaction happened; a version for each row it put.
    Done(Vec<Option<Version>>),
    /// The operation of this index was refused, and so the whole.
    Refused(usize, Refusal),
    /// What the page showed.
    Found(BTreeMap<usize, (Value, Version)>),
    /// There was no clear answer: it may have happened, or may happen yet.
    Unknown,
}

/// A call on the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub span: Span,
    /// What was asked.
    pub action: Action,
    /// What was answered.
    pub outcome: Outcome,
}

/// Everything that is wrong with the calls on one partition, which was empty before them.
pub(super) fn check(name: &str, calls: &[Call], promise: Versions) -> Vec<Violation> {
    let mut violations = Vec::new();
    let rules = Partition::new(name, calls, promise, &mut violations);
    for read in calls {
        if let Outcome::Found(rows) = &read.outcome {
            violations.extend(phantom(name, calls, read, rows));
            violations.extend(half(name, calls, read, rows));
            violations.extend(missing(name, calls, read, rows));
        }
    }
    if !violations.is_empty() {
        return violations;
    }
    let start = State { rows: vec![None; rules.rows], last: vec![0; rules.rows] };
    let telling: Vec<Call> =
        calls.iter().filter(|call| !call.is_read() || call.outcome != Outcome::Unknown).cloned().collect();
    violations.extend(search(&rules, start, &telling).violation(name, calls, &telling, list));
    violations
}

/// A value that no transaction under way by then stores in that row.
fn phantom(name: &str, calls: &[Call], read: &Call, rows: &BTreeMap<usize, (Value, Version)>) -> Option<Violation> {
    let is_written = |row: usize, value: Value| {
        let stores = |call: &&Call| call.value() == Some(value) && call.puts(row);
        let write = calls.iter().find(stores);
        write.is_some_and(|call| call.span.begin < read.span.end && !matches!(call.outcome, Outcome::Refused(..)))
    };
    let is_whole = rows.iter().all(|(row, (value, _))| is_written(*row, *value));
    (!is_whole).then(|| Violation::new(Kind::Phantom, name, list(std::slice::from_ref(read))))
}

/// A row that shows a transaction while another row of the transaction shows what was there before.
fn half(name: &str, calls: &[Call], read: &Call, rows: &BTreeMap<usize, (Value, Version)>) -> Option<Violation> {
    let of = |value: Value| calls.iter().find(|call| call.value() == Some(value));
    for (row, (value, _)) in rows {
        let Some(one) = of(*value) else { continue };
        for other in one.rows_put().filter(|other| other != row && read.reads(*other)) {
            let torn = match rows.get(&other) {
                Some((found, _)) if found == value => None,
                // Both put both rows, so whichever came last has both.
                Some((found, _)) => of(*found).filter(|two| two.puts(*row)),
                // Nothing removes the one row without touching the other.
                None => {
                    let explains = |call: &&Call| {
                        call.span.begin < read.span.end
                            && call.removes(other)
                            && !call.removes(*row)
                            && !call.puts(*row)
                    };
                    calls.iter().find(explains).is_none().then_some(one)
                }
            };
            if let Some(two) = torn {
                let calls = [one.clone(), two.clone(), read.clone()];
                return Some(Violation::new(Kind::HalfTransaction, name, list(&calls)));
            }
        }
    }
    None
}

/// An acknowledged transaction's row that a later read does not find though nothing can have removed it.
fn missing(name: &str, calls: &[Call], read: &Call, rows: &BTreeMap<usize, (Value, Version)>) -> Option<Violation> {
    for call in calls.iter().filter(|call| call.span.end < read.span.begin) {
        let Outcome::Done(_) = call.outcome else { continue };
        for row in call.rows_put().filter(|row| read.reads(*row) && !rows.contains_key(row)) {
            let may_remove = |other: &Call| {
                let is_unknown = other.outcome == Outcome::Unknown;
                let is_between = other.span.begin < read.span.end && (is_unknown || other.span.end > call.span.begin);
                other.removes(row) && is_between && !matches!(other.outcome, Outcome::Refused(..))
            };
            if !calls.iter().any(may_remove) {
                let is_near = |other: &&Call| other.span.end >= call.span.begin && other.span.begin <= read.span.end;
                let near: Vec<Call> = calls.iter().filter(is_near).cloned().collect();
                return Some(Violation::new(Kind::LostWrite, name, format!("row {row}\n{}", list(&near))));
            }
        }
    }
    None
}

struct Partition {
    promise: Versions,
    rows: usize,
    versions: HashMap<(usize, Value), Version>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    rows: Vec<Option<Value>>,
    /// The highest version that each row ever had and that is known.
    last: Vec<Version>,
}

impl Partition {
    fn new(name: &str, calls: &[Call], promise: Versions, violations: &mut Vec<Violation>) -> Self {
        let mut partition = Self { promise, rows: 0, versions: HashMap::new() };
        let mut values: HashMap<(usize, Version), Value> = HashMap::new();
        for call in calls {
            partition.rows = call.rows().into_iter().map(|row| row + 1).chain([partition.rows]).max().unwrap_or(0);
            for (row, value, version) in call.seen() {
                let evidence = || list(std::slice::from_ref(call));
                if *partition.versions.entry((row, value)).or_insert(version) != version {
                    violations.push(Violation::new(Kind::AppliedTwice, name, evidence()));
                }
                if *values.entry((row, version)).or_insert(value) != value {
                    violations.push(Violation::new(Kind::VersionReused, name, evidence()));
                }
            }
        }
        partition
    }

    fn version(&self, state: &State, row: usize) -> Option<Option<Version>> {
        state.rows[row].map(|value| self.versions.get(&(row, value)).copied())
    }

    /// The first operation whose condition does not hold.
    fn refusal(&self, state: &State, writes: &[Write]) -> Option<(usize, Refusal)> {
        let refusal = |(index, write): (usize, &Write)| {
            write.condition.refusal(self.version(state, write.row)).map(|refusal| (index, refusal))
        };
        writes.iter().enumerate().find_map(refusal)
    }

    fn write(&self, state: &State, value: Value, writes: &[Write]) -> Option<State> {
        let mut after = state.clone();
        for write in writes {
            after.rows[write.row] = (!write.is_delete).then_some(value);
            if let Some(Some(version)) = self.version(&after, write.row) {
                if version <= state.last[write.row] {
                    return None;
                }
                after.last[write.row] = version;
            }
            if write.is_delete && self.promise == Versions::RiseUntilDeleted {
                after.last[write.row] = 0;
            }
        }
        Some(after)
    }
}

impl Rules for Partition {
    type State = State;
    type Call = Call;

    fn span(&self, call: &Call) -> Span {
        call.span
    }

    fn is_open(&self, call: &Call) -> bool {
        call.outcome == Outcome::Unknown
    }

    fn apply(&self, state: &State, call: &Call) -> Option<State> {
        match (&call.action, &call.outcome) {
            (Action::Transact(_, writes), Outcome::Refused(index, refusal)) => {
                (self.refusal(state, writes) == Some((*index, *refusal))).then(|| state.clone())
            }
            (Action::Transact(value, writes), Outcome::Done(_) | Outcome::Unknown) => {
                self.refusal(state, writes).is_none().then(|| self.write(state, *value, writes)).flatten()
            }
            (Action::Read(asked), Outcome::Found(found)) => {
                let value = |row: usize| state.rows.get(row).copied().flatten();
                let is_so = asked.iter().all(|row| value(*row) == found.get(row).map(|(value, _)| *value));
                is_so.then(|| state.clone())
            }
            _ => None,
        }
    }
}

impl Call {
    const fn value(&self) -> Option<Value> {
        match self.action {
            Action::Transact(value, _) => Some(value),
            Action::Read(_) => None,
        }
    }

    fn writes(&self) -> &[Write] {
        match &self.action {
            Action::Transact(_, writes) => writes,
            Action::Read(_) => &[],
        }
    }

    const fn is_read(&self) -> bool {
        matches!(self.action, Action::Read(_))
    }

    /// Whether a read asked for this row.
    fn reads(&self, row: usize) -> bool {
        matches!(&self.action, Action::Read(rows) if rows.contains(&row))
    }

    fn rows_put(&self) -> impl Iterator<Item = usize> {
        self.writes().iter().filter(|write| !write.is_delete).map(|write| write.row)
    }

    fn puts(&self, row: usize) -> bool {
        self.rows_put().any(|put| put == row)
    }

    fn removes(&self, row: usize) -> bool {
        self.writes().iter().any(|write| write.is_delete && write.row == row)
    }

    /// The rows that the call names.
    fn rows(&self) -> Vec<usize> {
        let found = self.seen().into_iter().map(|(row, ..)| row);
        self.writes().iter().map(|write| write.row).chain(found).collect()
    }

    /// Rows, the value in them and its version, according to the answer.
    fn seen(&self) -> Vec<(usize, Value, Version)> {
        match (&self.action, &self.outcome) {
            (Action::Transact(value, writes), Outcome::Done(versions)) => {
                let pairs = writes.iter().zip(versions);
                pairs.filter_map(|(write, version)| version.map(|version| (write.row, *value, version))).collect()
            }
            (_, Outcome::Found(rows)) => rows.iter().map(|(row, (value, version))| (*row, *value, *version)).collect(),
            _ => Vec::new(),
        }
    }
}

fn list(calls: &[Call]) -> String {
    let mut text = String::new();
    for call in calls {
        let _ = writeln!(text, "{} {:?} -> {:?}", call.span, call.action, call.outcome);
    }
    text
}
