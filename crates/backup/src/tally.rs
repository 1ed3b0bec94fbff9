//! Counts what a backup holds while it is read. More than its generation says is refused before it is stored.

use crate::error::BackupError;
use crate::generation::{Generation, Totals};
use crate::record::{Record, Records};

/// What was read of a generation so far.
pub(crate) struct Tally<'a> {
    generation: &'a Generation,
    pub(crate) totals: Totals,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(generation: &'a Generation) -> Self {
        Self { generation, totals: Totals::default() }
    }

    /// Counts chunks, before they are read.
    pub(crate) fn chunks(&mut self, count: usize) -> Result<(), BackupError> {
        self.totals.chunks = self.totals.chunks.saturating_add(count as u64);
        self.check()
    }

    /// Counts the records of a space, before they are stored.
    pub(crate) fn part(&mut self, first: &Record<'_>, records: Records<'_>) -> Result<(), BackupError> {
        self.totals.spaces += u64::from(matches!(first, Record::Space { name: Some(_), .. }));
        let mut partition = 0;
        for record in records {
            match record {
                Record::Partition(text) => partition = text.len(),
                Record::Row { row, body, .. } => {
                    self.totals.rows += 1;
                    self.totals.row_bytes += (partition + row.len() + size_of::<u64>() + body.len()) as u64;
                }
                Record::Payload { extent, .. } | Record::Pieces { extent, .. } => {
                    self.totals.payloads += 1;
                    self.totals.payload_bytes = self.totals.payload_bytes.saturating_add(extent.length);
                }
                Record::Space { .. } | Record::Within(_) => {}
            }
        }
        self.check()
    }

    /// Refuses a generation that holds less than it says, after all of it was read.
    pub(crate) fn finish(self) -> Result<Totals, BackupError> {
        match counts(&self.totals) == counts(&self.generation.totals) {
            true => Ok(self.totals),
            false => Err(self.wrong("its chunks do not hold what its totals say")),
        }
    }

    fn check(&self) -> Result<(), BackupError> {
        let (found, said) = (counts(&self.totals), counts(&self.generation.totals));
        match found.iter().zip(said).all(|(found, said)| *found <= said) {
            true => Ok(()),
            false => Err(self.wrong("its chunks hold more than its totals say")),
        }
    }

    fn wrong(&self, reason: &str) -> BackupError {
        BackupError::damaged(self.generation.name(), reason)
    }
}

/// What a reader can count: not the bytes that were sent.
const fn counts(totals: &Totals) -> [u64; 6] {
    let Totals { spaces, rows, row_bytes, payloads, payload_bytes, chunks, sent_bytes: _ } = *totals;
    [spaces, rows, row_bytes, payloads, payload_bytes, chunks]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::ChunkRef;
    use crate::index::Entry;
    use crate::pace::Rate;
    use crate::place::Place;
    use crate::restore::restore;
    use crate::single::{SingleRestore, Wanted};
    use crate::verify::verify;
    use bytes::Bytes;
    use larimar_engine::blob::bytes::{Extent, MemoryBytes};
    use larimar_engine::{SpaceKind, SpaceName};
    use larimar_engine_local::{CommitPoint, Loader, LocalEngine};
    use larimar_model::Timestamp;
    use std::sync::Arc;

    /// What is wrong with a backup, and the totals that make it so.
    type Change = (Option<&'static str>, fn(&mut Totals));

    const NO_STORE: &str = "no store for their bytes";

    async fn put(place: &Place, bytes: &[u8]) -> ChunkRef {
        let chunk = ChunkRef::of(bytes);
        place.put(&chunk.name(), Bytes::copy_from_slice(bytes)).await.expect("a chunk");
        chunk
    }

    /// A backup of a container with one payload, of one piece many times over.
    async fn backup(place: &Place, day: u32, change: impl FnOnce(&mut Totals)) -> Generation {
        let piece = put(place, &[7; 1000]).await;
        let extent = Extent { file: [1; 16], offset: 0, length: 300 * piece.length };
        let name = Some(SpaceName { account: "one", kind: SpaceKind::Container, name: "photos" });
        let (mut data, mut index) = (Vec::new(), Vec::new());
        Record::Space { name, number: 9, meta: b"" }.encode(&mut data);
        Record::Partition("blob").encode(&mut data);
        Record::Pieces { extent, count: 300 }.encode(&mut data);
        Entry::Space { name, number: 9 }.encode(&mut index);
        (0..300).for_each(|_| Entry::Piece(piece).encode(&mut index));
        Entry::Data(put(place, &data).await).encode(&mut index);
        let index = put(place, &index).await;
        let mut totals = Totals { spaces: 1, payloads: 1, payload_bytes: 300_000, chunks: 301, ..Totals::default() };
        change(&mut totals);
        let taken = Timestamp::parse(&format!("2020-11-{day:02}T12:00:00Z")).expect("a time");
        let commit = CommitPoint { sequence: 7, time: taken };
        let generation = Generation::new(taken, (taken, commit), totals, &[index]);
        generation.write(place).await.expect("a generation");
        generation
    }

    #[tokio::test]
    async fn more_than_the_totals_is_refused_before_it_is_stored_and_less_at_the_end() {
        let folder = tempfile::tempdir().expect("a directory");
        let place = Place::directory(folder.path().join("place"));
        let _lock = place.prepare().await.expect("a place");
        let (more, less) = ("hold more than its totals say", "do not hold what its totals say");
        let changes: [Change; 6] = [
            (Some(more), |totals| totals.payload_bytes = 100),
            (Some(more), |totals| totals.payloads = 0),
            (Some(more), |totals| totals.spaces = 0),
            (Some(more), |totals| totals.chunks = 300),
            (Some(less), |totals| totals.rows = 1),
            (Some(less), |totals| totals.chunks = 302),
        ];
        for (day, (expected, change)) in (1..).zip(changes.into_iter().chain([(None, (|_| ()) as fn(&mut Totals))])) {
            let generation = backup(&place, day, change).await;
            let (_, problems) = verify(&place, &generation.name(), &|_| ()).await.expect("a generation");
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let is_alike = |text: &str| expected.is_some_and(|expected| text.contains(expected));
            assert!(
                problems.len() == usize::from(expected.is_some()) && problems.iter().all(|text| is_alike(text)),
                "{problems:?}"
            );
            // Without a store, payloads are refused in another way.
            let expected = expected.filter(|expected| *expected == more).unwrap_or(NO_STORE);
            let mut loader = Loader::in_memory();
            let error =
                restore(&place, &generation, &mut loader, None::<&MemoryBytes>, &|_| ()).await.expect_err("a refusal");
            assert!(error.to_string().contains(expected), "{day}: {error}");
            let wanted = Wanted::read(SpaceKind::Container, "photos", "one", "one").expect("a name");
            let engine = Arc::new(LocalEngine::in_memory().expect("an engine"));
            let single = SingleRestore::new(engine, None::<Arc<MemoryBytes>>, false);
            let run = single.run(&place, &generation, &[wanted], Rate::Max, &|_| ()).await;
            let error = run.expect_err("a refusal").to_string();
            // It does not read all chunks.
            let expected = if generation.totals.chunks == 300 { NO_STORE } else { expected };
            assert!(error.contains(expected), "{day}: {error}");
            single.discard().await;
        }
    }
}
