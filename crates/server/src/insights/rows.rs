//! Stored figures: rows of the system's space, one for each account, slot of time and row number.
//!
//! ```text
//! insights/m/000001794787200/NAME/3     a minute, kept for an hour
//! insights/h/000001794787200/NAME/3     an hour, kept for a week
//! insights-key                          the key of all hashes, 16 random bytes
//! ```
//!
//! A server adds to the rows of one number, which it draws at its start, so that servers over one database rarely write the
//! same row, and no number of servers or restarts makes more than [`NUMBERS`] rows of one slot. An addition reads and
//! writes the row in one edit; two servers with one number do not overwrite each other.

use super::account::AccountFigures;
use super::hash_key::HashKey;
use larimar_engine::{
    Act, Budget, EditError, Engine, Expect, Fault, Flow, Key, KeyRange, Op, Position, ReadError, SpaceId, WriteError,
};
use larimar_model::Timestamp;
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// The length of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resolution {
    Minute,
    Hour,
}

/// A slot of time: its resolution, and its start in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) resolution: Resolution,
    pub(crate) start: u64,
}

impl Resolution {
    pub(crate) const ALL: [Self; 2] = [Self::Minute, Self::Hour];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::Minute => 'm',
            Self::Hour => 'h',
        }
    }

    pub(crate) const fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }

    /// How long rows are kept.
    pub(crate) const fn retention(self) -> Duration {
        match self {
            Self::Minute => Duration::from_secs(3600),
            Self::Hour => Duration::from_secs(7 * 24 * 3600),
        }
    }

    /// The slot of a time.
    pub(crate) fn slot(self, time: Timestamp) -> Slot {
        let seconds = time.to_unix().as_secs();
        Slot { resolution: self, start: seconds - seconds % self.seconds() }
    }
}

impl Slot {
    fn prefix(self) -> String {
        format!("{PREFIX}{}/{:015}/", self.resolution.letter(), self.start)
    }

    pub(crate) const fn next(self) -> Self {
        Self { start: self.start + self.resolution.seconds(), ..self }
    }
}

/// Adds figures to a row.
pub(crate) async fn add(
    engine: &impl Engine,
    (account, slot, number): (&str, Slot, u8),
    figures: &[u8],
    now: Timestamp,
) -> Result<(), Fault> {
    let row = format!("{}{account}/{number}", slot.prefix());
    let key = Key { space: SpaceId::SYSTEM, partition: PARTITION, row: &row };
    let edited = engine.edit(key, now, |stored| {
        // What cannot be read is of a later release, or damaged; it is replaced.
        Ok::<_, Infallible>((added(stored.unwrap_or_default(), figures), ()))
    });
    edited.await.map_err(|error| match error {
        EditError::Fault(fault) => fault,
        EditError::SpaceGone => space_gone(),
        EditError::Refused(never) => match never {},
    })
}

/// The sum of two stored forms. One that cannot be read counts as empty.
pub(crate) fn added(one: &[u8], other: &[u8]) -> Vec<u8> {
    // The first figures of a slot, as in every row of a minute, need not be read.
    let Some(mut sum) = AccountFigures::decode(one) else { return other.to_vec() };
    match AccountFigures::decode(other) {
        Some(figures) => {
            sum.merge(figures);
            sum.encode(ROW_BYTES_MAX)
        }
        None => one.to_vec(),
    }
}

/// The stored key of the hashes, the same for all servers; without one, this one is stored.
pub(crate) async fn settle_key(engine: &impl Engine, proposed: HashKey, now: Timestamp) -> Result<HashKey, Fault> {
    let edited = engine.edit(HASH_KEY, now, |stored| match stored.and_then(|stored| stored.try_into().ok()) {
        Some(stored) => Err(HashKey(stored)),
        None => Ok((proposed.0.to_vec(), proposed)),
    });
    match edited.await {
        Ok(key) | Err(EditError::Refused(key)) => Ok(key),
        Err(EditError::Fault(fault)) => Err(fault),
        Err(EditError::SpaceGone) => Err(space_gone()),
    }
}

