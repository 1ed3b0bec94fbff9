//! The rows of a queue, all in one partition, so that a message changes whole.
//!
//! ```text
//! m id                ->  01 inserted:u64 expires:u64 text
//! v visible_at id     ->  01 expires:u64 dequeue_count:u32
//!                         02 expires:u64 dequeue_count:u32 nonce:u64
//! ```
//!
//! Numbers in values are big-endian; numbers in keys are hexadecimal digits of fixed width, so that the order of rows is
//! the order of delivery. The version of a `v` row is the nonce of the receipt: every delivery writes a new row. A
//! message that was copied from another engine may have a nonce that cannot be a version; its row has the second form
//! until the next delivery.

use crate::contract::{Act, Expect, KeyRange, Op, Position, RowRef};
use crate::error::Fault;
use larimar_model::{Guid, Timestamp};

/// The key of a delivery row: messages are delivered in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DeliveryKey {
    pub(super) visible_at: Timestamp,
    pub(super) id: Guid,
}

impl DeliveryKey {
    /// Before every message.
    pub(super) const FIRST: Self = Self::since(Timestamp::from_ticks(0));

    /// Before every message that is visible at a time or later.
    pub(super) const fn since(visible_at: Timestamp) -> Self {
        Self { visible_at, id: Guid([0; 16]) }
    }

    /// The key that directly follows.
    pub(super) fn next(self) -> Self {
        match u128::from_be_bytes(self.id.0).checked_add(1) {
            Some(id) => Self { id: Guid(id.to_be_bytes()), ..self },
            None => Self::since(Timestamp::from_ticks(self.visible_at.ticks() + 1)),
        }
    }

    pub(super) fn row(self) -> String {
        format!("v{:016x}{:032x}", self.visible_at.ticks(), u128::from_be_bytes(self.id.0))
    }

    pub(super) fn parse(row: &str) -> Result<Self, Fault> {
        let parse = || {
            let digits = row.strip_prefix('v').filter(|digits| digits.len() == 48)?;
            let visible_at = u64::from_str_radix(digits.get(..16)?, 16).ok()?;
            let id = u128::from_str_radix(digits.get(16..)?, 16).ok()?;
            Some(Self { visible_at: Timestamp::from_ticks(visible_at), id: Guid(id.to_be_bytes()) })
        };
        parse().ok_or_else(|| Fault::Damaged(format!("a queue has an unknown row {row:?}")))
    }
}

/// The deliveries from one key up to, but not including, another; `None` for all that follow.
pub(super) fn deliveries(from: DeliveryKey, to: Option<DeliveryKey>) -> KeyRange {
    let end = to.map_or_else(|| "w".to_owned(), DeliveryKey::row);
    KeyRange { start: Position::new(PARTITION, from.row()), end: Some(Position::new(PARTITION, end)) }
}

/// The body of a delivery row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) expires: Timestamp,
    pub(super) dequeue_count: u32,
    /// The nonce of the receipt; `None` if it is the row's version.
    pub(super) nonce: Option<u64>,
}

impl Delivery {
    pub(super) fn to_body(self) -> Vec<u8> {
        let mut body = Vec::with_capacity(21);
        body.push(if self.nonce.is_some() { FORMAT_WITH_NONCE } else { FORMAT });
        body.extend_from_slice(&self.expires.ticks().to_be_bytes());
        body.extend_from_slice(&self.dequeue_count.to_be_bytes());
        body.extend(self.nonce.iter().flat_map(|nonce| nonce.to_be_bytes()));
        body
    }

    fn parse(body: &[u8]) -> Option<Self> {
        let (format, rest) = body.split_first()?;
        let (ticks, rest) = rest.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let nonce = match (*format, rest.is_empty()) {
            (FORMAT, true) => None,
            (FORMAT_WITH_NONCE, _) => Some(u64::from_be_bytes(rest.try_into().ok()?)),
            _ => return None,
        };
        Some(Self {
            expires: Timestamp::from_ticks(u64::from_be_bytes(*ticks)),
            dequeue_count: u32::from_be_bytes(*count),
            nonce,
        })
    }
}

/// A delivery row that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryRow {
    pub(super) key: DeliveryKey,
    pub(super) version: Timestamp,
    pub(super) delivery: Delivery,
}

impl DeliveryRow {
    pub(super) fn parse(row: RowRef<'_>) -> Result<Self, Fault> {
        let delivery = Delivery::parse(row.body)
            .ok_or_else(|| Fault::Damaged(format!("row {:?} of a queue has an unknown format", row.row)))?;
        Ok(Self { key: DeliveryKey::parse(row.row)?, version: row.version, delivery })
    }

