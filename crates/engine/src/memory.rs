//! The reference engine: a `BTreeMap` under a mutex. It defines what every engine must do, in the simplest way. A snapshot
//! shares the map; the next write copies it.

use crate::contract::{
    Act, Beside, Budget, Changed, Engine, Flow, Key, KeyRange, Op, Position, Renamed, RowRef, Rows, Space, SpaceId,
    SpaceKind, SpaceName, Spaces, Statistics,
};
use crate::error::{EditError, Fault, ReadError, WriteError};
use crate::queue::{MessagesInRows, RowQueues};
use crate::snapshot::{Reads, Snapshot};
use larimar_model::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// An engine that keeps everything in memory until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryEngine {
    state: Mutex<Arc<State>>,
    queues: RowQueues,
}

/// The rows of a [`MemoryEngine`] at one moment.
#[derive(Clone, Debug)]
pub struct MemorySnapshot(Arc<State>);

/// A row's version and bytes.
type Stored = (Timestamp, Arc<[u8]>);

#[derive(Clone, Debug, Default)]
struct State {
    spaces: BTreeMap<(String, SpaceKind, String), Space>,
    rows: BTreeMap<(SpaceId, Position), Stored>,
    /// Dropped containers whose rows are kept.
    dropped: BTreeSet<SpaceId>,
    last_space: u64,
    last_version: u64,
}

impl MemoryEngine {
    /// An empty engine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes a space with its rows, if its meta bytes are the expected ones or none are expected.
    fn remove_space(&self, name: SpaceName<'_>, expected: Option<&[u8]>) -> Changed {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        let is_container = name.kind == SpaceKind::Container;
        let name = owned(name);
        let Some(space) = state.spaces.get(&name) else { return Changed::Missing };
        if expected.is_some_and(|expected| expected != &*space.meta) {
            return Changed::Other;
        }
        let id = space.id;
        state.spaces.remove(&name);
        if is_container {
            state.dropped.insert(id);
        } else {
            state.rows.retain(|(of, _), _| *of != id);
        }
        self.queues.forget(id);
        Changed::Yes
    }
}

impl Rows for MemoryEngine {
    type Snapshot = MemorySnapshot;

    async fn snapshot(&self, _: Reads, _: Instant) -> Result<MemorySnapshot, Fault> {
        Ok(MemorySnapshot(Arc::clone(&self.state.lock())))
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        let state = self.state.lock();
        if !state.has_space(key.space) {
            return Err(ReadError::SpaceGone);
        }
        let row = state.rows.get(&(key.space, Position::new(key.partition, key.row)));
        Ok(visit(row.map(|(version, body)| RowRef { partition: key.partition, row: key.row, version: *version, body })))
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        if !state.has_space(space) {
            return Err(WriteError::SpaceGone);
        }
        let version = Timestamp::from_ticks(now.ticks().max(state.last_version + 1));
        let mut changes = Vec::with_capacity(ops.len());
        for (index, op) in ops.iter().enumerate() {
            let place = (space, Position::new(partition, op.row));
            let current = state.rows.get(&place);
            let found = current.map(|(version, _)| *version);
            if !op.expect.admits(found) {
                return Err(WriteError::Condition { op: index, found });
            }
            match op.act {
                Act::Put(body) => changes.push((place, Some(Arc::from(body)))),
                Act::Edit(edit) => {
                    let body = edit(current.map(|(_, body)| &**body))
                        .map_err(|reason| WriteError::Refused { op: index, reason })?;
                    changes.push((place, Some(body.into())));
                }
                Act::Delete => changes.push((place, None)),
                Act::Check => {}
            }
        }
        let beside = beside.iter().map(|row| ((space, Position::new(row.partition, row.row)), row.body.map(Arc::from)));
        changes.extend(beside);
        state.last_version = version.ticks();
        for (place, body) in changes {
            match body {
                Some(body) => drop(state.rows.insert(place, (version, body))),
                None => drop(state.rows.remove(&place)),
            }
        }
        Ok(vec![version; ops.len()])
    }

    async fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> Result<T, EditError<R>> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        if !state.has_space(key.space) {
            return Err(EditError::SpaceGone);
        }
        let place = (key.space, Position::new(key.partition, key.row));
        let (body, value) = edit(state.rows.get(&place).map(|(_, body)| &**body)).map_err(EditError::Refused)?;
        state.last_version = now.ticks().max(state.last_version + 1);
        state.rows.insert(place, (Timestamp::from_ticks(state.last_version), body.into()));
        Ok(value)
    }

    async fn restore(&self, space: SpaceId, rows: &[RowRef<'_>]) -> Result<(), WriteError> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        if !state.has_space(space) {
            return Err(WriteError::SpaceGone);
        }
        for row in rows {
            state.last_version = state.last_version.max(row.version.ticks());
            let place = (space, Position::new(row.partition, row.row));
            state.rows.insert(place, (row.version, row.body.into()));
        }
        Ok(())
    }
}

impl Spaces for MemoryEngine {
    async fn accounts(&self) -> Result<Vec<String>, Fault> {
        let mut accounts: Vec<String> =
            self.state.lock().spaces.keys().map(|(account, _, _)| account.clone()).collect();
        accounts.dedup();
        Ok(accounts)
    }

