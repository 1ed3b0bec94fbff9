//! Random sequences of operations, run on an engine and on a `BTreeMap`; the two must agree after each step.
//!
//! [`steps`] draws a sequence, [`run`] runs it. The model orders keys by vectors of UTF-16 units, so it shares
//! no code with what it checks. A [`Harness`] holds the engine and can close and open it again.

use super::rows::{NOW, page, rows_budget};
use larimar_engine::{
    Act, Budget, Changed, Engine, Expect, Key, KeyRange, Op, Position, ReadError, Reject, SpaceId, SpaceKind,
    SpaceName, WriteError,
};
use larimar_model::Timestamp;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An engine that can be closed and opened again.
pub trait Harness {
    /// The engine's type.
    type Engine: Engine;

    /// The open engine.
    fn engine(&self) -> &Self::Engine;

    /// Closes the engine and opens it again on the same data.
    fn restart(&mut self) -> impl Future<Output = ()>;
}

/// One step of a sequence. Numbers choose among few names, so that steps meet.
#[derive(Clone, Debug)]
pub enum Step {
    /// Creates a space of this name with these bytes.
    Create(u8, Vec<u8>),
    /// Drops a space.
    Drop(u8),
    /// Changes the bytes of a space.
    Change(u8, Vec<u8>),
    /// Applies a batch to a partition of a space that is or was there, after turning the clock by so many
    /// seconds.
    Apply(u8, u8, Vec<(u8, Condition, Action)>, i16),
    /// Scans a range with a budget of rows.
    Scan(u8, (u8, u8), Option<(u8, u8)>, u8),
    /// Lists spaces from a name on.
    List(u8, u8),
    /// Closes and opens the engine.
    Restart,
}

/// The condition of an operation, in terms of what the model holds.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the variants are those of Expect, with a right and a wrong version")]
pub enum Condition {
    Any,
    Absent,
    Present,
    Current,
    Stale,
}

/// What an operation does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Puts bytes.
    Put(Vec<u8>),
    /// Edits the row: its old bytes and one more.
    Append(u8),
    /// An edit that refuses.
    Refuse,
    /// Removes the row.
    Delete,
    /// Only asks.
    Check,
}

/// Sequences of steps, with restarts among them or not.
pub fn steps(restarts: bool) -> impl Strategy<Value = Vec<Step>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    let condition = prop_oneof![
        4 => Just(Condition::Any), 1 => Just(Condition::Absent), 1 => Just(Condition::Present),
        2 => Just(Condition::Current), 1 => Just(Condition::Stale)
    ];
    let action = prop_oneof![
        5 => bytes().prop_map(Action::Put), 3 => any::<u8>().prop_map(Action::Append), 1 => Just(Action::Refuse),
        3 => Just(Action::Delete), 1 => Just(Action::Check)
    ];
    let ops = prop::collection::vec((any::<u8>(), condition, action), 1..6);
    let place = || (any::<u8>(), any::<u8>());
    prop::collection::vec(
        prop_oneof![
            3 => (any::<u8>(), bytes()).prop_map(|(name, meta)| Step::Create(name, meta)),
            1 => any::<u8>().prop_map(Step::Drop),
            1 => (any::<u8>(), bytes()).prop_map(|(name, meta)| Step::Change(name, meta)),
            20 => (any::<u8>(), any::<u8>(), ops, -50i16..50).prop_map(|(s, p, ops, turn)| Step::Apply(s, p, ops, turn)),
            5 => (any::<u8>(), place(), prop::option::of(place()), any::<u8>())
                .prop_map(|(s, start, end, max)| Step::Scan(s, start, end, max)),
            1 => (any::<u8>(), any::<u8>()).prop_map(|(from, max)| Step::List(from, max)),
            u32::from(restarts) => Just(Step::Restart),
        ],
        1..120,
    )
    .prop_map(move |mut steps| {
        if !restarts {
            steps.retain(|step| !matches!(step, Step::Restart));
        }
        steps
    })
}

