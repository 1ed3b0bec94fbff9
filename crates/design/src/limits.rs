//! Bounds of the search and numbers of the service that costs are computed with.

/// Bytes of a description, or of a sample that is given as text, at most.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Entities of a sample that are looked at.
pub const SAMPLE_ROWS_MAX: u64 = 20_000;
/// Designs that are shown at most.
pub const DESIGNS_MAX: usize = 5;
/// Properties of a description at most. A series of like properties counts once (`repeat`).
pub const PROPERTIES_MAX: usize = 128;
/// Queries of a description at most.
pub const QUERIES_MAX: usize = 64;
/// Writes of a description at most.
pub const WRITES_MAX: usize = 64;
/// Related records of a description at most.
pub const RELATED_MAX: usize = 8;
/// Equalities of one query at most.
pub const EQUALITIES_MAX: usize = 8;
/// Characters of a name or an example at most.
pub const NAME_CHARS_MAX: usize = 128;
/// Key templates that are considered as primary at most.
pub const PRIMARIES_MAX: usize = 24;
/// Primaries at most, each counted once for every way to place series, old data and related records.
pub const BASES_MAX: usize = 96;
/// Layouts that are costed at most: seven for each of those.
pub const LAYOUTS_MAX: usize = 7 * BASES_MAX;
/// Evaluations of a query or write against a structure at most, whatever the description is.
pub const EVALUATIONS_MAX: u64 = 1_000_000;

/// Entities of one page (service reference, "Query timeout and pagination").
pub const PAGE_ENTITIES: f64 = 1000.0;
/// Rows that a request is assumed to read before its five seconds are over, if few of them pass the filter.
pub const PAGE_ROWS_READ: f64 = 100_000.0;
/// Entities a second of one partition (scalability targets of the service, entities of 1 KiB).
pub const PARTITION_ENTITIES_PER_SECOND: f64 = 2000.0;
/// Requests a second of one account (scalability targets of the service).
pub const ACCOUNT_REQUESTS_PER_SECOND: f64 = 20_000.0;
/// Properties of one entity besides the system's.
pub const ENTITY_PROPERTIES: u64 = 252;
/// Bytes of one entity.
pub const ENTITY_BYTES: f64 = 1024.0 * 1024.0;
/// Bytes of one string or binary property.
pub const PROPERTY_BYTES: u64 = 64 * 1024;
/// Operations of one transaction.
pub const TRANSACTION_OPERATIONS: f64 = 100.0;
/// Bytes of a row key in the list of an index entity.
pub const LISTED_KEY_BYTES: f64 = 40.0;

/// A query is wasteful if it reads more rows than this at a time, and more than ten for each one returned …
pub const WASTEFUL_ROWS: f64 = 1000.0;
/// … and if that is more rows than this a second in all.
pub const WASTEFUL_ROWS_PER_SECOND: f64 = 100.0;
