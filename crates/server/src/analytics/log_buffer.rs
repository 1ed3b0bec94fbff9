//! Log entries that are not written yet. A request never waits for the writer: when there is no room, the oldest
//! entries are dropped.

use larimar_model::Timestamp;
use larimar_wire::analytics::LogEntry;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Entries of one account and service that are not written yet.
pub(super) struct LogBuffer {
    entries: Mutex<Entries>,
    /// Bytes that wait in the buffers of all accounts and services.
    all_bytes: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Entries {
    waiting: VecDeque<BufferedEntry>,
    bytes: usize,
}

/// A request that ended.
pub(super) struct BufferedEntry {
    pub(super) ended: Timestamp,
    pub(super) entry: LogEntry,
}

/// The result of adding an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PushOutcome {
    /// Older entries that were dropped.
    pub(super) dropped: usize,
    /// Whether the entries are worth a blob of their own now.
    pub(super) is_due: bool,
}

impl LogBuffer {
    /// An empty buffer that shares its bound with others.
    pub(super) fn new(all_bytes: &Arc<AtomicUsize>) -> Self {
        Self { entries: Mutex::default(), all_bytes: Arc::clone(all_bytes) }
    }

    pub(super) fn push(&self, logged: BufferedEntry) -> PushOutcome {
        let mut entries = self.entries.lock();
        let before = entries.bytes;
        let bytes = logged.bytes();
        entries.bytes += bytes;
        self.all_bytes.fetch_add(bytes, Relaxed);
        entries.waiting.push_back(logged);
        let dropped = self.shrink(&mut entries);
        PushOutcome { dropped, is_due: before < DUE_BYTES && entries.bytes >= DUE_BYTES }
    }

    /// Takes all entries out, oldest first.
    pub(super) fn take(&self) -> Vec<BufferedEntry> {
        let mut entries = self.entries.lock();
        self.all_bytes.fetch_sub(std::mem::take(&mut entries.bytes), Relaxed);
        std::mem::take(&mut entries.waiting).into()
    }

    /// Puts entries back that could not be written. Returns how many entries were dropped.
    pub(super) fn put_back(&self, logged: Vec<BufferedEntry>) -> usize {
        let mut entries = self.entries.lock();
        let bytes = logged.iter().map(BufferedEntry::bytes).sum::<usize>();
        entries.bytes += bytes;
        self.all_bytes.fetch_add(bytes, Relaxed);
        let newer = std::mem::replace(&mut entries.waiting, logged.into());
        entries.waiting.extend(newer);
        self.shrink(&mut entries)
    }

    fn shrink(&self, entries: &mut Entries) -> usize {
        let mut dropped = 0;
        while entries.bytes > BYTES_MAX || self.all_bytes.load(Relaxed) > ALL_BYTES_MAX {
            let Some(oldest) = entries.waiting.pop_front() else { break };
            entries.bytes -= oldest.bytes();
            self.all_bytes.fetch_sub(oldest.bytes(), Relaxed);
            dropped += 1;
        }
        dropped
    }
}

impl BufferedEntry {
    /// About how many bytes it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Timestamp>() + self.entry.bytes()
    }
}

/// When a log is written before its time, and about how many bytes of entries become one blob.
pub(super) const DUE_BYTES: usize = 4 << 20;
/// Entries of one account and service that wait at most.
const BYTES_MAX: usize = 16 << 20;
/// Entries of all accounts and services that wait at most.
const ALL_BYTES_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_wire::analytics::{Authentication, Outcome};
    use larimar_wire::operation::Kind;
    use std::time::Duration;

    fn logged(number: u64, bytes: usize) -> BufferedEntry {
        let entry = LogEntry {
            start: Timestamp::EDM_MIN,
            operation: "QueryEntity",
            kind: Kind::Read,
            authentication: Authentication::Key,
            outcome: Outcome::Success,
            code: None,
            status: 200,
            end_to_end: Duration::ZERO,
            server: Duration::ZERO,
            url: "u".repeat(bytes),
            object_key: String::new(),
            request_id: number.to_string(),
            peer: "127.0.0.1:1".parse().expect("an address"),
            version: String::new(),
            request_header_bytes: 0,
            request_bytes: 0,
            response_header_bytes: 0,
            response_bytes: 0,
            content_length: 0,
            request_md5: String::new(),
            server_md5: String::new(),
            etag: String::new(),
            last_modified: String::new(),
            conditions: String::new(),
            user_agent: String::new(),
            referrer: String::new(),
            client_request_id: String::new(),
            copy_source: String::new(),
        };
        BufferedEntry { ended: Timestamp::EDM_MIN, entry }
    }

    fn ids(logged: &[BufferedEntry]) -> Vec<&str> {
        logged.iter().map(|logged| logged.entry.request_id.as_str()).collect()
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let buffer = LogBuffer::new(&Arc::default());
        let pushed: Vec<PushOutcome> = (0..20).map(|number| buffer.push(logged(number, 1 << 20))).collect();
        // The entry that reaches four MiB says so, and no other.
        assert_eq!(pushed.iter().filter(|pushed| pushed.is_due).count(), 1);
        assert!(pushed[3].is_due);
        let dropped: usize = pushed.iter().map(|pushed| pushed.dropped).sum();
        assert_eq!(dropped, 5);
        let taken = buffer.take();
        assert_eq!(ids(&taken), (5..20).map(|number| number.to_string()).collect::<Vec<_>>());
        assert!(buffer.take().is_empty());
    }

    #[test]
    fn what_is_put_back_comes_first_and_stays_bounded() {
        let buffer = LogBuffer::new(&Arc::default());
        buffer.push(logged(0, 9 << 20));
        buffer.push(logged(1, 1));
        let taken = buffer.take();
        buffer.push(logged(2, 1));
        assert_eq!(buffer.put_back(taken), 0);
        let taken = buffer.take();
        assert_eq!(ids(&taken), ["0", "1", "2"]);
        buffer.push(logged(3, 9 << 20));
        assert_eq!(buffer.put_back(taken), 1);
        assert_eq!(ids(&buffer.take()), ["1", "2", "3"]);
    }

    #[test]
    fn buffers_share_a_bound() {
        let all_bytes = Arc::default();
        let buffers: Vec<LogBuffer> = (0..8).map(|_| LogBuffer::new(&all_bytes)).collect();
        let mut dropped = 0;
        for number in 0..12 {
            dropped += buffers.iter().map(|buffer| buffer.push(logged(number, 1 << 20)).dropped).sum::<usize>();
            assert!(all_bytes.load(Relaxed) <= ALL_BYTES_MAX);
        }
        assert!(dropped > 0);
        let left = buffers.iter().map(|buffer| buffer.take().len()).sum::<usize>();
        assert_eq!((left + dropped, all_bytes.load(Relaxed)), (96, 0));
    }
}
