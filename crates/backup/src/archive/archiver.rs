//! The archiver: opens a line, archives its commits until it has to end, and opens the next.

use super::base;
use super::line::{Line, Through};
use super::mailbox::CommitMailbox;
use super::other_lines::OtherLines;
use super::recover::{Found, OldLine, create, recover};
use super::spool::Spool;
use super::spooler::{Halt, Spooler};
use super::status::ArchiveStatus;
use super::upload::{Broken, OpenLine, Uploader};
use crate::chunk::blocking;
use crate::error::BackupError;
use crate::job::{BackupJob, LineMark};
use crate::place::{Place, PlaceLock};
use larimar_engine::blob::bytes::{ByteStore, PayloadHold};
use larimar_engine::{Clock, Fault, SystemClock};
use larimar_engine_local::{ContainerRows, LocalEngine};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How to archive.
#[derive(Clone, Debug)]
pub struct ArchiveSettings {
    /// Where segments and full backups go.
    pub place: Place,
    /// The directory of the spool, in the data directory.
    pub spool: PathBuf,
    /// Most bytes that may be kept for the archive alone: commits in the spool, and payloads of waiting commits whose blobs
    /// were deleted or replaced.
    pub spool_bytes_max: u64,
    /// How often a full backup is taken.
    pub backup_every: Duration,
    /// How often a segment is stored while there are commits.
    pub segment_every: Duration,
    /// How often it is stored that there were no commits.
    pub through_every: Duration,
}

impl ArchiveSettings {
    /// The defaults.
    #[must_use]
    pub fn new(place: Place, spool: PathBuf) -> Self {
        Self {
            place,
            spool,
            spool_bytes_max: 1 << 30,
            backup_every: Duration::from_secs(86_400),
            segment_every: Duration::from_secs(1),
            through_every: Duration::from_secs(30),
        }
    }
}

/// Archives the commits of an engine that was opened with a [`CommitMailbox`].
#[derive(Debug)]
pub struct Archiver {
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What the task shows to others.
#[derive(Debug, Default)]
struct Shared {
    status: Arc<Mutex<ArchiveStatus>>,
    /// Of the line that is open.
    spool: Mutex<Option<Arc<Mutex<Spool>>>>,
}

impl Archiver {
    /// Starts archiving. It has to be called before payloads of blobs are reclaimed.
    pub fn start<B: ByteStore>(
        engine: Arc<LocalEngine>,
        bytes: Option<Arc<B>>,
        job: Arc<BackupJob<LocalEngine, B>>,
        mailbox: Arc<CommitMailbox>,
        settings: ArchiveSettings,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        shared.status.lock().to = settings.place.to_string();
        job.set_archive(settings.place.clone());
        let uploader = Uploader {
            place: settings.place.clone(),
            bytes,
            removal: job.removal_lock(),
            status: Arc::clone(&shared.status),
        };
        let holds = VecDeque::from([(0, uploader.hold())]);
        let lines = OtherLines::new(settings.place.clone(), settings.through_every);
        let task =
            Task { engine, job, mailbox, settings, uploader, holds, shared: Arc::clone(&shared), lock: None, lines };
        let (stop, stopped) = watch::channel(false);
        let task = Mutex::new(Some(tokio::spawn(task.run(stopped))));
        Self { shared, stop, task }
    }

    /// How far the archive is.
    #[must_use]
    pub fn status(&self) -> ArchiveStatus {
        let mut status = self.shared.status.lock().clone();
        let spool = self.shared.spool.lock().clone();
        status.is_spooling = spool.is_some();
        let (bytes, oldest) = spool.map_or((0, None), |spool| spool.lock().waiting());
        status.spool_bytes = bytes;
        let waited = oldest.map(|oldest| SystemClock.now().to_unix().saturating_sub(oldest.to_unix()));
        status.lag_seconds = waited.unwrap_or_default().as_secs();
        status
    }

    /// Stops after the engine was closed: every commit is in the spool when this returns, and in the archive if that takes
    /// no more than two seconds.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let task = self.task.lock().take();
        if let Some(task) = task
            && task.await.is_err()
        {
            tracing::error!("the archive ended in a defect of the server");
        }
    }
}

