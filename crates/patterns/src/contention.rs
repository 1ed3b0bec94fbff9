//! Waiting between attempts of writers that get in each other's way.

use crate::{Error, Result};
use larimar_client::Guid;
use std::time::Duration;

/// How often something was tried, and how long to wait before it is tried again.
#[derive(Debug)]
pub(crate) struct Contention {
    attempts: u32,
    attempts_max: u32,
}

impl Default for Contention {
    fn default() -> Self {
        Self { attempts: 0, attempts_max: WRITES_MAX }
    }
}

impl Contention {
    /// For a reader, whom writers do not hold up for long.
    pub(crate) const fn of_reader() -> Self {
        Self { attempts: 0, attempts_max: READS_MAX }
    }

    /// Waits for a moment, each time for longer and for a random part of it, so that writers drift apart.
    pub(crate) async fn wait(&mut self, what: &str) -> Result<()> {
        self.attempts += 1;
        if self.attempts >= self.attempts_max {
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
const WRITES_MAX: u32 = 64;

/// A reader that finds parts of several writes so often finds what no writer left.
const READS_MAX: u32 = 12;
