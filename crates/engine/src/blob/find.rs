//! Find Blobs by Tags: a page of the blobs that satisfy a query, through the tag index.
//!
//! A page is one snapshot: entries of the index and the rows of the blobs that they name are read from it together, and
//! a blob is found if its own row has the tags. The work of a page is bounded by the number of entries and containers
//! that it reads, whatever it finds; the continuation names a container and an entry, and refers to no state of the
//! server.

use super::Blobs;
use super::bytes::ByteStore;
use super::reject::BlobReject;
use super::row::BlobRow;
use super::store::read_error;
use super::tag_index::{PARTITION, TagPlan, found_tags, parse_entry};
use super::work_slice::{ITEM_BYTES, WorkSlice};
use crate::contract::{Budget, Engine, Flow, KeyRange, Position, RowRef, SpaceId, SpaceKind, SpaceName, successor};
use crate::error::{EngineError, Fault, ReadError};
use crate::snapshot::{Reads, Snapshot};
use larimar_model::blob::{TagQuery, Tags};
use larimar_model::{Timestamp, limits, utf16};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Where to search for blobs.
#[derive(Clone, Copy, Debug)]
pub enum FindIn<'a> {
    /// In all containers of an account.
    Account(&'a str),
    /// In one container.
    Container {
        /// Its name.
        name: &'a str,
        /// Its number.
        id: SpaceId,
    },
}

/// The continuation of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindFrom {
    /// The first container.
    pub container: String,
    /// The first entry of its index; empty for all. Opaque outside of this module.
    pub entry: String,
}

/// A page of the blobs that a query finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindPage {
    /// The blobs: by container, then by the value of the tag whose entries were read, then by name.
    pub blobs: Vec<FoundBlob>,
    /// Where the next page starts, if there may be more.
    pub next: Option<FindFrom>,
}

/// A blob that satisfies a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBlob {
    /// The container's name.
    pub container: String,
    /// The blob's name.
    pub name: String,
    /// Those of its tags that the query names.
    pub tags: Tags,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Finds blobs by their tags: one page. Snapshots are not found.
    ///
    /// # Errors [`BlobReject::ContainerNotFound`] if the one container was deleted; [`Fault::Unavailable`] while the
    /// index of a container of an earlier release is being built; each such call continues the build.
    pub async fn find_blobs(
        &self,
        within: FindIn<'_>,
        query: &TagQuery,
        from: Option<&FindFrom>,
        items_max: usize,
        now: Timestamp,
    ) -> Result<FindPage, EngineError> {
        let mut search = Search::new(query, items_max, now);
        let start = from.cloned().unwrap_or_default();
        match (within, query.container.as_deref()) {
            (FindIn::Container { name, .. }, Some(wanted)) if name != wanted => {}
            (FindIn::Container { name, id }, _) => {
                let entry = if start.container == name { start.entry.as_str() } else { "" };
                self.find_in(&mut search, (name, id), entry).await.map_err(engine_error)?;
            }
            (FindIn::Account(account), Some(wanted)) => {
                let space = SpaceName { account, kind: SpaceKind::Container, name: wanted };
                if let Some(space) = self.engine.space(space).await? {
                    let entry = if start.container == wanted { start.entry.as_str() } else { "" };
                    skip_deleted(self.find_in(&mut search, (wanted, space.id), entry).await)?;
                }
            }
            (FindIn::Account(account), None) => self.find_in_account(&mut search, account, start).await?,
        }
        Ok(search.page)
    }

    async fn find_in_account(
        &self,
        search: &mut Search<'_, E::Snapshot>,
        account: &str,
        mut from: FindFrom,
    ) -> Result<(), EngineError> {
        loop {
            let name = SpaceName { account, kind: SpaceKind::Container, name: &from.container };
            let containers = self.engine.list_spaces(name, CONTAINERS_AT_ONCE).await?;
            for (name, space) in &containers {
                if search.is_spent() {
                    search.page.next = Some(FindFrom { container: name.clone(), entry: String::new() });
                    return Ok(());
                }
                let entry = if *name == from.container { from.entry.as_str() } else { "" };
                skip_deleted(self.find_in(search, (name, space.id), entry).await)?;
                if search.page.next.is_some() {
                    return Ok(());
                }
            }
            let Some((last, _)) = containers.last().filter(|_| containers.len() == CONTAINERS_AT_ONCE) else {
                return Ok(());
            };
            from = FindFrom { container: successor(last), entry: String::new() };
        }
    }

    /// Searches one container, starting at an entry.
    async fn find_in(
        &self,
        search: &mut Search<'_, E::Snapshot>,
        (name, id): (&str, SpaceId),
        from: &str,
    ) -> Result<(), FindError> {
        search.containers += 1;
        if !self.open_index(search, (name, id), from).await? {
            return Ok(());
        }
        let end = Position::new(PARTITION, search.plan.end.as_str());
        let start = if utf16::compare(from, &search.plan.start).is_gt() { from } else { &search.plan.start };
        let mut range = KeyRange { start: Position::new(PARTITION, start), end: Some(end) };
        while !range.is_empty() {
            let next = search.read(name, id, &range).await?;
            let Some(next) = next else { return Ok(()) };
            if search.is_spent() {
                search.page.next = Some(FindFrom { container: name.to_owned(), entry: next.row });
                return Ok(());
            }
            range.start = next;
        }
        Ok(())
    }

    /// Opens the snapshot of the page, unless it is open, and checks that the container's index is complete in it. If
    /// not, builds the index first; returns `false` if the page has to end here.
    async fn open_index(
        &self,
        search: &mut Search<'_, E::Snapshot>,
        (name, id): (&str, SpaceId),
        from: &str,
    ) -> Result<bool, FindError> {
        loop {
            let snapshot = match &mut search.snapshot {
                Some(snapshot) => snapshot,
                none => {
                    none.insert(self.engine.snapshot(Reads::Many, search.deadline).await.map_err(ReadError::Fault)?)
                }
            };
            if Self::is_index_built(snapshot, id, search.deadline).await? {
                return Ok(true);
            }
            // The page already has blobs of the snapshot before the build: this container belongs to the next page.
            if !search.page.blobs.is_empty() {
                search.page.next = Some(FindFrom { container: name.to_owned(), entry: from.to_owned() });
                return Ok(false);
            }
            search.snapshot = None;
            if !self.build_tag_index(id, search.deadline, search.now).await.map_err(FindError::Other)? {
                let reason = "the index of tags is being built; try again later".to_owned();
                return Err(ReadError::Fault(Fault::Unavailable(reason)).into());
            }
        }
    }
}

