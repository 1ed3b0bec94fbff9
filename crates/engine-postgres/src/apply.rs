//! Conditional writes: which road each takes, and what it means when a condition does not hold.
//!
//! The database says only that a condition failed. Then the rows are read to learn which; if all conditions hold by now,
//! somebody was faster in between and the write is tried again.

use crate::core::{jittered, token};
use crate::engine::Parts;
use crate::failure::Failure;
use crate::key;
use crate::reads::{self, FoundRow};
use crate::single_writes::{SingleWrite, WriteKind, WriteOutcome};
use crate::transactions::{self, SideRows, Step, Transaction};
use larimar_engine::{Act, Beside, Expect, Fault, Op, SpaceId, WriteError};
use larimar_model::Timestamp;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

impl Parts {
    /// Applies operations on distinct rows of a partition, and writes rows of another with them.
    pub(crate) async fn apply(
        &self,
        space: SpaceId,
        partition: &str,
        (ops, beside): (&[Op<'_>], &[Beside<'_>]),
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let place = Place::new(space, partition, now)?;
        if let ([op], []) = (ops, beside) {
            return self.apply_one(&place, op).await.map(|version| vec![version]);
        }
        let has_edits = ops.iter().any(|op| matches!(op.act, Act::Edit(_)));
        let started = Instant::now();
        let (mut attempt, mut met_lock) = (0, false);
        while attempt < ATTEMPTS_MAX {
            let steps = if has_edits { self.edited(&place, ops).await? } else { plain(ops) };
            let (pk, beside) = (place.pk.clone(), SideRows::of(space, beside));
            let transaction =
                Transaction { space: place.space, pk, steps, beside, now: place.now, token: token(), met_lock };
            match self.transactions.request(transaction).await {
                Ok(versions) => return Ok(versions),
                Err(Failure::Guard) => {
                    let found = self.read(&place, ops).await?;
                    explain(ops, &found)?;
                }
                // It waited for the lock already, and does so again until its time is up.
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
        Err(crowded())
    }

    async fn apply_one(&self, place: &Place, op: &Op<'_>) -> Result<Timestamp, WriteError> {
        let rk = key::row(op.row);
        // Edits of one row take turns here, so that only other servers can come between the read and the write.
        let _turn = match op.act {
            Act::Edit(_) => Some(self.turns[self.turn_of(place, &rk)].lock().await),
            _ => None,
        };
        let started = Instant::now();
        let mut attempt = 0;
        while attempt < ATTEMPTS_MAX {
            let edited;
            let (expect, act) = match op.act {
                Act::Edit(edit) => {
                    let found = self.reads.get(place.space, place.pk.clone(), rk.clone()).await?;
                    explain(std::slice::from_ref(op), std::slice::from_ref(&found))?;
                    edited = edit(found.body()).map_err(|reason| WriteError::Refused { op: 0, reason })?;
                    (expect_unchanged(&found), Act::Put(&edited))
                }
                act => (op.expect, act),
            };
            match self.write_one(place, &rk, expect, act).await {
                Ok(WriteOutcome::Done(_)) if matches!(op.act, Act::Delete) => return Ok(place.now),
                Ok(WriteOutcome::Done(version)) => return Ok(version),
                Ok(WriteOutcome::Missed) => {
                    let found = self.reads.get(place.space, place.pk.clone(), rk.clone()).await?;
                    let is_gone = found.version.is_none();
                    explain(std::slice::from_ref(op), &[found])?;
                    if is_gone && op.expect == Expect::Any && matches!(op.act, Act::Delete) {
                        return Ok(place.now);
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
        Err(crowded())
    }

    /// Sends one operation on its way: most share a statement with those of other requests.
    async fn write_one(&self, place: &Place, rk: &[u8], expect: Expect, act: Act<'_>) -> Result<WriteOutcome, Failure> {
        let (kind, body) = match (act, expect) {
            (Act::Put(body), Expect::Absent) => (WriteKind::Insert, body.to_vec()),
            (Act::Put(body), Expect::Any) => (WriteKind::Upsert, body.to_vec()),
            (Act::Put(body), Expect::Present | Expect::Version(_)) => (WriteKind::Update, body.to_vec()),
            (Act::Delete, Expect::Any | Expect::Present | Expect::Version(_)) => (WriteKind::Delete, Vec::new()),
            (act, expect) => return self.write_apart(place, rk, expect, act).await,
        };
        let expected = match expect {
            Expect::Version(version) => version.ticks().cast_signed(),
            _ => -1,
        };
        let (space, pk, rk) = (place.space, place.pk.clone(), rk.to_vec());
        self.single_writes.request(SingleWrite { kind, space, pk, rk, expected, token: token(), body }).await
    }

    async fn write_apart(
        &self,
        place: &Place,
        rk: &[u8],
        expect: Expect,
        act: Act<'_>,
    ) -> Result<WriteOutcome, Failure> {
        let step = Step { rk: rk.to_vec(), expect, act: owned(act) };
        let (space, pk) = (place.space, place.pk.clone());
        let (steps, beside) = (vec![step], SideRows::default());
        let transaction = Transaction { space, pk, steps, beside, now: place.now, token: token(), met_lock: false };
        match self.transactions.request(transaction).await {
            Ok(versions) => Ok(WriteOutcome::Done(versions[0])),
            Err(Failure::Guard) => Ok(WriteOutcome::Missed),
            Err(failure) => Err(failure),
        }
    }

    /// The operations with every edit carried out on the row as it is now, on condition that it stays so.
    async fn edited(&self, place: &Place, ops: &[Op<'_>]) -> Result<Vec<Step>, WriteError> {
        let found = self.read(place, ops).await?;
        let mut steps = Vec::with_capacity(ops.len());
        for (index, (op, answer)) in ops.iter().zip(&found).enumerate() {
            // Conditions and edits are judged in order: what fails first is told.
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

    /// The rows of some operations as they are at one moment: only then is it true that one condition does not hold and
    /// those before it do.
    async fn read(&self, place: &Place, ops: &[Op<'_>]) -> Result<Vec<FoundRow>, Fault> {
        let rks: Vec<Vec<u8>> = ops.iter().map(|op| key::row(op.row)).collect();
        reads::get_together(&self.pool, place.space, &place.pk, &rks).await
    }

    /// Waits before another attempt, unless it took too long already.
    async fn pause(&self, attempt: u32, started: Instant) -> Result<(), WriteError> {
        if started.elapsed() > self.core.target.timeout {
            return Err(crowded());
        }
        if attempt > 0 {
            tokio::time::sleep(jittered(Duration::from_millis(1 << attempt.min(7)))).await;
        }
        Ok(())
    }

    fn turn_of(&self, place: &Place, rk: &[u8]) -> usize {
        let hash = rustc_hash::FxBuildHasher.hash_one((&place.pk, rk));
        usize::try_from(hash % self.turns.len() as u64).unwrap_or(0)
    }
}

/// A partition, as the database names it, and the caller's time.
struct Place {
    space: i64,
    pk: Vec<u8>,
    now: Timestamp,
}

impl Place {
    fn new(space: SpaceId, partition: &str, now: Timestamp) -> Result<Self, WriteError> {
        let number = key::number(space).ok_or(WriteError::SpaceGone)?;
        Ok(Self { space: number, pk: key::partition(space, partition), now })
    }
}

/// Says which operation's condition does not hold for the rows that were found, if one does not.
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
        Act::Edit(_) => unreachable!("edits are carried out before"),
    }
}

fn crowded() -> WriteError {
    WriteError::Fault(Fault::Unavailable("too many write to the same rows".to_owned()))
}

const ATTEMPTS_MAX: u32 = 50;
