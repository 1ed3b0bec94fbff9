//! The budget for bytes in flight: bodies that are received and held, pages and lists that are built but not sent, pieces
//! of blobs that are read but not sent. One for the process, so that its memory is bounded whatever its clients do.
//!
//! - Beyond the limit a request waits for a bounded time and is then refused as `ServerBusy`.
//! - A request that holds bytes never waits for more: growth succeeds at once or fails. So waiting requests hold nothing,
//!   and requests that hold bytes finish.
//! - Bodies are counted as far as they have arrived, and those that stand still give way (`arriving.rs`).
//! - What can be of any size, a page or a piece of a blob, gets smaller in steps the less is free, and is so small that it
//!   is not counted when half is used (`room.rs`). Many slow readers make the next answers smaller, and do not use up
//!   everything.
//! - The last eighth is for what is small and has to be (`pool.rs`): slow uploads leave room for an entity. Small needs
//!   pass large ones that wait, and cannot keep them waiting.
//! - With several accounts, one of them gets three quarters of the limit at most, and waiting requests are served
//!   account by account.
//! - A connection has one request at a time, and a streamed answer one piece at a time. What is below
//!   [`UNCOUNTED_BYTES`] is taken for a part of the connection, whose number is limited.

mod arriving;
mod pool;
mod room;

pub(crate) use arriving::Arriving;
pub(crate) use room::{ResponseRoom, counted, counted_piece};

use arriving::{Body, STALLED_AFTER};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use parking_lot::Mutex;
use pool::{Pool, Size};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The budget of a process.
#[derive(Debug)]
pub(crate) struct InFlight {
    limit_bytes: u64,
    wait_max: Duration,
    state: Mutex<State>,
    /// A copy of the state's number, readable without the lock.
    used_bytes: AtomicU64,
    refused_total: AtomicU64,
}

#[derive(Debug)]
struct State {
    pool: Pool,
    peak_bytes: u64,
    /// How many requests wait: small needs, large needs.
    waiting: [usize; 2],
    accounts: Vec<Account>,
    /// The accounts to be served first when bytes are freed: small needs, large needs.
    next_accounts: [usize; 2],
    /// Bodies that are being received, the oldest first.
    bodies: BTreeMap<u64, Body>,
    bodies_begun: u64,
}

#[derive(Debug)]
struct Account {
    pool: Pool,
    waiting: [VecDeque<Waiter>; 2],
}

#[derive(Debug)]
struct Waiter {
    /// What has to be free.
    needed_bytes: u64,
    /// What is taken of it at first.
    taken_bytes: u64,
    granted: oneshot::Sender<()>,
}

