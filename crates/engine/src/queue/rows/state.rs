//! What the process remembers of a queue. It only saves work and can be forgotten at any time.
//!
//! The **cursor** is a key before which there is no message. Scans begin at it and raise it to the first message they
//! find, but not beyond a message that arrives meanwhile: readers see committed rows only, so the scan may have missed
//! it. Messages being claimed are **taken**: other claims skip them before the store shows that they moved.

use super::record::DeliveryKey;
use larimar_model::{Guid, Timestamp};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct QueueState {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    cursor: DeliveryKey,
    /// Keys that writes in progress may fill, each with the write's ticket.
    arriving: BTreeSet<(DeliveryKey, u64)>,
    /// Those of writes whose callers did not wait for the outcome.
    unsettled: Vec<(DeliveryKey, u64)>,
    /// Scans in progress: a ticket, and the key beyond which they may not raise the cursor.
    looks: Vec<(u64, DeliveryKey)>,
    taken: HashSet<Guid>,
    last_ticket: u64,
    count: Count,
    expiry: Expiry,
}

#[derive(Debug, Default)]
struct Count {
    /// Messages added less those removed since the process began.
    net: i64,
    writes_begun: u64,
    writes_open: usize,
    known: Option<Counted>,
    /// When the last write became unsettled: it may still take effect.
    unsettled_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    /// The number of messages is this plus `net`.
    base: i64,
    /// Whether nothing was written while the messages were counted.
    is_exact: bool,
    at: Instant,
    took: Duration,
}

#[derive(Debug)]
struct Expiry {
    /// No message expires before this.
    due: Timestamp,
    pass: Option<Pass>,
    is_running: bool,
    last_slice: Option<Instant>,
}

/// A walk over all messages that removes the expired ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// Where to continue.
    pub(super) from: DeliveryKey,
    /// The earliest expiry among the messages passed.
    pub(super) least: Timestamp,
}

impl Default for QueueState {
    fn default() -> Self {
        // Due at once: expiries are not known before the first pass.
        let expiry = Expiry { due: Timestamp::from_ticks(0), pass: None, is_running: false, last_slice: None };
        let inner = Inner {
            cursor: DeliveryKey::FIRST,
            arriving: BTreeSet::new(),
            unsettled: Vec::new(),
            looks: Vec::new(),
            taken: HashSet::new(),
            last_ticket: 0,
            count: Count::default(),
            expiry,
        };
        Self { inner: Mutex::new(inner) }
    }
}

impl QueueState {
    /// Begins a write that puts deliveries at these keys, none of which expires before `expires`.
    pub(super) fn write(&self, keys: Vec<DeliveryKey>, expires: Timestamp) -> Write<'_> {
        let mut inner = self.inner.lock();
        let ticket = inner.ticket();
        for key in &keys {
            inner.arriving.insert((*key, ticket));
            inner.cursor = inner.cursor.min(*key);
            for (_, bound) in &mut inner.looks {
                *bound = (*bound).min(*key);
            }
        }
        inner.expiry.due = inner.expiry.due.min(expires);
        if let Some(pass) = &mut inner.expiry.pass {
            pass.least = pass.least.min(expires);
        }
        inner.count.writes_begun += 1;
        inner.count.writes_open += 1;
        Write { queue: self, ticket, keys, is_over: false }
    }

    /// Begins a scan from the cursor on.
    pub(super) fn look(&self) -> Look<'_> {
        let mut inner = self.inner.lock();
        let ticket = inner.ticket();
        let bound = inner.arriving.first().map_or(DeliveryKey::since(Timestamp::from_ticks(u64::MAX)), |(key, _)| *key);
        inner.looks.push((ticket, bound));
        Look { queue: self, ticket, from: inner.cursor }
    }

    /// Keys of writes whose outcome is unknown.
    pub(super) fn unsettled(&self, least: usize, most: usize) -> Vec<(DeliveryKey, u64)> {
        let inner = self.inner.lock();
        if inner.unsettled.len() < least { Vec::new() } else { inner.unsettled.iter().take(most).copied().collect() }
    }

    /// The outcome of the write is visible to every reader now.
    pub(super) fn settled(&self, key: (DeliveryKey, u64)) {
        let mut inner = self.inner.lock();
        inner.arriving.remove(&key);
        inner.unsettled.retain(|other| *other != key);
    }

    pub(super) fn hold(&self) -> Held<'_> {
        Held { queue: self, ids: Vec::new() }
    }

    /// The number of messages, if they were counted recently enough.
    pub(super) fn count(&self) -> Option<u64> {
        let count = &self.inner.lock().count;
        let is_fresh = |known: &Counted| known.is_exact || known.at.elapsed() < RECOUNT_AFTER.max(known.took * 50);
        count.known.filter(is_fresh).map(|known| (known.base + count.net).max(0).cast_unsigned())
    }

    pub(super) fn begin_count(&self) -> Counting {
        let count = &self.inner.lock().count;
        let is_calm = count.writes_open == 0 && count.unsettled_at.is_none_or(|since| since.elapsed() > SETTLES_WITHIN);
        let writes_begun = is_calm.then_some(count.writes_begun);
        Counting { net: count.net, writes_begun, since: Instant::now() }
    }

    pub(super) fn end_count(&self, counting: &Counting, found: u64) -> u64 {
        let count = &mut self.inner.lock().count;
        let base = i64::try_from(found).unwrap_or(i64::MAX) - counting.net;
        let is_exact = counting.writes_begun == Some(count.writes_begun);
        count.known = Some(Counted { base, is_exact, at: Instant::now(), took: counting.since.elapsed() });
        (base + count.net).max(0).cast_unsigned()
    }

    /// The next slice of messages to check for expiry, if one is due and no other call works on one.
    pub(super) fn slice(&self, now: Timestamp) -> Option<Slice<'_>> {
        let expiry = &mut self.inner.lock().expiry;
        if expiry.is_running || expiry.pass.is_none() && now < expiry.due {
            return None;
        }
        if expiry.last_slice.is_some_and(|last| last.elapsed() < SLICE_EVERY) {
            return None;
        }
        expiry.is_running = true;
        expiry.last_slice = Some(Instant::now());
        Some(Slice { queue: self })
    }
}

