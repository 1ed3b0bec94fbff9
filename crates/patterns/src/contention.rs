//! Waiting between attempts of writers that get in each other's way.

use crate::{Error, Result};
use larimar_client::Guid;
use std::time::Duration;

/// How often something was tried, and how long to wait before it is tried again.
#[derive(Debug, Default)]
pub(crate) struct Contention {
    attempts: u32,
}

impl Contention {
    /// Waits for a moment, each time for longer and for a random part of it, so that writers drift apart.
    pub(crate) async fn wait(&mut self, what: &str) -> Result<()> {
        self.attempts += 1;
        if self.attempts >= ATTEMPTS_MAX {
            return Err(Error::Contended);
        }
        tracing::debug!(attempt = self.attempts, "{what} changed meanwhile: trying again");
        let longest = FIRST_WAIT * (1 << self.attempts.min(6));
        tokio::time::sleep(longest.mul_f64(random())).await;
        Ok(())
    }
}

/// From 0 to 1.
fn random() -> f64 {
    f64::from(Guid::random().as_bytes()[0]) / 255.0
}

const FIRST_WAIT: Duration = Duration::from_millis(1);

/// Far more than writers need that meet by chance.
const ATTEMPTS_MAX: u32 = 64;
