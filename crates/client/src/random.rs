//! Random bytes from the operating system: ids, jitter, keys.

/// Fresh random bytes.
///
/// # Panics
/// If the operating system has none, which leaves no safe way on.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}

/// A number from 0 to just below 1.
pub(crate) fn fraction() -> f64 {
    // 53 bits are the precision of the type.
    (u64::from_le_bytes(bytes()) >> 11) as f64 / (1u64 << 53) as f64
}
