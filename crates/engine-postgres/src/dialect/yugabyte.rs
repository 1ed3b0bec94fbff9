//! YugabyteDB, by its documentation: it has not been run.

use super::error_class::{ErrorClass, common};
use super::{
    Differences, JOBS, MESSAGE_EXPIRY, MESSAGE_ORDER, PINNED_PLANS, PURGES, SPACE_IDS, SPACES, entities, messages,
};

/// Without `ASC` the first column of a key would be hashed over the tablets, and a page across partitions would read
/// all of them.
pub(super) const DIFFERENCES: Differences = Differences {
    name: "yugabyte",
    tables: &[SPACES, SPACE_IDS, PURGES, JOBS, entities!("(pk ASC, rk ASC)")],
    message_tables: &[messages!("(q ASC, id ASC)"), MESSAGE_ORDER, MESSAGE_EXPIRY],
    session: PINNED_PLANS,
    has_free_slots: false,
    has_store_size: true,
    error_class,
};

fn error_class(code: &str) -> ErrorClass {
    match code {
        // A commit whose call to another node timed out has no code of its own but `XX000`, and the time limit of a
        // statement (`57014`) may pass while its commit is on its way to other nodes.
        "XX000" | "57014" => ErrorClass::Unknown,
        // Among them 40001, which is also the code of a read that must be restarted because clocks differ.
        _ => common(code),
    }
}

#[cfg(test)]
mod tests {
    use super::super::error_class::COMMON;
    use super::*;

    #[test]
    fn errors_between_nodes_leave_the_outcome_unknown() {
        let own = ["XX000", "57014"].map(|code| (code, ErrorClass::Unknown));
        for (code, class) in COMMON.into_iter().chain(own).chain([("XXUUU", ErrorClass::Refused)]) {
            assert_eq!(error_class(code), class, "{code}");
        }
    }
}
