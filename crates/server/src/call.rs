//! One request on its way through a handler, once it is known where it goes and who sent it.

use crate::address::Address;
use crate::auth::Caller;
use crate::handler::Peer;
use crate::in_flight::{Held, Share, UNCOUNTED_BYTES};
use crate::storage::Storage;
use larimar_engine::{Engine, SpaceId};
use larimar_model::Timestamp;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// One authenticated request.
pub(crate) struct Call<'a, E> {
    pub(crate) storage: &'a Storage<E>,
    pub(crate) service: Service,
    pub(crate) head: &'a RequestHead<'a>,
    pub(crate) peer: Peer,
    pub(crate) address: &'a Address<'a>,
    /// The URL of the account, as the client spells it.
    pub(crate) base: &'a str,
    pub(crate) caller: Caller,
    pub(crate) lookups: &'a Lookups,
    /// The account's part of the budget for bytes in flight.
    pub(crate) share: &'a Share,
    pub(crate) runs: &'a Runs,
    pub(crate) now: Timestamp,
    pub(crate) request_id: &'a str,
}

/// What one run of a request leaves to the next one.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// Room that the request waited for, as its answer found none when it was run before.
    pub(crate) room: Mutex<Option<Held>>,
    /// Whether the insights have counted the request.
    pub(crate) is_observed: AtomicBool,
}

/// Whether a request has found its table, queue or container, and whether it is repeated because that was outdated.
///
/// A lookup may be a moment old: another server may have deleted the table and created it again. The engine then refuses
/// the operation, as the table that was found is gone, and the pipeline runs the request once more. A lookup that finds
/// nothing is never outdated.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    has_found: AtomicBool,
    is_repeated: AtomicBool,
}

impl Lookups {
    /// Notes that a table, queue or container was found.
    pub(crate) fn found<T>(&self, found: T) -> T {
        self.has_found.store(true, Ordering::Relaxed);
        found
    }

    /// Whether an error means that what was found is gone, so that the request is to be run again.
    pub(crate) fn is_outdated(&self, code: ErrorCode) -> bool {
        let is_missing =
            matches!(code, ErrorCode::TableNotFound | ErrorCode::QueueNotFound | ErrorCode::ContainerNotFound);
        is_missing && self.has_found.load(Ordering::Relaxed) && !self.is_repeated.load(Ordering::Relaxed)
    }

    /// Notes that the request is run again, for the last time.
    pub(crate) fn repeat(&self) {
        self.is_repeated.store(true, Ordering::Relaxed);
    }
}

impl<E: Engine> Call<'_, E> {
    pub(crate) fn engine(&self) -> &E {
        &self.storage.engine
    }

    pub(crate) const fn account(&self) -> &str {
        self.address.account
    }

    /// Whether the pipeline runs the request again after this error: the caller's stored policy or the table, queue or
    /// container may have changed since it was looked up.
    pub(crate) fn is_repeated_after(&self, error: &ErrorReply) -> bool {
        self.caller.is_doubtful() || self.lookups.is_outdated(error.code)
    }

    /// Takes bytes of the budget for what is about to be built or received; nothing for what is small. Waits while others
    /// use them up, so the caller must not hold any.
    pub(crate) async fn hold(&self, bytes: u64) -> Result<Option<Held>, ErrorReply> {
        if let Some(mut held) = self.runs.room.lock().take() {
            // It is enough, or the answer will be counted as far as there is room.
            held.try_resize(bytes.max(held.bytes()));
            return Ok(Some(held));
        }
        match bytes > UNCOUNTED_BYTES {
            true => self.share.take(bytes).await.map(Some),
            false => Ok(None),
        }
    }

    /// Takes bytes of the budget for the answer to a change that is about to be made, so that no change is made whose
    /// answer finds no room. Does not wait: the request holds its body.
    pub(crate) fn hold_answer(&self, bytes: usize) -> Result<Option<Held>, ErrorReply> {
        match bytes as u64 {
            0..=UNCOUNTED_BYTES => Ok(None),
            bytes => self.share.take_now(bytes).map(Some),
        }
    }

    /// Whether, in strict mode, a queue or container of this name was just deleted. To delete it again works then.
    pub(crate) fn is_being_deleted(&self, name: &str) -> bool {
        self.check_free(name).is_err()
    }

    /// Refuses, in strict mode, to create a table, queue or container whose name was just given up.
    pub(crate) fn check_free(&self, name: &str) -> Result<(), ErrorReply> {
        match &self.storage.strict {
            Some(strict) => strict.check_name(self.service, self.account(), name, self.now),
            None => Ok(()),
        }
    }

    /// Remembers, in strict mode, that a name was just given up.
    pub(crate) fn note_deleted(&self, name: &str) {
        if let Some(strict) = &self.storage.strict {
            strict.delete(self.service, self.account(), name, self.now);
        }
    }

    /// Counts operations, and in strict mode refuses those over the published targets.
    pub(crate) fn throttle(&self, place: Option<(SpaceId, &str)>, operations: usize) -> Result<(), ErrorReply> {
        let Some(strict) = &self.storage.strict else { return Ok(()) };
        let place = place.map(|(space, partition)| (space.0, partition));
        strict.throttle(&*self.storage.clock, self.account(), place, u32::try_from(operations).unwrap_or(u32::MAX))
    }
}
