//! Applies the commits of segments to a store that was restored from a backup, up to a moment.
//!
//! Everything is read twice: first to check it, to find the last commit and to know how much room is needed, before
//! anything is written; then to apply it. One segment is held at a time, and the next is read meanwhile.

use super::line::SegmentName;
use super::moment::{Moment, Route};
use super::segment::{ArchivedCommit, Segment, SegmentRecord};
use crate::addresses::Addresses;
use crate::chunk::ChunkRef;
use crate::error::BackupError;
use crate::generation::Generation;
use crate::payloads::{NewPayload, Source, no_store, store_payloads};
use crate::place::Place;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use larimar_engine::SpaceId;
use larimar_engine::blob::bytes::{ByteStore, Extent};
use larimar_engine::blob::relocate::{payloads_in, relocated};
use larimar_engine_local::{CommitPoint, ContainerRow, Replay};
use std::collections::HashMap;

/// What a restore will do: a backup, and the commits of the archive that follow.
pub struct Plan {
    pub(crate) generation: Generation,
    moment: Moment,
    line: String,
    segments: Vec<SegmentName>,
    /// The last commit.
    last: CommitPoint,
    /// What the segments hold up to it.
    pub(crate) archived: Archived,
}

/// What the commits of the archive up to a moment consist of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Commits.
    pub commits: u64,
    /// Bytes of the segments.
    pub segment_bytes: u64,
    /// Payloads of blobs.
    pub payloads: u64,
    /// Bytes of payloads that are in chunks.
    pub piece_bytes: u64,
}

impl Plan {
    /// Finds what leads to a moment, and reads the segments to check them.
    ///
    /// # Errors
    /// A moment that the place cannot restore, or a file that is missing or damaged, by name.
    pub async fn make(place: &Place, moment: &Moment) -> Result<Self, BackupError> {
        let Route { generation, line } = Route::find(place, moment).await?;
        let (line, all) = line.unwrap_or_default();
        let (mut last, mut archived, mut segments) = (generation.point().1, Archived::default(), Vec::new());
        let reading = line.clone();
        let mut reader = std::pin::pin!(read_all(place, &reading, all));
        while let Some((name, segment)) = reader.try_next().await? {
            let before = archived;
            archived.segment_bytes += segment.bytes();
            let mut is_over = false;
            for record in segment.records().flatten() {
                match record {
                    SegmentRecord::Commit(commit) if commit.sequence <= last.sequence => {}
                    SegmentRecord::Commit(commit) => {
                        is_over = !moment.includes(commit.sequence, commit.time);
                        if is_over {
                            break;
                        }
                        last = CommitPoint { sequence: commit.sequence, time: last.time.max(commit.time) };
                        archived.commits += 1;
                    }
                    SegmentRecord::Payload { .. } => archived.payloads += 1,
                    SegmentRecord::Pieces { extent, .. } => {
                        archived.payloads += 1;
                        archived.piece_bytes = archived.piece_bytes.saturating_add(extent.length);
                    }
                }
            }
            if is_over && archived.commits == before.commits {
                archived = before;
                break;
            }
            segments.push(name);
            if is_over {
                break;
            }
        }
        Ok(Self { generation, moment: moment.clone(), line, segments, last, archived })
    }

    /// The backup that it begins with.
    #[must_use]
    pub const fn generation(&self) -> &Generation {
        &self.generation
    }

    /// The last commit, and when it was published. Of a backup alone, when it was committed.
    #[must_use]
    pub const fn last(&self) -> CommitPoint {
        self.last
    }

    /// What follows the backup.
    #[must_use]
    pub const fn archived(&self) -> Archived {
        self.archived
    }

    /// The bytes that have to be free: those of the backup and of the archive, a tenth more, and room to work.
    #[must_use]
    pub const fn room_needed(&self) -> u64 {
        let Archived { segment_bytes, piece_bytes, .. } = self.archived;
        let bytes = segment_bytes.saturating_add(piece_bytes);
        crate::restore::room_needed(&self.generation).saturating_add(bytes).saturating_add(bytes / 10)
    }

    pub(crate) const fn has_payloads(&self) -> bool {
        self.generation.totals.payloads > 0 || self.archived.payloads > 0
    }

    /// Applies the commits, and records the last.
    pub(crate) async fn apply<B: ByteStore>(
        &self,
        place: &Place,
        mut replay: Replay,
        bytes: Option<&B>,
        addresses: &mut Option<Addresses>,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<(), BackupError> {
        let mut applied = Applied { place, bytes, addresses, waiting: HashMap::new() };
        let mut sequence = self.generation.sequence;
        let mut reader = std::pin::pin!(read_all(place, &self.line, self.segments.clone()));
        while let Some((name, segment)) = reader.try_next().await? {
            let what = place.show(&name.file(&self.line));
            let commits = self.commits(&segment, sequence);
            applied.payloads(&segment, &commits, &mut replay, &what).await?;
            for commit in &commits {
                applied.commit(commit, &mut replay, &what)?;
                sequence = commit.sequence;
            }
            progress(segment.bytes());
        }
        if sequence != self.last.sequence {
            return Err(BackupError::damaged(place.show(&self.line), "it changed while it was read"));
        }
        Ok(replay.finish(self.last)?)
    }

    /// Those commits of a segment that come after a number and are part of the moment.
    fn commits<'a>(&self, segment: &'a Segment, after: u64) -> Vec<ArchivedCommit<'a>> {
        let commits = segment.records().flatten().filter_map(|record| match record {
            SegmentRecord::Commit(commit) => Some(commit),
            SegmentRecord::Payload { .. } | SegmentRecord::Pieces { .. } => None,
        });
        let commits = commits.filter(|commit| commit.sequence > after);
        commits.take_while(|commit| self.moment.includes(commit.sequence, commit.time)).collect()
    }
}

