//! Conditional writes: how each is sent, and what is returned when a condition does not hold.
//!
//! The database reports only that a condition failed. The rows are then read to find out which one; if all conditions
//! hold by now, the rows changed in between and the write is repeated.

use crate::core::{jittered, token};
use crate::engine::Parts;
use crate::failure::Failure;
use crate::key;
use crate::reads::{self, FoundRow};
use crate::single_writes::{SingleWrite, WriteKind, WriteOutcome};
use crate::transactions::{self, SideRows, Step, Transaction};
use larimar_engine::{Act, Beside, EditError, Expect, Fault, Key, Op, SpaceId, WriteError};
use larimar_model::Timestamp;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

impl Parts {
    /// Applies operations on distinct rows of a partition, and writes rows of another partition with them.
    pub(crate) async fn apply(
        &self,
        space: SpaceId,
        partition: &str,
        (ops, beside): (&[Op<'_>], &[Beside<'_>]),
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let partition = Partition::new(space, partition, now)?;
        if let ([op], []) = (ops, beside) {
            return self.apply_one(&partition, op).await.map(|version| vec![version]);
        }
        let has_edits = ops.iter().any(|op| matches!(op.act, Act::Edit(_)));
        let started = Instant::now();
        let (mut attempt, mut met_lock) = (0, false);
        while attempt < ATTEMPTS_MAX {
            let steps = if has_edits { self.edited(&partition, ops).await? } else { plain(ops) };
            let (pk, beside) = (partition.pk.clone(), SideRows::of(space, beside));
            let transaction =
                Transaction { space: partition.space, pk, steps, beside, now: partition.now, token: token(), met_lock };
            match self.transactions.request(transaction).await {
                Ok(versions) => return Ok(versions),
                Err(Failure::Guard) => {
                    let found = self.read(&partition, ops).await?;
                    explain(ops, &found)?;
                }
                // It has waited for the lock, and waits again until its time is up.
                Err(Failure::Locked(_)) => {
                    met_lock = true;
                    self.pause(0, started).await?;
                    continue;
                }
                Err(Failure::Again(_) | Failure::Elsewhere(_)) => {}
                Err(failure) => return Err(failure.into_fault().into()),
            }
            self.pause(attempt, started).await?;
            attempt += 1;
        }
        Err(contended().into())
    }

    async fn apply_one(&self, partition: &Partition, op: &Op<'_>) -> Result<Timestamp, WriteError> {
        let rk = key::row(op.row);
        if let Act::Edit(edit) = op.act {
            let decide = |found: &FoundRow| {
                explain(std::slice::from_ref(op), std::slice::from_ref(found))?;
                let body = edit(found.body()).map_err(|reason| WriteError::Refused { op: 0, reason })?;
                Ok::<_, WriteError>((body, ()))
            };
            return self.edit_row(partition, &rk, decide).await.map(|(version, ())| version);
        }
        let started = Instant::now();
        let mut attempt = 0;
        while attempt < ATTEMPTS_MAX {
            match self.write_one(partition, &rk, op.expect, op.act).await {
                Ok(WriteOutcome::Done(_)) if matches!(op.act, Act::Delete) => return Ok(partition.now),
                Ok(WriteOutcome::Done(version)) => return Ok(version),
                Ok(WriteOutcome::Missed) => {
                    let found = self.reads.get(partition.space, partition.pk.clone(), rk.clone()).await?;
                    let is_gone = found.version.is_none();
                    explain(std::slice::from_ref(op), &[found])?;
                    if is_gone && op.expect == Expect::Any && matches!(op.act, Act::Delete) {
                        return Ok(partition.now);
                    }
                }
                Err(Failure::Locked(_)) => {
                    self.pause(0, started).await?;
                    continue;
                }
                Err(Failure::Again(_) | Failure::Elsewhere(_)) => {}
                Err(failure) => return Err(failure.into_fault().into()),
            }
            self.pause(attempt, started).await?;
            attempt += 1;
        }
        Err(contended().into())
    }

