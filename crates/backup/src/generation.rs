//! A generation: one whole backup. Its file is written last, so an interrupted backup has none.

use crate::chunk::{ChunkId, ChunkRef};
use crate::error::BackupError;
use crate::place::{GENERATIONS, Place};
use crate::sealed;
use larimar_engine_local::CommitPoint;
use larimar_model::Timestamp;
use serde::{Deserialize, Serialize};

/// One whole backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    /// The version of the format.
    format: u32,
    /// When it was begun, by the server's clock: `2026-11-16T17:00:00.0000000Z`.
    pub taken: String,
    /// The release of the server.
    pub release: String,
    /// The engine of the server, if it is not the embedded one: `postgres`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The number of the last commit in it; 0 if the engine does not number them.
    pub sequence: u64,
    /// The line of the archive that was open when it was taken: the line's commits continue this backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<String>,
    /// The time of that commit, in ticks.
    committed: u64,
    /// The last version given to a row, in ticks.
    version: u64,
    /// What it holds.
    pub totals: Totals,
    /// The chunks of the index, in order: checksum and length.
    index: Vec<(String, u64)>,
}

/// What a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Tables, queues and containers.
    pub spaces: u64,
    /// Rows: entities, messages (two rows each), blobs and their parts, settings.
    pub rows: u64,
    /// Bytes of rows: keys, versions and bodies.
    pub row_bytes: u64,
    /// Payloads of blobs.
    pub payloads: u64,
    /// Their bytes.
    pub payload_bytes: u64,
    /// Chunks that it consists of, without the index.
    pub chunks: u64,
    /// Bytes of chunks that the place did not have before.
    pub sent_bytes: u64,
}

impl Totals {
    /// The bytes of rows and payloads.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.row_bytes.saturating_add(self.payload_bytes)
    }
}