/// What the commits that were applied have stored.
struct Applied<'a, B> {
    place: &'a Place,
    bytes: Option<&'a B>,
    addresses: &'a mut Option<Addresses>,
    /// Payloads that came before the segment of the first commit that points to them.
    waiting: HashMap<Extent, Archive>,
}

/// A payload of the archive.
#[derive(Clone, Debug)]
enum Archive {
    Bytes(bytes::Bytes),
    Chunks(Vec<ChunkRef>),
}

impl<B: ByteStore> Applied<'_, B> {
    /// Stores the payloads that rows of commits point to and that are not stored yet.
    async fn payloads(
        &mut self,
        segment: &Segment,
        commits: &[ArchivedCommit<'_>],
        replay: &mut Replay,
        what: &str,
    ) -> Result<(), BackupError> {
        for record in segment.records().flatten() {
            let (extent, payload) = match record {
                SegmentRecord::Payload { extent, bytes } => (extent, Archive::Bytes(segment.slice(bytes))),
                SegmentRecord::Pieces { extent, chunks } => (extent, Archive::Chunks(chunks)),
                SegmentRecord::Commit(_) => continue,
            };
            if self.address(&extent)?.is_none() {
                self.waiting.insert(extent, payload);
            }
        }
        let mut found: Vec<(SpaceId, String, Extent, Archive)> = Vec::new();
        for (key, value) in commits.iter().flat_map(|commit| &commit.writes) {
            // A commit that creates a container comes before those with its rows.
            replay.see_name(key, *value)?;
            let Some(row) = value.map(|value| replay.container_row(key, value)).transpose()?.flatten() else {
                continue;
            };
            for extent in payloads_in(row.as_row())? {
                if let Some(payload) = self.waiting.remove(&extent) {
                    found.push((row.space, row.partition.clone(), extent, payload));
                }
            }
        }
        if found.is_empty() {
            return self.bound_waiting(what);
        }
        let Some(store) = self.bytes else { return Err(no_store().into()) };
        let new: Vec<NewPayload<'_>> = found
            .iter()
            .map(|(space, blob, extent, payload)| NewPayload {
                space: *space,
                blob,
                extent: *extent,
                source: match payload {
                    Archive::Bytes(bytes) => Source::Inline(bytes),
                    Archive::Chunks(chunks) => Source::Pieces(chunks),
                },
            })
            .collect();
        let (stored, unreferenced) = store_payloads(self.place, store, &new).await?;
        unreferenced.keep();
        let addresses = self.addresses.as_mut().ok_or_else(no_store)?;
        for ((_, _, old, _), new) in found.iter().zip(stored) {
            addresses.insert(*old, new)?;
        }
        self.bound_waiting(what)
    }

    /// Lets the segment go. Refuses more payloads without a row than an archive has: each is written just before the
    /// commit that needs it.
    fn bound_waiting(&mut self, what: &str) -> Result<(), BackupError> {
        let mut size = 0;
        for payload in self.waiting.values_mut() {
            if let Archive::Bytes(bytes) = payload {
                *bytes = bytes::Bytes::copy_from_slice(bytes);
                size += bytes.len();
            }
        }
        match size <= WAITING_BYTES_MAX {
            true => Ok(()),
            false => Err(BackupError::damaged(what, "too many payloads come before it that no commit points to")),
        }
    }

    /// Applies the writes of a commit.
    fn commit(&self, commit: &ArchivedCommit<'_>, replay: &mut Replay, what: &str) -> Result<(), BackupError> {
        for (key, value) in &commit.writes {
            match value.map(|value| replay.container_row(key, value)).transpose()?.flatten() {
                None => replay.write(key, *value)?,
                Some(row) => {
                    let body = self.relocated(&row, commit.sequence, what)?;
                    replay.put_row(key, &row, body.as_deref())?;
                }
            }
        }
        Ok(())
    }

    /// The body of a row with the new addresses of its payloads.
    fn relocated(&self, row: &ContainerRow<'_>, commit: u64, what: &str) -> Result<Option<Vec<u8>>, BackupError> {
        let mut failed = None;
        let body = relocated(row.as_row(), |extent| match self.address(extent) {
            Ok(Some(address)) => address,
            Ok(None) => {
                let reason = format!(
                    "commit {commit} points to a payload of the blob '{}' that neither the backup nor the archive has",
                    row.partition.escape_debug()
                );
                failed = Some(BackupError::damaged(what, reason));
                *extent
            }
            Err(error) => {
                failed = Some(error);
                *extent
            }
        })?;
        match failed {
            Some(error) => Err(error),
            None => Ok(body),
        }
    }

    fn address(&self, extent: &Extent) -> Result<Option<Extent>, BackupError> {
        self.addresses.as_ref().map_or(Ok(None), |addresses| addresses.get(extent))
    }
}

/// Reads segments in order, the next one while one is used.
fn read_all<'a>(
    place: &'a Place,
    line: &'a str,
    segments: Vec<SegmentName>,
) -> impl Stream<Item = Result<(SegmentName, Segment), BackupError>> + 'a {
    let read = move |name: SegmentName| async move { Ok((name, name.read(place, line).await?)) };
    stream::iter(segments).map(read).buffered(SEGMENTS_AT_ONCE)
}

const SEGMENTS_AT_ONCE: usize = 2;
/// Four segments.
const WAITING_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests;