/// Runs a sequence on an engine and on the model, and compares every answer and, at the end, everything.
pub async fn run(harness: &mut impl Harness, steps: &[Step]) {
    let mut model = Model { ids: vec![SpaceId::SYSTEM], clock: NOW, ..Model::default() };
    for step in steps {
        if matches!(step, Step::Restart) {
            harness.restart().await;
            model.compare_all(harness.engine()).await;
        } else {
            model.step(harness.engine(), step).await;
        }
    }
    model.compare_all(harness.engine()).await;
    harness.restart().await;
    model.compare_all(harness.engine()).await;
}

type Units = Vec<u16>;
type Place = (SpaceId, Units, Units);

struct Model {
    spaces: BTreeMap<String, (SpaceId, Vec<u8>)>,
    rows: BTreeMap<Place, (Timestamp, Vec<u8>)>,
    /// The last version that each row ever had.
    newest: BTreeMap<Place, Timestamp>,
    /// Every number ever given out, so that steps also name dropped ones.
    ids: Vec<SpaceId>,
    clock: Timestamp,
}

impl Default for Model {
    fn default() -> Self {
        Self { spaces: BTreeMap::new(), rows: BTreeMap::new(), newest: BTreeMap::new(), ids: Vec::new(), clock: NOW }
    }
}

const NAMES: &[&str] = &["alpha", "beta", "alphabet", "Beta"];
const TEXTS: &[&str] = &["", "a", "a\0", "ab", "b", "\u{1F600}", "\u{e000}", "\u{ffff}", "\0", "日本", "z"];

fn pick<'a>(from: &[&'a str], number: u8) -> &'a str {
    from[usize::from(number) % from.len()]
}

fn space_name(number: u8) -> SpaceName<'static> {
    SpaceName { account: "account", kind: SpaceKind::Table, name: pick(NAMES, number) }
}

fn units(text: &str) -> Units {
    text.encode_utf16().collect()
}

impl Model {
    async fn step(&mut self, engine: &impl Engine, step: &Step) {
        match step {
            Step::Create(name, meta) => self.create(engine, space_name(*name), meta).await,
            Step::Drop(name) => {
                let name = space_name(*name);
                let expected = self.spaces.remove(name.name);
                if let Some((id, _)) = &expected {
                    self.rows.retain(|(space, _, _), _| space != id);
                }
                assert_eq!(engine.drop_space(name).await, Ok(expected.is_some()));
            }
            Step::Change(name, meta) => {
                let name = space_name(*name);
                let old = self.spaces.get_mut(name.name).map(|(_, old)| std::mem::replace(old, meta.clone()));
                let expected = if old.is_some() { Changed::Yes } else { Changed::Missing };
                let changed = engine.change_space(name, old.as_deref().unwrap_or_default(), meta).await;
                assert_eq!(changed, Ok(expected));
            }
            Step::Apply(space, partition, ops, turn) => {
                let (turn, is_back) = (Duration::from_secs(u64::from(turn.unsigned_abs())), *turn < 0);
                self.clock = if is_back { self.clock.before(turn) } else { self.clock.after(turn) };
                self.apply(engine, self.id(*space), pick(TEXTS, *partition), ops).await;
            }
            Step::Scan(space, start, end, max) => {
                let position = |(partition, row): (u8, u8)| Position::new(pick(TEXTS, partition), pick(TEXTS, row));
                let range = KeyRange { start: position(*start), end: end.map(position) };
                self.scan(engine, self.id(*space), &range, rows_budget(usize::from(*max % 12))).await;
            }
            Step::List(from, max) => self.list(engine, pick(NAMES, *from), usize::from(*max % 6)).await,
            Step::Restart => unreachable!("restarts are the harness's"),
        }
    }

    fn id(&self, number: u8) -> SpaceId {
        // Mostly a space that is there, if there is one.
        let live: Vec<SpaceId> = self.spaces.values().map(|(id, _)| *id).collect();
        let from = if number.is_multiple_of(8) || live.is_empty() { &self.ids } else { &live };
        from[usize::from(number / 8) % from.len()]
    }

