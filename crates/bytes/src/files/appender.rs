//! One thread writes packs: it takes all waiting payloads, writes them at once, syncs once, and answers all.
//!
//! While a sync runs, the next group collects. Only the process that created a pack appends to it, so a torn end needs
//! no repair: what was not synced was not acknowledged, and no row points to it.

use super::Shared;
use super::folder::{new_name, unavailable};
use crate::record::{FileName, FrameEncoder, HEADER_BYTES_MAX, Header, RecordPosition, end_mark, stored_bytes};
use bytes::Bytes;
use larimar_engine::blob::bytes::Extent;
use larimar_engine::{Fault, LogLimit};
use parking_lot::{Condvar, Mutex};
use std::fs::File;
use std::io::Error;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Limits the log lines about failed writes, as on a full disk.
static FAILURES: LogLimit = LogLimit::new();

/// A small payload, on its way to a pack.
#[derive(Debug)]
pub(super) struct Small {
    pub(super) header: Header,
    pub(super) pieces: Vec<Bytes>,
}

/// The payloads that wait for the thread.
#[derive(Debug, Default)]
pub(super) struct Appender {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Queued>,
    stopped: bool,
}

#[derive(Debug)]
struct Queued {
    small: Small,
    reply: oneshot::Sender<Result<Extent, Fault>>,
}

impl Appender {
    /// Appends a payload; on `Ok` it is durable.
    pub(super) async fn append(&self, small: Small) -> Result<Extent, Fault> {
        let (reply, outcome) = oneshot::channel();
        {
            let mut queue = self.queue.lock();
            if queue.stopped {
                return Err(closed());
            }
            queue.waiting.push(Queued { small, reply });
        }
        self.wake.notify_one();
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Stops the thread after all waiting payloads are written.
    pub(super) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.wake.notify_one();
    }

    /// All waiting payloads; empty after the stop.
    fn take(&self) -> Vec<Queued> {
        let mut queue = self.queue.lock();
        while queue.waiting.is_empty() && !queue.stopped {
            self.wake.wait(&mut queue);
        }
        std::mem::take(&mut queue.waiting)
    }
}

/// The appender's thread.
pub(super) fn run(shared: &Arc<Shared>) {
    let _guard = Guard(shared);
    let mut pack = None;
    let mut buffer = Vec::new();
    loop {
        let mut taken = shared.appender.take().into_iter().peekable();
        if taken.peek().is_none() {
            break;
        }
        while taken.peek().is_some() {
            let mut group = Vec::new();
            let mut bytes = 0;
            while bytes < GROUP_BYTES_MAX
                && let Some(queued) = taken.next()
            {
                bytes += stored_bytes(queued.small.bytes()) as usize;
                group.push(queued);
            }
            append(shared, &mut pack, &mut buffer, group);
        }
    }
    if let Some(pack) = pack {
        pack.close(shared);
    }
}

/// Refuses payloads if the thread panics, so that no writer waits forever.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.appender.stop();
        self.0.appender.queue.lock().waiting.clear();
    }
}

/// The pack that is appended to.
struct Pack {
    name: FileName,
    file: File,
    end: u64,
}

impl Pack {
    /// Marks the end of the pack; a pack without the mark counts as cut by a crash.
    fn close(self, shared: &Shared) {
        if let Err(error) = self.file.write_all_at(&end_mark(self.name, self.end), self.end) {
            tracing::warn!(%error, "the end of a pack could not be marked");
        }
        shared.seal(&self.name);
    }
}

/// Writes and syncs a group, and answers it.
fn append(shared: &Shared, pack: &mut Option<Pack>, buffer: &mut Vec<u8>, group: Vec<Queued>) {
    let extents = match open(shared, pack) {
        Ok(pack) => write(shared, pack, buffer, &group),
        Err(fault) => Err(fault),
    };
    buffer.shrink_to(GROUP_BYTES_MAX);
    match extents {
        Ok(extents) => {
            for (queued, extent) in group.into_iter().zip(extents) {
                shared.count_written(&extent);
                // A cancelled writer leaves a payload that nothing points to.
                if queued.reply.send(Ok(extent)).is_err() {
                    shared.remover.discard(vec![extent], shared.grace);
                }
            }
            if let Some(full) = pack.take_if(|pack| pack.end >= PACK_BYTES_MAX) {
                full.close(shared);
            }
        }
        Err(fault) => {
            if let Some(left_out) = FAILURES.admit() {
                tracing::warn!(%fault, payloads = group.len(), left_out, "small blobs could not be written");
            }
            // After a failure it is unknown whether earlier syncs can be trusted: later payloads go to another pack.
            if let Some(pack) = pack.take() {
                pack.close(shared);
            }
            for queued in group {
                let _ = queued.reply.send(Err(fault.clone()));
            }
        }
    }
}

/// The pack to append to; a new one if there is none.
fn open<'a>(shared: &Shared, pack: &'a mut Option<Pack>) -> Result<&'a mut Pack, Fault> {
    let found = match pack.take() {
        Some(pack) => pack,
        None => {
            let name = new_name(true);
            // Before the file exists, so that `reclaim` does not take it for the leftover of a crash.
            shared.packs.begin(name);
            create(shared, name).inspect_err(|_| shared.seal(&name))?
        }
    };
    Ok(pack.insert(found))
}

fn create(shared: &Shared, name: FileName) -> Result<Pack, Fault> {
    let file = shared.folder.create(&name)?;
    shared.folder.sync_entry(&name).map_err(|error| unavailable(&shared.folder.packs(), &error))?;
    Ok(Pack { name, file, end: 0 })
}

fn write(shared: &Shared, pack: &mut Pack, buffer: &mut Vec<u8>, group: &[Queued]) -> Result<Vec<Extent>, Fault> {
    buffer.clear();
    let mut extents = Vec::with_capacity(group.len());
    for queued in group {
        let Small { header, pieces } = &queued.small;
        let position = RecordPosition { file: pack.name, offset: pack.end + buffer.len() as u64 + header.bytes() };
        header.encode(position, buffer);
        let mut encoder = FrameEncoder::new(position);
        pieces.iter().for_each(|piece| encoder.push(piece, buffer));
        encoder.end(buffer);
        extents.push(encoder.extent());
    }
    let written = pack.file.write_all_at(buffer, pack.end).and_then(|()| shared.folder.sync(&pack.file));
    if let Err(error) = written {
        cut(pack);
        return Err(shared.folder.fault(&pack.name, &error));
    }
    pack.end += buffer.len() as u64;
    shared.packs.count(&pack.name, &extents);
    Ok(extents)
}

/// Frees the space of a failed group. Nothing of it was acknowledged, so a failure here does no harm.
fn cut(pack: &Pack) {
    let cut: Result<(), Error> = pack.file.set_len(pack.end);
    if let Err(error) = cut {
        tracing::warn!(%error, "the end of a pack could not be cut");
    }
}

impl Small {
    /// The payload's bytes, and its header's at most.
    fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum::<u64>() + HEADER_BYTES_MAX as u64
    }
}

fn closed() -> Fault {
    Fault::Unavailable("the store of blob bytes is closed".to_owned())
}

/// Most bytes of a group.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// The size at which a new pack is started.
const PACK_BYTES_MAX: u64 = 64 << 20;
