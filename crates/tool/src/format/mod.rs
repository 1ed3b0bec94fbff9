//! The file formats of `export` and `import`: CSV, JSON lines and Parquet. A row is a `DynamicEntity`.
//!
//! [`Reader`] reads rows from any of them; `csv.rs`, `json_lines.rs` and `parquet.rs` each document their form.
//! `docs/decisions/0042-export-formats.md` has the reasons.

pub mod csv;
pub mod edm;
pub mod json_lines;
pub mod keys;
#[cfg(feature = "parquet")]
pub mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
pub mod parquet;
mod properties;
mod reader;
#[cfg(test)]
pub(crate) mod samples;

pub use reader::{Position, Reader, Record, Refused, Shape};

use std::io;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Comma-separated values with a type column per property, as Azure Storage Explorer writes them
    Csv,
    /// One JSON object per line, with the types that the service uses
    #[value(name = "jsonl", aliases = ["json", "json-lines", "ndjson"])]
    JsonLines,
    /// Apache Parquet
    Parquet,
}

impl Format {
    /// The format that the end of a file name stands for.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let extension = name.rsplit_once('.')?.1.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            "parquet" | "pq" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// The end of the names of files in this format.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

/// Why a file cannot be read or written any further.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not what it should be, from this line on.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// What was expected.
        reason: String,
    },
    /// The file as a whole cannot be used.
    #[error("{0}")]
    File(String),
    /// The program was built without Parquet.
    #[error("this build of larimar has no Parquet: build it with the cargo feature `parquet`")]
    NoParquet,
}

#[cfg(feature = "parquet")]
impl From<::parquet::errors::ParquetError> for FormatError {
    fn from(error: ::parquet::errors::ParquetError) -> Self {
        use ::parquet::errors::ParquetError;
        match error {
            ParquetError::General(reason) | ParquetError::NYI(reason) => Self::File(format!("Parquet: {reason}")),
            other => Self::File(format!("Parquet: {other}")),
        }
    }
}

/// The largest record that is read: an entity has at most 1 MiB, in JSON with escapes up to six times as much.
pub(crate) const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;