impl Inner {
    const fn ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }
}

/// A write in progress. If it is dropped before its end, its keys stay unsettled.
pub(super) struct Write<'a> {
    queue: &'a QueueState,
    ticket: u64,
    keys: Vec<DeliveryKey>,
    is_over: bool,
}

impl Write<'_> {
    /// The outcome is visible to every reader: the queue has so many messages more.
    pub(super) fn done(mut self, added: i64) {
        self.is_over = true;
        let inner = &mut *self.queue.inner.lock();
        inner.count.net += added;
        for key in &self.keys {
            inner.arriving.remove(&(*key, self.ticket));
        }
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        let inner = &mut *self.queue.inner.lock();
        inner.count.writes_open -= 1;
        if !self.is_over {
            inner.count.known = None;
            inner.count.unsettled_at = Some(Instant::now());
            inner.unsettled.extend(self.keys.iter().map(|key| (*key, self.ticket)));
        }
    }
}

/// A scan of the messages from the cursor on.
pub(super) struct Look<'a> {
    queue: &'a QueueState,
    ticket: u64,
    pub(super) from: DeliveryKey,
}

impl Look<'_> {
    /// No message was found before this key.
    pub(super) fn found_first(&self, first: DeliveryKey) {
        let mut inner = self.queue.inner.lock();
        let bound = inner
            .looks
            .iter()
            .find(|(ticket, _)| *ticket == self.ticket)
            .map_or(DeliveryKey::FIRST, |(_, bound)| *bound);
        inner.cursor = inner.cursor.max(first.min(bound));
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.queue.inner.lock().looks.retain(|(ticket, _)| *ticket != self.ticket);
    }
}

/// Messages that other claims skip while this value lives.
pub(super) struct Held<'a> {
    queue: &'a QueueState,
    ids: Vec<Guid>,
}

impl Held<'_> {
    /// `false` if another claim has the message.
    pub(super) fn take(&mut self, id: Guid) -> bool {
        let is_free = self.queue.inner.lock().taken.insert(id);
        if is_free {
            self.ids.push(id);
        }
        is_free
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let taken = &mut self.queue.inner.lock().taken;
        for id in &self.ids {
            taken.remove(id);
        }
    }
}

/// A count in progress.
pub(super) struct Counting {
    net: i64,
    /// Writes begun by then, if none was in progress.
    writes_begun: Option<u64>,
    since: Instant,
}

/// A slice of messages being checked for expiry.
pub(super) struct Slice<'a> {
    queue: &'a QueueState,
}

