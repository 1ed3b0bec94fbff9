//! Payloads that were released because no row pointed to them for longer than the grace period. A write that still
//! holds one of them is refused.
//!
//! The list is part of the blob's row, which every commit of a payload reads: no write can miss it, whatever the
//! servers' clocks show and however long the write took (docs/decisions/0011). A blob that does not exist has a row for
//! the list alone, which requests do not see.

use super::bytes::Extent;
use super::codec::{Reader, put_number, put_time};
use super::reject::BlobReject;
use larimar_model::Timestamp;
use std::time::Duration;

/// The payloads that were released recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Released {
    /// When the last of them was released.
    at: Timestamp,
    /// Hashes of their addresses. If two payloads collide, a write is refused without need.
    payloads: Vec<u32>,
}

impl Default for Released {
    fn default() -> Self {
        Self { at: Timestamp::EDM_MIN, payloads: Vec::new() }
    }
}

impl Released {
    pub(crate) const fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    /// Refuses payloads that were released.
    pub(crate) fn admit(&self, given: impl IntoIterator<Item = Extent>) -> Result<(), BlobReject> {
        if self.is_empty() || !given.into_iter().any(|extent| self.payloads.contains(&hash(&extent))) {
            return Ok(());
        }
        Err(BlobReject::WriteTooLate)
    }

    /// Adds as many payloads as there is room for; returns how many.
    pub(crate) fn add(&mut self, extents: &[Extent], now: Timestamp) -> usize {
        let room = PAYLOADS_MAX.saturating_sub(self.payloads.len());
        let added = extents.iter().take(room).map(hash);
        self.payloads.extend(added);
        self.at = now;
        room.min(extents.len())
    }

    /// The list, or an empty one once no write can be under way that began before the last release.
    pub(crate) fn kept(&self, now: Timestamp) -> Self {
        let is_old = self.at < now.before(KEPT_FOR);
        if is_old || self.is_empty() { Self::default() } else { self.clone() }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_time(out, self.at);
        put_number(out, self.payloads.len() as u64);
        for payload in &self.payloads {
            put_number(out, u64::from(*payload));
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let at = reader.time()?;
        let count = reader.count()?;
        let payloads = (0..count).map(|_| reader.small()).collect::<Option<_>>()?;
        Some(Self { at, payloads })
    }
}

/// Hashes a payload's address: file names are random, and the offset differs within a file.
fn hash(extent: &Extent) -> u32 {
    let (words, _) = extent.file.as_chunks::<4>();
    let name = words.iter().fold(0, |sum, word| sum ^ u32::from_le_bytes(*word));
    name ^ extent.offset as u32 ^ ((extent.offset >> 32) as u32).rotate_left(16)
}

/// How long a write may take after its payload was released. Servers end requests much earlier.
const KEPT_FOR: Duration = Duration::from_secs(86_400);
/// Most payloads that are released in that time: up to 20 KiB in the blob's row. Others wait for a later pass.
const PAYLOADS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(number: u8, offset: u64) -> Extent {
        Extent { file: [number, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], offset, length: 7 }
    }

    #[test]
    fn what_was_given_up_is_refused_for_a_day() {
        let now = Timestamp::parse("2030-01-02T00:00:00Z").expect("a time");
        let mut released = Released::default();
        assert_eq!(released.admit([extent(1, 0)]), Ok(()));
        assert_eq!(released.add(&[extent(1, 0), extent(1, 900)], now), 2);
        assert_eq!(released.admit([extent(2, 0), extent(1, 900)]), Err(BlobReject::WriteTooLate));
        assert_eq!(released.admit([extent(2, 0), extent(1, 901)]), Ok(()));
        let later = |seconds: u64| Timestamp::from_ticks(now.ticks() + seconds * 10_000_000);
        assert_eq!(released.kept(later(86_400)), released);
        assert!(released.kept(later(86_401)).is_empty());
        let mut bytes = Vec::new();
        released.encode(&mut bytes);
        assert_eq!(Released::decode(&mut Reader(&bytes)), Some(released));
    }

    #[test]
    fn the_list_is_bounded() {
        let many: Vec<_> = (0..5_000).map(|n| extent(1, n)).collect();
        let mut released = Released::default();
        assert_eq!(released.add(&many, Timestamp::EDM_MIN), 4096);
        assert_eq!(released.add(&many, Timestamp::EDM_MIN), 0);
        assert_eq!(released.admit(many[4096..].iter().copied()), Ok(()));
    }
}
