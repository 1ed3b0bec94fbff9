//! Connections that are lent to one caller at a time, for what takes long or is rare: scans, the catalogue.

use crate::connection::Connection;
use crate::core::Core;
use larimar_engine::Fault;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};

pub(crate) struct Pool {
    core: Arc<Core>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

/// A connection on loan. It goes back unless it is given up.
pub(crate) struct Lent<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    pub(crate) fn new(core: Arc<Core>, connections_max: usize) -> Self {
        Self { core, idle: Mutex::default(), permits: Semaphore::new(connections_max) }
    }

    /// Lends a connection, as soon as one is free.
    pub(crate) async fn lend(&self) -> Result<Lent<'_>, Fault> {
        self.core.health.check()?;
        let permit = tokio::time::timeout(self.core.target.timeout, self.permits.acquire()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(Fault::Unavailable("all connections to the database are busy".to_owned()));
        };
        let idle = loop {
            let next = self.idle.lock().pop();
            match next {
                Some(connection) if connection.is_closed() => {}
                other => break other,
            }
        };
        let connection = match idle {
            Some(connection) => connection,
            None => self.core.connect().await.map_err(|error| Fault::Unavailable(error.reason))?,
        };
        Ok(Lent { pool: self, connection: Some(connection), _permit: permit })
    }
}

impl Lent<'_> {
    /// Ends the connection instead of giving it back.
    pub(crate) fn give_up(mut self) {
        self.connection = None;
    }
}

impl Deref for Lent<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until the loan ends")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take().filter(|connection| !connection.is_closed()) {
            self.pool.idle.lock().push(connection);
        }
    }
}