struct Task<B> {
    engine: Arc<LocalEngine>,
    job: Arc<BackupJob<LocalEngine, B>>,
    mailbox: Arc<CommitMailbox>,
    settings: ArchiveSettings,
    uploader: Uploader<B>,
    /// Each keeps the payloads of the commits after a number.
    holds: VecDeque<(u64, Option<PayloadHold>)>,
    shared: Arc<Shared>,
    lock: Option<PlaceLock>,
    lines: OtherLines,
}

impl<B: ByteStore> Uploader<B> {
    fn hold(&self) -> Option<PayloadHold> {
        self.bytes.as_ref().map(|bytes| bytes.hold())
    }
}

impl<B: ByteStore> Task<B> {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut old = Vec::new();
        let mut next = self.open(Some(&mut old)).await;
        loop {
            let (mut open, containers) = match next {
                Ok(next) => next,
                Err(reason) => {
                    self.note_gap(reason);
                    let pause = tokio::time::sleep(REOPEN_PAUSE);
                    tokio::select! {
                        () = pause => {}
                        _ = stopped.wait_for(|stopped| *stopped) => return,
                    }
                    next = tokio::select! {
                        next = self.begin_again() => next,
                        _ = stopped.wait_for(|stopped| *stopped) => return,
                    };
                    continue;
                }
            };
            let halt = Arc::new(watch::Sender::new(None));
            let spooler = self.spooler(&open, containers, &halt);
            let thread = match spooler.start() {
                Ok(thread) => thread,
                Err(error) => {
                    next = Err(format!("a thread cannot be started: {error}"));
                    continue;
                }
            };
            let reason = tokio::select! {
                reason = self.archive(&mut old, &mut open, &halt) => Some(reason),
                _ = stopped.wait_for(|stopped| *stopped) => None,
            };
            let Some(reason) = reason else { return self.finish(&mut open, thread).await };
            halt.send_replace(Some(reason.clone()));
            next = tokio::select! {
                next = async {
                    self.end(open, thread, &reason).await;
                    self.begin_again().await
                } => next,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
        }
    }

    fn spooler(&self, open: &OpenLine, containers: ContainerRows, halt: &Arc<Halt>) -> Spooler {
        *self.shared.spool.lock() = Some(Arc::clone(&open.spool));
        let bytes = self.uploader.bytes.clone();
        Spooler {
            mailbox: Arc::clone(&self.mailbox),
            spool: Arc::clone(&open.spool),
            containers,
            has_room: self.engine.spool_admission(),
            discarded: Box::new(move || bytes.as_ref().map_or(0, |bytes| bytes.statistics().discarded_bytes)),
            halt: Arc::clone(halt),
        }
    }

    /// Opens the line that the feed of commits continues, or a new one. Spools of other lines go to `old`.
    async fn open(&self, old: Option<&mut Vec<OldLine>>) -> Result<(OpenLine, ContainerRows), String> {
        let (start, containers) = self.mailbox.started().ok_or("the engine gives no commits")?;
        let (root, max, to) =
            (self.settings.spool.clone(), self.settings.spool_bytes_max, self.settings.place.to_string());
        let is_first = old.is_some();
        let opened = blocking(move || {
            let mut found = if is_first { recover(&root, &to, start.point, max) } else { Found::default() };
            let open = found.current.take().map_or_else(|| create(&root, to, start, max), Ok);
            (open, found)
        });
        let (open, found) = opened.await.map_err(|error| error.to_string())?;
        found.lost.into_iter().for_each(|reason| self.note_gap(reason));
        if let Some(old) = old {
            *old = found.old;
        }
        let open = open.map_err(|error| format!("the spool cannot be written: {error}"))?;
        Ok((open, containers))
    }

    /// Archives a line until it has to end; returns why.
    async fn archive(&mut self, old: &mut Vec<OldLine>, open: &mut OpenLine, halt: &Halt) -> String {
        let mut halted = halt.subscribe();
        tokio::select! {
            broken = self.archive_unhalted(old, open) => broken.0,
            reason = halted.wait_for(Option::is_some) => {
                reason.ok().and_then(|reason| reason.clone()).unwrap_or_else(|| "the archive was stopped".to_owned())
            }
        }
    }

