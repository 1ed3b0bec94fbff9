//! What stands in for Parquet in a build without the feature: every use names the feature.

use super::{FormatError, Record, Shape};
use larimar_client::DynamicEntity;
use std::fs::File;
use std::io::Write;

/// Cannot be made.
#[derive(Debug)]
pub enum ParquetReader {}

/// Cannot be made.
#[derive(Debug)]
pub enum RowGroup {}

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

    pub(super) fn columns(&self) -> Vec<(String, Option<super::edm::EdmType>)> {
        match *self {}
    }
}

#[expect(missing_docs, reason = "nothing can be called")]
impl RowGroup {
    pub fn push(&mut self, _: &DynamicEntity) {
        match *self {}
    }

    pub fn is_full(&self) -> bool {
        match *self {}
    }

    pub fn rows(&self) -> usize {
        match *self {}
    }

    #[expect(clippy::missing_errors_doc, reason = "nothing can be called")]
    pub fn encode(self) -> Result<EncodedGroup, FormatError> {
        match self {}
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
