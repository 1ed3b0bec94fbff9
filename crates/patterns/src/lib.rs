//! The design patterns for Azure Table Storage as small types.
//!
//! A table has one index: PartitionKey, then RowKey. Everything else (other lookups, grouping, consistency of copies)
//! needs well-chosen keys, transactions within a partition, and work across partitions that completes eventually. The
//! modules of this crate implement the patterns of the table design guide. Each module states what it guarantees and
//! what it costs in requests.
//!
//! # Within a partition
//!
//! These complete with the call: one transaction keeps everything consistent.
//!
//! | module | number | what it does |
//! | --- | --- | --- |
//! | [`secondary_index`] | T1 | finds entities by several values, by copies under other row keys |
//! | [`denormalised`] | T5 | stores properties of an entity in another one |
//! | [`compound_key`] | T6 | keys of several parts; an entity read with its records |
//! | [`log_tail`] | T7 | newest first |
//! | [`period_tables`] | T8 | a table for each period, dropped whole |
//! | [`series`] | T9 | a day's values in one entity, written one by one |
//! | [`wide_entity`] | T10 | more than 252 properties or 1 MiB |
//! | [`spread_key`] | T12 | spreads load over partitions, and reads them in order |
//!
//! [`key_text`] puts any text into a key without changing its order, and [`Period`] is the calendar that tables and rows
//! are named after.
//!
//! # Across partitions, tables and services
//!
//! These complete eventually: every change is queued before it is made; if a process crashes, another worker finishes
//! it.
//!
//! | module | number | what it does |
//! | --- | --- | --- |
//! | [`inter_partition_index`] | T2 | finds entities over partitions, by copies elsewhere |
//! | [`eventual`], [`mover`] | T3 | work that completes eventually; moving entities |
//! | [`index_entities`] | T4 | lists of the entities that share a value |
//! | [`large_entity`] | T11 | values in blobs, with their address in the entity |
//! | [`blob_log`] | T13 | logs in blobs, read by time |
//!
//! The pages in `docs/patterns/` of the repository explain when to use which.

pub mod blob_log;
pub mod compound_key;
mod contention;
pub mod denormalised;
mod error;
pub mod eventual;
pub mod eventual_table;
pub mod index_entities;
pub mod inter_partition_index;
pub mod key_text;
pub mod large_entity;
pub mod log_tail;
pub mod mover;
mod period;
pub mod period_tables;
pub mod secondary_index;
pub mod series;
pub mod spread_key;
mod stored;
pub mod wide_entity;

pub use error::{Error, Result};
pub use period::Period;

/// Keeps the example of the readme compiling.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Keeps the code that the advisor shows compiling.
#[cfg(doctest)]
#[doc = concat!(
    "```no_run\n",
    "use futures_util::TryStreamExt as _;\n",
    "use larimar_client::{Account, Container, DynamicEntity, Filter, Table, Timestamp, keys};\n",
    "use larimar_patterns::Period;\n",
    "use larimar_patterns::blob_log::{BlobLogReader, BlobLogWriter};\n",
    "use larimar_patterns::eventual_table::EventualTable;\n",
    "use larimar_patterns::inter_partition_index::InterPartitionIndex;\n",
    "use larimar_patterns::large_entity::LargeEntities;\n",
    "use larimar_patterns::period_tables::PeriodTables;\n",
    "use larimar_patterns::secondary_index::{Index, IndexedTable};\n",
    "use larimar_patterns::spread_key::SpreadKey;\n",
    "use larimar_patterns::wide_entity::WideTable;\n",
    "type Outcome = Result<(), Box<dyn std::error::Error>>;\n",
    "async fn table_scan(account: Account, table: Table, employee: DynamicEntity) -> Outcome {\n",
    include_str!("../../advisor/snippets/table_scan.rs.txt"),
    "Ok(()) }\nasync fn partition_scan(table: Table, employee: DynamicEntity) -> Outcome {\n",
    include_str!("../../advisor/snippets/partition_scan.rs.txt"),
    "Ok(()) }\nasync fn spread_key(table: Table, id: String) -> Outcome {\n",
    include_str!("../../advisor/snippets/spread_key.rs.txt"),
    "Ok(()) }\nasync fn large_partition(table: Table) -> Outcome {\n",
    include_str!("../../advisor/snippets/large_partition.rs.txt"),
    "Ok(()) }\nasync fn one_entity_per_partition(table: Table, items: Vec<String>) -> Outcome {\n",
    include_str!("../../advisor/snippets/one_entity_per_partition.rs.txt"),
    "Ok(()) }\nasync fn large_entity(account: Account, table: Table, container: Container, employee: DynamicEntity, ",
    "photo: Vec<u8>) -> Outcome {\n",
    include_str!("../../advisor/snippets/large_entity.rs.txt"),
    "Ok(()) }\nasync fn wide_entity(table: Table, answer: DynamicEntity) -> Outcome {\n",
    include_str!("../../advisor/snippets/wide_entity.rs.txt"),
    "Ok(()) }\nasync fn row_by_row(table: Table) -> Outcome {\n",
    include_str!("../../advisor/snippets/row_by_row.rs.txt"),
    "Ok(()) }\nasync fn log_data(container: Container, from: Timestamp, to: Timestamp) -> Outcome {\n",
    include_str!("../../advisor/snippets/log_data.rs.txt"),
    "Ok(()) }\nasync fn mass_delete(account: Account, login: DynamicEntity, kept_from: Timestamp) -> Outcome {\n",
    include_str!("../../advisor/snippets/mass_delete.rs.txt"),
    "Ok(()) }\nasync fn conflict_retries(table: Table) -> Outcome {\n",
    include_str!("../../advisor/snippets/conflict_retries.rs.txt"),
    "Ok(()) }\n```",
)]
struct AdvisorCode;