    /// Edits one row; see [`Rows::edit`](larimar_engine::Rows::edit).
    pub(crate) async fn edit<T: Send, R: Send>(
        &self,
        key: Key<'_>,
        now: Timestamp,
        edit: impl Fn(Option<&[u8]>) -> Result<(Vec<u8>, T), R> + Send + Sync,
    ) -> Result<T, EditError<R>> {
        let Ok(partition) = Partition::new(key.space, key.partition, now) else { return Err(EditError::SpaceGone) };
        let decide = |found: &FoundRow| match found.has_space {
            true => edit(found.body()).map_err(EditError::Refused),
            false => Err(EditError::SpaceGone),
        };
        self.edit_row(&partition, &key::row(key.row), decide).await.map(|(_, value)| value)
    }

    /// Reads a row, decides, and writes it if it is still the one that was read; otherwise starts again. Returns the value
    /// of the decision that was written. Edits of one row by this server run one after the other, so that only other
    /// servers can change it between read and write.
    async fn edit_row<T: Send, X: From<Fault> + Send>(
        &self,
        partition: &Partition,
        rk: &[u8],
        decide: impl Fn(&FoundRow) -> Result<(Vec<u8>, T), X> + Send + Sync,
    ) -> Result<(Timestamp, T), X> {
        let _turn = self.turns[self.turn_of(partition, rk)].lock().await;
        let started = Instant::now();
        let mut attempt = 0;
        while attempt < ATTEMPTS_MAX {
            let found = self.reads.get(partition.space, partition.pk.clone(), rk.to_vec()).await?;
            let (body, value) = decide(&found)?;
            match self.write_one(partition, rk, expect_unchanged(&found), Act::Put(&body)).await {
                Ok(WriteOutcome::Done(version)) => return Ok((version, value)),
                Err(Failure::Locked(_)) => {
                    self.pause(0, started).await?;
                    continue;
                }
                Ok(WriteOutcome::Missed) | Err(Failure::Again(_) | Failure::Elsewhere(_)) => {}
                Err(failure) => return Err(failure.into_fault().into()),
            }
            self.pause(attempt, started).await?;
            attempt += 1;
        }
        Err(contended().into())
    }

    /// Sends one operation: most share a statement with those of other requests.
    async fn write_one(
        &self,
        partition: &Partition,
        rk: &[u8],
        expect: Expect,
        act: Act<'_>,
    ) -> Result<WriteOutcome, Failure> {
        let (kind, body) = match (act, expect) {
            (Act::Put(body), Expect::Absent) => (WriteKind::Insert, body.to_vec()),
            (Act::Put(body), Expect::Any) => (WriteKind::Upsert, body.to_vec()),
            (Act::Put(body), Expect::Present | Expect::Version(_)) => (WriteKind::Update, body.to_vec()),
            (Act::Delete, Expect::Any | Expect::Present | Expect::Version(_)) => (WriteKind::Delete, Vec::new()),
            (act, expect) => return self.write_as_transaction(partition, rk, expect, act).await,
        };
        let expected = match expect {
            Expect::Version(version) => version.ticks().cast_signed(),
            _ => -1,
        };
        let (space, pk, rk) = (partition.space, partition.pk.clone(), rk.to_vec());
        self.single_writes.request(SingleWrite { kind, space, pk, rk, expected, token: token(), body }).await
    }

    async fn write_as_transaction(
        &self,
        partition: &Partition,
        rk: &[u8],
        expect: Expect,
        act: Act<'_>,
    ) -> Result<WriteOutcome, Failure> {
        let step = Step { rk: rk.to_vec(), expect, act: owned(act) };
        let (space, pk) = (partition.space, partition.pk.clone());
        let (steps, beside) = (vec![step], SideRows::default());
        let transaction = Transaction { space, pk, steps, beside, now: partition.now, token: token(), met_lock: false };
        match self.transactions.request(transaction).await {
            Ok(versions) => Ok(WriteOutcome::Done(versions[0])),
            Err(Failure::Guard) => Ok(WriteOutcome::Missed),
            Err(failure) => Err(failure),
        }
    }

