//! Buffers of chunks that are used again: new memory for each chunk costs as much as to hash it.

use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;

/// Buffers that are free.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl Buffers {
    /// An empty buffer, one that was used before if there is one.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_default()
    }

    /// Bytes whose buffer is free again when nothing refers to them any more.
    pub(crate) fn lend(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent { bytes, buffers: self.clone() })
    }
}

struct Lent {
    bytes: Vec<u8>,
    buffers: Buffers,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut free = self.buffers.0.lock();
        if free.len() < FREE_MAX && bytes.capacity() <= BUFFER_BYTES_MAX {
            free.push(bytes);
        }
    }
}

/// As many as chunks may be under way.
const FREE_MAX: usize = 10;
/// Chunks of very large rows are rare.
const BUFFER_BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_when_nothing_refers_to_its_bytes() {
        let buffers = Buffers::default();
        let mut first = buffers.take();
        first.extend_from_slice(b"some bytes");
        let (capacity, lent) = (first.capacity(), buffers.lend(first));
        let slice = lent.slice(5..);
        drop(lent);
        assert_eq!(buffers.take().capacity(), 0, "a slice refers to it");
        assert_eq!(&slice[..], b"bytes");
        drop(slice);
        let again = buffers.take();
        assert!(again.is_empty() && again.capacity() == capacity);
        drop(buffers.lend(vec![7; BUFFER_BYTES_MAX + 1]));
        assert_eq!(buffers.take().capacity(), 0, "too large to keep");
        let many: Vec<_> = (0..2 * FREE_MAX).map(|_| buffers.lend(vec![7; 10])).collect();
        drop(many);
        assert_eq!(buffers.0.lock().len(), FREE_MAX);
    }
}
