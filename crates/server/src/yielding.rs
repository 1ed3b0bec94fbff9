//! Long work on bytes in memory yields to other requests in between.

use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;

/// Bytes that are parsed or written in one go: about a millisecond, and less for most.
pub(crate) const SLICE_BYTES: usize = 128 * 1024;

/// Counts the bytes of work since the task last yielded.
#[derive(Debug, Default)]
pub(crate) struct Yielder {
    bytes: usize,
}

impl Yielder {
    /// Counts work that was done, and yields after a slice of it.
    pub(crate) async fn after(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= SLICE_BYTES {
            self.bytes = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Runs work on this many bytes: at once if they are few, otherwise on a blocking thread.
pub(crate) async fn run<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, ErrorReply> + Send + 'static,
) -> Result<T, ErrorReply> {
    if bytes <= SLICE_BYTES {
        return work();
    }
    // An error here is a panic, which was logged.
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(ErrorReply::new(ErrorCode::InternalError)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn others_run_after_a_slice_and_during_long_work() {
        let mut yielder = Yielder::default();
        assert!(yielder.after(SLICE_BYTES - 1).now_or_never().is_some());
        assert!(yielder.after(1).now_or_never().is_none(), "a slice is done");
        assert!(yielder.after(1).now_or_never().is_some(), "the next one has begun");
        assert_eq!(run(SLICE_BYTES, || Ok(7)).now_or_never(), Some(Ok(7)));
        let long = run(SLICE_BYTES + 1, || Ok(std::thread::current().id()));
        assert_ne!(long.await, Ok(std::thread::current().id()));
        let panicked: Result<(), _> = run(SLICE_BYTES + 1, || panic!("on purpose")).await;
        assert_eq!(panicked.map_err(|error| error.code), Err(ErrorCode::InternalError));
    }
}