/// What one of so many accounts may use at most.
const fn account_bytes_max(limit_bytes: u64, accounts: usize) -> u64 {
    if accounts > 1 { limit_bytes / 4 * 3 } else { limit_bytes }
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
        let account_bytes_max = account_bytes_max(limit_bytes, accounts);
        let account = || Account { pool: Pool::new(account_bytes_max), waiting: Default::default() };
        let state = State {
            pool: Pool::new(limit_bytes),
            peak_bytes: 0,
            waiting: [0; 2],
            accounts: (0..accounts.max(1)).map(|_| account()).collect(),
            next_accounts: [0; 2],
            bodies: BTreeMap::new(),
            bodies_begun: 0,
        };
        let (used_bytes, refused_total) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { limit_bytes, wait_max, state: Mutex::new(state), used_bytes, refused_total })
    }

    /// Makes room for further accounts, of which there are so many then.
    pub(crate) fn grow(&self, accounts: usize) {
        let mut state = self.state.lock();
        if accounts <= state.accounts.len() {
            return;
        }
        let account_bytes_max = account_bytes_max(self.limit_bytes, accounts);
        for account in &mut state.accounts {
            account.pool.set_limit(account_bytes_max);
        }
        let account = || Account { pool: Pool::new(account_bytes_max), waiting: Default::default() };
        state.accounts.resize_with(accounts, account);
    }

    /// The part of an account, by its place among all accounts.
    pub(crate) fn share(self: &Arc<Self>, account: usize) -> Share {
        Share { budget: Arc::clone(self), account }
    }

    pub(crate) fn figures(&self) -> InFlightFigures {
        let state = self.state.lock();
        InFlightFigures {
            limit_bytes: self.limit_bytes,
            used_bytes: state.pool.used_bytes(),
            peak_bytes: state.peak_bytes,
            waiting: state.waiting.iter().sum(),
            refused_total: self.refused_total.load(Relaxed),
        }
    }

    fn add(&self, state: &mut State, account: usize, size: Size, bytes: u64) {
        state.pool.add(size, bytes);
        state.accounts[account].pool.add(size, bytes);
        state.peak_bytes = state.peak_bytes.max(state.pool.used_bytes());
        self.used_bytes.store(state.pool.used_bytes(), Relaxed);
    }

    fn subtract(&self, state: &mut State, account: usize, size: Size, bytes: u64) {
        state.pool.subtract(size, bytes);
        state.accounts[account].pool.subtract(size, bytes);
        self.used_bytes.store(state.pool.used_bytes(), Relaxed);
    }

    /// Serves waiting requests. Small needs first; once no large one waits, they may use more.
    fn grant(&self, state: &mut State) {
        for size in [Size::Small, Size::Large, Size::Small] {
            self.grant_of(state, size);
        }
    }

    /// Serves waiting requests account by account, each in the order of arrival. An account does not lose its turn to others
    /// that need less, unless only its own share is used up.
    fn grant_of(&self, state: &mut State, size: Size) {
        let count = state.accounts.len();
        let mut idle_rounds = 0;
        while state.waiting[size.index()] > 0 && idle_rounds < count {
            let account = state.next_accounts[size.index()];
            let first = state.accounts[account].waiting[size.index()].front().map(|waiter| waiter.needed_bytes);
            let first = first.filter(|bytes| state.fits_account(account, size, *bytes));
            if first.is_some_and(|bytes| !state.fits(account, size, bytes)) {
                return;
            }
            state.next_accounts[size.index()] = (account + 1) % count;
            if first.is_none() {
                idle_rounds += 1;
                continue;
            }
            idle_rounds = 0;
            let waiter = state.accounts[account].waiting[size.index()].pop_front().expect("it was just seen");
            state.waiting[size.index()] -= 1;
            // A request that has given up meanwhile takes nothing.
            self.add(state, account, size, waiter.taken_bytes);
            if waiter.granted.send(()).is_err() {
                self.subtract(state, account, size, waiter.taken_bytes);
            }
        }
    }
}

impl State {
    fn fits(&self, account: usize, size: Size, bytes: u64) -> bool {
        self.pool.fits(size, bytes, self.waiting[Size::Large.index()] > 0) && self.fits_account(account, size, bytes)
    }

    fn fits_account(&self, account: usize, size: Size, bytes: u64) -> bool {
        let account = &self.accounts[account];
        account.pool.fits(size, bytes, !account.waiting[Size::Large.index()].is_empty())
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
        self.wait_for(bytes, bytes, wait_max).await
    }

    /// How long a request may wait.
    pub(crate) fn wait_max(&self) -> Duration {
        self.budget.wait_max
    }

