//! The catalogue of spaces and the engine's other records.
//!
//! ```text
//! 00                           -> format of the store: u8
//! 01                           -> the last version given to a row: u64; the number of the last commit: u64; its time: u64
//! 02 account 00 kind name      -> number of a space: u64, then its meta bytes
//! 03                           -> the next number for a space: u64
//! 04 number:u64                -> nothing: a dropped space whose rows are not all gone yet;
//!                                 01: a dropped container whose rows are kept, because they lead to bytes
//! 05                           -> the release that wrote the store last: text
//! 06                           -> rows may have versions up to this one, though the clock was reset below it: u64
//! 07                           -> bytes of reclaimed rows that are on disk until the next compaction: u64
//! ```
//!
//! Numbers are big-endian. All of it is also kept in memory. Changes happen one after another; each takes
//! effect in memory when it is durable, in the committer, so a caller who goes away leaves nothing half done.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use larimar_engine::{Changed, Fault, Renamed, Space, SpaceId, SpaceKind, SpaceName};
use larimar_model::Timestamp;
use parking_lot::{Condvar, Mutex, RwLock};
use rustc_hash::FxHashSet;
use tokio::sync::Mutex as AsyncMutex;

use crate::committer::{Commit, CommitQueue, Effect, Write, Writes};
use crate::key;
use crate::store::check::Finding;
use crate::store::fjall::DeadRows;
use crate::store::{Batch, Bytes, Snapshot, Store, StoreError, SyncTo};
use crate::version::VersionClock;

/// The spaces there are.
pub(crate) struct Catalogue {
    /// By encoded name.
    names: RwLock<BTreeMap<Vec<u8>, Space>>,
    /// Numbers that take writes. Held for reading from the check until the write is in the queue.
    pub(crate) live: RwLock<FxHashSet<SpaceId>>,
    pub(crate) dead: Arc<DeadSpaces>,
    /// The next number; locked for the length of a change.
    next: Arc<AsyncMutex<u64>>,
}

impl Catalogue {
    /// Reads the records of a store, or writes the first ones; returns the clock of versions and the last commit as well.
    pub(crate) fn load(
        store: &dyn Store,
        dead: Arc<DeadSpaces>,
    ) -> Result<(Self, VersionClock, CommitPoint), StoreError> {
        let snapshot = store.snapshot();
        let release = snapshot.get(RELEASE_KEY)?;
        let format = snapshot.get(FORMAT_KEY)?;
        if let Some(finding) = format.as_deref().and_then(|format| refuse_format(format, release.as_deref())) {
            return Err(StoreError::Refused { path: PathBuf::from("the data folder"), findings: vec![finding] });
        }
        if format.is_none() || release.as_deref() != Some(RELEASE.as_bytes()) {
            store.commit(first_records(), SyncTo::Disk)?;
        }
        let (version, commit) = last_commit(snapshot.as_ref())?;
        let rows_max = number(snapshot.as_ref(), ROWS_MAX_KEY)?.unwrap_or(0);
        let next = number(snapshot.as_ref(), NEXT_KEY)?.unwrap_or(SpaceId::SYSTEM.0 + 1);
        let mut names = BTreeMap::new();
        let mut live = FxHashSet::from_iter([SpaceId::SYSTEM]);
        for row in snapshot.range(Bound::Included(NAMES), Bound::Excluded(NEXT_KEY)) {
            let (key, value) = row?;
            let (id, meta) = split_number(&value)?;
            live.insert(SpaceId(id));
            names.insert(key.to_vec(), Space { id: SpaceId(id), meta: meta.into() });
        }
        for row in snapshot.range(Bound::Included(DEAD), Bound::Excluded(RELEASE_KEY)) {
            let (key, value) = row?;
            let space = SpaceId(split_number(&key[DEAD.len()..])?.0);
            if *value == *KEPT { dead.keep(space) } else { dead.insert(space) }
        }
        let next = Arc::new(AsyncMutex::new(next));
        let catalogue = Self { names: RwLock::new(names), live: RwLock::new(live), dead, next };
        Ok((catalogue, VersionClock::after(version, rows_max), commit))
    }

