//! Answers that hold their part of the budget until they are sent, and those that get smaller the more is in use.

use super::{Held, Share, UNCOUNTED_BYTES};
use bytes::Bytes;
use larimar_wire::error_body::ErrorReply;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes on their way to a client, with their part of the budget.
struct Counted<T> {
    bytes: T,
    _held: Held,
    /// Dropped when the client has taken the bytes.
    _unsent: Option<oneshot::Sender<()>>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Counted<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

/// Bytes that hold their part of the budget until they are sent.
pub(crate) fn counted(bytes: Vec<u8>, held: Held) -> Bytes {
    Bytes::from_owner(Counted { bytes, _held: held, _unsent: None })
}

/// The same for a piece of an answer. The receiver is ready when the piece is sent or given up.
pub(crate) fn counted_piece(bytes: Bytes, held: Held) -> (Bytes, oneshot::Receiver<()>) {
    let (unsent, sent) = oneshot::channel();
    (Bytes::from_owner(Counted { bytes, _held: held, _unsent: Some(unsent) }), sent)
}

impl Share {
    /// Takes the room for the next piece of a streamed answer of which so many bytes are left: less when much is in use,
    /// and nothing when the piece is too small to be counted.
    pub(crate) async fn take_piece(&self, left_bytes: u64, wait_max: Option<Duration>) -> Result<Held, ErrorReply> {
        let bytes = self.step(&PIECE_STEPS, 0).min(left_bytes);
        let bytes = if bytes > UNCOUNTED_BYTES { bytes } else { 0 };
        self.take_within(bytes, wait_max.unwrap_or(self.budget.wait_max)).await
    }

    /// The step for what others than the caller use.
    fn step(&self, steps: &[(u64, u64)], own_bytes: u64) -> u64 {
        let limit_bytes = self.budget.limit_bytes;
        let others = self.budget.used_bytes.load(Relaxed).saturating_sub(own_bytes);
        let step = steps.iter().find(|(eighths, _)| others < limit_bytes / 8 * eighths);
        step.map_or(UNCOUNTED_BYTES, |(_, bytes)| *bytes).min(limit_bytes / 4)
    }
}

/// Room for an answer that can end at any item: it grows as long as there is enough for others.
#[derive(Debug)]
pub(crate) struct ResponseRoom {
    share: Share,
    held: Option<Held>,
}

impl ResponseRoom {
    /// Begins an answer.
    pub(crate) fn new(share: &Share) -> Self {
        Self { share: share.clone(), held: None }
    }

    /// Whether an answer of so many bytes may go on.
    pub(crate) fn allows(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let held = self.held.as_ref().map_or(UNCOUNTED_BYTES, Held::bytes);
        if bytes <= held {
            return true;
        }
        let most = self.share.step(&ROOM_STEPS, self.held.as_ref().map_or(0, Held::bytes));
        if bytes > most {
            return false;
        }
        // Some more than is needed now, so that not every item asks.
        let wanted = (2 * bytes).min(most);
        match &mut self.held {
            Some(held) => held.try_resize(wanted),
            none => {
                *none = self.share.try_take(wanted);
                none.is_some()
            }
        }
    }

    /// What the answer holds.
    pub(crate) fn into_held(self) -> Option<Held> {
        self.held
    }
}

/// Below so many used eighths of the budget, how large the pieces of streamed answers are.
const PIECE_STEPS: [(u64, u64); 4] = [(1, 1 << 20), (2, 256 << 10), (3, 64 << 10), (4, 16 << 10)];

/// The same for answers that can end at any item, which have their own limit as well.
const ROOM_STEPS: [(u64, u64); 4] = [(1, u64::MAX), (2, 1 << 20), (3, 256 << 10), (4, 64 << 10)];
