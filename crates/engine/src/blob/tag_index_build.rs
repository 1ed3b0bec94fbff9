//! Builds and checks the tag index of a container.
//!
//! A container of an earlier release has blobs with tags and no entries. Its index is built once, in batches; a row
//! stores the progress. The index of a new container is complete from the start. The daily pass checks all entries and
//! all blobs again, because servers of an earlier release that share the store write blobs without entries.

use super::Blobs;
use super::access::BlobRef;
use super::bytes::ByteStore;
use super::change::{Change, Decision};
use super::codec::damaged;
use super::find::tagged;
use super::keys;
use super::row::BlobRow;
use super::store::{read_error, write_error};
use super::tag_index::{ENTRIES, PARTITION, PROGRESS, TagRows, entries, found_tags, parse_entry};
use super::work_slice::{ITEM_BYTES, WorkSlice};
use crate::contract::{Act, Budget, Engine, Expect, Flow, Key, KeyRange, Op, Position, SpaceId, successor};
use crate::error::{EngineError, Fault, ReadError, WriteError};
use crate::snapshot::{Reads, Snapshot};
use futures_util::future::try_join_all;
use larimar_model::blob::{BlobName, Tags};
use larimar_model::{Timestamp, utf16};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The progress of building a container's index.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// The index is complete.
    Built,
    /// The first blob that is not indexed yet.
    Next(String),
}

