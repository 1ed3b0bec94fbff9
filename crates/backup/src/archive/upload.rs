//! Stores the spooled commits of a line in the place, segment by segment.

use super::compose::{SEGMENT_BYTES, compose};
use super::line::{Line, SegmentName, Through};
use super::segment::{SEGMENT_BYTES_MAX, Segment};
use super::spool::{Cursor, Spool, SpoolEnd, SpooledGroup};
use super::status::ArchiveStatus;
use crate::chunk::blocking;
use crate::error::BackupError;
use crate::place::Place;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::ByteStore;
use larimar_model::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

/// Where segments go, and what they are made of.
pub(super) struct Uploader<B> {
    pub(super) place: Place,
    pub(super) bytes: Option<Arc<B>>,
    pub(super) removal: Arc<RwLock<()>>,
    pub(super) status: Arc<Mutex<ArchiveStatus>>,
}

/// A line, and how much of it is archived.
pub(super) struct OpenLine {
    pub(super) line: Line,
    pub(super) spool: Arc<Mutex<Spool>>,
    pub(super) cursor: Cursor,
    pub(super) intent: Option<SegmentName>,
    /// Nothing was published after the last archived commit until then.
    pub(super) quiet_until: Option<Timestamp>,
}

impl OpenLine {
    /// The last commit that is archived.
    pub(super) const fn archived(&self) -> SpoolEnd {
        self.cursor.read
    }

    /// How far the line is archived.
    pub(super) fn through(&self) -> Through {
        let SpoolEnd { point, published } = self.archived();
        Through::new(point.sequence, self.quiet_until.map_or(published, |until| until.max(published)))
    }
}

/// Why a line cannot go on.
pub(super) struct Broken(pub(super) String);

impl<B: ByteStore> Uploader<B> {
    /// Stores the next segment of a line, if there are commits that wait; whether there were. Tries until it succeeds.
    pub(super) async fn segment(&self, open: &mut OpenLine) -> Result<bool, Broken> {
        let readable = open.spool.lock().readable(open.cursor);
        let until = open.intent.map(|segment| segment.last);
        let read = blocking(move || readable.read(until, SEGMENT_BYTES)).await;
        let (groups, cursor) = read.map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
        let Some(last) = groups.last() else { return Ok(false) };
        let name = SegmentName { first: open.archived().point.sequence + 1, last: last.end.point.sequence };
        let is_again = open.intent == Some(name);
        if !is_again {
            let spool = Arc::clone(&open.spool);
            let intended = blocking(move || spool.lock().intend(name)).await;
            intended.map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
            open.intent = Some(name);
        }
        let mut attempts = self.attempts();
        while attempts.failed(self.put_segment(&open.line, name, &groups, is_again).await).await? {}
        (open.cursor, open.intent) = (cursor, None);
        let spool = Arc::clone(&open.spool);
        let released = blocking(move || spool.lock().release(name.last)).await;
        released.map_err(|error| broken(&error))?.map_err(|error| broken(&error))?;
        Ok(true)
    }

    /// `is_again`: an earlier attempt may have stored it. Then the payloads that it has may be removed by now.
    async fn put_segment(
        &self,
        line: &Line,
        name: SegmentName,
        groups: &[SpooledGroup],
        is_again: bool,
    ) -> Result<(), BackupError> {
        let file = name.file(&line.name);
        if is_again && self.has_segment(&file, name).await? {
            return self.place.sync_names(&[file]).await;
        }
        // Chunks that the place has must not be removed before the segment refers to them.
        let _writing = self.removal.read().await;
        let (segment, chunks) = compose(groups, name, self.bytes.as_deref(), &self.place).await?;
        self.place.sync_names(&chunks).await?;
        self.place.put_within(&file, segment, PUT_TIME_MAX).await?;
        self.place.sync_names(&[file]).await
    }

