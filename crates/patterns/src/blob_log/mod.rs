//! Logs in blobs, written in batches and found by time (T13).
//!
//! A table is the wrong place for a log: keys by time make one hot partition, other keys make every range of time a
//! scan. Blobs with the time in their names do neither, and cost one request for thousands of records:
//!
//! ```text
//!  orders/2014/07/31/1800/000001.log    metadata: starttime, endtime
//!  orders/2014/07/31/1800/000002.log
//!  orders/2014/07/31/1900/000001.log
//! ```
//!
//! [`BlobLogWriter`] collects records and writes a blob when they are enough, or old enough, or on request.
//! [`BlobLogReader`] lists the few prefixes that a range of time has, leaves out blobs by their metadata, and returns the
//! records in the order of their times.
//!
//! # What is guaranteed
//! - A blob is written whole or not at all, once, and never changed. Records are in the folder of their own time, so a
//!   reader misses none that were flushed.
//! - Several writers may write the same log: each blob is created only if there is none of its name.
//! - **What was not flushed is lost with its process**: [`append`](BlobLogWriter::append) puts a record into memory.
//!   [`flush`](BlobLogWriter::flush) returns when everything appended before is durable.
//! - A flush that failed or was dropped half-way keeps its records; the next one continues with them and writes none
//!   twice.
//!
//! # Cost in requests
//! A flush: 1 for each folder that has records, and 1 more for the first in a folder. A read: 1 for each prefix, of
//! which there is one for a range within a day of the calendar, one a day within a week, and then one a month; and 1
//! for each blob with records of the range.

mod folder;
mod reader;
mod record;
mod writer;

pub use reader::BlobLogReader;
pub use record::LogRecord;
pub use writer::BlobLogWriter;
