//! Takes back the clock of versions after a wrong reading of the machine's: `larimar repair --reset-clock`.
//!
//! Rows keep the versions they have. A row whose version is ahead gets the next one above it when it is written, so
//! that its versions still only grow; all others get the time again. What is given up: a row that was deleted with a
//! version ahead of the clock and is inserted again starts below the version it once had.

use std::fmt;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use larimar_model::Timestamp;

use crate::budget::MemoryBudget;
use crate::catalogue::{self, ROWS_MAX_KEY, last_commit, number};
use crate::key;
use crate::store::fjall::{FjallStore, Options, STORE};
use crate::store::inventory::Inventory;
use crate::store::{Batch, Bytes, Store, StoreError, SyncTo};

/// What a reset of the clock found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReset {
    /// The last version that was given.
    pub last: Timestamp,
    /// The time it was compared with.
    pub now: Timestamp,
    /// How many rows have a version after that time.
    pub rows_ahead: u64,
    /// Whether the clock was set back.
    pub is_reset: bool,
}

/// Sets the clock of versions back to `now` if it runs ahead of it.
pub fn reset_clock(folder: &Path, now: Timestamp) -> Result<ClockReset, StoreError> {
    let io = |source| StoreError::io(folder, source);
    crate::restoring::refuse(folder)?;
    // Opening a directory without a store would make one; opening an existing one reports what is missing.
    if !super::is_data_folder(folder).map_err(io)?
        || !(folder.join(STORE).try_exists().map_err(io)? || Inventory::is_there(folder).map_err(io)?)
    {
        return Err(super::no_store(folder));
    }
    let options = Options { folder: folder.to_owned(), memory: MemoryBudget::smallest(), filter: Arc::new(()) };
    let store = FjallStore::open(options)?;
    let snapshot = store.snapshot();
    let (last, commit) = last_commit(snapshot.as_ref())?;
    let rows_max = number(snapshot.as_ref(), ROWS_MAX_KEY)?.unwrap_or(0);
    let mut reset = ClockReset { last: Timestamp::from_ticks(last), now, rows_ahead: 0, is_reset: last > now.ticks() };
    if !reset.is_reset {
        return Ok(reset);
    }
    for row in snapshot.range(Bound::Included(ROWS_MAX_KEY), Bound::Unbounded) {
        let (key, value) = row?;
        let version = value.first_chunk().map_or(0, |version| u64::from_be_bytes(*version));
        reset.rows_ahead += u64::from(key::split_space(&key).is_some() && version > now.ticks());
    }
    let mut batch = Batch::default();
    batch.writes.push(catalogue::commit_record(now.ticks(), commit));
    batch.put(ROWS_MAX_KEY, Bytes::from(last.max(rows_max).to_be_bytes()));
    store.commit(batch, SyncTo::Disk)?;
    drop(snapshot);
    store.finish()?;
    Ok(reset)
}

impl fmt::Display for ClockReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { last, now, rows_ahead, is_reset } = self;
        if *is_reset {
            write!(
                f,
                "versions had come to {last} and continue at {now}; {rows_ahead} rows keep versions after that, and \
                 count up from them"
            )
        } else {
            write!(f, "nothing to reset: the last version is {last}, and it is {now}")
        }
    }
}
