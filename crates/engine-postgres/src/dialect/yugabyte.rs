//! YugabyteDB, by its documentation: it has not been run.

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
};
