//! What a part holds, in a few numbers that depend on every bit of it and on the order of its rows.
//!
//! The checksum is a chain: that of no rows is the SHA-256 of the part's name and description, and each row's is
//! the SHA-256 of the one before and of the row. So it can be kept after any row and taken up again there.

use super::{MigrationError, Part, Side, blobs, messages};
use crate::blob::bytes::ByteStore;
use crate::contract::{Budget, Engine, Flow, KeyRange, Message, RowRef, Space, SpaceKind};
use larimar_model::Timestamp;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::time::{Duration, Instant};

/// What a part holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Entities of a table, messages of a queue, blobs and snapshots of a container.
    pub items: u64,
    /// Their bytes: keys, versions and bodies, and the payloads of blobs.
    pub bytes: u64,
    /// Over the part's name and description and all its rows.
    pub checksum: Checksum,
}

/// A checksum of a part: SHA-256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(pub [u8; 32]);

impl Digest {
    /// The digest of a part without rows.
    pub(super) fn new(part: &Part, meta: &[u8]) -> Self {
        let mut hash = Sha256::new();
        let (kind, account, name) = match part {
            Part::Settings { account } => (0, account.as_str(), ""),
            Part::Space { kind: SpaceKind::Table, account, name } => (1, account.as_str(), name.as_str()),
            Part::Space { kind: SpaceKind::Queue, account, name } => (2, account.as_str(), name.as_str()),
            Part::Space { kind: SpaceKind::Container, account, name } => (3, account.as_str(), name.as_str()),
        };
        hash.update([kind]);
        for text in [account.as_bytes(), name.as_bytes(), meta] {
            put(&mut hash, text);
        }
        Self { items: 0, bytes: 0, checksum: Checksum(hash.finalize().into()) }
    }

    /// Takes the next row in, which is an item.
    pub(super) fn add(&mut self, row: &RowRef<'_>) {
        self.chain(row);
        self.items += 1;
        self.bytes += size(row);
    }

    /// Takes the next message in.
    pub(super) fn add_message(&mut self, message: &Message) {
        let Message { id, inserted, expires, dequeue_count, receipt, visible_at, text } = message;
        let mut hash = Sha256::new();
        hash.update(self.checksum.0);
        hash.update(id.0);
        for time in [inserted, expires, visible_at, &receipt.visible_at] {
            hash.update(time.ticks().to_be_bytes());
        }
        hash.update(receipt.nonce.to_be_bytes());
        hash.update(dequeue_count.to_be_bytes());
        put(&mut hash, text);
        self.items += 1;
        self.bytes += text.len() as u64;
        self.checksum = Checksum(hash.finalize().into());
    }

    /// Takes the next row into the checksum.
    pub(super) fn chain(&mut self, row: &RowRef<'_>) {
        let mut hash = Sha256::new();
        hash.update(self.checksum.0);
        hash.update(row.version.ticks().to_be_bytes());
        for text in [row.partition.as_bytes(), row.row.as_bytes(), row.body] {
            put(&mut hash, text);
        }
        self.checksum = Checksum(hash.finalize().into());
    }

    /// The counts of both; the checksum of neither.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self { items: self.items + other.items, bytes: self.bytes + other.bytes, checksum: Checksum::default() }
    }
}

/// Reads a part and computes its digest; reports progress from time to time. Of messages only those count that live beyond
/// a time.
pub(super) async fn digest(
    side: &Side<'_, impl Engine, impl ByteStore>,
    part: &Part,
    found: &Space,
    living_at: Timestamp,
    mut tell: impl FnMut(&Digest),
) -> Result<Digest, MigrationError> {
    let engine = side.engine;
    match part.kind() {
        None | Some(SpaceKind::Table) => {}
        Some(SpaceKind::Queue) => return messages::digest(engine, part, found, living_at, tell).await,
        Some(SpaceKind::Container) => return blobs::digest(side, part, found, tell).await,
    }
    let mut digest = Digest::new(part, &found.meta);
    let KeyRange { start, end } = part.range();
    let (mut next, mut range) = (Some(start), KeyRange { end, ..KeyRange::all() });
    while let Some(start) = next {
        range.start = start;
        let scanned = engine.scan(found.id, &range, budget(), |row| {
            digest.add(&row);
            Flow::Continue
        });
        next = scanned.await.map_err(|error| part.cannot_read(error))?;
        tell(&digest);
    }
    Ok(digest)
}

/// The bytes of a row, as progress counts them.
pub(super) fn size(row: &RowRef<'_>) -> u64 {
    (row.partition.len() + row.row.len() + size_of::<u64>() + row.body.len()) as u64
}

/// How much is read in one go.
pub(super) fn budget() -> Budget {
    Budget { rows_max: SCAN_ROWS_MAX, deadline: Instant::now() + SCAN_TIME_MAX }
}

/// Lengths come first, so that different texts never hash as the same bytes.
fn put(hash: &mut Sha256, text: &[u8]) {
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text);
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items with checksum {:.16}", self.items, self.checksum.to_string())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

const SCAN_ROWS_MAX: usize = 10_000;
const SCAN_TIME_MAX: Duration = Duration::from_secs(30);