    pub(crate) fn get(&self, name: SpaceName<'_>) -> Option<Space> {
        self.names.read().get(&name_key(name)).cloned()
    }

    /// Whether the number is that of a space there is.
    pub(crate) fn is_live(&self, space: SpaceId) -> bool {
        self.live.read().contains(&space)
    }

    pub(crate) fn list(&self, from: SpaceName<'_>, max: usize) -> Vec<(String, Space)> {
        let start = name_key(from);
        let prefix = name_key(SpaceName { name: "", ..from });
        let names = self.names.read();
        let names = names.range(start..).take_while(|(key, _)| key.starts_with(&prefix)).take(max);
        names.map(|(key, space)| (String::from_utf8_lossy(&key[prefix.len()..]).into_owned(), space.clone())).collect()
    }

    /// The accounts that have a space, in order.
    pub(crate) fn accounts(&self) -> Vec<String> {
        let names = self.names.read();
        let account = |key: &Vec<u8>| key[NAMES.len()..].split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let mut accounts: Vec<_> = names.keys().map(account).collect();
        accounts.dedup();
        accounts.into_iter().map(|account| String::from_utf8_lossy(&account).into_owned()).collect()
    }

    /// Creates a space with a number of its own; `None` if there is one of that name.
    pub(crate) async fn create(
        self: &Arc<Self>,
        queue: &CommitQueue,
        name: SpaceName<'_>,
        meta: &[u8],
    ) -> Result<Option<SpaceId>, Fault> {
        let mut next = Arc::clone(&self.next).lock_owned().await;
        let key = name_key(name);
        if self.names.read().contains_key(&key) {
            return Ok(None);
        }
        let id = SpaceId(*next);
        let after = id.0.checked_add(1).ok_or_else(number_too_high)?;
        let space = Space { id, meta: meta.into() };
        let writes = vec![entry(&key, space.id, &space.meta), (NEXT_KEY.into(), Some(after.to_be_bytes().into()))];
        let this = Arc::clone(self);
        let effect = move |done| {
            if done {
                *next = after;
                this.live.write().insert(id);
                this.names.write().insert(key, space);
            }
        };
        change(queue, writes, Box::new(effect)).await?;
        Ok(Some(id))
    }

    pub(crate) async fn change(
        self: &Arc<Self>,
        queue: &CommitQueue,
        name: SpaceName<'_>,
        expected: &[u8],
        meta: &[u8],
    ) -> Result<Changed, Fault> {
        let turn = Arc::clone(&self.next).lock_owned().await;
        let key = name_key(name);
        let Some(found) = self.names.read().get(&key).cloned() else { return Ok(Changed::Missing) };
        if &*found.meta != expected {
            return Ok(Changed::Other);
        }
        let space = Space { id: found.id, meta: meta.into() };
        let writes = vec![entry(&key, space.id, &space.meta)];
        let this = Arc::clone(self);
        let effect = move |done| {
            if done {
                this.names.write().insert(key, space);
            }
            drop(turn);
        };
        change(queue, writes, Box::new(effect)).await?;
        Ok(Changed::Yes)
    }

    /// Gives a space another name.
    pub(crate) async fn rename(
        self: &Arc<Self>,
        queue: &CommitQueue,
        from: SpaceName<'_>,
        to: SpaceName<'_>,
        meta: &[u8],
    ) -> Result<Renamed, Fault> {
        let turn = Arc::clone(&self.next).lock_owned().await;
        let (old, new) = (name_key(from), name_key(to));
        if self.names.read().contains_key(&new) {
            return Ok(Renamed::Taken);
        }
        let Some(found) = self.names.read().get(&old).cloned() else { return Ok(Renamed::Missing) };
        let space = Space { id: found.id, meta: meta.into() };
        let writes = vec![(old.as_slice().into(), None), entry(&new, space.id, &space.meta)];
        let this = Arc::clone(self);
        let effect = move |done| {
            if done {
                let mut names = this.names.write();
                names.remove(&old);
                names.insert(new, space);
            }
            drop(turn);
        };
        change(queue, writes, Box::new(effect)).await?;
        Ok(Renamed::Yes)
    }