    async fn archive_unhalted(&mut self, old: &mut Vec<OldLine>, open: &mut OpenLine) -> Broken {
        self.lines.add_own(&open.line);
        match self.prepare(old, open).await {
            Ok(()) => {}
            Err(broken) => return broken,
        }
        let Line { name, after, .. } = open.line.clone();
        let archived = open.archived();
        {
            let mut status = self.shared.status.lock();
            status.line = Some(name.clone());
            status.archived(archived.point.sequence, archived.published);
        }
        self.job.set_line(Some(LineMark { name, after }));
        tracing::info!(to = %self.settings.place, line = open.line.name, "the archive of commits is open");
        let (job, line, shared) = (Arc::clone(&self.job), open.line.clone(), Arc::clone(&self.shared));
        let (place, every) = (self.settings.place.clone(), self.settings.backup_every);
        tokio::select! {
            broken = self.segments(open) => broken,
            never = base::keep(&job, &place, &line, every, &shared.status) => match never {},
        }
    }

    /// Makes the place ready: archives what older lines have left, ends them, and begins this one.
    async fn prepare(&mut self, old: &mut Vec<OldLine>, open: &OpenLine) -> Result<(), Broken> {
        let mut attempts = self.uploader.attempts();
        while attempts.failed(self.lock_place().await).await? {}
        while let Some(OldLine { open, reason }) = old.first_mut() {
            self.lines.add_own(&open.line);
            let reason = match self.uploader.lost(open).await? {
                Some(lost) => format!("{reason}; {lost}"),
                None => {
                    self.uploader.begin(&open.line).await?;
                    let reason = match drain(&self.uploader, open).await {
                        Ok(()) => reason.clone(),
                        Err(Broken(broken)) => format!("{reason}; {broken}"),
                    };
                    self.uploader.mark(&open.line, &open.through().ended(&reason)).await?;
                    reason
                }
            };
            let spool = Arc::clone(&open.spool);
            remove(spool).await;
            self.note_gap(reason);
            old.remove(0);
        }
        if let Some(lost) = self.uploader.lost(open).await? {
            return Err(Broken(lost));
        }
        let mut attempts = self.uploader.attempts();
        while attempts.failed(self.lines.end(&open.line).await).await? {}
        self.uploader.begin(&open.line).await
    }

    async fn lock_place(&mut self) -> Result<(), BackupError> {
        if self.lock.is_none() {
            self.lock = Some(self.settings.place.prepare_archive().await?);
        }
        Ok(())
    }

    /// Stores segments for as long as that is possible.
    async fn segments(&mut self, open: &mut OpenLine) -> Broken {
        let (mut stored, mut marked, mut looked) = (Instant::now(), Instant::now(), Instant::now());
        loop {
            if looked.elapsed() >= self.settings.through_every {
                // A place that fails is noticed by the next segment.
                if let Ok(Some(lost)) = self.uploader.look(open).await {
                    return Broken(lost);
                }
                looked = Instant::now();
            }
            let is_due = stored.elapsed() >= self.settings.segment_every;
            if !is_due && open.spool.lock().waiting().0 < super::compose::SEGMENT_BYTES as u64 {
                tokio::time::sleep(POLL.min(self.settings.segment_every)).await;
                continue;
            }
            stored = Instant::now();
            match self.store(open).await {
                Ok(true) => marked = Instant::now(),
                Ok(false) if marked.elapsed() >= self.settings.through_every => {
                    if let Err(broken) = self.mark_through(open).await {
                        return broken;
                    }
                    marked = Instant::now();
                }
                Ok(false) => {}
                Err(broken) => return broken,
            }
        }
    }

    /// Stores everything that waits now; whether there was something. What comes meanwhile is for the next time: otherwise
    /// there would be a segment for every few commits.
    async fn store(&mut self, open: &mut OpenLine) -> Result<bool, Broken> {
        let until = open.spool.lock().end.point.sequence;
        let mut is_some = false;
        loop {
            // Before the number is read: payloads of later commits are discarded after it began.
            let hold = self.uploader.hold();
            self.holds.push_back((self.mailbox.last(), hold));
            let is_stored = self.uploader.segment(open).await?;
            let archived = open.archived();
            while self.holds.get(1).is_some_and(|(after, _)| *after <= archived.point.sequence) {
                self.holds.pop_front();
            }
            if !is_stored {
                return Ok(is_some);
            }
            self.shared.status.lock().archived(archived.point.sequence, archived.published);
            is_some = true;
            if archived.point.sequence >= until {
                return Ok(true);
            }
        }
    }

