//! The thread that writes commits from the mailbox to the spool of a line.

use super::mailbox::{CommitMailbox, Taken};
use super::spool::Spool;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::Extent;
use larimar_engine_local::{CommitGroup, ContainerRows};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Why a line ends; `None` while it goes on.
pub(super) type Halt = watch::Sender<Option<String>>;

/// Whether the data disk has room for the spool.
pub(super) type HasRoom = Arc<dyn Fn() -> Result<(), Fault> + Send + Sync>;

/// The bytes of payloads that are discarded and not removed yet.
pub(super) type DiscardedBytes = Box<dyn Fn() -> u64 + Send>;

/// The thread's parts.
pub(super) struct Spooler {
    pub(super) mailbox: Arc<CommitMailbox>,
    pub(super) spool: Arc<Mutex<Spool>>,
    pub(super) containers: ContainerRows,
    pub(super) has_room: HasRoom,
    pub(super) discarded: DiscardedBytes,
    pub(super) halt: Arc<Halt>,
}

impl Spooler {
    /// Starts the thread. It ends when the mailbox is closed, or when the line is halted by it or by others.
    pub(super) fn start(self) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("larimar-spool".to_owned()).spawn(move || self.run())
    }

    fn run(mut self) {
        let mut known = Known::default();
        let mut synced = Instant::now();
        let mut is_dirty = false;
        while self.halt.borrow().is_none() {
            match self.mailbox.take(SYNC_EVERY) {
                Taken::Groups(groups) if groups.is_empty() => {}
                Taken::Groups(groups) => {
                    if let Err(reason) = self.append(&groups, &mut known) {
                        return self.end(reason);
                    }
                    is_dirty = true;
                    // More commits gather for the next write.
                    std::thread::sleep(GATHER);
                }
                Taken::Failed(reason) => return self.end(reason.to_owned()),
                Taken::Closed => break,
            }
            if is_dirty && synced.elapsed() >= SYNC_EVERY {
                let file = self.spool.lock().file();
                if let Err(error) = file.sync_data() {
                    return self.end(format!("the spool cannot be written: {error}"));
                }
                (is_dirty, synced) = (false, Instant::now());
            }
        }
        if is_dirty && let Err(error) = self.spool.lock().file().sync_data() {
            self.end(format!("the spool cannot be written: {error}"));
        }
    }

    fn append(&mut self, groups: &[CommitGroup], known: &mut Known) -> Result<(), String> {
        (self.has_room)().map_err(|_| "the disk of the data directory is full".to_owned())?;
        for group in groups {
            let mut payloads = Vec::new();
            for write in group.commits.iter().flatten() {
                let found = self.containers.payloads(write);
                let found = found.map_err(|fault| format!("a row of a blob cannot be read: {fault}"))?;
                payloads.extend(found.into_iter().filter(|extent| known.is_new(*extent)));
            }
            self.spool.lock().append(group, &payloads, &self.discarded).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn end(&self, reason: String) {
        self.halt.send_if_modified(|halted| {
            let is_first = halted.is_none();
            halted.get_or_insert(reason);
            is_first
        });
    }
}

/// Payloads that the line has. Of very many some are archived again: that costs room only.
#[derive(Default)]
struct Known(HashSet<Extent>);

impl Known {
    fn is_new(&mut self, extent: Extent) -> bool {
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert(extent)
    }
}

/// How long commits may be in the operating system only.
const SYNC_EVERY: Duration = Duration::from_secs(1);
const GATHER: Duration = Duration::from_millis(5);
/// About 16 MiB of memory.
const KNOWN_MAX: usize = 1 << 18;
