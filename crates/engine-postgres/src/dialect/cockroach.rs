//! CockroachDB 23.1 or newer. Tables and transactions were run on three nodes by hand; queues need other statements.

use super::{Differences, JOBS, MESSAGE_EXPIRY, MESSAGE_ORDER, PURGES, SPACE_IDS, SPACES, entities, messages};

pub(super) const DIFFERENCES: Differences = Differences {
    name: "cockroach",
    tables: &[SPACES, SPACE_IDS, PURGES, JOBS, entities!("(pk, rk)")],
    message_tables: &[messages!("(q, id)"), MESSAGE_ORDER, MESSAGE_EXPIRY],
    session: "SET idle_in_transaction_session_timeout = '10s';",
    has_free_slots: false,
    has_store_size: false,
};