    /// Waits until so many bytes are free, and takes some or all of them.
    async fn wait_for(&self, needed: u64, taken: u64, wait_max: Duration) -> Result<Held, ErrorReply> {
        let size = Size::of(needed);
        if taken == 0 {
            return Ok(Held::new(self, size, 0));
        }
        let budget = &*self.budget;
        let (needed, taken, granted) = {
            let mut state = budget.state.lock();
            // What will never fit is counted as far as it does.
            let most = state.accounts[self.account].pool.need_bytes_max(size);
            let (needed, taken) = (needed.min(most), taken.min(most));
            if state.waiting[size.index()] == 0 {
                budget.dismiss_stalled(&mut state, self.account, size, needed);
                if state.fits(self.account, size, needed) {
                    budget.add(&mut state, self.account, size, taken);
                    return Ok(Held::new(self, size, taken));
                }
            }
            let (granted, receiver) = oneshot::channel();
            let waiter = Waiter { needed_bytes: needed, taken_bytes: taken, granted };
            state.waiting[size.index()] += 1;
            state.accounts[self.account].waiting[size.index()].push_back(waiter);
            budget.grant(&mut state);
            (needed, taken, receiver)
        };
        let mut waiting = PendingGrant { share: self, size, bytes: taken, granted, is_over: false };
        let end = Instant::now() + wait_max;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            match tokio::time::timeout(left.min(STALLED_AFTER), &mut waiting.granted).await {
                Ok(Ok(())) => {
                    waiting.is_over = true;
                    return Ok(Held::new(self, size, taken));
                }
                Ok(Err(_)) => break,
                // Meanwhile a body may have come to stand still.
                Err(_) => {
                    let mut state = budget.state.lock();
                    budget.dismiss_stalled(&mut state, self.account, size, needed);
                    budget.grant(&mut state);
                }
            }
        }
        Err(self.refused())
    }

    /// Takes bytes if they are free.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<Held> {
        let size = Size::of(bytes);
        let mut state = self.budget.state.lock();
        if !state.fits(self.account, size, bytes) {
            return None;
        }
        self.budget.add(&mut state, self.account, size, bytes);
        Some(Held::new(self, size, bytes))
    }

    /// Counts a request that was refused for lack of bytes.
    pub(crate) fn refused(&self) -> ErrorReply {
        self.budget.refused_total.fetch_add(1, Relaxed);
        ErrorReply::new(ErrorCode::ServerBusy)
    }
}

/// A waiting request. Dropping it returns what was granted meanwhile.
struct PendingGrant<'a> {
    share: &'a Share,
    size: Size,
    bytes: u64,
    granted: oneshot::Receiver<()>,
    is_over: bool,
}

impl Drop for PendingGrant<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let Share { budget, account } = self.share;
        self.granted.close();
        let is_granted = self.granted.try_recv().is_ok();
        let mut state = budget.state.lock();
        let state = &mut *state;
        if is_granted {
            budget.subtract(state, *account, self.size, self.bytes);
        } else {
            let waiting = &mut state.accounts[*account].waiting[self.size.index()];
            let before = waiting.len();
            waiting.retain(|waiter| !waiter.granted.is_closed());
            state.waiting[self.size.index()] -= before - waiting.len();
        }
        // It may have blocked others that need less.
        budget.grant(state);
    }
}

/// Bytes of the budget, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    share: Share,
    size: Size,
    bytes: u64,
}

impl Held {
    fn new(share: &Share, size: Size, bytes: u64) -> Self {
        Self { share: share.clone(), size, bytes }
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hands the bytes to another owner.
    fn into_parts(mut self) -> (Size, u64) {
        (self.size, std::mem::take(&mut self.bytes))
    }

    /// Holds this many bytes from now on, if that many are free. Never waits.
    pub(crate) fn try_resize(&mut self, bytes: u64) -> bool {
        if bytes == self.bytes {
            return true;
        }
        let Share { budget, account } = &self.share;
        let size = if Size::of(bytes) == Size::Large { Size::Large } else { self.size };
        let mut state = budget.state.lock();
        budget.subtract(&mut state, *account, self.size, self.bytes);
        let is_possible = bytes < self.bytes || state.fits(*account, size, bytes);
        if is_possible {
            (self.size, self.bytes) = (size, bytes);
        }
        budget.add(&mut state, *account, self.size, self.bytes);
        budget.grant(&mut state);
        is_possible
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let Share { budget, account } = &self.share;
            let mut state = budget.state.lock();
            budget.subtract(&mut state, *account, self.size, self.bytes);
            budget.grant(&mut state);
        }
    }
}

/// Bodies and answers of at most this size are not counted: a connection has buffers of that size anyway.
pub(crate) const UNCOUNTED_BYTES: u64 = 8 << 10;

#[cfg(test)]
mod tests;
