//! How far a line can be replayed: which of its segments follow a backup without a hole, and up to which time.

use super::line::{Line, SegmentName, Through, is_line};
use super::segment::{SEGMENT_BYTES_MAX, Segment, SegmentRecord};
use crate::error::BackupError;
use crate::place::Place;
use larimar_model::Timestamp;

/// What a line holds, by the names of its files and what they say about its end.
pub(crate) struct LineState {
    pub(crate) line: Line,
    pub(crate) segments: Vec<SegmentName>,
    /// The furthest that a file of the line says it is archived.
    through: Option<Through>,
    pub(crate) end: Option<Through>,
}

/// How far a line can be replayed after a commit.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The last commit.
    pub(crate) sequence: u64,
    /// No later commit was published at or before this time; `None` if there is no segment and no file that says so.
    pub(crate) time: Option<Timestamp>,
    /// When the last commit was published, if a segment has it.
    pub(crate) published: Option<Timestamp>,
    /// The segment that is missing after it.
    pub(crate) missing: Option<BackupError>,
}

impl LineState {
    /// Lists the line's segments and reads its small files.
    pub(crate) async fn load(place: &Place, name: &str) -> Result<Self, BackupError> {
        // The name may come from a file of the place, and is a part of paths.
        if !is_line(name) {
            return Err(BackupError::damaged("a backup", format!("it names the line {name:?}, which cannot be one")));
        }
        let line = Line::read(place, name).await?;
        // The files before the segments: what they say is archived is among the segments then.
        let (through, end) = (Through::read(place, name).await?, Through::read_end(place, name).await?);
        let segments = SegmentName::list(place, name).await?;
        let through = through.into_iter().chain(end.clone()).max_by_key(|through| (through.sequence, through.time()));
        Ok(Self { line, segments, through, end })
    }

    /// The segments that a replay after this commit reads, in order, up to the first that is missing; the last commit that
    /// they hold; and the missing one.
    pub(crate) fn after(&self, place: &Place, sequence: u64) -> (Vec<SegmentName>, u64, Option<BackupError>) {
        let (mut last, mut segments) = (sequence, Vec::new());
        let before = self.segments.iter().filter(|segment| segment.last <= sequence).map(|segment| segment.last).max();
        let before = before.unwrap_or(self.line.after);
        let missing = |last: u64, next: u64| {
            // The backup may have some of the segment's commits.
            let first = if last == sequence { before + 1 } else { last + 1 };
            BackupError::Missing(place.show(&SegmentName { first, last: next }.file(&self.line.name)))
        };
        for segment in self.segments.iter().filter(|segment| segment.last > sequence) {
            if segment.first > last.saturating_add(1) {
                return (segments, last, Some(missing(last, segment.first - 1)));
            }
            // One that an interrupted server began to write again may overlap with the one before.
            last = last.max(segment.last);
            segments.push(*segment);
        }
        let said = self.through.as_ref().map_or(0, |through| through.sequence);
        let after_all = (said > last).then(|| missing(last, said));
        (segments, last, after_all)
    }

    /// How far the line can be replayed after a commit.
    pub(crate) async fn reach(&self, place: &Place, sequence: u64) -> Result<Reach, BackupError> {
        let (segments, last, missing) = self.after(place, sequence);
        let (mut time, mut published) = (None, None);
        if let Some(name) = segments.iter().max_by_key(|segment| segment.last) {
            let segment = name.read(place, &self.line.name).await?;
            time = Some(segment.span.through);
            published = segment.records().flatten().filter_map(commit_time).last();
        }
        if missing.is_none() {
            time = time.max(self.through.as_ref().map(Through::time));
        }
        Ok(Reach { sequence: last, time, published, missing })
    }

    /// Why no commit follows the last.
    pub(crate) fn reason(&self) -> String {
        match self.end.as_ref().and_then(|end| end.reason.clone()) {
            Some(reason) => reason,
            None => "the archive does not say why it went no further".to_owned(),
        }
    }
}

fn commit_time(record: SegmentRecord<'_>) -> Option<Timestamp> {
    match record {
        SegmentRecord::Commit(commit) => Some(commit.time),
        SegmentRecord::Payload { .. } | SegmentRecord::Pieces { .. } => None,
    }
}

impl SegmentName {
    /// Reads a segment and checks it: its checksum, that it is the one of its name, and that its commits follow each other.
    pub(crate) async fn read(self, place: &Place, line: &str) -> Result<Segment, BackupError> {
        let file = self.file(line);
        let what = place.show(&file);
        let bytes = place.get(&file, SEGMENT_BYTES_MAX).await?;
        crate::chunk::blocking(move || {
            let segment = Segment::open(bytes, &what)?;
            let wrong = |reason: &str| Err(BackupError::damaged(&what, reason));
            if (segment.span.first, segment.span.last) != (self.first, self.last) {
                return wrong("it is the file of another segment");
            }
            let (mut next, mut time) = (Some(self.first), Timestamp::from_ticks(0));
            for record in segment.records() {
                let Some(record) = record else { return wrong("a record cannot be read") };
                if let SegmentRecord::Commit(commit) = record {
                    if Some(commit.sequence) != next || commit.time < time || commit.time > segment.span.through {
                        return wrong("its commits do not follow each other");
                    }
                    (next, time) = (commit.sequence.checked_add(1), commit.time);
                }
            }
            if next == self.last.checked_add(1) { Ok(segment) } else { wrong("it has not all of its commits") }
        })
        .await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_is_not_one_of_a_line_is_no_path() {
        let place = Place::directory("nowhere");
        for name in ["../..", "", "20261116T170102.5000000Z-7-../../..", "20261116T1701/../000000Z-7-010203ff"] {
            let error = LineState::load(&place, name).await.err().expect("a refusal");
            assert!(matches!(error, BackupError::Damaged { .. }), "{name}: {error}");
        }
    }
}
