//! Random bytes from the operating system: ids, jitter, keys.

use std::cell::RefCell;

const IDS_AT_ONCE: usize = 32;

/// Fresh random bytes.
///
/// # Panics
/// If the operating system has none, which leaves no safe way on.
#[expect(clippy::disallowed_methods, reason = "this is the client's source of randomness")]
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}

/// Sixteen random bytes for an id that is not a secret. The operating system is asked for many at once: a call for each
/// request would take as long as its signature.
pub(crate) fn id() -> [u8; 16] {
    thread_local!(static POOL: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) });
    POOL.with_borrow_mut(|pool| {
        if pool.is_empty() {
            pool.extend_from_slice(bytes::<{ 16 * IDS_AT_ONCE }>().as_chunks().0);
        }
        pool.pop().expect("it was filled")
    })
}

/// A number from 0 to just below 1.
pub(crate) fn fraction() -> f64 {
    // 53 bits are the precision of the type.
    (u64::from_le_bytes(bytes()) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_do_not_repeat_also_across_threads() {
        let ids = || (0..3 * IDS_AT_ONCE).map(|_| id()).collect::<BTreeSet<_>>();
        let mut all = std::thread::spawn(ids).join().expect("no panic");
        all.extend(ids());
        assert_eq!(all.len(), 6 * IDS_AT_ONCE);
    }
}
