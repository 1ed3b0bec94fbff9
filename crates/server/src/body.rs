//! The body of a request: read within bounds, piece by piece or whole, or passed over so that the connection can be
//! used again.
//!
//! A body has no fixed time, as its size and the client's link differ by orders of magnitude. It has a [`Pace`]: a bound
//! on silence and, after a time of grace, on the average rate. It is counted as bytes in flight as far as it has arrived.

use crate::in_flight::{Arriving, Held, Share, UNCOUNTED_BYTES};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use std::time::{Duration, Instant};

/// How slowly a client may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// How long the client may send nothing, and how long it may send less than `rate_min` on average.
    pub(crate) silence_max: Duration,
    /// Bytes per second.
    pub(crate) rate_min: u64,
}

impl Pace {
    /// How long the next bytes may take, after so many bytes in so much time of waiting.
    fn allows(&self, received_bytes: u64, waited: Duration) -> Duration {
        let earned = Duration::from_secs_f64(received_bytes as f64 / self.rate_min.max(1) as f64);
        self.silence_max.min((self.silence_max + earned).saturating_sub(waited))
    }
}

/// A body that has not arrived yet.
#[derive(Debug)]
pub(crate) struct RequestBody {
    incoming: Incoming,
    declared_bytes: Option<u64>,
    pace: Pace,
    is_whole: bool,
    /// Whether nothing more is read: it is too long, too slow, or broken.
    is_given_up: bool,
    received_bytes: u64,
    waited: Duration,
    /// How many bytes had arrived, and how long that had taken, when the body last made progress.
    progress: (u64, Duration),
    /// What was read whole, for a request that is run a second time.
    whole: Option<Bytes>,
    /// The account's part of the budget for bytes in flight, once the account is known.
    share: Option<Share>,
    /// What the body takes of it.
    arriving: Option<Arriving>,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, declared_bytes: Option<u64>, pace: Pace) -> Self {
        let is_whole = incoming.is_end_stream();
        let (received_bytes, waited, progress) = (0, Duration::ZERO, (0, Duration::ZERO));
        let (share, arriving) = (None, None);
        Self {
            incoming,
            declared_bytes,
            pace,
            is_whole,
            is_given_up: false,
            received_bytes,
            waited,
            progress,
            whole: None,
            share,
            arriving,
        }
    }

    /// Counts what is read from here on as bytes in flight.
    pub(crate) fn count(&mut self, share: Share) {
        self.share = Some(share);
    }

    /// What the body holds of the budget, which the answer may use. The body is not needed any more.
    pub(crate) fn take_held(&mut self) -> Option<Held> {
        self.whole = None;
        self.arriving.take().and_then(Arriving::into_held)
    }

    /// Whether the body holds something of the budget.
    pub(crate) const fn is_counted(&self) -> bool {
        self.arriving.is_some()
    }

    /// The bytes that have been read.
    pub(crate) const fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Whether a request that is run a second time finds the body as the first run did: nothing of it was read piece by
    /// piece.
    pub(crate) const fn is_repeatable(&self) -> bool {
        self.received_bytes == 0 || self.whole.is_some()
    }

    /// How long it took to arrive.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited
    }

    /// The body that the pipeline has read; empty if the operation takes none.
    pub(crate) fn whole(&self) -> Bytes {
        self.whole.clone().unwrap_or_default()
    }

    /// Reads the body, bounded in size and time.
    pub(crate) async fn read(&mut self, bytes_max: usize) -> Result<Bytes, ErrorReply> {
        if let Some(whole) = &self.whole {
            return Ok(whole.clone());
        }
        let whole = self.collect(bytes_max as u64).await?;
        self.whole = Some(whole.clone());
        Ok(whole)
    }

    async fn collect(&mut self, bytes_max: u64) -> Result<Bytes, ErrorReply> {
        let Some(first) = self.piece(bytes_max).await? else { return Ok(Bytes::new()) };
        if self.is_whole {
            self.hold_parsed(first.len()).await?;
            return Ok(first);
        }
        let mut whole = Vec::new();
        self.append(&mut whole, &first, bytes_max).await?;
        drop(first);
        while let Some(piece) = self.piece(bytes_max).await? {
            self.append(&mut whole, &piece, bytes_max).await?;
        }
        self.hold_parsed(whole.capacity()).await?;
        Ok(whole.into())
    }

    /// Counts a body that has arrived together with what it is parsed into.
    async fn hold_parsed(&mut self, bytes: usize) -> Result<(), ErrorReply> {
        match bytes as u64 {
            0..=UNCOUNTED_BYTES => Ok(()),
            bytes => self.hold(COPIES * bytes, 0).await,
        }
    }

    /// Adds a piece to what has arrived. The memory for it is counted first: at most twice what has been sent.
    async fn append(&mut self, whole: &mut Vec<u8>, piece: &[u8], bytes_max: u64) -> Result<(), ErrorReply> {
        let bytes = whole.len() + piece.len();
        if bytes > whole.capacity() {
            let expected = self.declared_bytes.unwrap_or(bytes_max).min(bytes_max);
            let capacity = (2 * whole.capacity() as u64).min(expected).max(bytes as u64);
            self.hold(capacity, COPIES * self.declared_bytes.map_or(capacity, |_| expected)).await?;
            whole.reserve_exact(capacity as usize - whole.len());
        }
        whole.extend_from_slice(piece);
        Ok(())
    }

    /// Counts the body as this many bytes from now on. It waits only while it holds none, until all the bytes that are
    /// expected would fit.
    async fn hold(&mut self, bytes: u64, expected_bytes: u64) -> Result<(), ErrorReply> {
        match (&self.arriving, &self.share) {
            (Some(arriving), _) => arriving.grow(bytes),
            (None, Some(share)) if bytes > UNCOUNTED_BYTES => {
                self.arriving = Some(share.begin_body(bytes, expected_bytes).await?);
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// The next piece of a body that goes to a store while it arrives, or none at its end. What the store buffers is
    /// counted as far as it has arrived, until [`RequestBody::release`].
    pub(crate) async fn upload_piece(
        &mut self,
        bytes_max: u64,
        buffered_max: u64,
    ) -> Result<Option<Bytes>, ErrorReply> {
        let piece = self.piece(bytes_max).await?;
        if piece.is_some() {
            // In the buffer of the connection and in that of the store.
            let bytes = (2 * self.received_bytes).next_multiple_of(PROGRESS_BYTES);
            self.hold(bytes.min(buffered_max), buffered_max).await?;
        }
        Ok(piece)
    }

    /// The body is no longer in memory.
    pub(crate) fn release(&mut self) {
        (self.arriving, self.whole) = (None, None);
    }

    /// The next piece of a body that is worked on while it arrives, or none at its end. The pace and the size are bounded
    /// for all pieces together.
    pub(crate) async fn piece(&mut self, bytes_max: u64) -> Result<Option<Bytes>, ErrorReply> {
        if self.is_declared_longer_than(bytes_max) {
            return Err(too_large());
        }
        let piece = self.next().await?;
        if self.received_bytes > bytes_max {
            return Err(too_large());
        }
        Ok(piece)
    }

    /// Discards a little of a body that the handler did not read to its end: a client that still sends might miss an answer on a
    /// connection that closes. Returns whether the connection can take another request.
    pub(crate) async fn finish(&mut self) -> bool {
        self.release();
        let rest = self.declared_bytes.map(|declared| declared.saturating_sub(self.received_bytes));
        if self.is_whole || rest.is_some_and(|rest| rest > DRAIN_BYTES_MAX) {
            return self.is_whole;
        }
        let bytes_max = self.received_bytes + DRAIN_BYTES_MAX;
        let drain = async {
            while self.received_bytes <= bytes_max && matches!(self.next().await, Ok(Some(_))) {}
            self.is_whole
        };
        tokio::time::timeout(DRAIN_TIME_MAX, drain).await.unwrap_or(false)
    }

    /// The next bytes, at the client's pace.
    async fn next(&mut self) -> Result<Option<Bytes>, ErrorReply> {
        while !self.is_whole && !self.is_given_up {
            let began = Instant::now();
            let allowed = self.pace.allows(self.received_bytes, self.waited);
            let frame = tokio::time::timeout(allowed, self.incoming.frame());
            let frame = match &mut self.arriving {
                None => frame.await,
                Some(arriving) => {
                    let quiet = self.waited.saturating_sub(self.progress.1);
                    let Some(frame) = arriving.during(began.checked_sub(quiet).unwrap_or(began), frame).await else {
                        self.is_given_up = true;
                        return Err(self.share.as_ref().map_or_else(too_slow, Share::refused));
                    };
                    frame
                }
            };
            self.waited += began.elapsed();
            match frame {
                Ok(Some(Ok(frame))) => {
                    self.is_whole = self.incoming.is_end_stream();
                    let piece = frame.into_data().unwrap_or_default();
                    self.received_bytes += piece.len() as u64;
                    if self.received_bytes - self.progress.0 >= PROGRESS_BYTES {
                        self.progress = (self.received_bytes, self.waited);
                    }
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
                Ok(None) => self.is_whole = true,
                failed => {
                    self.is_given_up = true;
                    // The client broke off or sent nonsense, or was too slow; it may still be listening.
                    return Err(failed.map_or_else(|_| too_slow(), |_| ErrorReply::new(ErrorCode::InvalidInput)));
                }
            }
        }
        Ok(None)
    }

    fn is_declared_longer_than(&self, bytes_max: u64) -> bool {
        self.declared_bytes.is_some_and(|bytes| bytes > bytes_max)
    }
}

fn too_large() -> ErrorReply {
    ErrorReply::new(ErrorCode::RequestBodyTooLarge)
}

/// The code comes with 500 elsewhere, but here it is the caller who is slow.
fn too_slow() -> ErrorReply {
    ErrorReply::new(ErrorCode::OperationTimedOut).with_status(408)
}

/// What a body that has arrived is counted as: itself, and what it is parsed into. Its answer is counted for itself.
const COPIES: u64 = 2;

/// A body makes progress with this many bytes.
const PROGRESS_BYTES: u64 = 64 << 10;

/// Bytes of a body that are passed over after the answer is known.
const DRAIN_BYTES_MAX: u64 = 1 << 20;

/// How long that may take. The connection closes with the answer otherwise.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_bounded_and_so_is_the_average_rate() {
        let seconds = Duration::from_secs;
        let pace = Pace { silence_max: seconds(30), rate_min: 1024 };
        for (received_kib, waited, allowed) in [
            (0, 0, 30),
            (0, 29, 1),
            // A byte every two seconds earns nothing.
            (0, 31, 0),
            // Ten KiB per second for an hour.
            (36_000, 3600, 30),
            (100, 120, 10),
            (100, 130, 0),
        ] {
            let found = pace.allows(received_kib * 1024, seconds(waited));
            assert_eq!(found, seconds(allowed), "{received_kib} KiB in {waited} s");
        }
    }
}
