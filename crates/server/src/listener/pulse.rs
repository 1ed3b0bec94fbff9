//! What a connection is waiting for, and since when: kept in one atomic number, so that a request costs no
//! timer. The connection looks at it when its own, rarely set, timer fires; the listener when it needs a place.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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

/// The phase of a connection and its start.
#[derive(Debug)]
pub(super) struct Pulse {
    opened: Instant,
    /// Milliseconds since `opened`, and in the lowest two bits the phase.
    state: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { opened: Instant::now(), state: AtomicU64::new(encode(0, Phase::Idle)) }
    }

    /// Begins a phase now.
    pub(super) fn begin(&self, phase: Phase) {
        let elapsed = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX >> 2);
        self.state.store(encode(elapsed, phase), Relaxed);
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

    /// Since when the connection has been idle, if it is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let (phase, since) = self.read();
        (phase == Phase::Idle).then_some(since)
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

/// A stream that tells a pulse what passes.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
    is_write_blocked: bool,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse, is_write_blocked: false }
    }

    /// The stream, and whether an answer still waits to be written to it.
    pub(super) fn into_parts(self) -> (S, bool) {
        (self.stream, self.is_write_blocked)
    }

    fn after_read(&self, result: &Poll<io::Result<()>>) {
        if result.is_ready() && self.pulse.read().0 == Phase::Idle {
            self.pulse.begin(Phase::Head);
        }
    }

    fn after_write<T>(&mut self, result: &Poll<io::Result<T>>) {
        self.is_write_blocked = result.is_pending();
        // A client that takes a long answer slowly is not idle.
        if result.is_ready() && self.pulse.read().0 == Phase::Idle {
            self.pulse.begin(Phase::Idle);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.after_read(&result);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.after_write(&result);
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
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
