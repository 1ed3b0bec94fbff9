//! Reads a generation back, all of it, and names every file that is missing or damaged.

use crate::chunk::ChunkRef;
use crate::error::BackupError;
use crate::generation::Generation;
use crate::index::IndexReader;
use crate::place::Place;
use crate::record::Record;

/// A file of a backup that is missing or damaged, and what is wrong with it.
pub type Problem = BackupError;

/// Reads everything that a generation consists of. Returns what is wrong with it: of many problems, the first hundred.
///
/// # Errors
/// A generation whose own file cannot be read.
pub async fn verify(
    place: &Place,
    name: &str,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<(Generation, Vec<Problem>), BackupError> {
    let generation = Generation::read(place, name).await?;
    let mut index = IndexReader::new(place, &generation)?;
    let (mut problems, mut chunks) = (Vec::new(), 0);
    while problems.len() < PROBLEMS_MAX {
        let chunk = match index.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                problems.push(error);
                continue;
            }
        };
        for piece in &chunk.pieces {
            problems.extend(check(place, *piece, progress).await.err());
        }
        chunks += 1 + chunk.pieces.len() as u64;
        match check(place, chunk.data, progress).await {
            Ok(bytes) if Record::all(&bytes).is_none() => {
                let what = place.show(&chunk.data.name());
                problems.push(BackupError::damaged(what, "a record cannot be read"));
            }
            checked => problems.extend(checked.err()),
        }
    }
    if problems.is_empty() && chunks != generation.totals.chunks {
        let reason = format!("the index lists {chunks} chunks instead of {}", generation.totals.chunks);
        problems.push(BackupError::damaged(name, reason));
    }
    Ok((generation, problems))
}

async fn check(
    place: &Place,
    chunk: ChunkRef,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<bytes::Bytes, BackupError> {
    let read = chunk.read(place).await;
    progress(chunk.length);
    read
}

pub(crate) const PROBLEMS_MAX: usize = 100;
