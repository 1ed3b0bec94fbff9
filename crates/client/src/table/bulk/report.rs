//! What became of the groups of a bulk write.

use crate::{ETag, Error, Result};

/// Operations of a bulk write that took place together or not at all; see [`BulkReport`].
#[derive(Debug)]
#[non_exhaustive]
pub struct BulkGroup {
    /// Their partition.
    pub partition_key: String,
    /// Which operations they are, counted from 0 in the order in which they were given.
    pub operations: Vec<usize>,
    /// The new ETags, in the order of `operations` (a delete has none); or why none of them took place, as far as is
    /// known ([`Error::is_ambiguous`]).
    pub outcome: Result<Vec<Option<ETag>>>,
}

impl BulkGroup {
    /// The operation that is to blame, counted as in [`BulkGroup::operations`], if the group failed and one is known.
    #[must_use]
    pub fn failed_operation(&self) -> Option<usize> {
        let within = self.outcome.as_ref().err()?.operation()?;
        self.operations.get(within).copied()
    }
}

/// What became of all groups of a bulk write.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = larimar_embedded::Larimar::ephemeral().await?;
/// # let account = larimar_client::Account::connect(&server.connection_string())?;
/// # let table = account.table("Employees");
/// # table.create_if_missing().await?;
/// use larimar_client::{BulkOperation, DynamicEntity};
/// table.insert(&DynamicEntity::new("Sales", "2")).await?;
///
/// let keys = [("Sales", "1"), ("Support", "1"), ("Sales", "2")];
/// let inserts = keys.map(|(partition, row)| BulkOperation::insert(&DynamicEntity::new(partition, row)));
/// let report = table.bulk().submit(inserts.into_iter().collect::<Result<Vec<_>, _>>()?).await;
/// for failed in report.failed() {
///     assert_eq!(failed.operations, [0, 2], "both of Sales are refused because one is");
///     assert_eq!(failed.failed_operation(), Some(2));
/// }
/// assert!(report.into_result().is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "some groups may have failed"]
pub struct BulkReport {
    groups: Vec<BulkGroup>,
}

impl BulkReport {
    pub(super) const fn new(groups: Vec<BulkGroup>) -> Self {
        Self { groups }
    }

    /// Whether all operations took place.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.groups.iter().all(|group| group.outcome.is_ok())
    }

    /// All groups.
    #[must_use]
    pub fn groups(&self) -> &[BulkGroup] {
        &self.groups
    }

    /// The groups that failed.
    pub fn failed(&self) -> impl Iterator<Item = &BulkGroup> {
        self.groups.iter().filter(|group| group.outcome.is_err())
    }

    /// All groups, taken out.
    #[must_use]
    pub fn into_groups(self) -> Vec<BulkGroup> {
        self.groups
    }

    /// The ETags of all operations in the order in which they were given, or the error of the first group that failed.
    ///
    /// # Errors
    /// That of a group. [`Error::operation`] counts within the group.
    pub fn into_result(self) -> Result<Vec<Option<ETag>>, Error> {
        let mut etags = Vec::new();
        for group in self.groups {
            etags.extend(group.operations.into_iter().zip(group.outcome?));
        }
        etags.sort_by_key(|(operation, _)| *operation);
        Ok(etags.into_iter().map(|(_, etag)| etag).collect())
    }
}
