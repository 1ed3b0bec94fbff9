//! Live requests: a line for each request of an account, sent to those who watch while it happens.
//!
//! `http/underway.rs` makes the lines, which are those of the access log, and `admin/requests.rs` answers with the stream.
//! While nobody watches, a request reads one number. Each watcher has a buffer of its own, bounded in bytes and in lines per
//! second: what finds no room is counted, and no request waits.

use crate::access_log::{AccessLine, End};
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use larimar_wire::sas::Service;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::time;

/// Those who watch requests.
#[derive(Debug, Default)]
pub(crate) struct LiveRequests {
    /// A copy of the state's number of watchers, readable without the lock.
    watchers: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    watchers: BTreeMap<u64, Watcher>,
    begun: u64,
    /// Whether the server is shutting down.
    is_closed: bool,
}

/// What one watcher sees, and what has not been sent to it yet.
#[derive(Debug)]
struct Watcher {
    account: String,
    services: Vec<Service>,
    pending: Vec<u8>,
    lost: u64,
    /// The second that lines are counted in, and how many it has had.
    second: (Instant, u32),
    news: Arc<Notify>,
}

/// The watcher's end; dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Watch {
    live: Arc<LiveRequests>,
    number: u64,
    news: Arc<Notify>,
}

impl LiveRequests {
    /// Whether anybody watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Relaxed) > 0
    }

    /// Watches the requests of an account to these services. Refused while there are too many watchers.
    pub(crate) fn watch(self: &Arc<Self>, account: &str, services: &[Service]) -> Option<Watch> {
        let mut state = self.state.lock();
        if state.is_closed || state.watchers.len() >= WATCHERS_MAX {
            return None;
        }
        let (number, news) = (state.begun, Arc::new(Notify::new()));
        state.begun += 1;
        let watcher = Watcher {
            account: account.to_owned(),
            services: services.to_vec(),
            pending: Vec::new(),
            lost: 0,
            second: (Instant::now(), 0),
            news: Arc::clone(&news),
        };
        state.watchers.insert(number, watcher);
        self.watchers.store(state.watchers.len(), Relaxed);
        Some(Watch { live: Arc::clone(self), number, news })
    }

    /// Shows a request to those who watch its account.
    pub(crate) fn show(&self, line: &AccessLine, end: End) {
        let Some(account) = line.account() else { return };
        let mut json = None;
        let now = Instant::now();
        let mut state = self.state.lock();
        let watchers = state.watchers.values_mut();
        for watcher in watchers.filter(|one| one.account == account && one.sees(line.service())) {
            if watcher.admits(now) {
                watcher.add(json.get_or_insert_with(|| line.to_json(end)));
            } else {
                watcher.lost += 1;
            }
            watcher.news.notify_one();
        }
    }

    /// Ends all watches, and takes no more: the server is shutting down.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for watcher in state.watchers.values() {
            watcher.news.notify_one();
        }
    }
}

impl Watcher {
    fn sees(&self, service: &str) -> bool {
        self.services.iter().any(|seen| seen.name() == service)
    }

    /// Whether this second has room for another line.
    fn admits(&mut self, now: Instant) -> bool {
        let (began, lines) = &mut self.second;
        if now.saturating_duration_since(*began) >= Duration::from_secs(1) {
            (*began, *lines) = (now, 0);
        }
        *lines += 1;
        *lines <= LINES_PER_SECOND_MAX
    }

    fn add(&mut self, json: &[u8]) {
        if self.pending.len() + json.len() > PENDING_BYTES_MAX {
            self.lost += 1;
            return;
        }
        self.add_lost();
        self.pending.extend_from_slice(json);
    }

    /// Says where lines are missing.
    fn add_lost(&mut self) {
        if self.lost > 0 {
            self.pending.extend_from_slice(format!("{{\"lost\":{}}}\n", self.lost).as_bytes());
            self.lost = 0;
        }
    }
}

impl Watch {
    /// The lines as they come, with an empty one now and then while there are none. Ends after a while, and when the server
    /// shuts down.
    pub(crate) fn into_lines(self) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
        self.into_lines_of(WATCH_MAX, HEARTBEAT_EVERY)
    }

    fn into_lines_of(
        self,
        watch_max: Duration,
        heartbeat_every: Duration,
    ) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
        let end = time::Instant::now() + watch_max;
        unfold((self, true), move |(watch, is_first)| async move {
            // The first piece comes at once: it says that the watch has begun.
            let piece = if is_first { Some(HEARTBEAT) } else { watch.next(end, heartbeat_every).await };
            piece.map(|piece| (Ok(piece), (watch, false)))
        })
    }

    async fn next(&self, end: time::Instant, heartbeat_every: Duration) -> Option<Bytes> {
        let until = end.min(time::Instant::now() + heartbeat_every);
        loop {
            match self.take() {
                Some(lines) if !lines.is_empty() => return Some(lines.into()),
                Some(_) => {}
                None => return None,
            }
            if time::timeout_at(until, self.news.notified()).await.is_err() {
                return (until < end).then_some(HEARTBEAT);
            }
        }
    }

    /// What there is to send; none once the watch is over.
    fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.live.state.lock();
        let is_closed = state.is_closed;
        let watcher = state.watchers.get_mut(&self.number)?;
        watcher.add_lost();
        let lines = std::mem::take(&mut watcher.pending);
        (!is_closed || !lines.is_empty()).then_some(lines)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.live.state.lock();
        state.watchers.remove(&self.number);
        self.live.watchers.store(state.watchers.len(), Relaxed);
    }
}

/// Watchers of a server at most.
pub(crate) const WATCHERS_MAX: usize = 16;

/// Lines of a watcher per second: more than anybody reads, less than a page notices.
const LINES_PER_SECOND_MAX: u32 = 2_000;

/// Bytes that wait for a watcher at most.
const PENDING_BYTES_MAX: usize = 512 << 10;

/// How long a watch lasts: one that was forgotten ends, and one by a key that was replaced.
const WATCH_MAX: Duration = Duration::from_secs(600);

/// How often a watcher without lines gets an empty one, which finds out whether it is still there.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(10);
const HEARTBEAT: Bytes = Bytes::from_static(b"\n");

#[cfg(test)]
mod tests;
