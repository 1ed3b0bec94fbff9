//! Writes of entities: one, or several as a transaction.

use super::{Entity, EntityKey, IfMatch, PartitionKey, TableName};
use crate::limits;

/// A write of one entity.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Insert: the entity must not exist.
    Insert(Entity),
    /// Replace; without a condition, insert or replace.
    Replace(Entity, Option<IfMatch>),
    /// Merge; without a condition, insert or merge.
    Merge(Entity, Option<IfMatch>),
    /// Delete.
    Delete(EntityKey, IfMatch),
}

impl Write {
    /// The keys of the entity.
    #[must_use]
    pub const fn key(&self) -> &EntityKey {
        match self {
            Self::Insert(entity) | Self::Replace(entity, _) | Self::Merge(entity, _) => &entity.key,
            Self::Delete(key, _) => key,
        }
    }
}

/// Writes that are applied together or not at all: at least one and at most 100, of distinct entities in one partition of
/// one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    table: TableName,
    writes: Vec<Write>,
    /// The indexes of the writes in the order of their rows, to find a second write of an entity.
    by_row: Vec<usize>,
}

/// Why a write cannot be part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// The transaction has as many writes as it may have.
    #[error("expected at most {max} writes", max = limits::TRANSACTION_OPERATIONS_MAX)]
    TooManyWrites,
    /// The write is in another table or partition.
    #[error("expected writes of one partition")]
    OtherPartition,
    /// Another write of the transaction has the same keys.
    #[error("expected writes of distinct entities")]
    DuplicateRow,
}

impl Transaction {
    /// A transaction in one partition, that of its first write.
    #[must_use]
    pub fn in_one_partition(table: TableName, first: Write) -> Self {
        Self { table, writes: vec![first], by_row: vec![0] }
    }

    /// Adds a write.
    ///
    /// # Errors
    /// A write in another table or partition, of an entity that the transaction writes already, or beyond the limit.
    pub fn push(&mut self, table: &TableName, write: Write) -> Result<(), TransactionError> {
        if *table != self.table || write.key().partition != *self.partition() {
            return Err(TransactionError::OtherPartition);
        }
        let Err(place) = self.by_row.binary_search_by(|other| self.writes[*other].key().row.cmp(&write.key().row))
        else {
            return Err(TransactionError::DuplicateRow);
        };
        if self.writes.len() == limits::TRANSACTION_OPERATIONS_MAX {
            return Err(TransactionError::TooManyWrites);
        }
        self.by_row.insert(place, self.writes.len());
        self.writes.push(write);
        Ok(())
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &TableName {
        &self.table
    }

    /// The writes, in the order in which they were added.
    #[must_use]
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The partition of all writes.
    #[must_use]
    pub fn partition(&self) -> &PartitionKey {
        &self.writes[0].key().partition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowKey;

    fn delete(partition: &str, row: &str) -> Write {
        let key = EntityKey {
            partition: PartitionKey::new(partition).expect("a key"),
            row: RowKey::new(row).expect("a key"),
        };
        Write::Delete(key, IfMatch::Any)
    }

    #[test]
    fn m8_a_transaction_has_up_to_100_distinct_entities_of_one_partition() {
        let table: TableName = "Tab".parse().expect("a name");
        let mut transaction = Transaction::in_one_partition(table.clone(), delete("p", "0"));
        let other: TableName = "Other".parse().expect("a name");
        assert_eq!(transaction.push(&other, delete("p", "1")), Err(TransactionError::OtherPartition));
        assert_eq!(transaction.push(&table, delete("q", "1")), Err(TransactionError::OtherPartition));
        assert_eq!(transaction.push(&table, delete("p", "0")), Err(TransactionError::DuplicateRow));
        for row in (1..100).rev() {
            assert_eq!(transaction.push(&table, delete("p", &row.to_string())), Ok(()));
            assert_eq!(transaction.push(&table, delete("p", &row.to_string())), Err(TransactionError::DuplicateRow));
        }
        assert_eq!(transaction.push(&table, delete("p", "100")), Err(TransactionError::TooManyWrites));
        assert_eq!(transaction.writes().len(), 100);
    }
}
