//! PostgreSQL 15 or newer.

use super::error_class::{ErrorClass, common};
use super::{
    Differences, JOBS, MESSAGE_EXPIRY, MESSAGE_ORDER, PINNED_PLANS, PURGES, SPACE_IDS, SPACES, entities, messages,
};

pub(super) const DIFFERENCES: Differences = Differences {
    name: "postgres",
    tables: &[SPACES, SPACE_IDS, PURGES, JOBS, ENTITIES, ENTITY_BODIES],
    message_tables: &[MESSAGES, MESSAGE_BODIES, MESSAGE_ORDER, MESSAGE_EXPIRY],
    session: PINNED_PLANS,
    has_free_slots: true,
    has_store_size: true,
    error_class,
};

fn error_class(code: &str) -> ErrorClass {
    match code {
        // A statement that took too long, or that an operator cancelled, is rolled back before this error is sent.
        "57014" => ErrorClass::Again,
        _ => common(code),
    }
}

/// Bodies are stored with their rows up to the size of a page, and outside beyond it, neither compressed: a page of
/// rows is then one index range. The rest of each page is left for new versions of its rows, which need no new index
/// entries.
const ENTITIES: &str = concat!(entities!("(pk, rk)"), " WITH (fillfactor = 85, toast_tuple_target = 8160)");
const ENTITY_BODIES: &str = "ALTER TABLE larimar_entity ALTER COLUMN body SET STORAGE EXTERNAL";
/// Every message is rewritten when it is claimed, and soon deleted. Pages have room for that, and dead rows are removed
/// long before they are a fifth of the table.
const MESSAGES: &str = concat!(
    messages!("(q, id)"),
    " WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)"
);
const MESSAGE_BODIES: &str = "ALTER TABLE larimar_message ALTER COLUMN body SET STORAGE EXTERNAL";

#[cfg(test)]
mod tests {
    use super::super::error_class::COMMON;
    use super::*;

    #[test]
    fn a_cancelled_statement_is_repeated_and_internal_errors_are_not() {
        let own = [("57014", ErrorClass::Again), ("XX000", ErrorClass::Refused), ("XXUUU", ErrorClass::Refused)];
        for (code, class) in COMMON.into_iter().chain(own) {
            assert_eq!(error_class(code), class, "{code}");
        }
    }
}
