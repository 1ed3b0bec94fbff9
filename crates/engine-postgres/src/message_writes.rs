//! Messages put and deleted: those of concurrent requests share a statement, and so a commit.
//!
//! A group has puts only, or deletes of one queue only. When the answer to a put is lost, the message is looked up by
//! its id.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::gather::{Limits, RequestKind, Retry};
use crate::kept_connection::Keep;
use crate::reads::distinct;
use crate::statements::messages::{ConfirmMessages, DeleteMessages, PutMessages};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;

/// Puts and deletes of messages as a kind of request.
pub(crate) struct MessageWrites;

/// A message to put or to delete.
#[derive(Debug)]
pub(crate) enum MessageWrite {
    Put(Put),
    Delete(Delete),
}

/// A message to put. Times are in ticks.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) queue: i64,
    pub(crate) id: Vec<u8>,
    pub(crate) hidden_for: i64,
    /// -1 for a message that does not expire.
    pub(crate) lives_for: i64,
    pub(crate) receipt: i64,
    pub(crate) body: Vec<u8>,
}

/// A message to delete.
#[derive(Debug)]
pub(crate) struct Delete {
    pub(crate) queue: i64,
    pub(crate) id: Vec<u8>,
    pub(crate) receipt: i64,
    pub(crate) visible_at: i64,
}

/// What became of a put or delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    Put(Times),
    Deleted,
    /// Nothing changed: the queue does not exist, or the receipt is not valid.
    Missed,
}

/// When a message was put, becomes visible, and expires, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) inserted: i64,
    pub(crate) visible_at: i64,
    pub(crate) expires: i64,
}

impl MessageWrite {
    const fn as_put(&self) -> Option<&Put> {
        match self {
            Self::Put(put) => Some(put),
            Self::Delete(_) => None,
        }
    }

    const fn as_delete(&self) -> Option<&Delete> {
        match self {
            Self::Delete(delete) => Some(delete),
            Self::Put(_) => None,
        }
    }
}

impl RequestKind for MessageWrites {
    type Request = MessageWrite;
    type Answer = MessageOutcome;

    const LIMITS: Limits = Limits {
        name: "messages",
        running_freely: WORKERS,
        enough: 1,
        group_max: 128,
        group_bytes_max: 1 << 20,
        waiting_max: 20_000,
        waiting_bytes_max: 64 << 20,
    };
    const KEEP: Keep = Keep::WhileBusy;

    fn bytes(write: &MessageWrite) -> usize {
        write.as_put().map_or(0, |put| put.body.len())
    }

    fn writes(_: &MessageWrite) -> usize {
        1
    }

    /// A statement deletes each message once.
    fn turn(write: &MessageWrite) -> Option<u64> {
        write.as_delete().map(|delete| FxBuildHasher.hash_one((delete.queue, &delete.id)))
    }

    fn shares_group(first: &MessageWrite, next: &MessageWrite) -> bool {
        match (first, next) {
            (MessageWrite::Put(_), MessageWrite::Put(_)) => true,
            (MessageWrite::Delete(first), MessageWrite::Delete(next)) => first.queue == next.queue,
            _ => false,
        }
    }

    fn retry(failure: &Failure) -> Retry {
        match failure {
            Failure::Again(_) | Failure::Locked(_) | Failure::Elsewhere(_) => Retry::Again { attempts_max: u32::MAX },
            Failure::Unknown(_) => Retry::Find,
            Failure::Guard | Failure::Refused(_) => Retry::No,
        }
    }

    async fn send(connection: &Connection, group: &[&MessageWrite]) -> Result<Vec<MessageOutcome>, Failure> {
        let puts: Vec<&Put> = group.iter().filter_map(|write| write.as_put()).collect();
        if puts.is_empty() {
            delete(connection, group).await
        } else {
            let found = put(connection, &puts).await?;
            let outcome = |put: &Put| found.get(&put.id).map_or(MessageOutcome::Missed, |it| MessageOutcome::Put(*it));
            Ok(puts.into_iter().map(outcome).collect())
        }
    }

    /// A deleted message leaves nothing to find.
    fn is_findable(write: &MessageWrite) -> bool {
        write.as_put().is_some()
    }

    async fn find(connection: &Connection, group: &[&MessageWrite]) -> Result<Vec<Option<MessageOutcome>>, Failure> {
        let puts: Vec<&Put> = group.iter().filter_map(|write| write.as_put()).collect();
        let queues = puts.iter().map(|put| put.queue).collect();
        let ids = puts.iter().map(|put| put.id.as_slice()).collect();
        let rows = connection.query(&ConfirmMessages { queues, ids }).await?;
        let found =
            times(rows.into_iter().map(|(id, inserted, visible_at, expires, _)| (id, inserted, visible_at, expires)));
        let outcome = |write: &&MessageWrite| Some(MessageOutcome::Put(*found.get(&write.as_put()?.id)?));
        Ok(group.iter().map(outcome).collect())
    }
}

async fn put(connection: &Connection, puts: &[&Put]) -> Result<FxHashMap<Vec<u8>, Times>, Failure> {
    let queues: Vec<i64> = puts.iter().map(|put| put.queue).collect();
    let put = PutMessages {
        distinct_queues: distinct(&queues),
        queues,
        ids: puts.iter().map(|put| put.id.as_slice()).collect(),
        hidden: puts.iter().map(|put| put.hidden_for).collect(),
        lives: puts.iter().map(|put| put.lives_for).collect(),
        receipts: puts.iter().map(|put| put.receipt).collect(),
        bodies: puts.iter().map(|put| put.body.as_slice()).collect(),
    };
    Ok(times(connection.query(&put).await?))
}

async fn delete(connection: &Connection, group: &[&MessageWrite]) -> Result<Vec<MessageOutcome>, Failure> {
    let deletes: Vec<&Delete> = group.iter().filter_map(|write| write.as_delete()).collect();
    // Every server locks messages in the same order, so that no two wait for each other.
    let mut ordered = deletes.clone();
    ordered.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let delete = DeleteMessages {
        queue: ordered[0].queue,
        ids: ordered.iter().map(|delete| delete.id.as_slice()).collect(),
        receipts: ordered.iter().map(|delete| delete.receipt).collect(),
        visible_at: ordered.iter().map(|delete| delete.visible_at).collect(),
    };
    let gone: FxHashSet<Vec<u8>> = connection.query(&delete).await?.into_iter().map(|(id,)| id).collect();
    let outcome =
        |delete: &Delete| if gone.contains(&delete.id) { MessageOutcome::Deleted } else { MessageOutcome::Missed };
    Ok(deletes.into_iter().map(outcome).collect())
}

/// Messages by their ids.
fn times(rows: impl IntoIterator<Item = (Vec<u8>, i64, i64, i64)>) -> FxHashMap<Vec<u8>, Times> {
    let entry = |(id, inserted, visible_at, expires)| (id, Times { inserted, visible_at, expires });
    rows.into_iter().map(entry).collect()
}

/// Groups under way at once. Few workers make large groups.
pub(crate) const WORKERS: usize = 4;
