//! A snapshot: the rows of an engine as they were at one moment.
//!
//! Whatever is answered as one page is read from one snapshot, in as many reads as it takes, so that a page never shows
//! half a transaction. Pages of one query are separate snapshots.

use crate::contract::{Budget, Flow, KeyRange, Position, RowRef, SpaceId};
use crate::error::ReadError;
use larimar_model::Timestamp;
use std::future::Future;

/// What a snapshot is opened for. An engine far away needs no transaction for one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// One range or one set of keys. After a visitor stopped, reading may continue from there; where the engine stopped,
    /// the snapshot is of no further use.
    One,
    /// Any number of ranges and keys.
    Many,
}

/// The rows of an engine at one moment between the call that opened it and its first answer.
///
/// A snapshot is open for the time of one page: an engine keeps old rows for it, or a transaction. Dropping it ends it.
/// When the engine cannot keep it, such as after a full disk, reads fail with [`Fault::Unavailable`](crate::Fault) and
/// the page is to be asked for again.
pub trait Snapshot: Send + 'static {
    /// Passes the rows of a range to `visit` in key order until the range, the budget, the visitor or a bound of the engine
    /// on bytes ends it. Returns where to resume, or nothing when the range is exhausted. At least one row is visited
    /// unless an earlier read of this snapshot did so and the deadline has passed.
    fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> impl Future<Output = Result<Option<Position>, ReadError>> + Send;

    /// Passes those of some rows that exist to `visit`, in the order of `keys` (partition, row), which is the order of
    /// rows. Returns the index of the key to resume at, or `None` when all were looked up. The bounds are those of
    /// [`Snapshot::scan`].
    fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> impl Future<Output = Result<Option<usize>, ReadError>> + Send;

    /// Reads one row: its version and bytes.
    fn get(
        &mut self,
        space: SpaceId,
        key: (&str, &str),
        budget: Budget,
    ) -> impl Future<Output = Result<Option<(Timestamp, Vec<u8>)>, ReadError>> + Send {
        async move {
            let mut found = None;
            let visit = |row: RowRef<'_>| {
                found = Some((row.version, row.body.to_vec()));
                Flow::Continue
            };
            self.get_many(space, &[key], budget, visit).await?;
            Ok(found)
        }
    }
}
