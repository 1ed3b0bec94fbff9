//! The Table service: an engine, the accounts, and what handlers share while they answer a request.

use crate::address::Address;
use crate::auth::Caller;
use crate::error;
use crate::ids::Ids;
use crate::metrics::Metrics;
use crate::settings::{Account, Settings};
use crate::strict::Strict;
use larimar_engine::table::{Table, find_table};
use larimar_engine::{Clock, Engine, SpaceId};
use larimar_model::{TableName, Timestamp};
use larimar_wire::error_body::ErrorReply;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Answers requests of the Table protocol from an engine.
pub struct TableService<E> {
    pub(crate) engine: Arc<E>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) ids: Ids,
    pub(crate) strict: Option<Strict>,
    accounts: HashMap<String, Account>,
}

/// One authenticated request on its way through a handler.
pub(crate) struct Call<'a, E> {
    pub(crate) service: &'a TableService<E>,
    pub(crate) address: &'a Address<'a>,
    /// The URL of the account, as the client spells it.
    pub(crate) base: &'a str,
    pub(crate) caller: Caller,
    pub(crate) now: Timestamp,
    pub(crate) request_id: &'a str,
}

impl<E: Engine> TableService<E> {
    /// A service of these accounts over this engine.
    #[must_use]
    pub fn new(engine: Arc<E>, clock: Arc<dyn Clock>, settings: Settings, metrics: Arc<Metrics>) -> Self {
        let accounts = settings.accounts.iter().map(|account| (account.name.clone(), account.clone())).collect();
        let strict = settings.strict.then(Strict::default);
        Self { engine, clock, settings, metrics, ids: Ids::new(), strict, accounts }
    }

    pub(crate) fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.get(name)
    }
}

impl<E: Engine> Call<'_, E> {
    pub(crate) fn engine(&self) -> &E {
        &self.service.engine
    }

    pub(crate) const fn account(&self) -> &str {
        self.address.account
    }

    /// Finds a table of the account.
    pub(crate) async fn table(&self, name: &TableName) -> Result<Table, ErrorReply> {
        self.check_name(name)?;
        find_table(self.engine(), self.account(), name).await.map_err(|error| error::engine_error(&error))
    }

    /// Refuses, in strict mode, the name of a table that was just deleted.
    pub(crate) fn check_name(&self, name: &TableName) -> Result<(), ErrorReply> {
        match &self.service.strict {
            Some(strict) => strict.check_name(self.account(), name, self.now),
            None => Ok(()),
        }
    }

    /// Counts operations, and in strict mode refuses those over the published targets.
    pub(crate) fn throttle(&self, place: Option<(SpaceId, &str)>, operations: usize) -> Result<(), ErrorReply> {
        let Some(strict) = &self.service.strict else { return Ok(()) };
        let place = place.map(|(table, partition)| (table.0, partition));
        strict.throttle(&*self.service.clock, self.account(), place, u32::try_from(operations).unwrap_or(u32::MAX))
    }
}

impl<E> fmt::Debug for TableService<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableService").field("settings", &self.settings).finish_non_exhaustive()
    }
}
