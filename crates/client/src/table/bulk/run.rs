//! Carries out a bulk write: reads operations while there is room, and keeps groups under way.

use super::groups::{Group, Groups};
use super::report::BulkGroup;
use crate::table::Table;
use crate::table::transaction::{Transaction, TransactionError, TransactionRefusal};
use crate::table::write::Write;
use crate::{BoxFuture, Error};
use futures_util::future::{Either, select};
use futures_util::stream::{self, BoxStream, FuturesUnordered, StreamExt as _};

struct Run {
    /// Gone when it has ended.
    input: Option<BoxStream<'static, Write>>,
    read: usize,
    groups: Groups,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    concurrency: usize,
    held_max: usize,
    /// Groups that are done and were not asked for yet.
    done: Vec<BulkGroup>,
}

/// A group that was carried out; it may have been divided.
struct Done {
    partition_key: String,
    operations: usize,
    bytes: usize,
    /// Last first.
    groups: Vec<BulkGroup>,
}

pub(super) fn run(
    table: &Table,
    concurrency: usize,
    held_max: usize,
    input: BoxStream<'static, Write>,
) -> BoxStream<'static, BulkGroup> {
    let run = Run {
        input: Some(input),
        read: 0,
        groups: Groups::new(table),
        running: FuturesUnordered::new(),
        concurrency,
        held_max,
        done: Vec::new(),
    };
    // An unfolded stream may not be asked again after its end; callers that wait for several streams do so.
    stream::unfold(run, |mut run| async move { run.next().await.map(|group| (group, run)) }).fuse().boxed()
}

impl Run {
    async fn next(&mut self) -> Option<BulkGroup> {
        loop {
            if let Some(group) = self.done.pop() {
                return Some(group);
            }
            let has_room = self.groups.held() < self.held_max && self.groups.held_bytes() < HELD_BYTES_MAX;
            // While more operations may come, a group that is not full waits for them.
            let reads = has_room && self.input.is_some();
            while self.running.len() < self.concurrency
                && let Some(group) = self.groups.next(!reads)
            {
                self.running.push(Box::pin(send(group)));
            }
            match self.input.as_mut().filter(|_| reads) {
                None => {
                    let done = self.running.next().await?;
                    self.finished(done);
                }
                Some(input) if self.running.is_empty() => {
                    let write = input.next().await;
                    self.take(write);
                }
                Some(input) => match select(input.next(), self.running.next()).await {
                    Either::Left((write, _)) => self.take(write),
                    Either::Right((done, _)) => self.finished(done?),
                },
            }
        }
    }

    fn take(&mut self, write: Option<Write>) {
        let Some(write) = write else {
            self.input = None;
            return;
        };
        let operation = self.read;
        self.read += 1;
        let partition_key = write.entity.partition_key.clone();
        if let Err(reason) = self.groups.push(operation, write) {
            let outcome = Err(TransactionError { operation: 0, reason }.into());
            self.done.push(BulkGroup { partition_key, operations: vec![operation], outcome });
        }
    }

    fn finished(&mut self, done: Done) {
        self.groups.done(&done.partition_key, done.operations, done.bytes);
        self.done.extend(done.groups);
    }
}

/// Sends a group. If it is too large after all (encrypted, or for a service that takes less), its halves are sent.
async fn send(group: Group) -> Done {
    let mut done = Done {
        partition_key: group.transaction.partition_key().unwrap_or_default().to_owned(),
        operations: group.operations.len(),
        bytes: group.transaction.size(),
        groups: Vec::new(),
    };
    let mut left = vec![group];
    while let Some(Group { transaction, operations }) = left.pop() {
        let outcome = transaction.submit().await;
        if operations.len() > 1
            && outcome.as_ref().err().is_some_and(is_too_large)
            && let Some([first, second]) = halves(&transaction, &operations)
        {
            left.extend([second, first]);
            continue;
        }
        done.groups.push(BulkGroup { partition_key: done.partition_key.clone(), operations, outcome });
    }
    done.groups.reverse();
    done
}

fn is_too_large(error: &Error) -> bool {
    match error {
        Error::Transaction(error) => matches!(error.reason, TransactionRefusal::TooLarge { .. }),
        other => other.status() == Some(413),
    }
}

fn halves(transaction: &Transaction, operations: &[usize]) -> Option<[Group; 2]> {
    let (first, second) = operations.split_at(operations.len() / 2);
    let [left, right] = transaction.split(first.len())?;
    Some([
        Group { transaction: left, operations: first.to_vec() },
        Group { transaction: right, operations: second.to_vec() },
    ])
}

/// Bytes of requests that are held at most.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;
