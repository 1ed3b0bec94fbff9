//! Whether discarded payloads may be removed now: not while a server that shares the store takes a backup.

use futures_util::future::BoxFuture;
use larimar_engine::Fault;
use std::sync::Arc;

/// Asks whether discarded payloads may be removed. The default allows it always.
///
/// The answer is valid for everything that was discarded before the question: a backup that begins later reads no row that
/// points to it. As long as there is no answer, nothing is removed.
#[derive(Clone, Default)]
pub struct Removal(Option<Arc<Ask>>);

type Ask = dyn Fn() -> BoxFuture<'static, Result<bool, Fault>> + Send + Sync;

impl Removal {
    /// Calls this function.
    pub fn new(ask: impl Fn() -> BoxFuture<'static, Result<bool, Fault>> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ask)))
    }

    pub(super) async fn ask(&self) -> Result<bool, Fault> {
        match &self.0 {
            Some(ask) => ask().await,
            None => Ok(true),
        }
    }
}

impl std::fmt::Debug for Removal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Removal").field(&self.0.is_some()).finish()
    }
}
