//! List Blobs: a page of a container, flat or by hierarchy, at the cost of the page.
//!
//! Names come in the engine's order, that of UTF-16 code units. Other rows of a blob (uncommitted blocks, chunks,
//! snapshots) and the rest of a listed prefix are skipped: after a few rows, a new scan starts after them. The
//! continuation names the next item and refers to no state of the server.

use super::Blobs;
use super::access::BlobRef;
use super::bytes::ByteStore;
use super::codec::damaged;
use super::keys::{self, RowName};
use super::row::BlobRow;
use super::store::read_error;
use crate::contract::{Budget, Engine, Flow, KeyRange, Position, RowRef, SpaceId, successor};
use crate::error::{EngineError, Fault};
use larimar_model::blob::{BlobName, BlobProperties, ListInclude, SnapshotTime};
use larimar_model::{Timestamp, limits, utf16};
use std::time::{Duration, Instant};

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only names that begin with it.
    pub prefix: String,
    /// Groups names up to the delimiter into one `BlobPrefix`; empty for none.
    pub delimiter: String,
    /// Where to start.
    pub from: Option<ListFrom>,
    /// Most blobs and prefixes of the page.
    pub items_max: usize,
    /// What to include; only `snapshots` and `uncommitted` matter here.
    pub include: ListInclude,
}

/// A place in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFrom {
    /// The first name that may be listed.
    pub name: String,
    /// The first snapshot to list of the blob with exactly this name; `None` for all.
    pub snapshot: Option<SnapshotTime>,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Blobs and prefixes, in order.
    pub items: Vec<ListItem>,
    /// Where the next page starts, if there may be more.
    pub next: Option<ListFrom>,
}

/// One item of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// A blob or a snapshot.
    Blob(Box<ListedBlob>),
    /// A common prefix of names, up to the delimiter.
    Prefix(String),
}

