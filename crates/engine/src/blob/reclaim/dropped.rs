//! Reclaims the payloads of deleted containers: finds them through the containers' rows, in bounded batches.
//!
//! The engine drops a container's rows only after its payloads are removed. If the process stops before that, it or
//! another server starts again at the container's first row, and may discard payloads a second time.

use super::unreachable::payloads_of;
use crate::blob::Blobs;
use crate::blob::bytes::{ByteStore, Extent};
use crate::contract::{Engine, Position, SpaceId};
use crate::error::{Fault, ReadError};
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

/// Reclaims deleted containers, step by step, for as long as the process runs.
#[derive(Debug)]
pub struct Reclaimer {
    grace: Duration,
    /// The last container that was taken up, in the order of their numbers.
    last: SpaceId,
    /// The container that is being read, and the next row.
    place: Option<(SpaceId, Position)>,
    /// Containers whose payloads are being removed, and when that is done.
    waiting: VecDeque<(SpaceId, Instant)>,
    renewed: Instant,
}

impl Reclaimer {
    /// For a store of bytes with this grace period.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        let renewed = Instant::now();
        Self { grace, last: SpaceId::SYSTEM, place: None, waiting: VecDeque::new(), renewed }
    }

    /// Does a bounded amount of work; `false` if there is none at the moment.
    ///
    /// # Errors Faults of the engine; the next call tries the same work again.
    pub async fn step<E: Engine, B: ByteStore>(&mut self, blobs: &Blobs<E, B>) -> Result<bool, Fault> {
        if let Some((space, due)) = self.waiting.front().copied()
            && due <= Instant::now()
        {
            blobs.engine.forget_dropped(space).await?;
            self.waiting.pop_front();
            return Ok(true);
        }
        self.renew(blobs).await?;
        if let Some((space, from)) = self.place.clone() {
            return self.read(blobs, space, &from).await;
        }
        if self.waiting.len() >= WAITING_MAX {
            return Ok(false);
        }
        let Some(next) = blobs.engine.claim_dropped(self.last).await? else {
            self.last = SpaceId::SYSTEM;
            return Ok(false);
        };
        self.last = next;
        if self.waiting.iter().all(|(space, _)| *space != next) {
            self.place = Some((next, Position::new("", "")));
        }
        Ok(true)
    }

    /// Discards the payloads that the next rows of a container point to.
    async fn read<E: Engine, B: ByteStore>(
        &mut self,
        blobs: &Blobs<E, B>,
        space: SpaceId,
        from: &Position,
    ) -> Result<bool, Fault> {
        if blobs.bytes.statistics().discarded >= DISCARDED_MAX {
            return Ok(false);
        }
        let mut extents: HashSet<Extent> = HashSet::new();
        // A damaged row is skipped; `ByteStore::reclaim` finds its payloads.
        let next = blobs.engine.read_dropped(space, from, |row| extents.extend(payloads_of(row).unwrap_or_default()));
        match next.await {
            Ok(next) => {
                if !extents.is_empty() {
                    blobs.bytes.discard(extents.into_iter().collect());
                }
                if next.is_none() {
                    let removed = Instant::now() + self.grace + self.grace.min(REMOVAL_TIME);
                    self.waiting.push_back((space, removed));
                }
                self.place = next.map(|next| (space, next));
            }
            // Another server has taken the container up.
            Err(ReadError::SpaceGone) => self.place = None,
            Err(ReadError::Fault(fault)) => return Err(fault),
        }
        Ok(true)
    }

    /// Renews the claims on the containers in `waiting`.
    async fn renew<E: Engine, B: ByteStore>(&mut self, blobs: &Blobs<E, B>) -> Result<(), Fault> {
        if self.renewed.elapsed() < RENEW_EVERY {
            return Ok(());
        }
        self.renewed = Instant::now();
        let end = Position::new("\u{FFFF}", "");
        let mut kept = VecDeque::new();
        for (space, due) in std::mem::take(&mut self.waiting) {
            match blobs.engine.read_dropped(space, &end, |_| ()).await {
                Err(ReadError::SpaceGone) => {}
                Ok(_) | Err(ReadError::Fault(_)) => kept.push_back((space, due)),
            }
        }
        self.waiting = kept;
        Ok(())
    }
}

/// Containers whose payloads are being removed at the same time.
const WAITING_MAX: usize = 100;
/// Discarded payloads above which no more rows are read; the stores hold twice as many.
const DISCARDED_MAX: u64 = 1 << 19;
/// How long the removal may take after the grace period, if there is one.
const REMOVAL_TIME: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = Duration::from_secs(20);