    async fn create_space(&self, name: SpaceName<'_>, meta: &[u8]) -> Result<Option<SpaceId>, Fault> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        if state.spaces.contains_key(&owned(name)) {
            return Ok(None);
        }
        state.last_space += 1;
        let id = SpaceId(state.last_space);
        state.spaces.insert(owned(name), Space { id, meta: meta.into() });
        Ok(Some(id))
    }

    async fn space(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        Ok(self.state.lock().spaces.get(&owned(name)).cloned())
    }

    async fn list_spaces(&self, from: SpaceName<'_>, max: usize) -> Result<Vec<(String, Space)>, Fault> {
        let state = self.state.lock();
        let of_account = state
            .spaces
            .range(owned(from)..)
            .take_while(|((account, kind, _), _)| account == from.account && *kind == from.kind);
        Ok(of_account.take(max).map(|((_, _, name), space)| (name.clone(), space.clone())).collect())
    }

    async fn change_space(&self, name: SpaceName<'_>, expected: &[u8], meta: &[u8]) -> Result<Changed, Fault> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        let Some(space) = state.spaces.get_mut(&owned(name)) else { return Ok(Changed::Missing) };
        if &*space.meta != expected {
            return Ok(Changed::Other);
        }
        space.meta = meta.into();
        Ok(Changed::Yes)
    }

    async fn rename_space(&self, from: SpaceName<'_>, to: SpaceName<'_>, meta: &[u8]) -> Result<Renamed, Fault> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        if state.spaces.contains_key(&owned(to)) {
            return Ok(Renamed::Taken);
        }
        let Some(Space { id, .. }) = state.spaces.remove(&owned(from)) else { return Ok(Renamed::Missing) };
        state.spaces.insert(owned(to), Space { id, meta: meta.into() });
        Ok(Renamed::Yes)
    }

    async fn drop_space(&self, name: SpaceName<'_>) -> Result<bool, Fault> {
        Ok(self.remove_space(name, None) == Changed::Yes)
    }

    async fn drop_space_if(&self, name: SpaceName<'_>, expected: &[u8]) -> Result<Changed, Fault> {
        Ok(self.remove_space(name, Some(expected)))
    }

    async fn claim_dropped(&self, after: SpaceId) -> Result<Option<SpaceId>, Fault> {
        let state = self.state.lock();
        Ok(state.dropped.range((Bound::Excluded(after), Bound::Unbounded)).next().copied())
    }

    async fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        mut visit: impl FnMut(RowRef<'_>) + Send,
    ) -> Result<Option<Position>, ReadError> {
        let state = self.state.lock();
        if !state.dropped.contains(&space) {
            return Err(ReadError::SpaceGone);
        }
        let rows = state.rows.range((space, from.clone())..).take_while(|((of, _), _)| *of == space);
        for (visited, ((_, place), (version, body))) in rows.enumerate() {
            if visited == DROPPED_ROWS {
                return Ok(Some(place.clone()));
            }
            visit(RowRef { partition: &place.partition, row: &place.row, version: *version, body });
        }
        Ok(None)
    }

    async fn forget_dropped(&self, space: SpaceId) -> Result<(), Fault> {
        let mut state = self.state.lock();
        let state = Arc::make_mut(&mut state);
        if state.dropped.remove(&space) {
            state.rows.retain(|(of, _), _| *of != space);
        }
        Ok(())
    }
}

impl Engine for MemoryEngine {
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn ready(&self) -> Result<(), Fault> {
        Ok(())
    }
}

impl Snapshot for MemorySnapshot {
    async fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let Self(state) = self;
        if !state.has_space(space) {
            return Err(ReadError::SpaceGone);
        }
        let rows = state
            .rows
            .range((space, range.start.clone())..)
            .take_while(|((of, place), _)| *of == space && range.contains(place));
        for (visited, ((_, place), (version, body))) in rows.enumerate() {
            let row = RowRef { partition: &place.partition, row: &place.row, version: *version, body };
            match if is_spent(visited, budget) { Flow::StopHere } else { visit(row) } {
                Flow::Continue => {}
                Flow::Pause => tokio::task::yield_now().await,
                Flow::StopHere => return Ok(Some(place.clone())),
            }
        }
        Ok(None)
    }

    async fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<usize>, ReadError> {
        let Self(state) = self;
        if !state.has_space(space) {
            return Err(ReadError::SpaceGone);
        }
        let mut visited = 0;
        for (index, &(partition, row)) in keys.iter().enumerate() {
            let Some((version, body)) = state.rows.get(&(space, Position::new(partition, row))) else { continue };
            let found = RowRef { partition, row, version: *version, body };
            match if is_spent(visited, budget) { Flow::StopHere } else { visit(found) } {
                Flow::Continue => {}
                Flow::Pause => tokio::task::yield_now().await,
                Flow::StopHere => return Ok(Some(index)),
            }
            visited += 1;
        }
        Ok(None)
    }
}

/// Whether a read must end; never before its first row, so that every read makes progress.
fn is_spent(visited: usize, budget: Budget) -> bool {
    visited > 0 && (visited >= budget.rows_max || Instant::now() >= budget.deadline)
}

impl MessagesInRows for MemoryEngine {
    fn row_queues(&self) -> &RowQueues {
        &self.queues
    }
}

impl State {
    fn has_space(&self, id: SpaceId) -> bool {
        id == SpaceId::SYSTEM || self.spaces.values().any(|space| space.id == id)
    }
}

/// Rows of a dropped container that one call reads.
const DROPPED_ROWS: usize = 1000;

fn owned(name: SpaceName<'_>) -> (String, SpaceKind, String) {
    (name.account.to_owned(), name.kind, name.name.to_owned())
}