    /// Stores that nothing was published after the last segment.
    async fn mark_through(&self, open: &mut OpenLine) -> Result<(), Broken> {
        let engine = Arc::clone(&self.engine);
        let until = blocking(move || engine.commits_until_now()).await;
        let (point, now) = until.map_err(|error| Broken(error.to_string()))?;
        if point.sequence == open.archived().point.sequence {
            self.uploader.mark(&open.line, &Through::new(point.sequence, now)).await?;
            open.quiet_until = Some(now);
        }
        Ok(())
    }

    /// Ends a line: gives back what it holds, then says so in the place.
    async fn end(&mut self, open: OpenLine, thread: std::thread::JoinHandle<()>, reason: &str) {
        self.engine.end_feed();
        self.job.set_line(None);
        // An error means that it panicked, which was logged.
        let _ = blocking(move || thread.join()).await;
        *self.shared.spool.lock() = None;
        remove(Arc::clone(&open.spool)).await;
        self.holds.clear();
        let is_known = self.shared.status.lock().line.is_some();
        self.note_gap(reason.to_owned());
        // A line that the place does not know needs no end.
        if is_known && let Err(Broken(error)) = self.uploader.mark(&open.line, &open.through().ended(reason)).await {
            tracing::warn!(error, "the end of a line of the archive cannot be written");
        }
    }

    fn note_gap(&self, reason: String) {
        let mut status = self.shared.status.lock();
        tracing::warn!(
            to = status.to,
            line = status.line,
            reason,
            "the archive has a gap; another line begins with a full backup"
        );
        status.gaps += 1;
        (status.line, status.backup) = (None, None);
        status.last_gap = Some(reason);
    }

    /// Begins a new line as soon as there is room for its spool.
    async fn begin_again(&mut self) -> Result<(OpenLine, ContainerRows), String> {
        let has_room = self.engine.admission();
        while has_room().is_err() {
            tokio::time::sleep(REOPEN_PAUSE).await;
        }
        self.holds = VecDeque::from([(0, self.uploader.hold())]);
        let (engine, mailbox) = (Arc::clone(&self.engine), Arc::clone(&self.mailbox));
        let fed: Result<Result<(), Fault>, _> = blocking(move || engine.feed_commits(mailbox)).await;
        match fed {
            Ok(Ok(())) => self.open(None).await,
            Ok(Err(fault)) => Err(fault.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The end of the server: everything goes to the spool, and to the place if that is quick.
    async fn finish(&mut self, open: &mut OpenLine, thread: std::thread::JoinHandle<()>) {
        self.mailbox.close();
        let _ = blocking(move || thread.join()).await;
        if self.shared.status.lock().line.is_none() {
            return self.hold_on();
        }
        let last = async {
            self.store(open).await?;
            self.mark_through(open).await
        };
        if !matches!(tokio::time::timeout(STOP_TIME_MAX, last).await, Ok(Ok(()))) {
            tracing::info!("commits that are not archived stay in the spool until the next start");
            self.hold_on();
        }
    }

    /// Keeps the payloads that spooled commits point to until the process ends: the next start archives them.
    fn hold_on(&mut self) {
        std::mem::forget(std::mem::take(&mut self.holds));
    }
}

async fn drain<B: ByteStore>(uploader: &Uploader<B>, open: &mut OpenLine) -> Result<(), Broken> {
    while uploader.segment(open).await? {}
    Ok(())
}

/// Removes a spool. What cannot be removed now is found at the next start.
async fn remove(spool: Arc<Mutex<Spool>>) {
    if let Ok(Err(error)) = blocking(move || spool.lock().remove()).await {
        tracing::warn!(%error, "a spool of the archive cannot be removed");
    }
}

const POLL: Duration = Duration::from_millis(200);
const REOPEN_PAUSE: Duration = Duration::from_secs(1);
/// How long a server that stops waits for the place.
const STOP_TIME_MAX: Duration = Duration::from_secs(2);