/// A page under construction.
struct Search<'a, S> {
    query: &'a TagQuery,
    plan: TagPlan,
    items_max: usize,
    now: Timestamp,
    deadline: Instant,
    snapshot: Option<S>,
    page: FindPage,
    /// About how many bytes the blobs of the page will take.
    bytes: usize,
    /// The number of entries that were read.
    entries: usize,
    /// The number of containers that were searched.
    containers: usize,
}

impl<'a, S: Snapshot> Search<'a, S> {
    fn new(query: &'a TagQuery, items_max: usize, now: Timestamp) -> Self {
        Self {
            query,
            plan: TagPlan::of(query),
            items_max: items_max.max(1),
            now,
            deadline: Instant::now() + Duration::from_secs(limits::PAGE_SECONDS_MAX),
            snapshot: None,
            page: FindPage::default(),
            bytes: 0,
            entries: 0,
            containers: 0,
        }
    }

    /// Whether the page has to end: it is full, or its work limit is reached.
    fn is_spent(&self) -> bool {
        self.page.blobs.len() >= self.items_max
            || self.bytes > limits::LIST_BYTES_MAX
            || self.entries >= ENTRIES_MAX
            || self.containers >= CONTAINERS_MAX
            || Instant::now() >= self.deadline
    }

    /// Reads a batch of entries and adds the matching blobs. Returns where to continue.
    async fn read(&mut self, container: &str, id: SpaceId, range: &KeyRange) -> Result<Option<Position>, FindError> {
        let Some(snapshot) = &mut self.snapshot else { return Ok(None) };
        // With a single comparison every entry matches, so no more are read than fit on the page.
        let spare = if self.query.comparisons.len() == 1 { 1 } else { ENTRIES_SPARE };
        let rows_max = (self.items_max - self.page.blobs.len()).clamp(spare, ENTRIES_AT_ONCE);
        let mut entries: Vec<String> = Vec::new();
        let next = snapshot.scan(id, range, Budget { rows_max, deadline: self.deadline }, |row| {
            entries.push(row.row.to_owned());
            Flow::Continue
        });
        let next = next.await?;
        self.entries += entries.len();
        let mut found = Vec::with_capacity(entries.len());
        for entry in &entries {
            found.push(parse_entry(entry).map_err(ReadError::Fault)?);
        }
        let rows = tagged(snapshot, id, found.iter().map(|(_, name)| *name)).await?;
        for ((value, name), entry) in found.into_iter().zip(&entries) {
            if self.page.blobs.len() == self.items_max {
                return Ok(Some(Position::new(PARTITION, entry.as_str())));
            }
            let Some(tags) = rows.get(name) else { continue };
            // A stale entry may name a blob that another entry finds correctly.
            if tags.get(&self.plan.key) == Some(value) && self.query.admits(tags) {
                let tags = self.named(tags);
                self.bytes += limits::LIST_ITEM_BYTES + container.len() + name.len();
                self.bytes += tags.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
                self.page.blobs.push(FoundBlob { container: container.to_owned(), name: name.to_owned(), tags });
            }
        }
        Ok(next)
    }

