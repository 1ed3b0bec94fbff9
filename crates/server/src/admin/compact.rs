//! `POST /compact`: reclaims what nothing refers to and compacts the store, while the server serves.

use super::access::AdminCaller;
use super::{Page, text};
use hyper::StatusCode;
use larimar_engine::Fault;
use larimar_engine::blob::Compacted;
use std::fmt;
use std::pin::Pin;
use tokio::sync::Mutex;

/// Compacts the store of a server.
pub type Compact = dyn Fn() -> Pin<Box<dyn Future<Output = Result<Compacted, Fault>> + Send>> + Send + Sync;

/// Runs one compaction at a time.
pub(super) struct Compactor {
    compact: Box<Compact>,
    one: Mutex<()>,
}

impl Compactor {
    pub(super) fn new(compact: Box<Compact>) -> Self {
        Self { compact, one: Mutex::new(()) }
    }
}

impl fmt::Debug for Compactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compactor").finish_non_exhaustive()
    }
}

/// Answers with what was freed when it is done. A caller that goes away leaves a store that is whole.
pub(super) async fn compact(compactor: Option<&Compactor>, caller: &AdminCaller) -> Page {
    if *caller != AdminCaller::Operator {
        return text(StatusCode::FORBIDDEN, "a compaction concerns all accounts: it needs the admin token\n");
    }
    let Some(compactor) = compactor else {
        return text(StatusCode::NOT_FOUND, "this server has nothing to compact\n");
    };
    let Ok(_one) = compactor.one.try_lock() else {
        return text(StatusCode::CONFLICT, "a compaction is running already\n");
    };
    match (compactor.compact)().await {
        Ok(done) => {
            tracing::info!(?done, "compacted");
            text(StatusCode::OK, done.to_string())
        }
        Err(fault) => {
            tracing::warn!(%fault, "the store could not be compacted");
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{fault}\n"))
        }
    }
}
