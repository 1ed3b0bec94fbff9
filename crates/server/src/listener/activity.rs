//! What a connection is waiting for, and since when: kept in one atomic number, so that a request costs no
//! timer. The connection looks at it when its own, rarely set, timer fires; the listener when
//! it needs to evict a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waiting for a request, or for the client to take the answer.
    Idle,
    /// Reading the head of a request.
    Head,
    /// Working on a request, its body included: handlers bound the time of the bodies they read.
    Busy,
}

/// Which connections are closed first to make room for a new one, best candidates first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Eviction {
    /// Has not sent a complete request for a while.
    SlowHead,
    /// Idle between requests.
    Idle,
    /// Has not sent a complete request yet, but may be about to.
    FreshHead,
    /// Takes no bytes of its answer.
    Stalled,
}

/// The phase of a connection and its start, and how the client takes its answers.
#[derive(Debug)]
pub(super) struct Activity {
    opened: Instant,
    /// Milliseconds since `opened`, and in the lowest two bits the phase.
    state: AtomicU64,
    has_sent_request: AtomicBool,
    /// One more than the milliseconds since `opened` at which the client stopped taking bytes; 0 while it takes them.
    blocked_at: AtomicU64,
    /// Milliseconds for which the client took none of the bytes of the current answer, up to the last byte it took.
    blocked_millis: AtomicU64,
    /// Bytes of the current answer that the client took.
    written_bytes: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            opened: Instant::now(),
            state: AtomicU64::new(encode(0, Phase::Idle)),
            has_sent_request: AtomicBool::new(false),
            blocked_at: AtomicU64::new(0),
            blocked_millis: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
        }
    }

    /// Begins a phase now.
    pub(super) fn begin(&self, phase: Phase) {
        self.state.store(encode(self.elapsed_millis(), phase), Relaxed);
        if phase == Phase::Busy {
            self.has_sent_request.store(true, Relaxed);
            if self.blocked_at.load(Relaxed) == 0 {
                self.blocked_millis.store(0, Relaxed);
                self.written_bytes.store(0, Relaxed);
            }
        }
    }

    /// The phase and its start.
    pub(super) fn read(&self) -> (Phase, Instant) {
        let state = self.state.load(Relaxed);
        let phase = match state & 3 {
            0 => Phase::Idle,
            1 => Phase::Head,
            _ => Phase::Busy,
        };
        (phase, self.opened + Duration::from_millis(state >> 2))
    }

    /// How suitable the connection is for eviction and since when; nothing while it works on a request or its client
    /// takes the answer.
    pub(super) fn eviction(&self) -> Option<(Eviction, Instant)> {
        let (phase, since) = self.read();
        if phase == Phase::Busy {
            return None;
        }
        if let Some(blocked) = self.blocked_since() {
            return (blocked.elapsed() >= STALLED_AFTER).then_some((Eviction::Stalled, blocked));
        }
        let eviction = match phase {
            Phase::Idle if self.has_sent_request.load(Relaxed) => Eviction::Idle,
            _ if since.elapsed() >= SLOW_HEAD_AFTER => Eviction::SlowHead,
            _ => Eviction::FreshHead,
        };
        Some((eviction, since))
    }

    /// When a client that takes no bytes of its answer has done so for too long: `timeout` at a time, and on average
    /// fewer than `rate_min` bytes per second beyond that.
    pub(super) fn blocked_until(&self, timeout: Duration, rate_min: u64) -> Option<Instant> {
        let since = self.blocked_since()?;
        let earned = Duration::from_secs_f64(self.written_bytes.load(Relaxed) as f64 / rate_min.max(1) as f64);
        let spent = Duration::from_millis(self.blocked_millis.load(Relaxed));
        Some(since + timeout.min((timeout + earned).saturating_sub(spent)))
    }

    fn blocked_since(&self) -> Option<Instant> {
        let millis = self.blocked_at.load(Relaxed).checked_sub(1)?;
        Some(self.opened + Duration::from_millis(millis))
    }

    /// The client took this many bytes.
    fn took(&self, bytes: usize) {
        self.written_bytes.fetch_add(bytes as u64, Relaxed);
        if let Some(at) = self.blocked_at.swap(0, Relaxed).checked_sub(1) {
            self.blocked_millis.fetch_add(self.elapsed_millis().saturating_sub(at), Relaxed);
        }
    }

    /// The client takes nothing now.
    fn blocked(&self) {
        if self.blocked_at.load(Relaxed) == 0 {
            self.blocked_at.store(self.elapsed_millis() + 1, Relaxed);
        }
    }

    fn elapsed_millis(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX >> 2)
    }
}

