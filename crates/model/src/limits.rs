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

/// Bytes of a path in the settings of a static website (service: set blob service properties).
pub const WEBSITE_PATH_BYTES_MAX: usize = 256;

/// Nesting of parentheses and `not` in one filter. The service documents no bound; this one keeps the
/// parser's stack small.
pub const FILTER_DEPTH_MAX: usize = 100;

/// Bytes of a filter. A URL is shorter unless the operator allows heads of requests to be larger.
pub const FILTER_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a request's line and headers together, unless the operator sets another bound; also of those of each request
/// inside a batch. Above the longest URL that clients send (a filter of some 32 KiB) with room for headers.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a `Host`: a DNS name has at most 253 characters, a port five.
pub const HOST_BYTES_MAX: usize = 260;

/// Published targets (service: scalability targets): entities a second in one partition.
pub const PARTITION_OPERATIONS_PER_SECOND: u32 = 2_000;

/// Published targets (service: scalability targets): operations a second in one account.
pub const ACCOUNT_OPERATIONS_PER_SECOND: u32 = 20_000;

// Queues and blobs. Sources: "blob" is Microsoft's Blob service reference ("Naming and referencing containers,
// blobs, and metadata", "Put Blob", "Put Block", "Put Block List", "Append Block", "Put Page", "Lease Blob", "Set Blob
// Tags", "List Blobs").

/// Characters of the name of a container or a queue, fewest and most (blob: naming; the queue reference agrees).
pub const RESOURCE_NAME_CHARS: std::ops::RangeInclusive<usize> = 3..=63;

/// UTF-16 code units of a blob's name (blob: naming).
pub const BLOB_NAME_UTF16_MAX: usize = 1024;

/// Segments between the slashes of a blob's name (blob: naming).
pub const BLOB_NAME_SEGMENTS_MAX: usize = 254;

/// Bytes of all names and values of the metadata of one thing (blob: naming).
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Seconds of a lease that is not infinite (blob: lease blob).
pub const LEASE_SECONDS: std::ops::RangeInclusive<u8> = 15..=60;

/// Seconds that a broken lease goes on at most (blob: lease blob).
pub const LEASE_BREAK_SECONDS_MAX: u8 = 60;

/// Bytes of a block's id before base64 (blob: put block).
pub const BLOCK_ID_BYTES_MAX: usize = 64;

/// Blocks of one blob (blob: put block list).
pub const BLOCKS_COMMITTED_MAX: usize = 50_000;

/// Blocks of one blob that are not committed (blob: put block).
pub const BLOCKS_UNCOMMITTED_MAX: usize = 100_000;

/// Days after which blocks that were never committed are discarded (blob: put block).
pub const UNCOMMITTED_DAYS: u64 = 7;

/// Blocks appended to one append blob (blob: append block).
pub const APPENDS_MAX: u32 = 50_000;

/// Bytes of a block from version 2019-12-12 on (blob: put block).
pub const BLOCK_BYTES_MAX: u64 = 4_000 * 1024 * 1024;

/// Bytes of a block from version 2016-05-31 on (blob: put block).
pub const BLOCK_BYTES_MAX_2016: u64 = 100 * 1024 * 1024;

/// Bytes of a block before version 2016-05-31 (blob: put block).
pub const BLOCK_BYTES_MAX_2011: u64 = 4 * 1024 * 1024;

/// Bytes of one Put Blob from version 2019-12-12 on (blob: put blob).
pub const PUT_BLOB_BYTES_MAX: u64 = 5_000 * 1024 * 1024;

/// Bytes of one Put Blob from version 2016-05-31 on (blob: put blob).
pub const PUT_BLOB_BYTES_MAX_2016: u64 = 256 * 1024 * 1024;

/// Bytes of one Put Blob before version 2016-05-31 (blob: put blob).
pub const PUT_BLOB_BYTES_MAX_2011: u64 = 64 * 1024 * 1024;

/// Bytes of one Append Block from version 2022-11-02 on (blob: append block).
pub const APPEND_BYTES_MAX: u64 = 100 * 1024 * 1024;

/// Bytes of one Append Block before version 2022-11-02 (blob: append block).
pub const APPEND_BYTES_MAX_2015: u64 = 4 * 1024 * 1024;

/// Bytes of a page (blob: put page).
pub const PAGE_BYTES: u64 = 512;

/// Bytes of one Put Page (blob: put page).
pub const PUT_PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Bytes of a page blob: 8 TiB (blob: put blob).
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024 * 1024;

/// Tags of one blob (blob: set blob tags).
pub const TAGS_MAX: usize = 10;

/// Characters of a tag's key (blob: set blob tags).
pub const TAG_KEY_CHARS_MAX: usize = 128;

/// Characters of a tag's value (blob: set blob tags).
pub const TAG_VALUE_CHARS_MAX: usize = 256;

/// Bytes of a condition on tags or of a search for them: ten keys and values, escaped, with room to spare.
pub const TAG_FILTER_BYTES_MAX: usize = 8192;

/// Items of one page of a listing (blob: list blobs; containers and queues alike).
pub const LIST_ITEMS_MAX: usize = 5_000;

/// Bytes of one page of a listing, after which it ends with a marker: metadata can make an item a hundred times longer. The
/// service documents that pages may be shorter than asked for, and no number.
pub const LIST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of an item of a listing besides its name and its metadata, about.
pub const LIST_ITEM_BYTES: usize = 768;

/// Bytes of a range whose checksum Get Blob computes (blob: get blob).
pub const RANGE_SUM_BYTES_MAX: u64 = 4 * 1024 * 1024;

// Queues. Source: "queue" is Microsoft's Queue service reference ("Put Message", "Get Messages", "Update Message").

/// Bytes of a message's text: 64 KiB (queue: put message).
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Seconds that a message is hidden at most, and that it lives if its writer does not say: 7 days (queue: put message).
pub const MESSAGE_SECONDS_MAX: u64 = 7 * 24 * 60 * 60;

/// Seconds that a message is hidden by a get that does not say for how long (queue: get messages).
pub const MESSAGE_HIDDEN_SECONDS: u64 = 30;

/// Messages of one get or peek, fewest and most (queue: get messages).
pub const MESSAGES_OF_A_GET: std::ops::RangeInclusive<i64> = 1..=32;
