//! The columns that every entity has: its keys and the time of its last write.
//!
//! ```
//! use larimar_client::keys;
//! let filter = keys::partition_key().eq("Sales") & keys::row_key().starts_with("email_");
//! assert_eq!(filter.as_str(), "PartitionKey eq 'Sales' and RowKey ge 'email_' and RowKey lt 'email`'");
//! ```

use crate::{Column, Timestamp};

/// The column `PartitionKey`. A query that fixes it reads one partition.
#[must_use]
pub const fn partition_key() -> Column<String> {
    Column::named("PartitionKey")
}

/// The column `RowKey`. A query that fixes the partition and bounds this reads only that range.
#[must_use]
pub const fn row_key() -> Column<String> {
    Column::named("RowKey")
}

/// The column `Timestamp`, when the entity was last written. It is not indexed.
#[must_use]
pub const fn timestamp() -> Column<Timestamp> {
    Column::named("Timestamp")
}