    /// The operations, with every edit applied to the row as it is now, on condition that the row does not change.
    async fn edited(&self, partition: &Partition, ops: &[Op<'_>]) -> Result<Vec<Step>, WriteError> {
        let found = self.read(partition, ops).await?;
        let mut steps = Vec::with_capacity(ops.len());
        for (index, (op, answer)) in ops.iter().zip(&found).enumerate() {
            // Conditions and edits are checked in order: the first that fails is returned.
            explain(&ops[..=index], &found[..=index])?;
            steps.push(match op.act {
                Act::Edit(edit) => {
                    let body = edit(answer.body()).map_err(|reason| WriteError::Refused { op: index, reason })?;
                    Step { rk: key::row(op.row), expect: expect_unchanged(answer), act: transactions::Act::Put(body) }
                }
                act => Step { rk: key::row(op.row), expect: op.expect, act: owned(act) },
            });
        }
        Ok(steps)
    }

    /// The rows of some operations, all at one moment: only so can one condition fail while those before it hold.
    async fn read(&self, partition: &Partition, ops: &[Op<'_>]) -> Result<Vec<FoundRow>, Fault> {
        let rks: Vec<Vec<u8>> = ops.iter().map(|op| key::row(op.row)).collect();
        reads::get_together(&self.pool, partition.space, &partition.pk, &rks).await
    }

    /// Waits before another attempt, unless the time is up.
    async fn pause(&self, attempt: u32, started: Instant) -> Result<(), Fault> {
        if started.elapsed() > self.core.target.timeout {
            return Err(contended());
        }
        if attempt > 0 {
            tokio::time::sleep(jittered(Duration::from_millis(1 << attempt.min(7)))).await;
        }
        Ok(())
    }

    fn turn_of(&self, partition: &Partition, rk: &[u8]) -> usize {
        let hash = rustc_hash::FxBuildHasher.hash_one((&partition.pk, rk));
        usize::try_from(hash % self.turns.len() as u64).unwrap_or(0)
    }
}

/// A partition as the database stores it, and the caller's time.
struct Partition {
    space: i64,
    pk: Vec<u8>,
    now: Timestamp,
}

impl Partition {
    fn new(space: SpaceId, partition: &str, now: Timestamp) -> Result<Self, WriteError> {
        let number = key::number(space).ok_or(WriteError::SpaceGone)?;
        Ok(Self { space: number, pk: key::partition(space, partition), now })
    }
}

/// The error of the first operation whose condition does not hold for the rows that were found, if there is one.
fn explain(ops: &[Op<'_>], found: &[FoundRow]) -> Result<(), WriteError> {
    if found.iter().any(|answer| !answer.has_space) {
        return Err(WriteError::SpaceGone);
    }
    for (op, (asked, answer)) in ops.iter().zip(found).enumerate() {
        let found = answer.version.map(Timestamp::from_ticks);
        if !asked.expect.admits(found) {
            return Err(WriteError::Condition { op, found });
        }
    }
    Ok(())
}

fn expect_unchanged(found: &FoundRow) -> Expect {
    found.version.map_or(Expect::Absent, |version| Expect::Version(Timestamp::from_ticks(version)))
}

fn plain(ops: &[Op<'_>]) -> Vec<Step> {
    ops.iter().map(|op| Step { rk: key::row(op.row), expect: op.expect, act: owned(op.act) }).collect()
}

fn owned(act: Act<'_>) -> transactions::Act {
    match act {
        Act::Put(body) => transactions::Act::Put(body.to_vec()),
        Act::Delete => transactions::Act::Delete,
        Act::Check => transactions::Act::Check,
        Act::Edit(_) => unreachable!("edits were applied before"),
    }
}

fn contended() -> Fault {
    Fault::Unavailable("too many requests write to the same rows".to_owned())
}

const ATTEMPTS_MAX: u32 = 50;
