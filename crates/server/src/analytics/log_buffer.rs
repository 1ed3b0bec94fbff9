//! Requests that are to be logged, until somebody writes them down. A request never waits for that: when there is no
//! room, the oldest entries go.

use larimar_model::Timestamp;
use larimar_wire::analytics::LogEntry;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Entries of one account and service that are not written yet.
#[derive(Default)]
pub(super) struct LogBuffer(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    waiting: VecDeque<Logged>,
    bytes: usize,
}

/// A request that ended.
pub(super) struct Logged {
    pub(super) ended: Timestamp,
    pub(super) entry: LogEntry,
}

/// What came of a new entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pushed {
    /// Entries that had to go.
    pub(super) dropped: usize,
    /// Whether the entries are worth a blob of their own now.
    pub(super) is_due: bool,
}

impl LogBuffer {
    pub(super) fn push(&self, logged: Logged) -> Pushed {
        let mut entries = self.0.lock();
        let before = entries.bytes;
        entries.bytes += logged.entry.bytes();
        entries.waiting.push_back(logged);
        let dropped = entries.shrink();
        Pushed { dropped, is_due: before < DUE_BYTES && entries.bytes >= DUE_BYTES }
    }

    /// Takes all entries out, oldest first.
    pub(super) fn take(&self) -> Vec<Logged> {
        let mut entries = self.0.lock();
        entries.bytes = 0;
        std::mem::take(&mut entries.waiting).into()
    }

    /// Puts entries back that could not be written. Returns how many had to go.
    pub(super) fn put_back(&self, logged: Vec<Logged>) -> usize {
        let mut entries = self.0.lock();
        entries.bytes += logged.iter().map(|logged| logged.entry.bytes()).sum::<usize>();
        let newer = std::mem::replace(&mut entries.waiting, logged.into());
        entries.waiting.extend(newer);
        entries.shrink()
    }
}

impl Entries {
    fn shrink(&mut self) -> usize {
        let mut dropped = 0;
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.bytes -= oldest.entry.bytes();
            dropped += 1;
        }
        dropped
    }
}

/// When a log is written before its time.
const DUE_BYTES: usize = 4 << 20;
/// Entries that wait at most.
const BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_wire::analytics::{Access, Authentication, Outcome};
    use std::time::Duration;

    fn logged(number: u64, bytes: usize) -> Logged {
        let entry = LogEntry {
            start: Timestamp::EDM_MIN,
            operation: "QueryEntity",
            access: Access::Read,
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
        Logged { ended: Timestamp::EDM_MIN, entry }
    }

    fn ids(logged: &[Logged]) -> Vec<&str> {
        logged.iter().map(|logged| logged.entry.request_id.as_str()).collect()
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let buffer = LogBuffer::default();
        let pushed: Vec<Pushed> = (0..20).map(|number| buffer.push(logged(number, 1 << 20))).collect();
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
        let buffer = LogBuffer::default();
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
}
