//! The budget for bytes in flight: bodies that are received and held, pages and lists that are built but not sent, pieces
//! of blobs that are read but not sent. One for the process, so that its memory is bounded whatever its clients do.
//!
//! - Beyond the limit a request waits for a bounded time and is then refused as `ServerBusy`.
//! - Whoever holds bytes never waits for more: growth succeeds at once or fails. So those who wait hold nothing, and those
//!   who hold go on to their end.
//! - What can be of any size, a page or a piece of a blob, gets smaller in steps the less is free, and is so small that it
//!   is not counted when half is used. Many slow readers make the next answers smaller, and do not use up everything.
//! - The last eighth is for what is small and has to be: slow uploads leave room for an entity.
//! - With several accounts, one of them gets three quarters of the limit at most, and those who wait are served account
//!   by account.
//! - A connection has one request at a time, and a streamed answer one piece at a time. What is below
//!   [`UNCOUNTED_BYTES`] is taken for a part of the connection, whose number is limited.

use bytes::Bytes;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::oneshot;

/// The budget of a process.
#[derive(Debug)]
pub(crate) struct InFlight {
    limit_bytes: u64,
    account_bytes_max: u64,
    wait_max: Duration,
    state: Mutex<State>,
    /// A copy of the state's, for a look without the lock.
    used_bytes: AtomicU64,
    refused_total: AtomicU64,
}

#[derive(Debug)]
struct State {
    used_bytes: u64,
    peak_bytes: u64,
    waiting: usize,
    accounts: Vec<Account>,
    /// The account to be served first when bytes come back.
    turn: usize,
}

#[derive(Debug, Default)]
struct Account {
    used_bytes: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    bytes: u64,
    granted: oneshot::Sender<()>,
}

/// Figures of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlightFigures {
    pub(crate) limit_bytes: u64,
    pub(crate) used_bytes: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) waiting: usize,
    pub(crate) refused_total: u64,
}

impl InFlight {
    /// A budget of so many bytes for so many accounts.
    pub(crate) fn new(limit_bytes: u64, accounts: usize, wait_max: Duration) -> Arc<Self> {
        let account_bytes_max = if accounts > 1 { limit_bytes / 4 * 3 } else { limit_bytes };
        let accounts = (0..accounts.max(1)).map(|_| Account::default()).collect();
        Arc::new(Self {
            limit_bytes,
            account_bytes_max,
            wait_max,
            state: Mutex::new(State { used_bytes: 0, peak_bytes: 0, waiting: 0, accounts, turn: 0 }),
            used_bytes: AtomicU64::new(0),
            refused_total: AtomicU64::new(0),
        })
    }

    /// The part of an account, by its place among all accounts.
    pub(crate) fn share(self: &Arc<Self>, account: usize) -> Share {
        Share { budget: Arc::clone(self), account }
    }

    pub(crate) fn figures(&self) -> InFlightFigures {
        let state = self.state.lock();
        InFlightFigures {
            limit_bytes: self.limit_bytes,
            used_bytes: state.used_bytes,
            peak_bytes: state.peak_bytes,
            waiting: state.waiting,
            refused_total: self.refused_total.load(Relaxed),
        }
    }

    fn fits(&self, state: &State, account: usize, bytes: u64) -> bool {
        state.used_bytes + bytes <= self.limit_for(bytes)
            && state.accounts[account].used_bytes + bytes <= self.account_bytes_max
    }

    /// What may be used with a need of this size.
    const fn limit_for(&self, bytes: u64) -> u64 {
        if bytes > SMALL_BYTES { self.limit_bytes / 8 * 7 } else { self.limit_bytes }
    }

    fn add(&self, state: &mut State, account: usize, bytes: u64) {
        state.used_bytes += bytes;
        state.peak_bytes = state.peak_bytes.max(state.used_bytes);
        state.accounts[account].used_bytes += bytes;
        self.used_bytes.store(state.used_bytes, Relaxed);
    }

    fn give_back(&self, account: usize, bytes: u64) {
        let mut state = self.state.lock();
        self.subtract(&mut state, account, bytes);
        self.grant(&mut state);
    }

    fn subtract(&self, state: &mut State, account: usize, bytes: u64) {
        state.used_bytes -= bytes;
        state.accounts[account].used_bytes -= bytes;
        self.used_bytes.store(state.used_bytes, Relaxed);
    }

    /// Serves those who wait, account by account, each in the order of arrival.
    fn grant(&self, state: &mut State) {
        let count = state.accounts.len();
        let mut idle_rounds = 0;
        while state.waiting > 0 && idle_rounds < count {
            let account = state.turn;
            state.turn = (account + 1) % count;
            let first = state.accounts[account].waiting.front().map(|waiter| waiter.bytes);
            let Some(bytes) = first.filter(|bytes| self.fits(state, account, *bytes)) else {
                idle_rounds += 1;
                continue;
            };
            idle_rounds = 0;
            let waiter = state.accounts[account].waiting.pop_front().expect("it was just seen");
            state.waiting -= 1;
            self.add(state, account, bytes);
            if waiter.granted.send(()).is_err() {
                // It has given up meanwhile.
                self.subtract(state, account, bytes);
            }
        }
    }
}

/// The part of a budget that an account may use.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    budget: Arc<InFlight>,
    account: usize,
}

impl Share {
    /// Takes bytes, waiting for them if need be. The caller holds no other bytes.
    pub(crate) async fn take(&self, bytes: u64) -> Result<Held, ErrorReply> {
        self.take_within(bytes, self.budget.wait_max).await
    }