impl Progress {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Built => vec![FORMAT, 0],
            Self::Next(name) => [&[FORMAT, 1], name.as_bytes()].concat(),
        }
    }

    fn decode(body: &[u8]) -> Result<Self, Fault> {
        let next = |name: &[u8]| Some(Self::Next(String::from_utf8(name.to_vec()).ok()?));
        let read = match body {
            [FORMAT, 0] => Some(Self::Built),
            [FORMAT, 1, name @ ..] => next(name),
            _ => None,
        };
        read.ok_or_else(|| damaged("the progress of an index of tags"))
    }
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Stores that the index of a new, empty container is complete. If this fails, a search or the daily pass builds
    /// the index.
    pub(crate) async fn begin_tag_index(&self, container: SpaceId, now: Timestamp) {
        let body = Progress::Built.encode();
        let op = Op { row: PROGRESS, expect: Expect::Absent, act: Act::Put(&body) };
        let _ = self.engine.apply(container, PARTITION, &[op], now).await;
    }

    /// Whether the index of a container is complete in a snapshot.
    pub(crate) async fn is_index_built(
        snapshot: &mut E::Snapshot,
        container: SpaceId,
        deadline: Instant,
    ) -> Result<bool, ReadError> {
        let budget = Budget { rows_max: 1, deadline };
        let found = snapshot.get(container, (PARTITION, PROGRESS), budget).await?;
        let progress = found.map(|(_, body)| Progress::decode(&body)).transpose()?;
        Ok(progress == Some(Progress::Built))
    }

    /// Builds the index of a container, from where the last call stopped, until it is complete or the deadline has
    /// passed: at least one batch. Several servers may do so at once. Returns whether it is complete.
    pub(crate) async fn build_tag_index(
        &self,
        container: SpaceId,
        deadline: Instant,
        now: Timestamp,
    ) -> Result<bool, EngineError> {
        loop {
            let key = Key { space: container, partition: PARTITION, row: PROGRESS };
            let found = self.engine.get(key, |row| row.map(|row| (row.version, Progress::decode(row.body)))).await;
            let (expect, from) = match found.map_err(read_error)? {
                None => (Expect::Absent, String::new()),
                Some((version, progress)) => match progress? {
                    Progress::Built => return Ok(true),
                    Progress::Next(name) => (Expect::Version(version), name),
                },
            };
            let next = self.index_some(container, from, now).await?;
            let progress = next.map_or(Progress::Built, Progress::Next);
            let (is_built, progress) = (progress == Progress::Built, progress.encode());
            let op = Op { row: PROGRESS, expect, act: Act::Put(&progress) };
            match self.engine.apply(container, PARTITION, &[op], now).await {
                Ok(_) if is_built => return Ok(true),
                // If another server was faster, its progress counts.
                Ok(_) | Err(WriteError::Condition { .. }) => {}
                Err(error) => return Err(write_error(error)),
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }

    /// Removes stale entries of a container's index, and adds missing ones.
    pub(crate) async fn check_tag_index(&self, container: SpaceId, now: Timestamp) -> Result<(), EngineError> {
        let mut from = Some(ENTRIES.0.to_owned());
        while let Some(place) = from {
            from = self.check_some(container, place, now).await?;
        }
        let mut from = Some(String::new());
        while let Some(name) = from {
            from = self.index_some(container, name, now).await?;
        }
        while !self.build_tag_index(container, Instant::now() + BATCH_TIME, now).await? {}
        Ok(())
    }

    /// Adds the missing entries of one batch of blobs, starting at a name. Returns the name to continue from.
    async fn index_some(
        &self,
        container: SpaceId,
        from: String,
        now: Timestamp,
    ) -> Result<Option<String>, EngineError> {
        let deadline = Instant::now() + BATCH_TIME;
        let mut snapshot = self.engine.snapshot(Reads::Many, deadline).await?;
        // Skips the partition of the index itself.
        let from = if from.is_empty() { successor(PARTITION) } else { from };
        let mut batch = Batch::default();
        let range = KeyRange { start: Position::new(from, ""), end: None };
        let budget = Budget { rows_max: BATCH_ROWS, deadline };
        let next = snapshot.scan(container, &range, budget, |row| batch.visit(row.partition, row.row, row.body));
        let next = next.await.map_err(read_error)?;
        if let Some(fault) = batch.fault {
            return Err(fault.into());
        }
        let missing = missing(&mut snapshot, container, &batch.tagged).await.map_err(read_error)?;
        drop(snapshot);
        for names in missing.chunks(WRITES_AT_ONCE) {
            try_join_all(names.iter().map(|name| self.index_blob(container, name, now))).await?;
        }
        Ok(next.map(|next| if next.row.is_empty() { next.partition } else { successor(&next.partition) }))
    }

    /// Adds the entries of a blob's current tags.
    async fn index_blob(&self, container: SpaceId, name: &str, now: Timestamp) -> Result<(), EngineError> {
        let name: BlobName = name.parse().map_err(|_| damaged("the name of a blob"))?;
        let at = BlobRef { container, name: &name };
        self.change_unlocked(at, now, |stored| async move {
            let rows = TagRows::between(at.name, None, stored.row.as_ref());
            Ok(index_only(rows))
        })
        .await
    }

    /// Removes the stale ones of a batch of entries, starting at one. Returns the entry to continue from.
    async fn check_some(
        &self,
        container: SpaceId,
        from: String,
        now: Timestamp,
    ) -> Result<Option<String>, EngineError> {
        let deadline = Instant::now() + BATCH_TIME;
        let mut snapshot = self.engine.snapshot(Reads::Many, deadline).await?;
        let end = Some(Position::new(PARTITION, ENTRIES.1));
        let range = KeyRange { start: Position::new(PARTITION, from), end };
        let mut found: Vec<String> = Vec::new();
        let next = snapshot.scan(container, &range, Budget { rows_max: BATCH_TAGGED, deadline }, |row| {
            found.push(row.row.to_owned());
            Flow::Continue
        });
        let next = next.await.map_err(read_error)?;
        let mut named = Vec::with_capacity(found.len());
        for entry in &found {
            named.push((entry, parse_entry(entry)?.1));
        }
        let tags = tagged(&mut snapshot, container, named.iter().map(|(_, name)| *name)).await.map_err(read_error)?;
        drop(snapshot);
        for (entry, name) in named {
            if !entries(name, tags.get(name)).contains(entry) {
                self.remove_entry(container, name, entry, now).await?;
            }
        }
        Ok(next.map(|next| next.row))
    }

    /// Removes an entry if its blob does not have the tag.
    async fn remove_entry(
        &self,
        container: SpaceId,
        name: &str,
        entry: &String,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let name: BlobName = name.parse().map_err(|_| damaged("the name of a blob"))?;
        let at = BlobRef { container, name: &name };
        self.change_unlocked(at, now, |stored| async move {
            let is_stale = !entries(at.name.as_str(), found_tags(stored.row.as_ref())).contains(entry);
            Ok(index_only(if is_stale { TagRows::without(vec![entry.clone()]) } else { TagRows::default() }))
        })
        .await
    }
}

/// Writes these rows of the index, if there are any.
fn index_only(rows: TagRows) -> Decision<()> {
    if rows.is_empty() {
        return Decision::Keep(());
    }
    Decision::Commit(Change::beside_blob().with_index(rows), ())
}

/// One batch of blobs.
#[derive(Default)]
struct Batch {
    tagged: Vec<(String, Tags)>,
    fault: Option<Fault>,
    /// Consecutive rows that are not a blob's own.
    passed: usize,
    slice: WorkSlice,
}

impl Batch {
    fn visit(&mut self, partition: &str, row: &str, body: &[u8]) -> Flow {
        if row != keys::BLOB {
            self.passed += 1;
            // A blob may have many other rows: the next batch starts after them.
            return if self.passed > PASSED_MAX { Flow::StopHere } else { Flow::Continue };
        }
        if self.tagged.len() == BATCH_TAGGED {
            return Flow::StopHere;
        }
        self.passed = 0;
        match BlobRow::decode_head(body) {
            Ok((blob, _)) => {
                self.tagged.extend(found_tags(Some(&blob)).map(|tags| (partition.to_owned(), tags.clone())));
            }
            Err(fault) => {
                self.fault = Some(fault);
                return Flow::StopHere;
            }
        }
        if self.slice.is_full_after(1 + body.len() / ITEM_BYTES) { Flow::Pause } else { Flow::Continue }
    }
}

/// The names of those blobs that lack an entry.
async fn missing<S: Snapshot>(
    snapshot: &mut S,
    container: SpaceId,
    blobs: &[(String, Tags)],
) -> Result<Vec<String>, ReadError> {
    let wanted: Vec<(&str, Vec<String>)> =
        blobs.iter().map(|(name, tags)| (name.as_str(), entries(name, Some(tags)))).collect();
    let mut keys: Vec<(&str, &str)> =
        wanted.iter().flat_map(|(_, entries)| entries).map(|entry| (PARTITION, entry.as_str())).collect();
    keys.sort_unstable_by(|(_, a), (_, b)| utf16::compare(a, b));
    let mut there: HashSet<String> = HashSet::new();
    let mut rest = keys.as_slice();
    while !rest.is_empty() {
        let budget = Budget { rows_max: rest.len(), deadline: Instant::now() + BATCH_TIME };
        let next = snapshot.get_many(container, rest, budget, |row| {
            there.insert(row.row.to_owned());
            Flow::Continue
        });
        rest = next.await?.map_or(&[], |next| &rest[next..]);
    }
    let lacks = |entries: &[String]| entries.iter().any(|entry| !there.contains(entry));
    Ok(wanted.iter().filter(|(_, entries)| lacks(entries)).map(|(name, _)| (*name).to_owned()).collect())
}

const FORMAT: u8 = 1;
/// Most rows of one batch.
const BATCH_ROWS: usize = 1000;
/// Most blobs with tags, or entries, of one batch.
const BATCH_TAGGED: usize = 100;
const BATCH_TIME: Duration = Duration::from_secs(5);
/// Blobs whose entries are written at the same time.
const WRITES_AT_ONCE: usize = 16;
/// Rows that are skipped one by one before the scan jumps.
const PASSED_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::super::bytes::MemoryBytes;
    use super::super::{AccessConditions, FindIn, NewBlob, NewContainer};
    use super::*;
    use crate::{MemoryEngine, Rows as _};
    use larimar_model::blob::TagQuery;
    use std::sync::Arc;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts").block_on(future)
    }

    #[test]
    fn an_index_is_built_in_batches_that_go_on_where_the_last_one_ended() {
        block_on(async {
            let blobs = Blobs::new(Arc::new(MemoryEngine::new()), Arc::new(MemoryBytes::new(Duration::ZERO)));
            let (now, name) = (Timestamp::EDM_MIN, "box".parse().expect("a name"));
            let made = blobs.create_container("account", &name, &NewContainer::default(), now).await;
            let container = made.expect("a container").id;
            let mut new = NewBlob::default();
            new.tags.insert("k", "v").expect("a tag");
            let mut rows = vec![PROGRESS.to_owned()];
            for n in 0..250 {
                let name: BlobName = format!("b{n:03}").parse().expect("a name");
                let at = BlobRef { container, name: &name };
                blobs.put_append_blob(at, &new, &AccessConditions::default(), now).await.expect("it is put");
                rows.extend(entries(name.as_str(), Some(&new.tags)));
            }
            // Like a store of an earlier release.
            let ops: Vec<Op<'_>> =
                rows.iter().map(|row| Op { row, expect: Expect::Present, act: Act::Delete }).collect();
            blobs.engine.apply(container, PARTITION, &ops, now).await.expect("they are removed");
            let mut built = Vec::new();
            while built.last() != Some(&true) {
                built.push(blobs.build_tag_index(container, Instant::now(), now).await.expect("no fault"));
                let mut snapshot =
                    blobs.engine.snapshot(Reads::Many, Instant::now() + BATCH_TIME).await.expect("a snapshot");
                let is_built =
                    Blobs::<MemoryEngine, MemoryBytes>::is_index_built(&mut snapshot, container, Instant::now()).await;
                assert_eq!(is_built, Ok(built.len() >= 3), "{built:?}");
            }
            assert_eq!(built, [false, false, true]);
            let query = TagQuery::parse("k = 'v'").expect("an expression");
            let within = FindIn::Container { name: "box", id: container };
            let page = blobs.find_blobs(within, &query, None, 5_000, now).await.expect("a page");
            assert_eq!((page.blobs.len(), page.next), (250, None));
        });
    }

    #[test]
    fn progress_is_read_back() {
        for progress in [Progress::Built, Progress::Next(String::new()), Progress::Next("ä/b".to_owned())] {
            assert_eq!(Progress::decode(&progress.encode()), Ok(progress));
        }
        for other in [&[][..], &[FORMAT], &[2, 0], &[FORMAT, 0, 0], &[FORMAT, 1, 0xFF]] {
            assert!(Progress::decode(other).is_err(), "{other:?}");
        }
    }
}
