//! Writes of one row: those of concurrent requests share a statement, and so a commit.
//!
//! A group has writes of one kind and of distinct rows. Each write has its own condition; one whose condition does not
//! hold changes nothing and does not affect the others. Writes of the same row are sent one after the other.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::gather::{Limits, RequestKind, Retry};
use crate::kept_connection::Keep;
use crate::reads::distinct;
use crate::statements::entities::{DeleteRows, InsertRows, UpdateRows, UpsertRows};
use crate::written_rows::{self, WrittenRow};
use larimar_model::Timestamp;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// Writes of one row as a kind of request.
pub(crate) struct SingleWrites;

/// What a write does, and on which condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// Stores a row that does not exist.
    Insert,
    /// Stores a row whether it exists or not.
    Upsert,
    /// Replaces a row that exists, and has the expected version if there is one.
    Update,
    /// Removes a row that exists, and has the expected version if there is one.
    Delete,
}

/// A write of one row.
#[derive(Debug)]
pub(crate) struct SingleWrite {
    pub(crate) kind: WriteKind,
    pub(crate) space: i64,
    pub(crate) pk: Vec<u8>,
    pub(crate) rk: Vec<u8>,
    /// The version that the row must have; -1 for any.
    pub(crate) expected: i64,
    pub(crate) token: i64,
    pub(crate) body: Vec<u8>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// It took effect. The version is the row's, or the last one of a deleted row.
    Done(Timestamp),
    /// It changed nothing: its condition did not hold, or its space does not exist.
    Missed,
}

impl RequestKind for SingleWrites {
    type Request = SingleWrite;
    type Answer = WriteOutcome;

    const LIMITS: Limits = Limits {
        name: "writes",
        running_freely: 2,
        enough: 16,
        group_max: 128,
        group_bytes_max: 1 << 20,
        waiting_max: 20_000,
        waiting_bytes_max: 64 << 20,
    };
    const KEEP: Keep = Keep::WhileIdle;

    fn bytes(write: &SingleWrite) -> usize {
        write.pk.len() + write.rk.len() + write.body.len()
    }

    fn writes(_: &SingleWrite) -> usize {
        1
    }

    /// Two rows with the same hash only wait for each other.
    fn turn(write: &SingleWrite) -> Option<u64> {
        Some(FxBuildHasher.hash_one((&write.pk, &write.rk)))
    }

    fn shares_group(first: &SingleWrite, next: &SingleWrite) -> bool {
        first.kind == next.kind
    }

    fn retry(failure: &Failure) -> Retry {
        match failure {
            Failure::Locked(_) => Retry::Alone,
            Failure::Unknown(_) => Retry::Find,
            _ => Retry::No,
        }
    }

    async fn send(connection: &Connection, group: &[&SingleWrite]) -> Result<Vec<WriteOutcome>, Failure> {
        // Every server locks rows in the same order, so that no two wait for each other.
        let mut writes = group.to_vec();
        writes.sort_unstable_by(|a, b| (&a.pk, &a.rk).cmp(&(&b.pk, &b.rk)));
        let spaces: Vec<i64> = writes.iter().map(|write| write.space).collect();
        let pks: Vec<&[u8]> = writes.iter().map(|write| write.pk.as_slice()).collect();
        let rks: Vec<&[u8]> = writes.iter().map(|write| write.rk.as_slice()).collect();
        let tokens: Vec<i64> = writes.iter().map(|write| write.token).collect();
        let bodies: Vec<&[u8]> = writes.iter().map(|write| write.body.as_slice()).collect();
        let expected: Vec<i64> = writes.iter().map(|write| write.expected).collect();
        let distinct_spaces = distinct(&spaces);
        let rows = match writes[0].kind {
            WriteKind::Insert => {
                connection.query(&InsertRows { spaces, pks, rks, tokens, bodies, distinct_spaces }).await?
            }
            WriteKind::Upsert => {
                connection.query(&UpsertRows { spaces, pks, rks, tokens, bodies, distinct_spaces }).await?
            }
            WriteKind::Update => {
                connection.query(&UpdateRows { spaces, pks, rks, tokens, bodies, distinct_spaces, expected }).await?
            }
            WriteKind::Delete => {
                connection.query(&DeleteRows { spaces, pks, rks, tokens, expected, distinct_spaces }).await?
            }
        };
        let versions: FxHashMap<i64, i64> = rows.into_iter().collect();
        let outcome = |write: &&SingleWrite| {
            let version = |ticks: &i64| Timestamp::from_ticks(ticks.cast_unsigned());
            versions.get(&write.token).map_or(WriteOutcome::Missed, |ticks| WriteOutcome::Done(version(ticks)))
        };
        Ok(group.iter().map(outcome).collect())
    }

    /// A deleted row leaves nothing to find.
    fn is_findable(write: &SingleWrite) -> bool {
        write.kind != WriteKind::Delete
    }

    async fn find(connection: &Connection, group: &[&SingleWrite]) -> Result<Vec<Option<WriteOutcome>>, Failure> {
        let mut rows = Vec::with_capacity(group.len());
        for write in group {
            let SingleWrite { pk, rk, token, .. } = write;
            rows.push(Self::is_findable(write).then_some(WrittenRow { pk, rk, token: *token }));
        }
        let found = written_rows::find(connection, &rows).await?;
        Ok(found.into_iter().map(|version| version.map(WriteOutcome::Done)).collect())
    }
}
