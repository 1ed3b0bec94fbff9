//! What is remembered of a queue while the process runs, so that nobody looks for messages where none are.
//!
//! All of it can be forgotten at any time: it only saves work. The **cursor** is a place before which no message stands.
//! Looks begin there and raise it to the first message they find, though not beyond a message that arrives meanwhile:
//! readers see what is committed, so such a one may be missing from what they saw. Messages being claimed are **taken**:
//! others leave them alone before the store shows that they moved.

use super::record::Place;
use larimar_model::{Guid, Timestamp};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    cursor: Place,
    /// Places that a write under way may fill, each with the write's ticket.
    arriving: BTreeSet<(Place, u64)>,
    /// Those of writes whose outcome nobody waited for.
    doubtful: Vec<(Place, u64)>,
    /// Looks under way: a ticket, and the place beyond which they may not raise the cursor.
    looks: Vec<(u64, Place)>,
    taken: HashSet<Guid>,
    last_ticket: u64,
    count: Count,
    sweep: Sweep,
}

#[derive(Debug, Default)]
struct Count {
    /// Messages added less those removed since the process began.
    net: i64,
    writes_begun: u64,
    writes_open: usize,
    known: Option<Counted>,
    /// When the last write began to be in doubt: it may still take effect.
    doubted: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    /// What has to be added to `net`.
    base: i64,
    /// Whether nothing was written while the messages were counted.
    is_exact: bool,
    at: Instant,
    took: Duration,
}

#[derive(Debug)]
struct Sweep {
    /// No message expires before.
    due: Timestamp,
    pass: Option<Pass>,
    is_running: bool,
    last_slice: Option<Instant>,
}

/// A walk through all messages for those that expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// Where to go on.
    pub(super) from: Place,
    /// The first expiry among the messages passed by.
    pub(super) least: Timestamp,
}

impl Default for Queue {
    fn default() -> Self {
        // The epoch: what expires when is not known before the first pass.
        let sweep = Sweep { due: Timestamp::from_ticks(0), pass: None, is_running: false, last_slice: None };
        let inner = Inner {
            cursor: Place::FIRST,
            arriving: BTreeSet::new(),
            doubtful: Vec::new(),
            looks: Vec::new(),
            taken: HashSet::new(),
            last_ticket: 0,
            count: Count::default(),
            sweep,
        };
        Self { inner: Mutex::new(inner) }
    }
}

impl Queue {
    /// Begins a write that puts messages at these places, none of which expires before `expires`.
    pub(super) fn write(&self, places: Vec<Place>, expires: Timestamp) -> Write<'_> {
        let mut inner = self.inner.lock();
        let ticket = inner.ticket();
        for place in &places {
            inner.arriving.insert((*place, ticket));
            inner.cursor = inner.cursor.min(*place);
            for (_, bound) in &mut inner.looks {
                *bound = (*bound).min(*place);
            }
        }
        inner.sweep.due = inner.sweep.due.min(expires);
        if let Some(pass) = &mut inner.sweep.pass {
            pass.least = pass.least.min(expires);
        }
        inner.count.writes_begun += 1;
        inner.count.writes_open += 1;
        Write { queue: self, ticket, places, is_over: false }
    }

    /// Begins a look from the cursor on.
    pub(super) fn look(&self) -> Look<'_> {
        let mut inner = self.inner.lock();
        let ticket = inner.ticket();
        let bound = inner.arriving.first().map_or(Place::since(Timestamp::from_ticks(u64::MAX)), |(place, _)| *place);
        inner.looks.push((ticket, bound));
        Look { queue: self, ticket, from: inner.cursor }
    }

    /// Places of writes whose outcome is to be found out.
    pub(super) fn doubtful(&self, least: usize, most: usize) -> Vec<(Place, u64)> {
        let inner = self.inner.lock();
        if inner.doubtful.len() < least { Vec::new() } else { inner.doubtful.iter().take(most).copied().collect() }
    }

    /// The outcome is known by every reader now.
    pub(super) fn settled(&self, place: (Place, u64)) {
        let mut inner = self.inner.lock();
        inner.arriving.remove(&place);
        inner.doubtful.retain(|other| *other != place);
    }

    pub(super) fn hold(&self) -> Held<'_> {
        Held { queue: self, ids: Vec::new() }
    }

    /// The number of messages, if it was counted.
    pub(super) fn count(&self) -> Option<u64> {
        let count = &self.inner.lock().count;
        let is_fresh = |known: &Counted| known.is_exact || known.at.elapsed() < RECOUNT_AFTER.max(known.took * 50);
        count.known.filter(is_fresh).map(|known| (known.base + count.net).max(0).cast_unsigned())
    }

    pub(super) fn begin_count(&self) -> Counting {
        let count = &self.inner.lock().count;
        let is_calm = count.writes_open == 0 && count.doubted.is_none_or(|doubted| doubted.elapsed() > DOUBT_LASTS);
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

    /// A slice of a sweep, if one is due and nobody else is at it.
    pub(super) fn slice(&self, now: Timestamp) -> Option<Slice<'_>> {
        let sweep = &mut self.inner.lock().sweep;
        if sweep.is_running || sweep.pass.is_none() && now < sweep.due {
            return None;
        }
        if sweep.last_slice.is_some_and(|last| last.elapsed() < SLICE_EVERY) {
            return None;
        }
        sweep.is_running = true;
        sweep.last_slice = Some(Instant::now());
        Some(Slice { queue: self })
    }
}

impl Inner {
    const fn ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }
}

/// A write under way. If nobody waits for its end, its places stay in doubt.
pub(super) struct Write<'a> {
    queue: &'a Queue,
    ticket: u64,
    places: Vec<Place>,
    is_over: bool,
}

