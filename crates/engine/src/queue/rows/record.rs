//! The rows of a queue, all in one partition, so that a message changes whole.
//!
//! ```text
//! m id                ->  01 inserted:u64 expires:u64 text
//! v visible_at id     ->  01 expires:u64 dequeue_count:u32
//! ```
//!
//! Numbers in values are big-endian, those in keys hexadecimal digits of fixed width, so that rows order as messages are
//! delivered. The version of a `v` row is the nonce of the receipt: every delivery writes the row anew.

use crate::contract::{Act, Expect, KeyRange, Op, Position, RowRef};
use crate::error::Fault;
use larimar_model::{Guid, Timestamp};

/// Where a message stands in the order of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) visible_at: Timestamp,
    pub(super) id: Guid,
}

impl Place {
    /// Before every message.
    pub(super) const FIRST: Self = Self::since(Timestamp::from_ticks(0));

    /// Before every message that is visible at a time or later.
    pub(super) const fn since(visible_at: Timestamp) -> Self {
        Self { visible_at, id: Guid([0; 16]) }
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
        parse().ok_or_else(|| Fault::Damaged(format!("a queue has a row {row:?}")))
    }
}

/// The deliveries from one place up to, but without, another; `None` for all that follow.
pub(super) fn deliveries(from: Place, to: Option<Place>) -> KeyRange {
    let end = to.map_or_else(|| "w".to_owned(), Place::row);
    KeyRange { start: Position::new(PARTITION, from.row()), end: Some(Position::new(PARTITION, end)) }
}

/// What is kept of a message for its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    pub(super) expires: Timestamp,
    pub(super) dequeue_count: u32,
}

impl Delivery {
    pub(super) fn to_body(self) -> Vec<u8> {
        let mut body = Vec::with_capacity(13);
        body.push(FORMAT);
        body.extend_from_slice(&self.expires.ticks().to_be_bytes());
        body.extend_from_slice(&self.dequeue_count.to_be_bytes());
        body
    }

    fn parse(body: &[u8]) -> Option<Self> {
        let (ticks, rest) = body.strip_prefix(&[FORMAT])?.split_first_chunk()?;
        let count: [u8; 4] = rest.try_into().ok()?;
        Some(Self {
            expires: Timestamp::from_ticks(u64::from_be_bytes(*ticks)),
            dequeue_count: u32::from_be_bytes(count),
        })
    }
}

/// A delivery that was met in a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) place: Place,
    pub(super) version: Timestamp,
    pub(super) delivery: Delivery,
}

impl Found {
    pub(super) fn parse(row: RowRef<'_>) -> Result<Self, Fault> {
        let delivery = Delivery::parse(row.body)
            .ok_or_else(|| Fault::Damaged(format!("row {:?} of a queue is of an unknown form", row.row)))?;
        Ok(Self { place: Place::parse(row.row)?, version: row.version, delivery })
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.delivery.expires <= now
    }
}

/// What a message is, apart from its delivery.
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
        parse().ok_or_else(|| Fault::Damaged("a message is of an unknown form".to_owned()))
    }
}

/// The row of a message's content.
pub(super) fn content_row(id: Guid) -> String {
    format!("m{:032x}", u128::from_be_bytes(id.0))
}

/// Operations on the rows of a queue, put together.
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

    /// Takes a message from its place to another; the last of the operations stores the delivery.
    pub(super) fn relocate(&mut self, from: Place, version: Timestamp, to: Place, delivery: Delivery) {
        let expect = Expect::Version(version);
        if from == to {
            return self.0.push(Step { row: to.row(), expect, body: Some(delivery.to_body()) });
        }
        self.0.push(Step { row: from.row(), expect, body: None });
        self.put(to.row(), delivery.to_body());
    }

    /// Removes a message.
    pub(super) fn remove(&mut self, from: Place, version: Timestamp) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_order_as_messages_are_delivered_and_are_read_back() {
        let place = |ticks, id| Place { visible_at: Timestamp::from_ticks(ticks), id: Guid([id; 16]) };
        let places = [place(0, 0), place(0, 255), place(9, 1), place(10, 0), place(u64::MAX, 7)];
        assert!(places.is_sorted());
        assert!(places.map(Place::row).is_sorted());
        for place in places {
            assert_eq!(Place::parse(&place.row()), Ok(place));
        }
    }

    #[test]
    fn rows_of_other_forms_are_refused() {
        let long = format!("v{}", "é".repeat(24));
        for row in ["", "v", "m0", "v12", &long] {
            assert!(Place::parse(row).is_err(), "{row}");
        }
        for body in [&b""[..], &[1; 12], &[1; 14], &[2; 13]] {
            assert_eq!(Delivery::parse(body), None);
        }
        assert!(Content::parse(&[1; 16]).is_err());
        assert_eq!(Content::parse(&[1; 17]).map(|content| content.text), Ok(vec![]));
    }
}
