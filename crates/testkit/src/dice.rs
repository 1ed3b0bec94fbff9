//! Random choices from a seed, so that a failing run can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// A source of random choices: the same seed gives the same ones.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Choices from this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed from an environment variable, or a new one. Print it, so that a failure can be repeated.
    ///
    /// # Panics
    /// If the variable holds no number.
    #[must_use]
    pub fn seed(variable: &str) -> u64 {
        match std::env::var(variable) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}: expected a number, found {text:?}")),
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64),
        }
    }

    /// The next number (splitmix64).
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
