//! CockroachDB 23.1 or newer. Tables and transactions were run on three nodes by hand; queues need other statements.

use super::error_class::{ErrorClass, common};
use super::{Differences, JOBS, MESSAGE_EXPIRY, MESSAGE_ORDER, PURGES, SPACE_IDS, SPACES, entities, messages};

pub(super) const DIFFERENCES: Differences = Differences {
    name: "cockroach",
    tables: &[SPACES, SPACE_IDS, PURGES, JOBS, entities!("(pk, rk)")],
    message_tables: &[messages!("(q, id)"), MESSAGE_ORDER, MESSAGE_EXPIRY],
    session: "SET idle_in_transaction_session_timeout = '10s';",
    has_free_slots: false,
    has_store_size: false,
    error_class,
};

fn error_class(code: &str) -> ErrorClass {
    match code {
        // `XXUUU` is an error without a code of its own, seen when a node was killed. `58C00` and `58C01` are a range that
        // cannot be reached and a connection between nodes that broke. The time limit of a statement (`57014`) may pass
        // while its commit is on its way to other nodes.
        "XXUUU" | "58C00" | "58C01" | "57014" => ErrorClass::Unknown,
        // Among them 40001, which asks to repeat the transaction: CockroachDB is serializable, so it is more frequent
        // than on PostgreSQL.
        _ => common(code),
    }
}

#[cfg(test)]
mod tests {
    use super::super::error_class::COMMON;
    use super::*;

    #[test]
    fn errors_between_nodes_leave_the_outcome_unknown() {
        let own = ["XXUUU", "58C00", "58C01", "57014"].map(|code| (code, ErrorClass::Unknown));
        // Of the same class, but not an error between nodes.
        let refused = [("XX000", ErrorClass::Refused), ("58030", ErrorClass::Refused)];
        for (code, class) in COMMON.into_iter().chain(own).chain(refused) {
            assert_eq!(error_class(code), class, "{code}");
        }
    }
}
