//! The body of a request: read within bounds, piece by piece or whole, or passed over so that the connection can be
//! used again.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use std::time::{Duration, Instant};

/// A body that has not arrived yet.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// Taken by whoever reads it.
    incoming: Option<Incoming>,
    declared_bytes: Option<u64>,
    timeout: Duration,
    is_whole: bool,
    received_bytes: u64,
    waited: Duration,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, declared_bytes: Option<u64>, timeout: Duration) -> Self {
        let is_whole = incoming.is_end_stream();
        Self { incoming: Some(incoming), declared_bytes, timeout, is_whole, received_bytes: 0, waited: Duration::ZERO }
    }

    /// The bytes that have been read.
    pub(crate) const fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// How long it took to arrive.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited
    }

    /// Reads the body, bounded in size and time.
    pub(crate) async fn read(&mut self, bytes_max: usize) -> Result<Bytes, ErrorReply> {
        if self.is_declared_longer_than(bytes_max as u64) {
            return Err(too_large());
        }
        let Some(incoming) = self.incoming.take().filter(|_| !self.is_whole) else { return Ok(Bytes::new()) };
        let began = Instant::now();
        let collected = tokio::time::timeout(self.timeout, Limited::new(incoming, bytes_max).collect()).await;
        self.waited += began.elapsed();
        match collected {
            Ok(Ok(collected)) => {
                self.is_whole = true;
                let bytes = collected.to_bytes();
                self.received_bytes = bytes.len() as u64;
                Ok(bytes)
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            // The client broke off or sent nonsense; it may still be listening.
            Ok(Err(_)) => Err(ErrorReply::new(ErrorCode::InvalidInput)),
            Err(_) => Err(too_slow()),
        }
    }

    /// The next piece of a body that is worked on while it arrives, or none at its end. The time is bounded for
    /// each piece, the size for all.
    pub(crate) async fn piece(&mut self, bytes_max: u64) -> Result<Option<Bytes>, ErrorReply> {
        if self.is_declared_longer_than(bytes_max) {
            return Err(too_large());
        }
        let Some(incoming) = self.incoming.as_mut().filter(|_| !self.is_whole) else { return Ok(None) };
        loop {
            let began = Instant::now();
            let frame = tokio::time::timeout(self.timeout, incoming.frame()).await;
            self.waited += began.elapsed();
            let frame = frame.map_err(|_| too_slow())?;
            let Some(frame) = frame else {
                self.is_whole = true;
                return Ok(None);
            };
            let frame = frame.map_err(|_| ErrorReply::new(ErrorCode::InvalidInput))?;
            let Ok(piece) = frame.into_data() else { continue };
            self.received_bytes += piece.len() as u64;
            if self.received_bytes > bytes_max {
                return Err(too_large());
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
    }

    /// Passes over a body that nobody read, or not to its end. Returns whether the connection can take another
    /// request.
    pub(crate) async fn finish(&mut self, bytes_max: u64) -> bool {
        while !self.is_whole && self.incoming.is_some() {
            // What it says does not matter any more, only whether it ends.
            if !matches!(self.piece(bytes_max).await, Ok(Some(_))) {
                break;
            }
        }
        self.is_whole
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