    /// The nonce of the receipt.
    pub(super) fn nonce(&self) -> u64 {
        self.delivery.nonce.unwrap_or(self.version.ticks())
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.delivery.expires <= now
    }
}

/// The body of a content row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) inserted: Timestamp,
    pub(super) expires: Timestamp,
    pub(super) text: Vec<u8>,
}

impl Content {
    pub(super) fn body(inserted: Timestamp, expires: Timestamp, text: &[u8]) -> Vec<u8> {
        let mut body = Vec::with_capacity(17 + text.len());
        body.push(FORMAT);
        body.extend_from_slice(&inserted.ticks().to_be_bytes());
        body.extend_from_slice(&expires.ticks().to_be_bytes());
        body.extend_from_slice(text);
        body
    }

    pub(super) fn parse(body: &[u8]) -> Result<Self, Fault> {
        let parse = || {
            let (inserted, rest) = body.strip_prefix(&[FORMAT])?.split_first_chunk()?;
            let (expires, text) = rest.split_first_chunk()?;
            let time = |ticks: &[u8; 8]| Timestamp::from_ticks(u64::from_be_bytes(*ticks));
            Some(Self { inserted: time(inserted), expires: time(expires), text: text.to_vec() })
        };
        parse().ok_or_else(|| Fault::Damaged("a message has an unknown format".to_owned()))
    }
}

/// The row of a message's content.
pub(super) fn content_row(id: Guid) -> String {
    format!("m{:032x}", u128::from_be_bytes(id.0))
}

/// A batch of operations on the rows of a queue.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<Step>);

#[derive(Debug)]
struct Step {
    row: String,
    expect: Expect,
    body: Option<Vec<u8>>,
}

impl Steps {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn put(&mut self, row: String, body: Vec<u8>) {
        self.0.push(Step { row, expect: Expect::Any, body: Some(body) });
    }

    /// Moves a delivery to another key; the last of the operations stores it.
    pub(super) fn relocate(&mut self, from: DeliveryKey, version: Timestamp, to: DeliveryKey, delivery: Delivery) {
        let expect = Expect::Version(version);
        // The row gets a new version, which is the nonce from now on.
        let delivery = Delivery { nonce: None, ..delivery };
        if from == to {
            return self.0.push(Step { row: to.row(), expect, body: Some(delivery.to_body()) });
        }
        self.0.push(Step { row: from.row(), expect, body: None });
        self.put(to.row(), delivery.to_body());
    }

    /// Removes a message.
    pub(super) fn remove(&mut self, from: DeliveryKey, version: Timestamp) {
        self.0.push(Step { row: from.row(), expect: Expect::Version(version), body: None });
        self.0.push(Step { row: content_row(from.id), expect: Expect::Any, body: None });
    }

    pub(super) fn ops(&self) -> Vec<Op<'_>> {
        let mut ops = Vec::with_capacity(self.0.len());
        for Step { row, expect, body } in &self.0 {
            ops.push(Op { row, expect: *expect, act: body.as_deref().map_or(Act::Delete, Act::Put) });
        }
        ops
    }
}

pub(super) const PARTITION: &str = "";
const FORMAT: u8 = 1;
/// Of a delivery whose nonce is not the row's version.
const FORMAT_WITH_NONCE: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_delivery_and_are_read_back() {
        let key = |ticks, id| DeliveryKey { visible_at: Timestamp::from_ticks(ticks), id: Guid([id; 16]) };
        let keys = [key(0, 0), key(0, 255), key(9, 1), key(10, 0), key(u64::MAX, 7)];
        assert!(keys.is_sorted());
        assert!(keys.map(DeliveryKey::row).is_sorted());
        for key in keys {
            assert_eq!(DeliveryKey::parse(&key.row()), Ok(key));
        }
        assert!(key(9, 1) < key(9, 1).next());
        assert_eq!(key(9, 255).next(), key(10, 0));
        let expires = Timestamp::from_ticks(5);
        for nonce in [None, Some(0), Some(u64::MAX)] {
            let delivery = Delivery { expires, dequeue_count: 7, nonce };
            assert_eq!(Delivery::parse(&delivery.to_body()), Some(delivery));
        }
    }

    #[test]
    fn rows_of_unknown_formats_are_refused() {
        let long = format!("v{}", "é".repeat(24));
        for row in ["", "v", "m0", "v12", &long] {
            assert!(DeliveryKey::parse(row).is_err(), "{row}");
        }
        for body in [&b""[..], &[1; 12], &[1; 14], &[2; 13], &[2; 20], &[2; 22], &[1; 21], &[3; 13]] {
            assert_eq!(Delivery::parse(body), None);
        }
        assert!(Content::parse(&[1; 16]).is_err());
        assert_eq!(Content::parse(&[1; 17]).map(|content| content.text), Ok(vec![]));
    }
}
