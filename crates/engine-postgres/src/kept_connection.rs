//! The connection of a worker: opened when there is work, opened again after it broke, and passed on when others need
//! it.

use crate::connection::Connection;
use crate::connections::IDLE_MAX;
use crate::pool::{Pool, PooledConnection};
use larimar_engine::Fault;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// When a worker keeps its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Also while nothing waits, until others need it or it has been idle for long. The worker has a connection of its
    /// own in the count of `Settings::connections_max`.
    WhileIdle,
    /// While requests wait. The connection is one of those that pages and the catalogue use, too.
    WhileBusy,
}

/// A connection that a worker keeps.
pub(crate) struct KeptConnection {
    pool: Arc<Pool>,
    keep: Keep,
    pooled: Option<PooledConnection>,
}

impl KeptConnection {
    pub(crate) const fn new(pool: Arc<Pool>, keep: Keep) -> Self {
        Self { pool, keep, pooled: None }
    }

    /// The connection, opened if there is none. `missed` is called each time that none can be had yet: another worker
    /// may have one.
    ///
    /// # Errors
    /// If the database has been away for long, or all connections are in use for long.
    pub(crate) async fn connect(&mut self, missed: impl Fn()) -> Result<&Connection, Fault> {
        if self.pooled.as_ref().is_none_or(|pooled| pooled.is_closed()) {
            self.close();
            self.pooled = Some(match self.keep {
                Keep::WhileIdle => self.pool.get_for_worker(missed).await?,
                Keep::WhileBusy => self.pool.get().await?,
            });
        }
        Ok(self.pooled.as_ref().expect("connected above"))
    }

    /// The connection, if there is one.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        self.pooled.as_deref()
    }

    /// Waits until woken, for `wait_max` at most if given. Meanwhile a connection that others need is passed on, and
    /// one that is idle for long is closed.
    pub(crate) async fn rest(&mut self, wake: &Notify, wait_max: Option<Duration>) {
        if self.keep == Keep::WhileBusy {
            self.pass_on();
        }
        let connections = &self.pool.core().connections;
        tokio::select! {
            () = wake.notified() => {}
            () = connections.needed(), if self.pooled.is_some() => self.pass_on(),
            () = tokio::time::sleep(wait_max.unwrap_or(IDLE_MAX)) => {
                if wait_max.is_none() {
                    self.close();
                }
            }
        }
    }

    /// Passes the connection on if one is needed, here or on another server.
    pub(crate) fn share(&mut self) {
        let connections = &self.pool.core().connections;
        let is_waited_for = self.keep == Keep::WhileBusy && self.pool.is_exhausted();
        if is_waited_for || connections.is_wanted() || connections.are_too_many() {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        self.pooled = None;
    }

    /// Closes the connection; [`Self::connect`] opens another.
    pub(crate) fn close(&mut self) {
        if let Some(pooled) = self.pooled.take() {
            pooled.close();
        }
    }
}
