//! Moves an entity to another partition, table or key, eventually and exactly once (T3).
//!
//! No transaction reaches from the source to the target, so the move is an intent with idempotent steps
//! ([`eventual`](crate::eventual)). Employee 000123 goes from the current ones to the archive:
//!
//! ```text
//!  submit    put the intent, hidden      freeze the source: `_moving` = version    show the intent
//!  worker    freeze the source (if it is as it was)   copy it to the target   bury the source   ... forget it
//! ```
//!
//! # What is guaranteed
//! - When [`Mover::submit`] returns `Ok`, the entity will be moved, even if processes crash. When it fails, the entity
//!   was changed meanwhile ([`Error::Changed`]) and is not moved, or the answer was lost and it may be moved or not.
//! - Eventually the entity is at exactly one of the two places: at the target, with all its properties, including those
//!   that were changed by a conditional write at the source while it was on its way. Until then it may be seen at both.
//! - Intents that are delivered twice, or late, do not undo later changes: the entity has the version of its last
//!   move (`_version`). Moved to the archive and back, it stays back.
//! - Nothing is overwritten at the target. If another entity came there after `submit` looked, by another move or
//!   otherwise, the intent goes to the poison queue with [`Error::Exists`] and the entity stays where it is, frozen; make
//!   room and [`redrive`](WorkQueue::redrive) it.
//!
//! # Requirements
//! Writers of an entity that may be moved use ETag conditions and do not change its `_moving`, `_version` and
//! `_copied`: they merge, or replace the [`DynamicEntity`] that they read. Replacing it by a type that does not know
//! these properties cancels the move, unless the entity was copied already; then the change is moved too. Overwriting
//! it unconditionally just after it was moved creates it again at the source. It must not be changed at the target
//! before the move is done (then `_copied` is gone).
//!
//! At the source a tombstone (`_deleted`) stays for an hour. [`Mover::get`] does not show it; queries filter it
//! out by [`is_gone`].
//!
//! # Cost in requests
//! Submit: 5. Worker: 12, and 5 more an hour later.

use crate::eventual::slot::{self, Slot, TRIES_MAX, VERSION, is_overtaken};
use crate::eventual::{Place, Submitted, Work, WorkError, WorkQueue};
use crate::{Error, Result};
use larimar_client::{Account, DynamicEntity, ETag, Entity, Table};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Moves entities between partitions and tables of an account.
///
/// ```no_run
/// use larimar_client::Account;
/// use larimar_patterns::eventual::{Place, Worker};
/// use larimar_patterns::mover::Mover;
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let account = Account::connect("UseDevelopmentStorage=true")?;
/// let mover = Mover::new(&account, "archive");
/// mover.create_if_missing().await?;
/// let (now, archived) = (Place::new("Current", "Sales", "000123"), Place::new("Archive", "Sales", "000123"));
/// mover.submit(&now, &archived).await?;
/// // in any number of processes:
/// Worker::new(mover.queue().clone(), mover).run(std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Mover {
    account: Account,
    queue: WorkQueue<MoveIntent>,
    grace: Duration,
    tombstones_for: Duration,
}

/// What a [`Mover`] queues before it moves anything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MoveIntent(Intent);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Intent {
    Move {
        from: Place,
        to: Place,
        version: i64,
        etag: ETag,
    },
    /// Remove the tombstone that the move of this version left.
    Forget {
        from: Place,
        to: Place,
        version: i64,
    },
}

/// Whether an entity that a query returned has left its place and is only there as a tombstone.
#[must_use]
pub fn is_gone(entity: &DynamicEntity) -> bool {
    slot::is_dead(entity)
}

impl Mover {
    /// Moves entities of this account by a queue of this name.
    #[must_use]
    pub fn new(account: &Account, queue: &str) -> Self {
        Self {
            account: account.clone(),
            queue: WorkQueue::new(account, queue),
            grace: Duration::from_secs(30),
            tombstones_for: Duration::from_secs(3600),
        }
    }

    /// How long a worker waits for the submitter before it takes over an intent (default: 30 seconds).
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long tombstones are kept (default: an hour; maximum: a week). It must be longer than a request can take,
    /// than a submitter or a worker can pause between two requests (a machine that sleeps and wakes up continues where
    /// it stopped), and than the clocks of the machines differ.
    #[must_use]
    pub const fn tombstones_for(mut self, time: Duration) -> Self {
        self.tombstones_for = time;
        self
    }

    /// The queue, for a [`Worker`](crate::eventual::Worker) and for monitoring.
    #[must_use]
    pub const fn queue(&self) -> &WorkQueue<MoveIntent> {
        &self.queue
    }

