//! The chunks that kept backups and segments refer to.

use super::{AT_ONCE, Plan};
use crate::archive::segment::{SEGMENT_BYTES_MAX, Segment, SegmentRecord};
use crate::chunk::ChunkId;
use crate::error::BackupError;
use crate::generation::Generation;
use crate::index::IndexReader;
use crate::place::{CHUNKS, Place};
use futures_util::future::try_join_all;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The chunks that kept files refer to, by the names that they have in the place: at most 90 bytes of memory for each, so
/// 90 MB for a million chunks (1 TiB).
#[derive(Default)]
pub(super) struct References {
    /// With the number of a file that refers to it.
    chunks: HashMap<ChunkId, u32>,
    /// The files that were read.
    files: Vec<String>,
    read: HashSet<String>,
}

impl References {
    /// Reads what the plan keeps; what was read before is not read again.
    pub(super) async fn read(&mut self, place: &Place, plan: &Plan) -> Result<(), BackupError> {
        for generation in &plan.kept {
            let name = generation.name();
            if self.read.insert(name.clone()) {
                self.read_generation(place, generation).await.map_err(|error| error.of_kept(&name))?;
            }
        }
        let new: Vec<&String> = plan.kept_segments.iter().filter(|file| !self.read.contains(*file)).collect();
        for group in new.chunks(AT_ONCE) {
            let mut reads = Vec::with_capacity(group.len());
            for file in group {
                reads.push(pieces_of(place, file));
            }
            for (file, pieces) in group.iter().zip(try_join_all(reads).await?) {
                if !pieces.is_empty() {
                    self.begin(file);
                }
                pieces.into_iter().for_each(|piece| self.add(place, piece));
                self.read.insert((*file).clone());
            }
        }
        Ok(())
    }

    async fn read_generation(&mut self, place: &Place, generation: &Generation) -> Result<(), BackupError> {
        self.begin(&generation.name());
        let mut index = IndexReader::new(place, generation)?;
        generation.index().into_iter().flatten().for_each(|chunk| self.add(place, chunk.id));
        while let Some(chunk) = index.next().await? {
            self.add(place, chunk.data.id);
            chunk.pieces.iter().for_each(|piece| self.add(place, piece.id));
        }
        Ok(())
    }

    fn begin(&mut self, file: &str) {
        self.files.push(file.to_owned());
    }

    fn add(&mut self, place: &Place, chunk: ChunkId) {
        let file = u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX);
        self.chunks.entry(place.stored_chunk(chunk)).or_insert(file);
    }

    /// The chunks of the place that nothing refers to, and their bytes.
    ///
    /// # Errors
    /// A chunk that is referred to and missing.
    pub(super) async fn unused(mut self, place: &Place, age_min: Duration) -> Result<(Vec<ChunkId>, u64), BackupError> {
        let (mut unused, mut bytes) = (Vec::new(), 0);
        let is_ours = |name: &String| name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        for directory in place.names(CHUNKS).await?.into_iter().filter(is_ours) {
            for file in place.storage().files(&format!("{CHUNKS}/{directory}")).await? {
                // Other files are left alone.
                let Some(id) = file.name.parse().ok().filter(|id: &ChunkId| id.to_string() == file.name) else {
                    continue;
                };
                if self.chunks.remove(&id).is_none() && file.age >= age_min {
                    unused.push(id);
                    bytes += file.size;
                }
            }
        }
        match self.chunks.iter().next() {
            None => Ok((unused, bytes)),
            Some((id, file)) => {
                let holder = self.files.get(*file as usize).map_or("a backup", String::as_str);
                Err(BackupError::Missing(place.storage().show(&id.file())).of_kept(holder))
            }
        }
    }
}

/// The chunks that a segment refers to.
async fn pieces_of(place: &Place, file: &str) -> Result<Vec<ChunkId>, BackupError> {
    let what = place.show(file);
    let bytes = place.get(file, SEGMENT_BYTES_MAX).await.map_err(|error| error.of_kept(file))?;
    let segment = Segment::open(bytes, &what).map_err(|error| error.of_kept(file))?;
    let mut pieces = Vec::new();
    for record in segment.records() {
        let damaged = || BackupError::damaged(&what, "a record cannot be read").of_kept(file);
        match record.ok_or_else(damaged)? {
            SegmentRecord::Pieces { chunks, .. } => pieces.extend(chunks.iter().map(|chunk| chunk.id)),
            SegmentRecord::Commit(_) | SegmentRecord::Payload { .. } => {}
        }
    }
    Ok(pieces)
}
