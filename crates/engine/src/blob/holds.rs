//! The blobs for which operations of this process have payloads that no row points to yet. This process does not
//! reclaim payloads of these blobs, however long the operations take; `released.rs` covers other processes.

use super::access::BlobRef;
use crate::contract::SpaceId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of operations that hold each blob.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds(Arc<Mutex<HashMap<(SpaceId, String), usize>>>);

/// Keeps this process from reclaiming the payloads of a blob, until it is dropped. Take it before the first byte is
/// written, and drop it after the operation that commits the payload.
#[derive(Debug)]
pub struct Hold {
    holds: Holds,
    key: (SpaceId, String),
}

impl Holds {
    pub(crate) fn hold(&self, at: BlobRef<'_>) -> Hold {
        let key = (at.container, at.name.as_str().to_owned());
        *self.0.lock().entry(key.clone()).or_default() += 1;
        Hold { holds: self.clone(), key }
    }

    pub(crate) fn is_held(&self, at: BlobRef<'_>) -> bool {
        self.0.lock().contains_key(&(at.container, at.name.as_str().to_owned()))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = self.holds.0.lock();
        if let Some(count) = holds.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                holds.remove(&self.key);
            }
        }
    }
}
