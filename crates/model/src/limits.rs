//! The numbers of the service, each with its source.
//!
//! Sources: "service" is Microsoft's Table service reference ("Understanding the Table service data
//! model", "Performing entity group transactions", "Query timeout and pagination", "Set Table ACL").

/// Characters of a table name, fewest and most (service: data model).
pub const TABLE_NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=63;

/// UTF-16 code units of a PartitionKey or a RowKey: 1 KiB (service: data model).
pub const KEY_UTF16_MAX: usize = 512;

/// UTF-16 code units of a property name (service: data model).
pub const PROPERTY_NAME_UTF16_MAX: usize = 255;

/// Properties of an entity besides PartitionKey, RowKey and Timestamp (service: data model).
pub const PROPERTIES_MAX: usize = 252;

/// UTF-16 code units of a string value: 64 KiB (service: data model).
pub const STRING_UTF16_MAX: usize = 32 * 1024;

/// Bytes of a binary value (service: data model).
pub const BINARY_BYTES_MAX: usize = 64 * 1024;

/// Bytes of an entity as the service counts them (service: data model): see `EntityBody::size`.
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;

/// Operations of one entity group transaction (service: entity group transactions).
pub const TRANSACTION_OPERATIONS_MAX: usize = 100;

/// Bytes of the payload of one entity group transaction (service: entity group transactions).
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a request body other than a transaction. An entity of 1 MiB can need more than twice that
/// as JSON (escapes, base64, annotations), so the bound is the transaction's.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Entities of one page (service: query timeout and pagination).
pub const PAGE_ENTITIES_MAX: usize = 1000;

/// Seconds one page may be worked on (service: query timeout and pagination).
pub const PAGE_SECONDS_MAX: u64 = 5;

/// Bytes of one page's answer, after which it ends with a continuation (seen at about 4 MB).
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Names in one `$select` (service: query operators).
pub const SELECT_NAMES_MAX: usize = 255;

/// Stored access policies of one table (service: set table ACL).
pub const POLICIES_MAX: usize = 5;

/// Characters of a stored access policy's identifier (service: set table ACL).
pub const POLICY_ID_CHARS_MAX: usize = 64;

/// Rules of the CORS settings of one service (service: set table service properties).
pub const CORS_RULES_MAX: usize = 5;

/// Days of a retention policy, fewest and most (service: set table service properties).
pub const RETENTION_DAYS: std::ops::RangeInclusive<u32> = 1..=365;

/// Nesting of parentheses and `not` in one filter. The service documents no bound; this one keeps the
/// parser's stack small.
pub const FILTER_DEPTH_MAX: usize = 100;

/// Published targets (service: scalability targets): entities a second in one partition.
pub const PARTITION_OPERATIONS_PER_SECOND: u32 = 2_000;

/// Published targets (service: scalability targets): operations a second in one account.
pub const ACCOUNT_OPERATIONS_PER_SECOND: u32 = 20_000;