impl Generation {
    pub(crate) fn new(
        taken: Timestamp,
        (version, commit): (Timestamp, CommitPoint),
        totals: Totals,
        index: &[ChunkRef],
    ) -> Self {
        Self {
            format: FORMAT,
            taken: taken.to_string(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            engine: None,
            sequence: commit.sequence,
            line: None,
            committed: commit.time.ticks(),
            version: version.ticks(),
            totals,
            index: index.iter().map(|chunk| (chunk.id.to_string(), chunk.length)).collect(),
        }
    }

    /// Its name: the time at which it was begun, and the number of its last commit. Names order as times do.
    #[must_use]
    pub fn name(&self) -> String {
        let time: String = self.taken.chars().filter(|char| !"-:Z".contains(*char)).collect();
        let (seconds, fraction) = time.split_once('.').unwrap_or((&time, ""));
        format!("{seconds}.{fraction:0<7}Z-{}", self.sequence)
    }

    /// Whether a file has the name of a generation. Others, such as copies that an editor leaves, are ignored.
    pub(crate) fn is_name(name: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        name.split_once("Z-").is_some_and(|(time, sequence)| {
            time.len() == TIME_CHARS && time.split(['T', '.']).all(is_number) && is_number(sequence)
        })
    }

    /// When it was begun: everything in it was published by then.
    pub(crate) fn taken_at(&self) -> Result<Timestamp, BackupError> {
        Timestamp::parse(&self.taken).map_err(|error| BackupError::damaged(self.name(), error.to_string()))
    }

    /// When the generation of a name was begun.
    pub(crate) fn time_of(name: &str) -> Option<Timestamp> {
        let (date, time) = name.split_once("Z-").filter(|_| Self::is_name(name))?.0.split_once('T')?;
        let [year, month, day] = [date.get(..4)?, date.get(4..6)?, date.get(6..)?];
        let [hour, minute, second] = [time.get(..2)?, time.get(2..4)?, time.get(4..)?];
        Timestamp::parse(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).ok()
    }

    /// The last version given to a row, and the last commit.
    #[must_use]
    pub fn point(&self) -> (Timestamp, CommitPoint) {
        let commit = CommitPoint { sequence: self.sequence, time: Timestamp::from_ticks(self.committed) };
        (Timestamp::from_ticks(self.version), commit)
    }

    /// The chunks of the index.
    pub(crate) fn index(&self) -> Option<Vec<ChunkRef>> {
        let chunk = |(id, length): &(String, u64)| Some(ChunkRef { id: id.parse::<ChunkId>().ok()?, length: *length });
        self.index.iter().map(chunk).collect()
    }

    /// Writes the file; returns its name in the place.
    pub(crate) async fn write(&self, place: &Place) -> Result<String, BackupError> {
        let file = format!("{GENERATIONS}/{}", self.name());
        if place.size(&file).await?.is_some() {
            // Of another server that uses the same place.
            return Err(BackupError::Place { what: place.show(&file), reason: "it exists already".to_owned() });
        }
        place.put(&file, sealed::seal(self)).await?;
        Ok(file)
    }

    /// Reads the generation of a name.
    ///
    /// # Errors
    /// A file that is missing or damaged, by name.
    pub async fn read(place: &Place, name: &str) -> Result<Self, BackupError> {
        let file = format!("{GENERATIONS}/{name}");
        let generation: Self = sealed::read(place, &file, FORMAT).await?;
        if generation.name() != name {
            return Err(BackupError::damaged(place.show(&file), "it is the file of another generation"));
        }
        Ok(generation)
    }

    /// Reads the generation of a name, or the latest.
    ///
    /// # Errors
    /// A place without backups, or without this one.
    pub async fn find(place: &Place, name: Option<&str>) -> Result<Self, BackupError> {
        let mut there = Self::list(place).await?;
        match name {
            None => Self::read(place, &there.pop().expect("there is one")).await,
            Some(name) if there.iter().any(|other| other == name) => Self::read(place, name).await,
            Some(name) => Err(BackupError::NoGeneration { name: name.to_owned(), there }),
        }
    }

    /// The names of the generations of a place, the oldest first; at least one.
    ///
    /// # Errors
    /// A place without backups.
    pub async fn list(place: &Place) -> Result<Vec<String>, BackupError> {
        let there = if place.is_ours().await? { place.generations().await? } else { Vec::new() };
        if there.is_empty() { Err(BackupError::NoBackup(place.to_string())) } else { Ok(there) }
    }
}

const FORMAT: u32 = 1;
/// `20261116T170102.5000000`
const TIME_CHARS: usize = 23;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_generation_is_read_as_it_was_written_and_damage_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let place = Place::directory(folder.path().join("place"));
        let _lock = place.prepare().await.expect("a place");
        let taken = Timestamp::parse("2026-11-16T17:01:02.5Z").expect("a time");
        let commit = CommitPoint { sequence: 7, time: taken };
        let totals = Totals { rows: 3, ..Totals::default() };
        let generation = Generation::new(taken, (taken, commit), totals, &[ChunkRef::of(b"index")]);
        assert_eq!(generation.name(), "20261116T170102.5000000Z-7");
        assert_eq!(Generation::time_of(&generation.name()), Some(taken));
        generation.write(&place).await.expect("written");
        assert!(generation.write(&place).await.is_err(), "a generation is never replaced");
        for stray in ["20261116T170102.5000000Z-7~", "extra", ".20261116T170102.5000000Z-7.swp"] {
            std::fs::write(folder.path().join("place/generations").join(stray), "").expect("a file");
        }
        let found = Generation::find(&place, None).await.expect("a generation");
        assert_eq!(
            (&found, found.point(), found.index()),
            (&generation, (taken, commit), Some(vec![ChunkRef::of(b"index")]))
        );
        let missing = Generation::find(&place, Some("none")).await.expect_err("none");
        assert!(missing.to_string().contains("20261116T170102.5000000Z-7"), "{missing}");
        let file = folder.path().join("place/generations/20261116T170102.5000000Z-7");
        let whole = std::fs::read(&file).expect("a file");
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            std::fs::write(&file, &flipped).expect("a file");
            let error = Generation::find(&place, None).await.expect_err("a flipped bit");
            assert!(error.to_string().contains("20261116T170102.5000000Z-7"), "{at}: {error}");
        }
    }
}