    /// The tags that the query names.
    fn named(&self, tags: &Tags) -> Tags {
        let mut named = Tags::new();
        for (key, value) in tags.iter() {
            if self.query.comparisons.iter().any(|comparison| comparison.key == key) {
                let _ = named.insert(key, value);
            }
        }
        named
    }
}

/// The tags of these blobs, without those that have none.
pub(crate) async fn tagged<'n, S: Snapshot>(
    snapshot: &mut S,
    container: SpaceId,
    names: impl Iterator<Item = &'n str>,
) -> Result<HashMap<String, Tags>, ReadError> {
    let mut keys: Vec<(&str, &str)> = names.map(|name| (name, super::keys::BLOB)).collect();
    keys.sort_unstable_by(|(a, _), (b, _)| utf16::compare(a, b));
    keys.dedup();
    let (mut found, mut fault, mut slice) = (HashMap::new(), None, WorkSlice::default());
    let mut rest = keys.as_slice();
    while !rest.is_empty() {
        // This batch is finished even after the page's deadline, so that every page makes progress: the keys are few.
        let budget = Budget { rows_max: rest.len(), deadline: Instant::now() + READ_TIME };
        let next = snapshot.get_many(container, rest, budget, |row: RowRef<'_>| {
            match BlobRow::decode_head(row.body) {
                Ok((blob, _)) => {
                    found.extend(found_tags(Some(&blob)).map(|tags| (row.partition.to_owned(), tags.clone())));
                }
                Err(error) => fault = Some(error),
            }
            if slice.is_full_after(1 + row.body.len() / ITEM_BYTES) { Flow::Pause } else { Flow::Continue }
        });
        let next = next.await?;
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        rest = next.map_or(&[], |next| &rest[next..]);
    }
    Ok(found)
}

/// Why a search in one container failed.
enum FindError {
    Read(ReadError),
    Other(EngineError),
}

impl From<ReadError> for FindError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Converts the error of a search in one container.
fn engine_error(error: FindError) -> EngineError {
    match error {
        FindError::Read(error) => read_error(error),
        FindError::Other(error) => error,
    }
}

/// Skips a container that was deleted while the account was searched.
fn skip_deleted(found: Result<(), FindError>) -> Result<(), EngineError> {
    match found.map_err(engine_error) {
        Err(EngineError::Reject(crate::Reject::Blob(BlobReject::ContainerNotFound))) => Ok(()),
        other => other,
    }
}

/// Fewest entries of a batch, if some may not match.
const ENTRIES_SPARE: usize = 64;
/// Most entries of a batch, with the rows of their blobs.
const ENTRIES_AT_ONCE: usize = 256;
/// Entries after which a page ends; the last batch may exceed it.
const ENTRIES_MAX: usize = 10_000;
/// Most containers that a page searches.
const CONTAINERS_MAX: usize = 1000;
const CONTAINERS_AT_ONCE: usize = 100;
const READ_TIME: Duration = Duration::from_secs(5);
