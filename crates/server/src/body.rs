//! The body of a request: read within bounds, or passed over so that the connection can be used again.

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use std::time::Duration;

/// A body that has not arrived yet.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// Taken by whoever reads it.
    incoming: Option<Incoming>,
    declared_bytes: Option<u64>,
    bytes_max: usize,
    timeout: Duration,
    is_whole: bool,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, declared_bytes: Option<u64>, bytes_max: usize, timeout: Duration) -> Self {
        let is_whole = incoming.is_end_stream();
        Self { incoming: Some(incoming), declared_bytes, bytes_max, timeout, is_whole }
    }

    /// Reads the body, bounded in size and time.
    pub(crate) async fn read(&mut self) -> Result<Bytes, ErrorReply> {
        let too_large = || ErrorReply::new(ErrorCode::RequestBodyTooLarge);
        if self.is_declared_too_large() {
            return Err(too_large());
        }
        let Some(incoming) = self.incoming.take().filter(|_| !self.is_whole) else { return Ok(Bytes::new()) };
        let collected = tokio::time::timeout(self.timeout, Limited::new(incoming, self.bytes_max).collect()).await;
        match collected {
            Ok(Ok(collected)) => {
                self.is_whole = true;
                Ok(collected.to_bytes())
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            // The client broke off or sent nonsense; it may still be listening.
            Ok(Err(_)) => Err(ErrorReply::new(ErrorCode::InvalidInput)),
            // The code comes with 500 elsewhere, but here it is the caller who is slow.
            Err(_) => Err(ErrorReply::new(ErrorCode::OperationTimedOut).with_status(408)),
        }
    }

    /// Passes over a body that nobody read. Returns whether the connection can take another request.
    pub(crate) async fn finish(mut self) -> bool {
        if !self.is_whole && !self.is_declared_too_large() && self.incoming.is_some() {
            // What it says does not matter any more, only whether it ends.
            let _ = self.read().await;
        }
        self.is_whole
    }

    fn is_declared_too_large(&self) -> bool {
        self.declared_bytes.is_some_and(|bytes| bytes > self.bytes_max as u64)
    }
}