/// A blob or a snapshot of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlob {
    /// The blob's name.
    pub name: String,
    /// Which snapshot it is, if it is one.
    pub snapshot: Option<SnapshotTime>,
    /// Its properties, with metadata and tags.
    pub properties: BlobProperties,
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Lists blobs of a container: one page.
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`](super::BlobReject::ContainerNotFound) if it was deleted meanwhile.
    pub async fn list_blobs(
        &self,
        container: SpaceId,
        query: &ListQuery,
        now: Timestamp,
    ) -> Result<ListPage, EngineError> {
        let now = self.now(now).await?;
        let mut listing = Listing::new(query, now);
        let end = after_prefix(&query.prefix).map(|end| Position::new(end, ""));
        let mut start = listing.start();
        for _ in 0..SCANS_MAX {
            let range = KeyRange { start: start.clone(), end: end.clone() };
            if range.is_empty() {
                return Ok(listing.page);
            }
            let rows_max = (query.items_max + ROWS_SPARE).saturating_sub(listing.page.items.len());
            let budget = Budget { rows_max, deadline: listing.deadline };
            let mut step = Ok(Step::Next);
            let next = self.engine.scan(container, &range, budget, |row| {
                step = listing.visit(row);
                if matches!(step, Ok(Step::Next)) { listing.flow() } else { Flow::StopHere }
            });
            let next = next.await.map_err(read_error)?;
            start = match (step?, next) {
                (Step::Full, _) | (Step::Next, None) => return Ok(listing.page),
                (Step::Next, Some(place)) => place,
                (Step::Jump(place), _) => place,
                (Step::Snapshots(name, blob), _) => {
                    let (again, next) = (Position::new(name.as_str(), ""), Position::new(successor(&name), ""));
                    match self.list_snapshots(container, &mut listing, name, *blob).await? {
                        Snapshots::Listed => next,
                        Snapshots::Changed => again,
                        Snapshots::Full => return Ok(listing.page),
                    }
                }
            };
            if Instant::now() >= listing.deadline {
                break;
            }
        }
        listing.page.next = Some(listing.resume_at(start));
        Ok(listing.page)
    }

    /// Adds a blob with its snapshots before it, all of one version of the blob.
    async fn list_snapshots(
        &self,
        container: SpaceId,
        listing: &mut Listing<'_>,
        name: String,
        FoundBlob { version, row, blocks }: FoundBlob,
    ) -> Result<Snapshots, EngineError> {
        let listed = listing.page.items.len();
        let parsed: BlobName = name.parse().map_err(|_| damaged("the name of a blob"))?;
        let at = BlobRef { container, name: &parsed };
        let from = match &listing.query.from {
            Some(ListFrom { name: from, snapshot: Some(time) }) if *from == name => keys::snapshot(*time),
            _ => keys::SNAPSHOTS.0.to_owned(),
        };
        let mut is_full = false;
        self.visit_rows(at, (&from, keys::SNAPSHOTS.1), |row| {
            let Some(RowName::Snapshot(time)) = RowName::parse(row.row) else {
                return Err(damaged("the name of a blob's row"));
            };
            is_full = !listing.add_blob(&name, Some(time), BlobRow::decode_head(row.body)?);
            Ok(if is_full { Flow::StopHere } else { Flow::Continue })
        })
        .await?;
        // Every change of snapshots changes the blob's row.
        if self.load(at, keys::BLOB).await?.is_none_or(|(later, _)| later != version) {
            listing.page.items.truncate(listed);
            listing.page.next = None;
            return Ok(Snapshots::Changed);
        }
        let is_listed = !is_full && listing.add_blob(&name, None, (row, blocks));
        Ok(if is_listed { Snapshots::Listed } else { Snapshots::Full })
    }
}

/// A page under construction.
struct Listing<'a> {
    query: &'a ListQuery,
    now: Timestamp,
    deadline: Instant,
    page: ListPage,
    /// About how many bytes the items of the page will take.
    bytes: usize,
    /// The number of visited rows.
    visited: usize,
    /// The number of consecutive rows that were skipped.
    passed: usize,
    /// The last listed prefix, whose other names are skipped.
    group: Option<String>,
}

/// What a row means for the scan.
enum Step {
    /// Continue.
    Next,
    /// The page is full.
    Full,
    /// Continue there, with another scan.
    Jump(Position),
    /// List this blob after its snapshots, then continue after it.
    Snapshots(String, Box<FoundBlob>),
}

/// The row of a blob that has snapshots.
struct FoundBlob {
    version: Timestamp,
    row: BlobRow,
    blocks: u32,
}

/// The outcome of listing a blob with its snapshots.
enum Snapshots {
    /// They are on the page.
    Listed,
    /// They were changed meanwhile, and have to be read again.
    Changed,
    /// The page is full.
    Full,
}

impl<'a> Listing<'a> {
    fn new(query: &'a ListQuery, now: Timestamp) -> Self {
        let deadline = Instant::now() + Duration::from_secs(limits::PAGE_SECONDS_MAX);
        Self { query, now, deadline, page: ListPage::default(), bytes: 0, visited: 0, passed: 0, group: None }
    }

    /// How to continue after a row: yields after some.
    const fn flow(&mut self) -> Flow {
        self.visited += 1;
        if self.visited.is_multiple_of(SLICE_ROWS) { Flow::Pause } else { Flow::Continue }
    }

    /// Where to start: at the prefix or at the continuation, whichever is later.
    fn start(&self) -> Position {
        let from = self.query.from.as_ref().map_or("", |from| from.name.as_str());
        let start = match utf16::compare(from, &self.query.prefix) {
            std::cmp::Ordering::Greater => from,
            _ => self.query.prefix.as_str(),
        };
        // Skips the partition of the tag index: no blob has the empty name.
        Position::new(if start.is_empty() { "\0" } else { start }, "")
    }

    /// The continuation if this page ends before a position.
    fn resume_at(&self, place: Position) -> ListFrom {
        // A position inside a blob's rows is after its own row, so the blob is listed; likewise for its prefix.
        let group = self.group.as_deref().filter(|group| place.partition.starts_with(group));
        let name = match group.and_then(after_prefix) {
            Some(after) => after,
            None if place.row.is_empty() => place.partition,
            None => successor(&place.partition),
        };
        ListFrom { name, snapshot: None }
    }

    fn visit(&mut self, row: RowRef<'_>) -> Result<Step, Fault> {
        if row.row != keys::BLOB {
            return Ok(self.pass(|| successor(row.partition)));
        }
        if let Some(group) = self.group.as_deref().filter(|group| row.partition.starts_with(group)) {
            let group = group.to_owned();
            return Ok(match after_prefix(&group) {
                Some(after) => self.pass(|| after),
                None => self.pass(|| successor(row.partition)),
            });
        }
        let (blob, blocks) = BlobRow::decode_head(row.body)?;
        if blob.is_vacant() || !blob.is_committed && !self.query.include.uncommitted {
            return Ok(Step::Next);
        }
        self.passed = 0;
        if let Some(group) = self.group_of(row.partition) {
            return Ok(if self.add_group(group) { Step::Next } else { Step::Full });
        }
        if self.query.include.snapshots && blob.snapshots > 0 {
            let found = FoundBlob { version: row.version, row: blob, blocks };
            return Ok(Step::Snapshots(row.partition.to_owned(), Box::new(found)));
        }
        Ok(if self.add_blob(row.partition, None, (blob, blocks)) { Step::Next } else { Step::Full })
    }

    /// Skips a row; after a few, the scan jumps to `place`.
    fn pass(&mut self, place: impl FnOnce() -> String) -> Step {
        self.passed += 1;
        if self.passed <= PASSED_MAX {
            return Step::Next;
        }
        self.passed = 0;
        Step::Jump(Position::new(place(), ""))
    }

    /// The part of a name up to the first delimiter after the prefix, if there is one.
    fn group_of(&self, name: &str) -> Option<String> {
        let ListQuery { prefix, delimiter, .. } = self.query;
        if delimiter.is_empty() {
            return None;
        }
        let at = name.get(prefix.len()..)?.find(delimiter.as_str())?;
        Some(name[..prefix.len() + at + delimiter.len()].to_owned())
    }

    /// Whether nothing more may be added. At least one item always fits, so that every page makes progress.
    const fn is_full(&self) -> bool {
        self.page.items.len() >= self.query.items_max || self.bytes > limits::LIST_BYTES_MAX
    }

    /// Adds a prefix; `false` if the page is full.
    fn add_group(&mut self, group: String) -> bool {
        if self.is_full() {
            self.page.next = Some(ListFrom { name: group, snapshot: None });
            return false;
        }
        self.bytes += limits::LIST_ITEM_BYTES + group.len();
        self.page.items.push(ListItem::Prefix(group.clone()));
        self.group = Some(group);
        true
    }

    /// Adds a blob or a snapshot; `false` if the page is full.
    fn add_blob(&mut self, name: &str, snapshot: Option<SnapshotTime>, (row, blocks): (BlobRow, u32)) -> bool {
        if self.is_full() {
            // Without a snapshot's time all snapshots would be listed again.
            let snapshot = snapshot.or_else(|| self.listed_snapshots_of(name));
            self.page.next = Some(ListFrom { name: name.to_owned(), snapshot });
            return false;
        }
        let properties = row.into_properties_with(blocks, self.now);
        self.bytes += limits::LIST_ITEM_BYTES + name.len() + properties.metadata.bytes();
        let blob = ListedBlob { name: name.to_owned(), snapshot, properties };
        self.page.items.push(ListItem::Blob(Box::new(blob)));
        true
    }

    /// A time after all snapshots, if those of this blob are already listed.
    fn listed_snapshots_of(&self, name: &str) -> Option<SnapshotTime> {
        match self.page.items.last() {
            Some(ListItem::Blob(blob)) if blob.snapshot.is_some() && blob.name == name => {
                Some(SnapshotTime(Timestamp::MAX))
            }
            _ => None,
        }
    }
}

/// The first text after all that begin with a prefix, in the order of UTF-16 code units; `None` if there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            // Surrogates lie between these.
            '\u{D7FF}' => Some('\u{10000}'),
            '\u{10FFFF}' => Some('\u{E000}'),
            '\u{FFFF}' => None,
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Rows that are skipped one by one before the scan jumps.
const PASSED_MAX: usize = 4;
/// Rows that are visited before the task yields; each may have 8 KiB of metadata.
const SLICE_ROWS: usize = 128;
/// Rows of a scan besides those of the page.
const ROWS_SPARE: usize = 16;
/// Most scans of one page: each adds an item or skips a bounded number of rows.
const SCANS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_text_after_a_prefix_divides_what_begins_with_it(prefix: String, text: String) {
            let inside = format!("{prefix}{text}");
            match after_prefix(&prefix) {
                Some(after) => {
                    prop_assert_eq!(utf16::compare(&inside, &after), std::cmp::Ordering::Less);
                    let is_outside = utf16::compare(&text, &after).is_ge() || utf16::compare(&text, &prefix).is_lt();
                    prop_assert_eq!(is_outside, !text.starts_with(&prefix));
                }
                None => {
                    let has_no_next = prefix.chars().all(|c| c == '\u{FFFF}');
                    prop_assert!(has_no_next);
                }
            }
        }
    }

    #[test]
    fn prefixes_are_passed_by_their_last_character() {
        for (prefix, after) in [
            ("", None),
            ("a/", Some("a0")),
            ("a\u{FFFF}", Some("b")),
            ("\u{D7FF}", Some("\u{10000}")),
            ("\u{10FFFF}", Some("\u{E000}")),
        ] {
            assert_eq!(after_prefix(prefix).as_deref(), after, "{prefix:?}");
        }
    }
}
