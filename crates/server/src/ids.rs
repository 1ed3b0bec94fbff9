//! Identifiers of requests and batches: unlikely to repeat anywhere, cheap to make.

use larimar_model::Guid;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Makes identifiers: eight random bytes of this process, eight that count.
#[derive(Debug)]
pub(crate) struct Ids {
    process: [u8; 8],
    next: AtomicU64,
}

impl Ids {
    #[expect(clippy::disallowed_methods, reason = "this is the source of request ids")]
    pub(crate) fn new() -> Self {
        let mut process = [0; 8];
        // Without randomness the counter still distinguishes the requests of one process.
        let _ = getrandom::fill(&mut process);
        Self { process, next: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> Guid {
        let count = self.next.fetch_add(1, Relaxed);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.process);
        bytes[8..].copy_from_slice(&count.to_be_bytes());
        Guid(bytes)
    }
}

/// An identifier that cannot be guessed.
#[expect(clippy::disallowed_methods, reason = "this is the source of secret ids")]
pub(crate) fn unguessable() -> Result<Guid, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map(|()| Guid(bytes))
}