    fn is_live(&self, space: SpaceId) -> bool {
        space == SpaceId::SYSTEM || self.spaces.values().any(|(id, _)| *id == space)
    }

    async fn create(&mut self, engine: &impl Engine, name: SpaceName<'_>, meta: &[u8]) {
        let made = engine.create_space(name, meta).await.expect("no fault");
        assert_eq!(made.is_some(), !self.spaces.contains_key(name.name));
        if let Some(id) = made {
            assert!(!self.ids.contains(&id), "{id:?} was used before");
            self.ids.push(id);
            self.spaces.insert(name.name.to_owned(), (id, meta.to_vec()));
        }
    }

    async fn apply(&mut self, engine: &impl Engine, space: SpaceId, partition: &str, ops: &[(u8, Condition, Action)]) {
        let mut seen = BTreeSet::new();
        let ops: Vec<_> = ops.iter().filter(|(row, ..)| seen.insert(pick(TEXTS, *row))).collect();
        let expects: Vec<Expect> =
            ops.iter().map(|(row, condition, _)| self.expect(space, partition, *row, *condition)).collect();
        let edits: Vec<_> = ops.iter().map(|(_, _, action)| edit_of(action)).collect();
        let batch: Vec<Op<'_>> = ops
            .iter()
            .zip(&expects)
            .zip(&edits)
            .map(|(((row, _, action), expect), edit)| Op {
                row: pick(TEXTS, *row),
                expect: *expect,
                act: match action {
                    Action::Put(body) => Act::Put(body),
                    Action::Append(_) | Action::Refuse => Act::Edit(edit),
                    Action::Delete => Act::Delete,
                    Action::Check => Act::Check,
                },
            })
            .collect();
        let expected = self.plan(space, partition, &batch);
        let answer = engine.apply(space, partition, &batch, self.clock).await;
        match (answer, expected) {
            (Ok(versions), Ok(changes)) => self.accept(&versions, changes),
            (Err(error), Err(expected)) => assert_eq!(error, expected),
            (answer, expected) => panic!("the engine says {answer:?}, the model {expected:?}"),
        }
    }

    fn expect(&self, space: SpaceId, partition: &str, row: u8, condition: Condition) -> Expect {
        let current = self.rows.get(&(space, units(partition), units(pick(TEXTS, row)))).map(|(version, _)| *version);
        match condition {
            Condition::Any => Expect::Any,
            Condition::Absent => Expect::Absent,
            Condition::Present => Expect::Present,
            Condition::Current => Expect::Version(current.unwrap_or(self.clock)),
            Condition::Stale => Expect::Version(Timestamp::from_ticks(current.map_or(1, |v| v.ticks() - 1))),
        }
    }

