//! Reads a generation back, all of it, and names every file that is missing or damaged.

use crate::chunk::ChunkRef;
use crate::error::BackupError;
use crate::generation::Generation;
use crate::index::{DataChunk, IndexReader};
use crate::place::Place;
use crate::record::Record;
use crate::restore::{OTHER_PIECES, new_payloads};
use crate::tally::Tally;
use larimar_engine::SpaceId;

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
    verify_chunks(place, name, false, progress).await
}

/// Verifies a generation like [`verify`], and removes the chunks that are damaged: the next backup stores them again, if the
/// store still has their data. Nothing is lost by it, as a damaged chunk cannot be restored.
///
/// # Errors
/// A generation whose own file cannot be read, or another process that writes a backup to the place.
pub async fn remove_damaged(
    place: &Place,
    name: &str,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<(Generation, Vec<Problem>), BackupError> {
    // A backup that runs may rely on a chunk that is there.
    let _lock = place.prepare().await?;
    verify_chunks(place, name, true, progress).await
}

async fn verify_chunks(
    place: &Place,
    name: &str,
    is_removing: bool,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<(Generation, Vec<Problem>), BackupError> {
    let generation = Generation::read(place, name).await?;
    let mut index = IndexReader::new(place, &generation)?;
    let (mut problems, mut tally) = (Vec::new(), Tally::new(&generation));
    for chunk in generation.index().filter(|_| is_removing).into_iter().flatten() {
        problems.extend(check(place, chunk, is_removing, progress).await.err());
    }
    if !problems.is_empty() {
        // What it lists is not known before it is stored again.
        return Ok((generation, problems));
    }
    while problems.len() < PROBLEMS_MAX {
        let chunk = match index.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                problems.push(error);
                continue;
            }
        };
        if let Err(error) = tally.chunks(1 + chunk.pieces.len()) {
            problems.push(error);
            break;
        }
        let checked = match check(place, chunk.data, is_removing, progress).await {
            Ok(bytes) => count(&bytes, &chunk, &mut tally, &place.show(&chunk.data.name())),
            Err(error) => Err(error),
        };
        problems.extend(checked.err());
        for piece in &chunk.pieces {
            problems.extend(check(place, *piece, is_removing, progress).await.err());
        }
    }
    // What cannot be read is not counted.
    if problems.is_empty() {
        problems.extend(tally.finish().err());
    }
    Ok((generation, problems))
}

/// Counts what a chunk holds, and compares its payloads with the pieces that the index lists.
fn count(bytes: &[u8], chunk: &DataChunk, tally: &mut Tally<'_>, what: &str) -> Result<(), BackupError> {
    let (mut rest, mut pieces) = (bytes, &chunk.pieces[..]);
    while !rest.is_empty() {
        let (first, records) = Record::take_part(&mut rest).map_err(|reason| BackupError::damaged(what, reason))?;
        tally.part(&first, records.clone())?;
        new_payloads(SpaceId::SYSTEM, records, &mut pieces, what)?;
    }
    match pieces.is_empty() {
        true => Ok(()),
        false => Err(BackupError::damaged(what, OTHER_PIECES)),
    }
}

async fn check(
    place: &Place,
    chunk: ChunkRef,
    is_removing: bool,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<bytes::Bytes, BackupError> {
    let mut read = chunk.read(place).await;
    if is_removing && matches!(read, Err(BackupError::Damaged { .. })) {
        // Once more: the damage may have been on the way.
        read = chunk.read(place).await;
        if let Err(BackupError::Damaged { reason, .. }) = &mut read {
            place.remove(&chunk.name()).await?;
            reason.push_str("; it was removed");
        }
    }
    progress(chunk.length);
    read
}

pub(crate) const PROBLEMS_MAX: usize = 100;
