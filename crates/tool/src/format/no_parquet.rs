//! What stands in for Parquet in a build without the feature: every use names the feature.

use super::{FormatError, Record, Shape};
use larimar_client::DynamicEntity;
use std::fs::File;
use std::io::Write;

/// Cannot be made.
#[derive(Debug)]
pub enum ParquetReader {}

/// Never filled: [`Spool::new`] refuses first.
#[derive(Debug, Default)]
pub struct RowGroup {}

/// Cannot be made.
#[derive(Debug)]
pub enum EncodedGroup {}

/// Cannot be made.
#[derive(Debug)]
pub enum Spool {}

impl ParquetReader {
    /// Refuses.
    ///
    /// # Errors
    /// Always [`FormatError::NoParquet`].
    pub fn open(_: File, _: Shape, _: u64) -> Result<Self, FormatError> {
        Err(FormatError::NoParquet)
    }

    pub(super) fn next(&mut self) -> Result<Option<Record>, FormatError> {
        match *self {}
    }

    pub(super) fn rows(&self) -> u64 {
        match *self {}
    }

    pub(super) fn has_timestamp(&self) -> bool {
        match *self {}
    }

    pub(super) fn columns(&self) -> Vec<(String, Option<larimar_model::EdmType>)> {
        match *self {}
    }
}

#[expect(missing_docs, reason = "nothing is ever in it")]
impl RowGroup {
    pub fn push(&mut self, _: &DynamicEntity) {}

    pub fn is_full(&self) -> bool {
        false
    }

    pub fn rows(&self) -> usize {
        0
    }

    #[expect(clippy::missing_errors_doc, reason = "nothing is ever in it")]
    pub fn encode(self) -> Result<EncodedGroup, FormatError> {
        Err(FormatError::NoParquet)
    }
}

impl Spool {
    /// Refuses.
    ///
    /// # Errors
    /// Always [`FormatError::NoParquet`].
    pub fn new() -> Result<Self, FormatError> {
        Err(FormatError::NoParquet)
    }

    #[expect(missing_docs, clippy::missing_errors_doc, reason = "nothing can be called")]
    pub fn push(&mut self, _: EncodedGroup) -> Result<(), FormatError> {
        match *self {}
    }

    #[expect(missing_docs, clippy::missing_errors_doc, reason = "nothing can be called")]
    pub fn finish(self, _: impl Write + Send) -> Result<(), FormatError> {
        match self {}
    }
}