/// Passes the figures of an account in one slot to `visit`, row by row.
pub(crate) async fn read(
    engine: &impl Engine,
    account: &str,
    slot: Slot,
    mut visit: impl FnMut(AccountFigures) + Send,
) -> Result<(), Fault> {
    let prefix = format!("{}{account}/", slot.prefix());
    let mut next = Some(Position::new(PARTITION, prefix.as_str()));
    while let Some(start) = next {
        // One row at a time: rows are large, and decoding one takes as long as a request.
        let mut bytes = None;
        next = scan(engine, start, &after(&prefix), 1, |_, body| bytes = Some(body.to_vec())).await?;
        if let Some(figures) = bytes.and_then(|bytes| AccountFigures::decode(&bytes)) {
            visit(figures);
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Removes the rows of an account.
pub(crate) async fn erase(engine: &impl Engine, account: &str, now: Timestamp) -> Result<(), Fault> {
    let part = format!("/{account}/");
    remove(engine, PREFIX, &after(PREFIX), now, |row| row.contains(&part)).await
}

/// Removes the rows of all accounts that are older than their retention.
pub(crate) async fn remove_old(engine: &impl Engine, now: Timestamp) -> Result<(), Fault> {
    for resolution in Resolution::ALL {
        let oldest = resolution.slot(now.before(resolution.retention()));
        let from = format!("{PREFIX}{}/", resolution.letter());
        remove(engine, &from, &oldest.prefix(), now, |_| true).await?;
    }
    Ok(())
}

/// Removes rows between two keys.
async fn remove(
    engine: &impl Engine,
    from: &str,
    end: &str,
    now: Timestamp,
    is_wanted: impl Fn(&str) -> bool + Send + Sync,
) -> Result<(), Fault> {
    let mut next = Some(Position::new(PARTITION, from));
    while let Some(start) = next {
        let mut rows = Vec::new();
        next = scan(engine, start, end, REMOVED_AT_ONCE, |row, _| {
            if is_wanted(row) {
                rows.push(row.to_owned());
            }
        })
        .await?;
        if rows.is_empty() {
            continue;
        }
        let ops: Vec<_> = rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Delete }).collect();
        engine.apply(SpaceId::SYSTEM, PARTITION, &ops, now).await.map_err(|error| match error {
            WriteError::Fault(fault) => fault,
            WriteError::SpaceGone => space_gone(),
            other => Fault::Damaged(format!("an unconditional write was refused: {other}")),
        })?;
    }
    Ok(())
}

async fn scan(
    engine: &impl Engine,
    start: Position,
    end: &str,
    rows_max: usize,
    mut visit: impl FnMut(&str, &[u8]) + Send,
) -> Result<Option<Position>, Fault> {
    let range = KeyRange { start, end: Some(Position::new(PARTITION, end)) };
    let budget = Budget { rows_max, deadline: Instant::now() + SCAN_TIME_MAX };
    let scanned = engine.scan(SpaceId::SYSTEM, &range, budget, |row| {
        visit(row.row, row.body);
        Flow::Continue
    });
    scanned.await.map_err(|error| match error {
        ReadError::Fault(fault) => fault,
        ReadError::SpaceGone => space_gone(),
    })
}

/// The first text after all that begin with a prefix that ends with a slash.
fn after(prefix: &str) -> String {
    format!("{}0", prefix.trim_end_matches('/'))
}

fn space_gone() -> Fault {
    Fault::Damaged("the system's space is not there".to_owned())
}

/// Bytes of a row at most.
pub(crate) const ROW_BYTES_MAX: usize = 64 << 10;
/// Rows of one slot at most.
pub(crate) const NUMBERS: u8 = 4;
/// The partition of the system's records, which belongs to no account and is not migrated.
const PARTITION: &str = "";
const PREFIX: &str = "insights/";
const HASH_KEY: Key<'_> = Key { space: SpaceId::SYSTEM, partition: PARTITION, row: "insights-key" };
const REMOVED_AT_ONCE: usize = 50;
const SCAN_TIME_MAX: Duration = Duration::from_secs(10);