impl Slice<'_> {
    /// Where the pass continues; a new pass begins if there is none.
    pub(super) fn begin(&self) -> DeliveryKey {
        let expiry = &mut self.queue.inner.lock().expiry;
        expiry.pass.get_or_insert(Pass { from: DeliveryKey::FIRST, least: Timestamp::MAX }).from
    }

    /// Ends a slice, given the earliest expiry found and where to continue; `true` if the pass is over.
    pub(super) fn end(&self, least: Timestamp, next: Option<DeliveryKey>) -> bool {
        let expiry = &mut self.queue.inner.lock().expiry;
        let Some(pass) = &mut expiry.pass else { return true };
        pass.least = pass.least.min(least);
        match next {
            Some(next) => pass.from = next,
            None => {
                expiry.due = pass.least;
                expiry.pass = None;
            }
        }
        next.is_none()
    }
}

impl Drop for Slice<'_> {
    fn drop(&mut self) {
        self.queue.inner.lock().expiry.is_running = false;
    }
}

/// Minimum time between two slices.
const SLICE_EVERY: Duration = Duration::from_secs(1);
/// A count with concurrent writes is repeated after this time, and at least fifty times its duration.
const RECOUNT_AFTER: Duration = Duration::from_secs(10);
/// After this time an unsettled write has either taken effect or never will.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn key(ticks: u64) -> DeliveryKey {
        DeliveryKey::since(Timestamp::from_ticks(ticks))
    }

    fn cursor(queue: &QueueState) -> DeliveryKey {
        queue.look().from
    }

    #[test]
    fn a_look_raises_the_cursor_and_a_write_lowers_it() {
        let queue = QueueState::default();
        queue.look().found_first(key(50));
        assert_eq!(cursor(&queue), key(50));
        queue.look().found_first(key(40));
        assert_eq!(cursor(&queue), key(50), "an older look knows less");
        queue.write(vec![key(20)], Timestamp::MAX).done(1);
        assert_eq!(cursor(&queue), key(20));
    }

    #[test]
    fn a_message_that_arrives_during_a_look_is_not_passed_over() {
        let queue = QueueState::default();
        // In progress before the look, and acknowledged during it.
        let early = queue.write(vec![key(30)], Timestamp::MAX);
        let look = queue.look();
        early.done(1);
        look.found_first(key(90));
        assert_eq!(cursor(&queue), key(30));
        // Begun and acknowledged during the look.
        let look = queue.look();
        queue.write(vec![key(20)], Timestamp::MAX).done(1);
        look.found_first(key(90));
        assert_eq!(cursor(&queue), key(20));
        drop(look);
        // Still in progress after it.
        let late = queue.write(vec![key(25)], Timestamp::MAX);
        queue.look().found_first(key(90));
        assert_eq!(cursor(&queue), key(25));
        late.done(1);
        queue.look().found_first(key(90));
        assert_eq!(cursor(&queue), key(90));
    }

    #[test]
    fn an_unsettled_write_bounds_the_cursor_until_it_is_settled() {
        let queue = QueueState::default();
        drop(queue.write(vec![key(30)], Timestamp::MAX));
        queue.look().found_first(key(90));
        assert_eq!(cursor(&queue), key(30));
        let unsettled = queue.unsettled(1, 10);
        assert_eq!(unsettled.len(), 1);
        queue.settled(unsettled[0]);
        queue.look().found_first(key(90));
        assert_eq!(cursor(&queue), key(90));
        assert!(queue.unsettled(1, 10).is_empty());
    }

    #[test]
    fn a_count_follows_the_writes_and_is_forgotten_when_one_is_unsettled() {
        let queue = QueueState::default();
        assert_eq!(queue.count(), None);
        queue.write(vec![], Timestamp::MAX).done(5);
        let counting = queue.begin_count();
        queue.write(vec![], Timestamp::MAX).done(1);
        assert_eq!(queue.end_count(&counting, 100), 101);
        queue.write(vec![], Timestamp::MAX).done(-3);
        assert_eq!(queue.count(), Some(98));
        drop(queue.write(vec![], Timestamp::MAX));
        assert_eq!(queue.count(), None);
    }

    #[test]
    fn a_held_message_is_free_again_when_its_holder_lets_go() {
        let queue = QueueState::default();
        let (mut one, mut other) = (queue.hold(), queue.hold());
        assert!(one.take(Guid([1; 16])));
        assert!(!other.take(Guid([1; 16])));
        assert!(other.take(Guid([2; 16])));
        drop(one);
        assert!(other.take(Guid([1; 16])));
    }
}
