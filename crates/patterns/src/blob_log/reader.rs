//! The reader: few lists, only the blobs that matter, records in order.

use super::LogRecord;
use super::folder::{self, Folder};
use super::writer::{END, START, divisor};
use crate::Result;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use larimar_client::{BlobItem, Container, Timestamp};
use std::collections::BTreeMap;

/// Reads a log by time. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct BlobLogReader {
    container: Container,
    service: String,
    minutes: u8,
}

impl BlobLogReader {
    /// A reader of the log of a service, as [`BlobLogWriter`](super::BlobLogWriter) writes it.
    #[must_use]
    pub fn new(container: &Container, service: &str) -> Self {
        Self { container: container.clone(), service: service.to_owned(), minutes: 60 }
    }

    /// How many minutes a folder spans, as set for its writer.
    #[must_use]
    pub fn folder_minutes(mut self, minutes: u8) -> Self {
        self.minutes = divisor(minutes);
        self
    }

    /// The records from one time to another, both included, in the order of their times. A folder is in memory at a
    /// time.
    pub fn records(&self, from: Timestamp, to: Timestamp) -> impl Stream<Item = Result<LogRecord>> + Send + use<> {
        let prefixes = folder::prefixes(from, to, self.minutes);
        let (listed, read) = (self.clone(), self.clone());
        let folders = stream::iter(prefixes).map(move |prefix| {
            let reader = listed.clone();
            async move { reader.list(&prefix, from, to).await }
        });
        let folders = folders.buffered(LISTS_AT_A_TIME).map_ok(|folders| stream::iter(folders.into_values().map(Ok)));
        let records = folders.try_flatten().and_then(move |blobs| {
            let reader = read.clone();
            async move { reader.read(blobs, from, to).await }
        });
        Box::pin(records.map_ok(|records| stream::iter(records.into_iter().map(Ok))).try_flatten())
    }

    /// All of [`records`](Self::records).
    ///
    /// # Errors
    /// A container that does not exist, or a blob that is not a log.
    pub async fn all(&self, from: Timestamp, to: Timestamp) -> Result<Vec<LogRecord>> {
        self.records(from, to).try_collect().await
    }

    /// The blobs below a prefix that have records of the range, by folder.
    async fn list(&self, prefix: &str, from: Timestamp, to: Timestamp) -> Result<BTreeMap<Folder, Vec<String>>> {
        let mut folders = BTreeMap::<_, Vec<String>>::new();
        let service = format!("{}/", self.service);
        let mut blobs = std::pin::pin!(self.container.list(&format!("{service}{prefix}")));
        while let Some(blob) = blobs.try_next().await? {
            let folder = blob.name.strip_prefix(&service).and_then(|name| name.rsplit_once('/'));
            let Some(folder) = folder.and_then(|(folder, _)| Folder::parse(folder)) else { continue };
            if may_have(&blob, from, to) {
                folders.entry(folder).or_default().push(blob.name);
            }
        }
        Ok(folders)
    }

    /// The records of a folder that are in the range, in the order of their times.
    async fn read(&self, blobs: Vec<String>, from: Timestamp, to: Timestamp) -> Result<Vec<LogRecord>> {
        let reads = stream::iter(blobs).map(|name| async move {
            match self.container.blob(name).download().await? {
                Some(found) => LogRecord::read_all(&found.bytes),
                // It was deleted since, as old logs are.
                None => Ok(Vec::new()),
            }
        });
        let records: Vec<Vec<LogRecord>> = reads.buffered(BLOBS_AT_A_TIME).try_collect().await?;
        let mut records = records.into_iter().flatten().collect::<Vec<_>>();
        records.retain(|record| from <= record.time && record.time <= to);
        // Stable: records of the same time stay as they were written.
        records.sort_by_key(|record| record.time);
        Ok(records)
    }
}

/// Whether a blob may have records of the range, by its metadata.
fn may_have(blob: &BlobItem, from: Timestamp, to: Timestamp) -> bool {
    let time = |name: &str| blob.metadata.get(name).and_then(|text| text.parse::<Timestamp>().ok());
    time(START).is_none_or(|start| start <= to) && time(END).is_none_or(|end| end >= from)
}

const LISTS_AT_A_TIME: usize = 4;
const BLOBS_AT_A_TIME: usize = 8;
