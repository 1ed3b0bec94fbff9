//! Bodies that are being received. They are counted as far as they have arrived, so that a slow client holds only what it
//! has sent.
//!
//! A body never waits for bytes while it holds some. If it needs more and nothing is free, another body gives way: one
//! that has stood still for some time, else the youngest of the account that waits for its client. If there is none, the
//! body itself is refused. So the oldest always gets on.

use super::pool::Size;
use super::{Held, InFlight, Share, State};
use larimar_wire::error_body::ErrorReply;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A body that is being received, as the budget sees it.
#[derive(Debug)]
pub(super) struct Body {
    account: usize,
    size: Size,
    bytes: u64,
    /// While the body waits for its client: since when little of it has arrived.
    quiet_since: Option<Instant>,
    dismissed: oneshot::Sender<()>,
}

/// A body's part of the budget while it is being received.
#[derive(Debug)]
pub(crate) struct Arriving {
    share: Share,
    /// Its place in the order of arrival.
    number: u64,
    /// Ready when the body has to give way. Its bytes are no longer counted then.
    dismissed: oneshot::Receiver<()>,
}

impl Share {
    /// Begins to count a body that holds nothing yet, with the bytes that have arrived. Waits until all that it is
    /// expected to need would fit.
    pub(crate) async fn begin_body(&self, bytes: u64, expected_bytes: u64) -> Result<Arriving, ErrorReply> {
        let held = self.wait_for(expected_bytes.max(bytes), bytes, self.budget.wait_max).await?;
        let (dismissed, receiver) = oneshot::channel();
        let mut state = self.budget.state.lock();
        state.bodies_begun += 1;
        let number = state.bodies_begun;
        let (size, bytes) = held.into_parts();
        state.bodies.insert(number, Body { account: self.account, size, bytes, quiet_since: None, dismissed });
        Ok(Arriving { share: self.clone(), number, dismissed: receiver })
    }

    /// Takes bytes for a request that has arrived and is about to run. It does not wait, but bodies that are being
    /// received give way to it.
    pub(crate) fn take_now(&self, bytes: u64) -> Result<Held, ErrorReply> {
        let mut state = self.budget.state.lock();
        // What never fits beside the largest body is counted as far as it does.
        let bytes = bytes.min(state.accounts[self.account].pool.need_bytes_max(Size::Large) / 8 * 3);
        let size = Size::of(bytes);
        if !self.budget.make_room(&mut state, self.account, size, bytes, 0) {
            return Err(self.refused());
        }
        self.budget.add(&mut state, self.account, size, bytes);
        Ok(Held::new(self, size, bytes))
    }
}

impl Arriving {
    /// Counts the body as this many bytes from now on, if it is more than before.
    pub(crate) fn grow(&self, bytes: u64) -> Result<(), ErrorReply> {
        let budget = &self.share.budget;
        let mut state = budget.state.lock();
        let Some(body) = state.bodies.get(&self.number) else { return Err(self.share.refused()) };
        let (account, size, more) = (body.account, body.size, bytes.saturating_sub(body.bytes));
        if !budget.make_room(&mut state, account, size, more, self.number) {
            return Err(self.share.refused());
        }
        budget.add(&mut state, account, size, more);
        if let Some(body) = state.bodies.get_mut(&self.number) {
            body.bytes += more;
        }
        Ok(())
    }

    /// Waits for the client, of which little came since `quiet_since`. Returns nothing if the body has to give way
    /// meanwhile; it does not while it is worked on.
    pub(crate) async fn during<F: Future>(&mut self, quiet_since: Instant, next: F) -> Option<F::Output> {
        self.mark(Some(quiet_since));
        let next = tokio::select! {
            biased;
            _ = &mut self.dismissed => return None,
            next = next => next,
        };
        self.mark(None).then_some(next)
    }

    /// Says whether the body waits for its client. Returns whether it still has its place.
    fn mark(&self, quiet_since: Option<Instant>) -> bool {
        let mut state = self.share.budget.state.lock();
        let body = state.bodies.get_mut(&self.number);
        body.map(|body| body.quiet_since = quiet_since).is_some()
    }

    /// What a body holds that has arrived; nothing if it had to give way.
    pub(crate) fn into_held(self) -> Option<Held> {
        let body = self.share.budget.state.lock().bodies.remove(&self.number)?;
        Some(Held::new(&self.share, body.size, body.bytes))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let mut state = self.share.budget.state.lock();
        if let Some(body) = state.bodies.remove(&self.number) {
            self.share.budget.subtract(&mut state, body.account, body.size, body.bytes);
            self.share.budget.grant(&mut state);
        }
    }
}

impl InFlight {
    /// Makes room for what holds bytes already and must not wait, at the cost of bodies after the one with this number.
    /// Returns whether there is enough.
    fn make_room(&self, state: &mut State, account: usize, size: Size, bytes: u64, number: u64) -> bool {
        while bytes > 0 && !state.fits(account, size, bytes) {
            let youngest = || {
                let mut later = state.bodies.range(number + 1..).rev();
                later.find(|(_, body)| body.account == account && body.quiet_since.is_some())
            };
            let victim = state.stalled(account, size, bytes).or_else(|| youngest().map(|(number, _)| *number));
            let Some(victim) = victim else { return false };
            self.dismiss(state, victim);
        }
        true
    }

    /// Makes room for a need that may wait, at the cost of bodies that stand still.
    pub(super) fn dismiss_stalled(&self, state: &mut State, account: usize, size: Size, bytes: u64) {
        while !state.fits(account, size, bytes) {
            let Some(victim) = state.stalled(account, size, bytes) else { return };
            self.dismiss(state, victim);
        }
    }

    /// Refuses a body that is being received. Its memory is free as soon as its request runs.
    fn dismiss(&self, state: &mut State, number: u64) {
        if let Some(body) = state.bodies.remove(&number) {
            self.subtract(state, body.account, body.size, body.bytes);
            // Without a receiver the body is being dropped.
            let _ = body.dismissed.send(());
        }
    }
}

impl State {
    /// The body that has stood still for the longest time, if it stands in the way of a need of this account.
    fn stalled(&self, account: usize, size: Size, bytes: u64) -> Option<u64> {
        let is_account_full = !self.fits_account(account, size, bytes);
        let before = Instant::now().checked_sub(STALLED_AFTER)?;
        let bodies = self.bodies.iter().filter(|(_, body)| !is_account_full || body.account == account);
        let stalled = bodies.filter_map(|(number, body)| Some((body.quiet_since?, *number)));
        stalled.filter(|(since, _)| *since <= before).min().map(|(_, number)| number)
    }
}

/// How long a client may send less than 64 KiB before its body gives way to others that need the memory.
pub(super) const STALLED_AFTER: Duration = Duration::from_secs(1);