    /// Whether the place has a segment, undamaged.
    async fn has_segment(&self, file: &str, name: SegmentName) -> Result<bool, BackupError> {
        match self.place.get(file, SEGMENT_BYTES_MAX).await {
            Ok(bytes) => {
                let found = Segment::open(bytes, &self.place.show(file));
                Ok(found.is_ok_and(|segment| (segment.span.first, segment.span.last) == (name.first, name.last)))
            }
            Err(BackupError::Missing(_) | BackupError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Why a line that was begun cannot be continued, if that is so: another server, such as one with a restored copy of this
    /// store, has taken the place over meanwhile. Tries until the place answers.
    pub(super) async fn lost(&self, open: &OpenLine) -> Result<Option<String>, Broken> {
        let mut attempts = self.attempts();
        loop {
            let looked = self.look(open).await;
            let lost = looked.as_ref().ok().cloned().flatten();
            if !attempts.failed(looked.map(drop)).await? {
                return Ok(lost);
            }
        }
    }

    /// The same, tried once.
    pub(super) async fn look(&self, open: &OpenLine) -> Result<Option<String>, BackupError> {
        let line = &open.line;
        if let Some(end) = Through::read_end(&self.place, &line.name).await? {
            let sequence = end.sequence;
            return Ok(Some(format!("another server has ended the line after commit {sequence}")));
        }
        let is_begun = open.archived().point.sequence > line.after;
        if is_begun && self.place.size(&line.file()).await?.is_none() {
            return Ok(Some("the files of the line are gone from the archive's place".to_owned()));
        }
        Ok(None)
    }

    /// Writes the first file of a line, unless it is there.
    pub(super) async fn begin(&self, line: &Line) -> Result<(), Broken> {
        let mut attempts = self.attempts();
        while attempts.failed(self.put_line(line).await).await? {}
        Ok(())
    }

    async fn put_line(&self, line: &Line) -> Result<(), BackupError> {
        match Line::read(&self.place, &line.name).await {
            Ok(_) => Ok(()),
            Err(BackupError::Missing(_)) => {
                line.write(&self.place).await?;
                self.place.sync_names(&[line.file()]).await
            }
            Err(error) => Err(error),
        }
    }

    /// Writes how far a line is, or that it has ended.
    pub(super) async fn mark(&self, line: &Line, through: &Through) -> Result<(), Broken> {
        let mut attempts = self.attempts();
        while attempts.failed(self.put_mark(line, through).await).await? {}
        Ok(())
    }

    async fn put_mark(&self, line: &Line, through: &Through) -> Result<(), BackupError> {
        through.write(&self.place, &line.name).await?;
        self.place.sync_names(&[line.file()]).await
    }

    /// For something that is tried until it succeeds.
    pub(super) fn attempts(&self) -> Attempts {
        Attempts { to: self.place.to_string(), status: Arc::clone(&self.status), pause: PAUSE_MIN }
    }
}

/// Tries something until it succeeds, or until what it needs is damaged.
pub(super) struct Attempts {
    to: String,
    status: Arc<Mutex<ArchiveStatus>>,
    pause: Duration,
}

impl Attempts {
    /// Whether an attempt failed, so that another has to be made; waits before that.
    pub(super) async fn failed(&mut self, outcome: Result<(), BackupError>) -> Result<bool, Broken> {
        match outcome {
            Ok(()) => {
                if self.status.lock().failing.take().is_some() {
                    tracing::info!(to = self.to, "the archive takes commits again");
                }
                return Ok(false);
            }
            Err(BackupError::Engine(fault @ Fault::Damaged(_))) => {
                return Err(Broken(format!("a payload cannot be read: {fault}")));
            }
            Err(error) => {
                if self.status.lock().failing.replace(error.to_string()).is_none() {
                    tracing::warn!(to = self.to, %error, "the archive does not take commits; they wait in the spool");
                }
            }
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(true)
    }
}

fn broken(error: &dyn std::fmt::Display) -> Broken {
    Broken(format!("the spool cannot be read or written: {error}"))
}

/// A segment has a few MiB.
const PUT_TIME_MAX: Duration = Duration::from_secs(60);
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