    /// Creates the queues if they are missing.
    ///
    /// # Errors
    /// A name that the service refuses.
    pub async fn create_if_missing(&self) -> Result<()> {
        self.queue.create_if_missing().await
    }

    /// The entity at a place, unless it was moved away.
    ///
    /// # Errors
    /// A table that does not exist, or an entity that is not an `E`.
    pub async fn get<E: Entity>(&self, place: &Place) -> Result<Option<E>> {
        let found = self.slot(place).await?;
        Ok(found.filter(|slot| !slot.is_dead).map(|slot| E::from_dynamic(slot.entity)).transpose()?)
    }

    /// Moves an entity. When this returns, the move will be made for certain.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is nothing to move; [`Error::Exists`] if there is an entity at the target;
    /// [`Error::Changed`] if the entity changed or is being moved, to here or from here, at the same time.
    pub async fn submit(&self, from: &Place, to: &Place) -> Result<Submitted> {
        if from == to {
            return Err(Error::Invalid("an entity is moved to another place than its own".to_owned()));
        }
        let source = self.slot(from).await?.filter(|slot| !slot.is_dead).ok_or(Error::NotFound)?;
        if moving(&source)?.is_some() || source.entity.value(COPIED).is_some() {
            return Err(Error::Changed);
        }
        let target = self.slot(to).await?;
        if target.as_ref().is_some_and(|target| !target.is_dead) {
            return Err(Error::Exists);
        }
        let version = slot::next_version(target.map_or(0, |target| target.version).max(source.version));
        let intent = Intent::Move { from: from.clone(), to: to.clone(), version, etag: source.etag.clone() };
        let mut submitted = self.queue.submit_hidden(&MoveIntent(intent), self.grace).await?;
        if !self.freeze(from, version, &source.etag).await? {
            // Best effort: a worker that gets it finds that there is nothing to do.
            let _ = self.queue.withdraw(&submitted).await;
            return Err(Error::Changed);
        }
        // Best effort again: it becomes visible by itself.
        let _ = self.queue.reveal(&mut submitted).await;
        Ok(submitted)
    }

    /// Decides that the entity is moved: from here on it will be. Returns whether that was decided.
    async fn freeze(&self, from: &Place, version: i64, etag: &ETag) -> Result<bool> {
        let mark = DynamicEntity::new(&from.partition, &from.row).with(MOVING, version);
        if !is_overtaken(self.table(from).merge(&mark, etag).await)? {
            return Ok(true);
        }
        // An ETag never comes again: either this move froze it before, or it never will.
        let Some(source) = self.slot(from).await? else { return Ok(false) };
        Ok(moving(&source)? == Some(version) || source.is_dead && source.version >= version)
    }

    /// Copies the source to the target, again if it changed since.
    ///
    /// The target is looked at before the source. A source that is still there afterwards was there at the first look,
    /// so what was at the target then did not come from a finished move; and the target is written only if it is
    /// unchanged.
    async fn copy(&self, from: &Place, to: &Place, version: i64) -> Result<Copied> {
        let table = self.table(to);
        for _ in 0..TRIES_MAX {
            let target = self.slot(to).await?;
            // Of a higher version, it came here by a later move.
            let source = self.slot(from).await?.filter(|source| !source.is_dead && source.version < version);
            let arriving = target.as_ref().and_then(|target| arriving(target, from, version));
            let source = match source {
                None => return Ok(Copied { target: target.filter(|_| arriving.is_some()), source: None }),
                // Where there is a copy the move was decided, though another writer may have unfrozen the source since.
                Some(source) if arriving.is_some() || moving(&source)? == Some(version) => source,
                Some(_) => return Ok(Copied { target: None, source: None }),
            };
            let mut copy = source.entity.clone();
            copy.remove(MOVING);
            copy.partition_key.clone_from(&to.partition);
            copy.row_key.clone_from(&to.row);
            copy.set(VERSION, version);
            copy.set(COPIED, Original { from: from.clone(), etag: source.etag.clone() }.to_string());
            let written = match &target {
                None => table.insert(&copy).await,
                Some(_) if arriving.as_ref() == Some(&source.etag) => {
                    return Ok(Copied { target, source: Some(source) });
                }
                Some(target) if arriving.is_some() => table.replace(&copy, &target.etag).await,
                Some(target) if !target.is_dead => return Err(Error::Exists),
                // What left has to arrive first.
                Some(target) if target.version > version => return Err(Error::Contended),
                Some(target) => table.replace(&copy, &target.etag).await,
            };
            let etag = written.as_ref().ok().cloned();
            if let (false, Some(etag)) = (is_overtaken(written)?, etag) {
                let target = Slot { entity: copy, etag, version, is_dead: false };
                return Ok(Copied { target: Some(target), source: Some(source) });
            }
        }
        Err(Error::Contended)
    }

