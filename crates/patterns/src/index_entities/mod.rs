//! Lists of row keys for a value that many entities share: employees by last name (T4).
//!
//! A list says which entities to read. There are three places for it:
//!
//! | | where a list is | how it follows |
//! |---|---|---|
//! | [`ListedTable`] | in the partition of its entities | at once: one transaction writes entity and lists |
//! | [`KeyLists::in_table`] | in entities of other partitions, or of another table | in the end, by a queue |
//! | [`KeyLists::in_blobs`] | in blobs | in the end, by a queue |
//!
//! Take the first while an entity, its old and its new list fit into one partition; the others where lists reach over
//! partitions or grow large. [`InterPartitionIndex`](crate::inter_partition_index::InterPartitionIndex) copies entities
//! in place of listing them: it needs more room and answers in one request.

mod key_lists;
mod list;
mod listed_table;
mod store;

pub use key_lists::KeyLists;
pub use listed_table::ListedTable;

use larimar_client::DynamicEntity;

/// The value of an entity, if it has one.
type ValueOf = dyn Fn(&DynamicEntity) -> Option<String> + Send + Sync;
