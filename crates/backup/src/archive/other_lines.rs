//! Lines of the place that this process does not write: those that nobody continues are ended.

use super::line::{Line, SegmentName, Through};
use super::segment::{SEGMENT_BYTES_MAX, Segment};
use crate::error::BackupError;
use crate::place::Place;
use larimar_engine::{Clock, SystemClock};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// What is known about the lines of a place.
pub(super) struct OtherLines {
    place: Place,
    /// How often a server that runs writes to its line.
    through_every: Duration,
    /// The lines that this process has begun or continued.
    own: HashSet<String>,
    /// Open lines of others in an object store: how far each was, and since when.
    seen: HashMap<String, (Through, Instant)>,
}

impl OtherLines {
    pub(super) fn new(place: Place, through_every: Duration) -> Self {
        Self { place, through_every, own: HashSet::new(), seen: HashMap::new() }
    }

    /// This process writes a line.
    pub(super) fn add_own(&mut self, line: &Line) {
        self.own.insert(line.name.clone());
    }

    /// Ends lines that have no end but this one, as those of a server whose data directory is gone.
    pub(super) async fn end(&mut self, line: &Line) -> Result<(), BackupError> {
        let place = &self.place.clone();
        for name in Line::list(place).await? {
            if name == line.name || Through::read_end(place, &name).await?.is_some() {
                continue;
            }
            let other = match Line::read(place, &name).await {
                // A removal was interrupted; the next one finishes it.
                Err(BackupError::Missing(_)) => continue,
                other => other?,
            };
            let last = match SegmentName::list(place, &name).await?.last() {
                None => Through::read(place, &name).await?.unwrap_or_else(|| other.start()),
                Some(last) => {
                    let file = last.file(&name);
                    let bytes = place.get(&file, SEGMENT_BYTES_MAX).await?;
                    let through = Segment::open(bytes, &place.show(&file))?.span.through;
                    Through::new(last.last, through)
                }
            };
            if !self.is_quiet(&name, &last) {
                let reason =
                    "another server may be writing this line: commits wait in the spool until it is quiet for a while";
                return Err(BackupError::Place { what: place.show(&other.file()), reason: reason.to_owned() });
            }
            last.ended("the server did not continue it").write(place, &name).await?;
        }
        Ok(())
    }

    /// Whether nobody writes a line any more. A directory is locked; in an object store a server that runs writes at least
    /// that nothing happened.
    fn is_quiet(&mut self, name: &str, last: &Through) -> bool {
        if self.place.as_directory().is_some() || self.own.contains(name) {
            return true;
        }
        if SystemClock.now().to_unix().saturating_sub(last.time().to_unix()) > ABANDONED_AFTER {
            return true;
        }
        match self.seen.get(name) {
            Some((seen, since)) if seen == last => since.elapsed() >= 2 * self.through_every + QUIET_MORE,
            _ => {
                self.seen.insert(name.to_owned(), (last.clone(), Instant::now()));
                false
            }
        }
    }
}

/// A line of another server that is further behind than this is not written any more.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);
/// How much longer than two of the times at which it writes another server may take.
const QUIET_MORE: Duration = Duration::from_millis(if cfg!(test) { 500 } else { 5000 });