    pub(crate) async fn drop(
        self: &Arc<Self>,
        queue: &CommitQueue,
        name: SpaceName<'_>,
        expected: Option<&[u8]>,
    ) -> Result<Changed, Fault> {
        let turn = Arc::clone(&self.next).lock_owned().await;
        let key = name_key(name);
        let Some(space) = self.names.read().get(&key).cloned() else { return Ok(Changed::Missing) };
        if expected.is_some_and(|expected| expected != &*space.meta) {
            return Ok(Changed::Other);
        }
        let id = space.id;
        // Every write that was admitted is in the queue before the drop; none is admitted after it.
        self.live.write().remove(&id);
        let is_kept = name.kind == SpaceKind::Container;
        let state = if is_kept { KEPT.into() } else { Bytes::default() };
        let writes = vec![(key.as_slice().into(), None), (dead_key(id).into(), Some(state))];
        let this = Arc::clone(self);
        let effect = move |done| {
            if done {
                this.names.write().remove(&key);
                if is_kept { this.dead.keep(id) } else { this.dead.insert(id) }
            } else {
                this.live.write().insert(id);
            }
            drop(turn);
        };
        // Taken on a full disk as well: what was dropped is reclaimed.
        let commit = Commit { frees: true, ..commit_of(writes, Box::new(effect)) };
        let (_, outcome) = queue.push(commit)?;
        outcome.wait().await?;
        Ok(Changed::Yes)
    }

    /// Lets the rows of a dropped container go, which were kept.
    pub(crate) async fn release(&self, queue: &CommitQueue, space: SpaceId) -> Result<(), Fault> {
        if !self.dead.is_kept(space) {
            return Ok(());
        }
        let dead = Arc::clone(&self.dead);
        let effect = move |done| {
            if done {
                dead.insert(space);
            }
        };
        let writes = vec![(dead_key(space).into(), Some(Bytes::default()))];
        let commit = Commit { frees: true, ..commit_of(writes, Box::new(effect)) };
        let (_, outcome) = queue.push(commit)?;
        outcome.wait().await
    }

    /// The commit that ends the reclaiming of a space.
    pub(crate) fn forget(&self, space: SpaceId) -> Commit {
        let dead = Arc::clone(&self.dead);
        let effect = move |done| {
            if done {
                dead.remove(space);
            }
        };
        let writes = Writes::One([(dead_key(space).into(), None)]);
        Commit { writes, effect: Some(Box::new(effect)), ..Commit::default() }
    }
}

/// Dropped spaces that still have rows.
#[derive(Default)]
pub(crate) struct DeadSpaces {
    spaces: RwLock<FxHashSet<SpaceId>>,
    count: AtomicUsize,
    /// Dropped containers whose rows are kept.
    kept: RwLock<BTreeSet<SpaceId>>,
    held: Mutex<Held>,
    arrived: (Mutex<()>, Condvar),
}

/// Spaces that were dropped while a snapshot is held that may read them: they are dead when it is released.
#[derive(Default)]
struct Held {
    snapshots: usize,
    spaces: Vec<SpaceId>,
}

impl DeadSpaces {
    /// Keeps the rows of spaces that are dropped from now on, until as many calls of [`Self::release`].
    pub(crate) fn hold(&self) {
        self.held.lock().snapshots += 1;
    }