    /// Makes a tombstone of the source when its copy is up to date, and marks the copy as arrived.
    async fn bury(&self, from: &Place, to: &Place, version: i64) -> Result<()> {
        for _ in 0..TRIES_MAX {
            let Copied { target: Some(target), source } = self.copy(from, to, version).await? else { return Ok(()) };
            if let Some(source) = source {
                // Before there is a tombstone there is an intent to remove it.
                let forget = Intent::Forget { from: from.clone(), to: to.clone(), version };
                self.queue.submit_hidden(&MoveIntent(forget), self.tombstones_for).await?;
                let tombstone = slot::tombstone(&from.partition, &from.row, version);
                if is_overtaken(self.table(from).replace(&tombstone, &source.etag).await)? {
                    continue;
                }
            }
            if self.land(to, target).await? {
                return Ok(());
            }
        }
        Err(Error::Contended)
    }

    /// Ends a move at the target: from here on, the copy is the entity. Returns whether the copy was as given.
    async fn land(&self, to: &Place, target: Slot) -> Result<bool> {
        let mut entity = target.entity;
        entity.remove(COPIED);
        Ok(!is_overtaken(self.table(to).replace(&entity, &target.etag).await)?)
    }

    /// Removes the tombstone of a move, which stays until the entity has arrived.
    async fn forget(&self, from: &Place, to: &Place, version: i64) -> Result<()> {
        let Some(source) = self.slot(from).await?.filter(|source| source.is_dead && source.version == version) else {
            return Ok(());
        };
        for _ in 0..TRIES_MAX {
            let target = self.slot(to).await?;
            let has_landed = match target {
                Some(target) if arriving(&target, from, version).is_some() => self.land(to, target).await?,
                _ => true,
            };
            if has_landed {
                // Another worker was faster and has removed or replaced it: both are fine.
                return is_overtaken(self.table(from).delete(&from.partition, &from.row, &source.etag).await).map(drop);
            }
        }
        Err(Error::Contended)
    }

    fn table(&self, place: &Place) -> Table {
        self.account.table(&place.table)
    }

    async fn slot(&self, place: &Place) -> Result<Option<Slot>> {
        Slot::read(&self.table(place), &place.partition, &place.row).await
    }
}

impl Work for Mover {
    type Intent = MoveIntent;

    fn steps(&self, intent: &MoveIntent) -> usize {
        match intent.0 {
            Intent::Move { .. } => 3,
            Intent::Forget { .. } => 1,
        }
    }

    async fn perform(&self, intent: &MoveIntent, step: usize) -> Result<(), WorkError> {
        match (&intent.0, step) {
            (Intent::Move { from, version, etag, .. }, 0) => self.freeze(from, *version, etag).await.map(drop)?,
            (Intent::Move { from, to, version, .. }, 1) => self.copy(from, to, *version).await.map(drop)?,
            (Intent::Move { from, to, version, .. }, _) => self.bury(from, to, *version).await?,
            (Intent::Forget { from, to, version }, _) => self.forget(from, to, *version).await?,
        }
        Ok(())
    }
}

/// What a move has come to.
struct Copied {
    /// The copy, if it is there and has not arrived yet.
    target: Option<Slot>,
    /// The source that it is a copy of, if that has not left yet.
    source: Option<Slot>,
}

/// The version of the move that a place is frozen for.
fn moving(slot: &Slot) -> Result<Option<i64>> {
    Ok(slot.entity.get::<Option<i64>>(MOVING)?)
}

/// The ETag of the source that a place is a copy of, if it is there by this move, which is not done yet.
fn arriving(target: &Slot, from: &Place, version: i64) -> Option<ETag> {
    let is_copy = !target.is_dead && target.version == version;
    let original = target.entity.get::<Option<String>>(COPIED).ok().flatten().filter(|_| is_copy)?;
    let original: Original = serde_json::from_str(&original).ok()?;
    (original.from == *from).then_some(original.etag)
}

/// What a copy was made of.
#[derive(Debug, Serialize, Deserialize)]
struct Original {
    from: Place,
    etag: ETag,
}

impl fmt::Display for Original {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).expect("texts are JSON"))
    }
}

/// The version of the move that is under way from here.
const MOVING: &str = "_moving";
/// What was copied, while the move to here is under way.
const COPIED: &str = "_copied";
