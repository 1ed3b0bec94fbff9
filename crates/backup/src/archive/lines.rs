//! The lines of a place, and the moments that each can restore.

use super::line::Line;
use super::reach::{LineState, Reach};
use super::segment::SegmentRecord;
use crate::error::BackupError;
use crate::generation::Generation;
use crate::place::Place;
use crate::verify::PROBLEMS_MAX;
use larimar_model::Timestamp;

/// A line of the archive, and what can be restored from it.
#[derive(Debug)]
pub struct ArchiveLine {
    /// Its name.
    pub name: String,
    /// The moments that can be restored; none without a backup of the line.
    pub moments: Option<Moments>,
    /// Why it ends; a line that goes on has no reason.
    pub end: Option<String>,
    /// Its segments.
    pub segments: usize,
    /// What is wrong with it: of many problems, the first hundred.
    pub problems: Vec<BackupError>,
}

/// The moments that can be restored from a line: all from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// When the first backup of the line was taken.
    pub first: Timestamp,
    /// The last commit in that backup.
    pub first_sequence: u64,
    /// Everything that was published up to this time is archived.
    pub last: Timestamp,
    /// The last commit.
    pub last_sequence: u64,
}

/// Lists the lines of a place, the oldest first. With `read`, every segment and every payload in it is read, and `read`
/// receives how many bytes were.
///
/// # Errors
/// A place that cannot be listed. What is wrong with a line is one of its problems.
pub async fn archive_lines(
    place: &Place,
    read: Option<&(dyn Fn(u64) + Send + Sync)>,
) -> Result<Vec<ArchiveLine>, BackupError> {
    let mut generations = Vec::new();
    for name in place.generations().await? {
        // One that cannot be read is named by the verification of backups.
        generations.extend(Generation::read(place, &name).await.ok());
    }
    let mut lines = Vec::new();
    for name in Line::list(place).await? {
        let first = generations.iter().find(|generation| generation.line.as_ref() == Some(&name));
        lines.push(examine(place, name, first, read).await);
    }
    Ok(lines)
}

async fn examine(
    place: &Place,
    name: String,
    first: Option<&Generation>,
    read: Option<&(dyn Fn(u64) + Send + Sync)>,
) -> ArchiveLine {
    let mut line = ArchiveLine { name, moments: None, end: None, segments: 0, problems: Vec::new() };
    let state = match LineState::load(place, &line.name).await {
        Ok(state) => state,
        Err(problem) => {
            line.problems.push(problem);
            return line;
        }
    };
    line.segments = state.segments.len();
    line.end = state.end.is_some().then(|| state.reason());
    if let Some(progress) = read {
        for segment in &state.segments {
            if line.problems.len() < PROBLEMS_MAX {
                line.problems.extend(read_back(place, &line.name, *segment, progress).await);
            }
        }
    }
    // Segments from before the first backup may have been removed.
    let after = first.map_or(state.segments.first().map_or(0, |first| first.first - 1), |first| first.sequence);
    match state.reach(place, after).await {
        Ok(Reach { sequence, time, missing, .. }) => {
            line.problems.extend(missing);
            let first = first.and_then(|first| Some((first.taken_at().ok()?, first.sequence)));
            line.moments = first.zip(time).filter(|((first, _), last)| first <= last).map(|((first, number), last)| {
                Moments { first, first_sequence: number, last, last_sequence: sequence }
            });
        }
        // It was read before.
        Err(_) if read.is_some() => {}
        Err(problem) => line.problems.push(problem),
    }
    line
}

/// Reads a segment and the chunks of its payloads; returns what is wrong.
async fn read_back(
    place: &Place,
    line: &str,
    name: super::line::SegmentName,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Vec<BackupError> {
    let segment = match name.read(place, line).await {
        Ok(segment) => segment,
        Err(problem) => return vec![problem],
    };
    progress(segment.bytes());
    let mut problems = Vec::new();
    for record in segment.records().flatten() {
        let SegmentRecord::Pieces { chunks, .. } = record else { continue };
        for chunk in chunks {
            problems.extend(chunk.read(place).await.err());
            progress(chunk.length);
        }
    }
    problems
}