    /// Lets the rows go that were kept for a snapshot.
    pub(crate) fn release(&self) {
        let mut held = self.held.lock();
        held.snapshots -= 1;
        let released = if held.snapshots == 0 { std::mem::take(&mut held.spaces) } else { Vec::new() };
        drop(held);
        released.into_iter().for_each(|space| self.insert(space));
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// How many there are, with those whose rows are kept.
    pub(crate) fn all(&self) -> usize {
        self.len() + self.kept.read().len() + self.held.lock().spaces.len()
    }

    /// The first container after a number whose rows are kept.
    pub(crate) fn kept_after(&self, after: SpaceId) -> Option<SpaceId> {
        self.kept.read().range((Bound::Excluded(after), Bound::Unbounded)).next().copied()
    }

    pub(crate) fn is_kept(&self, space: SpaceId) -> bool {
        self.kept.read().contains(&space)
    }

    fn keep(&self, space: SpaceId) {
        self.kept.write().insert(space);
    }

    /// Those of them that are not kept.
    pub(crate) fn list(&self) -> Vec<SpaceId> {
        self.spaces.read().iter().copied().collect()
    }

    /// One of them, waiting a while if there is none.
    pub(crate) fn next(&self, patience: Duration) -> Option<SpaceId> {
        let mut guard = self.arrived.0.lock();
        if self.len() == 0 {
            self.arrived.1.wait_for(&mut guard, patience);
        }
        self.spaces.read().iter().min().copied()
    }

    /// Wakes all waiting callers.
    pub(crate) fn wake(&self) {
        let _guard = self.arrived.0.lock();
        self.arrived.1.notify_all();
    }

    fn insert(&self, space: SpaceId) {
        self.kept.write().remove(&space);
        let mut held = self.held.lock();
        if held.snapshots > 0 {
            held.spaces.push(space);
            return;
        }
        drop(held);
        let mut spaces = self.spaces.write();
        spaces.insert(space);
        self.count.store(spaces.len(), Ordering::Release);
        drop(spaces);
        self.wake();
    }

    fn remove(&self, space: SpaceId) {
        let mut spaces = self.spaces.write();
        spaces.remove(&space);
        self.count.store(spaces.len(), Ordering::Release);
    }
}

impl DeadRows for DeadSpaces {
    fn is_dead(&self, key: &[u8]) -> bool {
        self.len() > 0 && key::split_space(key).is_some_and(|(space, _)| self.spaces.read().contains(&space))
    }
}

/// What is wrong with the record of a store's format, if anything; `release` is the one that wrote it.
pub(crate) fn refuse_format(format: &[u8], release: Option<&[u8]>) -> Option<Finding> {
    let record = Path::new("the record of the store's format");
    match format {
        [FORMAT] => None,
        [later] if *later > FORMAT => {
            let release = release.map(String::from_utf8_lossy);
            Some(Finding::newer(record, &later.to_string(), release.as_deref()))
        }
        _ => Some(Finding::damaged(record, "it is none that a release has written", "how to read the store")),
    }
}

/// The record that goes with each group of commits.
pub(crate) fn commit_record(version: u64, commit: CommitPoint) -> Write {
    (VERSION_KEY.into(), Some(commit_value(version, commit)))
}

/// The last version given to a row, and the last commit.
pub(crate) fn commit_value(version: u64, commit: CommitPoint) -> Bytes {
    [version, commit.sequence, commit.time.ticks()].map(u64::to_be_bytes).concat().into()
}

/// What the record of the last commit holds. Releases before the numbers of commits wrote the version alone.
pub(crate) fn last_commit(snapshot: &dyn Snapshot) -> Result<(u64, CommitPoint), StoreError> {
    let Some(value) = snapshot.get(VERSION_KEY)? else { return Ok((0, CommitPoint::default())) };
    Ok((split_number(&value)?.0, CommitPoint::of_record(&value)))
}

/// A place in the order of commits. Numbers only grow, and times never go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitPoint {
    /// How many commits the store has had.
    pub sequence: u64,
    /// The time of the last of them, by the clock of the machine.
    pub time: Timestamp,
}

impl CommitPoint {
    /// The point after some more commits.
    pub(crate) fn after(self, commits: u64, now: Timestamp) -> Self {
        Self { sequence: self.sequence + commits, time: self.time.max(now) }
    }