    /// What the batch does to each of its rows, or why it fails.
    fn plan(&self, space: SpaceId, partition: &str, batch: &[Op<'_>]) -> Result<Vec<(Place, Change)>, WriteError> {
        if !self.is_live(space) {
            return Err(WriteError::SpaceGone);
        }
        let mut changes = Vec::new();
        for (op, asked) in batch.iter().enumerate() {
            let place = (space, units(partition), units(asked.row));
            let current = self.rows.get(&place);
            let found = current.map(|(version, _)| *version);
            let holds = match asked.expect {
                Expect::Any => true,
                Expect::Absent => found.is_none(),
                Expect::Present => found.is_some(),
                Expect::Version(version) => found == Some(version),
            };
            if !holds {
                return Err(WriteError::Condition { op, found });
            }
            let change = match asked.act {
                Act::Put(body) => Change::Put(body.to_vec()),
                Act::Edit(edit) => match edit(current.map(|(_, body)| body.as_slice())) {
                    Ok(body) => Change::Put(body),
                    Err(reason) => return Err(WriteError::Refused { op, reason }),
                },
                Act::Delete => Change::Remove,
                Act::Check => Change::None,
            };
            changes.push((place, change));
        }
        Ok(changes)
    }

    fn accept(&mut self, versions: &[Timestamp], changes: Vec<(Place, Change)>) {
        assert_eq!(versions.len(), changes.len());
        for (version, (place, change)) in versions.iter().zip(changes) {
            match change {
                Change::Put(body) => {
                    let newest = self.newest.insert(place.clone(), *version);
                    assert!(newest.is_none_or(|newest| newest < *version), "{version} after {newest:?} for {place:?}");
                    assert!(*version >= self.clock, "{version} is before the clock");
                    self.rows.insert(place, (*version, body));
                }
                Change::Remove => drop(self.rows.remove(&place)),
                Change::None => {}
            }
        }
    }

    async fn scan(&self, engine: &impl Engine, space: SpaceId, range: &KeyRange, budget: Budget) {
        let start = (space, units(&range.start.partition), units(&range.start.row));
        let is_inside = |(of, partition, row): &Place| {
            *of == space
                && range.end.as_ref().is_none_or(|end| (partition, row) < (&units(&end.partition), &units(&end.row)))
        };
        let expected: Vec<_> = self.rows.range(start..).take_while(|(place, _)| is_inside(place)).collect();
        if !self.is_live(space) {
            let scan = engine.scan(space, range, budget, |_| panic!("a row of a dropped space"));
            assert_eq!(scan.await, Err(ReadError::SpaceGone));
            return;
        }
        let (found, resume) = page(engine, space, range, budget).await;
        let visited = expected.len().min(budget.rows_max.max(1));
        let found: Vec<_> = found
            .into_iter()
            .map(|row| ((space, units(&row.partition), units(&row.row)), (row.version, row.body)))
            .collect();
        let found: Vec<_> = found.iter().map(|(place, row)| (place, row)).collect();
        assert_eq!(found, expected[..visited]);
        let resume = resume.map(|position| (space, units(&position.partition), units(&position.row)));
        assert_eq!(resume.as_ref(), expected.get(visited).map(|(place, _)| *place));
    }

    async fn list(&self, engine: &impl Engine, from: &str, max: usize) {
        let found = engine.list_spaces(SpaceName { name: from, ..space_name(0) }, max).await.expect("no fault");
        let found: Vec<_> = found.iter().map(|(name, space)| (name, space.id, &*space.meta)).collect();
        let expected = self.spaces.range(from.to_owned()..).take(max);
        let expected: Vec<_> = expected.map(|(name, (id, meta))| (name, *id, meta.as_slice())).collect();
        assert_eq!(found, expected);
    }

    /// Compares every space, live and dropped, row by row and by point reads.
    async fn compare_all(&self, engine: &impl Engine) {
        self.list(engine, "", 100).await;
        for id in &self.ids {
            self.scan(engine, *id, &KeyRange::all(), rows_budget(usize::MAX)).await;
        }
        for (place, newest) in &self.newest {
            let (space, partition, row) = place;
            let (partition, row) = (String::from_utf16_lossy(partition), String::from_utf16_lossy(row));
            let key = Key { space: *space, partition: &partition, row: &row };
            let found = engine.get(key, |found| found.map(|found| (found.version, found.body.to_vec()))).await;
            match found {
                Err(error) => assert_eq!((error, self.is_live(*space)), (ReadError::SpaceGone, false)),
                Ok(found) => assert_eq!(found.as_ref(), self.rows.get(place), "newest was {newest}"),
            }
        }
    }
}

#[derive(Debug)]
enum Change {
    Put(Vec<u8>),
    Remove,
    None,
}

fn edit_of(action: &Action) -> impl Fn(Option<&[u8]>) -> Result<Vec<u8>, Reject> + Send + Sync {
    let byte = if let Action::Append(byte) = action { Some(*byte) } else { None };
    move |old: Option<&[u8]>| {
        let byte = byte.ok_or(Reject::ConditionNotMet)?;
        Ok([old.unwrap_or_default(), &[byte]].concat())
    }
}