    /// The same with a time of the caller's own.
    pub(crate) async fn take_within(&self, bytes: u64, wait_max: Duration) -> Result<Held, ErrorReply> {
        // What will never fit is counted as far as it does.
        let bytes = bytes.min(self.budget.account_bytes_max).min(self.budget.limit_for(bytes));
        if bytes == 0 {
            return Ok(Held { share: self.clone(), bytes });
        }
        let granted = {
            let mut state = self.budget.state.lock();
            // What is small does not wait behind what is large: the last eighth is kept for it.
            let front = state.accounts[self.account].waiting.front();
            let is_first = front.is_none_or(|front| front.bytes > SMALL_BYTES && bytes <= SMALL_BYTES);
            if is_first && self.budget.fits(&state, self.account, bytes) {
                self.budget.add(&mut state, self.account, bytes);
                return Ok(Held { share: self.clone(), bytes });
            }
            let (granted, told) = oneshot::channel();
            state.waiting += 1;
            state.accounts[self.account].waiting.push_back(Waiter { bytes, granted });
            told
        };
        let mut waiting = Waiting { share: self, bytes, granted, is_over: false };
        match tokio::time::timeout(wait_max, &mut waiting.granted).await {
            Ok(Ok(())) => {
                waiting.is_over = true;
                Ok(Held { share: self.clone(), bytes })
            }
            _ => Err(self.refused()),
        }
    }

    /// Takes bytes if they are free.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Held> {
        let mut state = self.budget.state.lock();
        if !self.budget.fits(&state, self.account, bytes) {
            return None;
        }
        self.budget.add(&mut state, self.account, bytes);
        Some(Held { share: self.clone(), bytes })
    }

    /// Takes the room for the next piece of a streamed answer of which so many bytes are left: less when much is in use,
    /// and nothing when the piece is too small to be counted.
    pub(crate) async fn take_piece(&self, left_bytes: u64, wait_max: Option<Duration>) -> Result<Held, ErrorReply> {
        let bytes = self.step(&PIECE_STEPS, 0).min(left_bytes);
        let bytes = if bytes > UNCOUNTED_BYTES { bytes } else { 0 };
        self.take_within(bytes, wait_max.unwrap_or(self.budget.wait_max)).await
    }

    /// The step for what others than the caller use.
    fn step(&self, steps: &[(u64, u64)], own_bytes: u64) -> u64 {
        let InFlight { limit_bytes, used_bytes, .. } = &*self.budget;
        let others = used_bytes.load(Relaxed).saturating_sub(own_bytes);
        let step = steps.iter().find(|(eighths, _)| others < limit_bytes / 8 * eighths);
        step.map_or(UNCOUNTED_BYTES, |(_, bytes)| *bytes).min(limit_bytes / 4)
    }

    /// Counts a request that was refused for lack of bytes.
    pub(crate) fn refused(&self) -> ErrorReply {
        self.budget.refused_total.fetch_add(1, Relaxed);
        ErrorReply::new(ErrorCode::ServerBusy)
    }
}

/// Somebody in the queue. Dropped, it leaves nothing that was granted behind.
struct Waiting<'a> {
    share: &'a Share,
    bytes: u64,
    granted: oneshot::Receiver<()>,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.granted.close();
        if self.granted.try_recv().is_ok() {
            self.share.budget.give_back(self.share.account, self.bytes);
            return;
        }
        let mut state = self.share.budget.state.lock();
        let state = &mut *state;
        let waiting = &mut state.accounts[self.share.account].waiting;
        let before = waiting.len();
        waiting.retain(|waiter| !waiter.granted.is_closed());
        state.waiting -= before - waiting.len();
        // It may have stood before others that need less.
        self.share.budget.grant(state);
    }
}

/// Bytes of the budget, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    share: Share,
    bytes: u64,
}

impl Held {
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Holds this many bytes from now on, if that many are free. Never waits.
    pub(crate) fn try_resize(&mut self, bytes: u64) -> bool {
        let Share { budget, account } = &self.share;
        if bytes == self.bytes {
            return true;
        }
        let mut state = budget.state.lock();
        if bytes > self.bytes {
            if !budget.fits(&state, *account, bytes - self.bytes) {
                return false;
            }
            budget.add(&mut state, *account, bytes - self.bytes);
        } else {
            budget.subtract(&mut state, *account, self.bytes - bytes);
            budget.grant(&mut state);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.share.budget.give_back(self.share.account, self.bytes);
        }
    }
}

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

/// Room for an answer that can end at any item: it grows as long as there is enough for others.
#[derive(Debug)]
pub(crate) struct Room {
    share: Share,
    held: Option<Held>,
}

impl Room {
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

/// Bodies and answers of at most this size are not counted: a connection has buffers of that size anyway.
pub(crate) const UNCOUNTED_BYTES: u64 = 8 << 10;

/// Below so many used eighths of the budget, how large the pieces of streamed answers are.
const PIECE_STEPS: [(u64, u64); 4] = [(1, 1 << 20), (2, 256 << 10), (3, 64 << 10), (4, 16 << 10)];

/// The same for answers that can end at any item, which have their own limit as well.
const ROOM_STEPS: [(u64, u64); 4] = [(1, u64::MAX), (2, 1 << 20), (3, 256 << 10), (4, 64 << 10)];

/// What may use the last eighth of the budget.
const SMALL_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests;
