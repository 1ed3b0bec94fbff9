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
    pub(crate) fn new() -> Self {
        let mut process = [0; 8];
        // Without randomness the counter still tells requests of one process apart.
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