fn encode(millis: u64, phase: Phase) -> u64 {
    millis << 2
        | match phase {
            Phase::Idle => 0,
            Phase::Head => 1,
            Phase::Busy => 2,
        }
}

/// A stream that reports what passes to an [`Activity`].
#[derive(Debug)]
pub(super) struct WatchedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    is_write_blocked: bool,
}

impl<S> WatchedStream<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, is_write_blocked: false }
    }

    /// The stream, and whether an answer still waits to be written to it.
    pub(super) fn into_parts(self) -> (S, bool) {
        (self.stream, self.is_write_blocked)
    }

    fn after_read(&self, result: &Poll<io::Result<()>>) {
        if result.is_ready() && self.activity.read().0 == Phase::Idle {
            self.activity.begin(Phase::Head);
        }
    }

    fn after_write(&mut self, result: &Poll<io::Result<usize>>) {
        self.is_write_blocked = result.is_pending();
        match result {
            Poll::Pending => self.activity.blocked(),
            Poll::Ready(written) => self.activity.took(*written.as_ref().unwrap_or(&0)),
        }
        // A client that takes a long answer slowly is not idle.
        if result.is_ready() && self.activity.read().0 == Phase::Idle {
            self.activity.begin(Phase::Idle);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.after_read(&result);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.after_write(&result);
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        // An encrypted stream has a buffer of its own.
        match &result {
            Poll::Pending => self.activity.blocked(),
            Poll::Ready(_) => self.activity.took(0),
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.after_write(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// How long a head may be incomplete before its connection is the first to be closed at the cap.
const SLOW_HEAD_AFTER: Duration = Duration::from_secs(1);

/// How long a client may take no bytes before its connection may be closed at the cap.
const STALLED_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// An activity that has been in a phase for so long.
    fn activity(phase: Phase, age: Duration, has_sent_request: bool) -> Activity {
        let opened = Instant::now().checked_sub(age).expect("the machine has run for some seconds");
        let activity = Activity { opened, ..Activity::new() };
        activity.state.store(encode(0, phase), Relaxed);
        activity.has_sent_request.store(has_sent_request, Relaxed);
        activity
    }

    #[test]
    fn those_who_have_not_asked_go_first_but_not_at_once() {
        let minute = 60 * SECOND;
        for (phase, age, has_sent_request, expected) in [
            (Phase::Idle, minute, false, Some(Eviction::SlowHead)),
            (Phase::Head, minute, false, Some(Eviction::SlowHead)),
            (Phase::Head, minute, true, Some(Eviction::SlowHead)),
            (Phase::Idle, minute, true, Some(Eviction::Idle)),
            (Phase::Idle, Duration::ZERO, true, Some(Eviction::Idle)),
            (Phase::Busy, minute, true, None),
        ] {
            let kind = activity(phase, age, has_sent_request).eviction().map(|(kind, _)| kind);
            assert_eq!(kind, expected, "{phase:?} for {age:?}, {has_sent_request}");
        }
        let stalled = activity(Phase::Idle, minute, true);
        stalled.blocked_at.store(1, Relaxed);
        assert_eq!(stalled.eviction().map(|(kind, _)| kind), Some(Eviction::Stalled));
        let order = [Eviction::SlowHead, Eviction::Idle, Eviction::FreshHead, Eviction::Stalled];
        assert!(order.is_sorted(), "new connections do not evict each other while one is idle");
    }

    #[test]
    fn a_client_may_be_slow_but_not_for_ever() {
        for (written_kib, blocked_seconds, allowed) in [
            (0, 0, 60),
            (0, 50, 10),
            (0, 70, 0),
            // Ten KiB per second for an hour.
            (36_000, 3600, 60),
            (100, 150, 10),
            (100, 170, 0),
        ] {
            let activity = Activity::new();
            activity.written_bytes.store(written_kib * 1024, Relaxed);
            activity.blocked_millis.store(blocked_seconds * 1000, Relaxed);
            assert_eq!(activity.blocked_until(60 * SECOND, 1024), None, "the client takes bytes");
            activity.blocked_at.store(1, Relaxed);
            let until = activity.blocked_until(60 * SECOND, 1024).expect("it is blocked");
            assert_eq!(until - activity.opened, allowed * SECOND, "{written_kib} KiB, {blocked_seconds} s");
        }
    }
}