impl Write<'_> {
    /// The outcome is known by every reader: the queue has so many messages more.
    pub(super) fn done(mut self, added: i64) {
        self.is_over = true;
        let inner = &mut *self.queue.inner.lock();
        inner.count.net += added;
        for place in &self.places {
            inner.arriving.remove(&(*place, self.ticket));
        }
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        let inner = &mut *self.queue.inner.lock();
        inner.count.writes_open -= 1;
        if !self.is_over {
            inner.count.known = None;
            inner.count.doubted = Some(Instant::now());
            inner.doubtful.extend(self.places.iter().map(|place| (*place, self.ticket)));
        }
    }
}

/// A look at the messages from the cursor on.
pub(super) struct Look<'a> {
    queue: &'a Queue,
    ticket: u64,
    pub(super) from: Place,
}

impl Look<'_> {
    /// No message was found before this place.
    pub(super) fn found_first(&self, first: Place) {
        let mut inner = self.queue.inner.lock();
        let bound =
            inner.looks.iter().find(|(ticket, _)| *ticket == self.ticket).map_or(Place::FIRST, |(_, bound)| *bound);
        inner.cursor = inner.cursor.max(first.min(bound));
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.queue.inner.lock().looks.retain(|(ticket, _)| *ticket != self.ticket);
    }
}

/// Messages that others leave alone as long as this lives.
pub(super) struct Held<'a> {
    queue: &'a Queue,
    ids: Vec<Guid>,
}

impl Held<'_> {
    /// `false` if somebody else has the message.
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

/// A count under way.
pub(super) struct Counting {
    net: i64,
    /// Writes begun by then, if none was under way.
    writes_begun: Option<u64>,
    since: Instant,
}

/// A slice of a sweep under way.
pub(super) struct Slice<'a> {
    queue: &'a Queue,
}

impl Slice<'_> {
    /// Where the pass goes on, which begins now if none is under way.
    pub(super) fn begin(&self) -> Place {
        let sweep = &mut self.queue.inner.lock().sweep;
        sweep.pass.get_or_insert(Pass { from: Place::FIRST, least: Timestamp::MAX }).from
    }

    /// Ends a slice: the first expiry met, and where to go on; `true` if the pass is over.
    pub(super) fn end(&self, least: Timestamp, next: Option<Place>) -> bool {
        let sweep = &mut self.queue.inner.lock().sweep;
        let Some(pass) = &mut sweep.pass else { return true };
        pass.least = pass.least.min(least);
        match next {
            Some(next) => pass.from = next,
            None => {
                sweep.due = pass.least;
                sweep.pass = None;
            }
        }
        next.is_none()
    }
}

impl Drop for Slice<'_> {
    fn drop(&mut self) {
        self.queue.inner.lock().sweep.is_running = false;
    }
}

/// How often a slice of messages is searched for expired ones at most.
const SLICE_EVERY: Duration = Duration::from_secs(1);
/// A count that was disturbed is repeated after this long, and after fifty times what it took.
const RECOUNT_AFTER: Duration = Duration::from_secs(10);
/// By then a write that nobody waited for is done, or never will be.
const DOUBT_LASTS: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn place(ticks: u64) -> Place {
        Place::since(Timestamp::from_ticks(ticks))
    }

    fn cursor(queue: &Queue) -> Place {
        queue.look().from
    }

    #[test]
    fn a_look_raises_the_cursor_and_a_write_lowers_it() {
        let queue = Queue::default();
        queue.look().found_first(place(50));
        assert_eq!(cursor(&queue), place(50));
        queue.look().found_first(place(40));
        assert_eq!(cursor(&queue), place(50), "an older look knows less");
        queue.write(vec![place(20)], Timestamp::MAX).done(1);
        assert_eq!(cursor(&queue), place(20));
    }

    #[test]
    fn a_message_that_arrives_during_a_look_is_not_passed_over() {
        let queue = Queue::default();
        // Under way before the look, and acknowledged during it.
        let early = queue.write(vec![place(30)], Timestamp::MAX);
        let look = queue.look();
        early.done(1);
        look.found_first(place(90));
        assert_eq!(cursor(&queue), place(30));
        // Begun and acknowledged during the look.
        let look = queue.look();
        queue.write(vec![place(20)], Timestamp::MAX).done(1);
        look.found_first(place(90));
        assert_eq!(cursor(&queue), place(20));
        drop(look);
        // Still under way after it.
        let late = queue.write(vec![place(25)], Timestamp::MAX);
        queue.look().found_first(place(90));
        assert_eq!(cursor(&queue), place(25));
        late.done(1);
        queue.look().found_first(place(90));
        assert_eq!(cursor(&queue), place(90));
    }

    #[test]
    fn a_write_that_nobody_waits_for_bounds_the_cursor_until_it_is_settled() {
        let queue = Queue::default();
        drop(queue.write(vec![place(30)], Timestamp::MAX));
        queue.look().found_first(place(90));
        assert_eq!(cursor(&queue), place(30));
        let doubtful = queue.doubtful(1, 10);
        assert_eq!(doubtful.len(), 1);
        queue.settled(doubtful[0]);
        queue.look().found_first(place(90));
        assert_eq!(cursor(&queue), place(90));
        assert!(queue.doubtful(1, 10).is_empty());
    }

    #[test]
    fn a_count_follows_the_writes_and_is_forgotten_when_one_is_in_doubt() {
        let queue = Queue::default();
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
        let queue = Queue::default();
        let (mut one, mut other) = (queue.hold(), queue.hold());
        assert!(one.take(Guid([1; 16])));
        assert!(!other.take(Guid([1; 16])));
        assert!(other.take(Guid([2; 16])));
        drop(one);
        assert!(other.take(Guid([1; 16])));
    }
}