    /// Reads the part of the record that comes after the version.
    pub(crate) fn of_record(value: &[u8]) -> Self {
        let number = |place: usize| value.get(place..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let (sequence, time) = (number(8).unwrap_or(0), number(16).unwrap_or(0));
        Self { sequence, time: Timestamp::from_ticks(time) }
    }
}

impl Default for CommitPoint {
    fn default() -> Self {
        Self { sequence: 0, time: Timestamp::from_ticks(0) }
    }
}

async fn change(queue: &CommitQueue, writes: Vec<Write>, effect: Effect) -> Result<(), Fault> {
    let (_, outcome) = queue.push(commit_of(writes, effect))?;
    outcome.wait().await
}

fn commit_of(writes: Vec<Write>, effect: Effect) -> Commit {
    Commit { writes: Writes::Many(writes), effect: Some(effect), ..Commit::default() }
}

/// The record of a space.
pub(crate) fn entry(key: &[u8], id: SpaceId, meta: &[u8]) -> Write {
    (key.into(), Some([&id.0.to_be_bytes(), meta].concat().into()))
}

/// The records that every store has: its format, and the release that wrote it.
pub(crate) fn first_records() -> Batch {
    let mut batch = Batch::default();
    batch.put(FORMAT_KEY, [FORMAT]);
    batch.put(RELEASE_KEY, RELEASE);
    batch
}

pub(crate) fn number_too_high() -> Fault {
    Fault::Damaged("a space has a number too high".to_owned())
}

/// Reads a name as [`name_key`] writes it.
pub(crate) fn split_name(key: &[u8]) -> Option<SpaceName<'_>> {
    let key = key.strip_prefix(NAMES)?;
    let end = key.iter().position(|byte| *byte == 0)?;
    let (kind, name) = key[end + 1..].split_first()?;
    let kind = match kind {
        b't' => SpaceKind::Table,
        b'q' => SpaceKind::Queue,
        b'c' => SpaceKind::Container,
        _ => return None,
    };
    Some(SpaceName { account: str::from_utf8(&key[..end]).ok()?, kind, name: str::from_utf8(name).ok()? })
}

pub(crate) fn name_key(name: SpaceName<'_>) -> Vec<u8> {
    let mut key = Vec::with_capacity(NAMES.len() + name.account.len() + 2 + name.name.len());
    key.extend_from_slice(NAMES);
    key.extend_from_slice(name.account.as_bytes());
    key.push(0);
    key.push(match name.kind {
        SpaceKind::Table => b't',
        SpaceKind::Queue => b'q',
        SpaceKind::Container => b'c',
    });
    key.extend_from_slice(name.name.as_bytes());
    key
}

fn dead_key(space: SpaceId) -> Vec<u8> {
    [DEAD, &space.0.to_be_bytes()].concat()
}

pub(crate) fn number(snapshot: &dyn Snapshot, key: &[u8]) -> Result<Option<u64>, StoreError> {
    let Some(value) = snapshot.get(key)? else { return Ok(None) };
    Ok(Some(split_number(&value)?.0))
}

pub(crate) fn split_number(bytes: &[u8]) -> Result<(u64, &[u8]), StoreError> {
    let (number, rest) = bytes.split_first_chunk().ok_or_else(|| damaged("a record is too short".to_owned()))?;
    Ok((u64::from_be_bytes(*number), rest))
}

fn damaged(reason: String) -> StoreError {
    StoreError::Damaged { path: Default::default(), reason }
}

/// The format of the store's records that this release writes, and the latest that it reads.
pub(crate) const FORMAT: u8 = 1;
pub(crate) const FORMAT_KEY: &[u8] = &[0];
pub(crate) const VERSION_KEY: &[u8] = &[1];
pub(crate) const NAMES: &[u8] = &[2];
pub(crate) const NEXT_KEY: &[u8] = &[3];
pub(crate) const DEAD: &[u8] = &[4];
/// The state of a dropped container whose rows are kept.
const KEPT: &[u8] = &[1];
pub(crate) const RELEASE_KEY: &[u8] = &[5];
pub(crate) const ROWS_MAX_KEY: &[u8] = &[6];
pub(crate) const GARBAGE_KEY: &[u8] = &[7];
const RELEASE: &str = env!("CARGO_PKG_VERSION");
