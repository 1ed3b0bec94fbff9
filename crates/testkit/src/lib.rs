//! What the tests of the other crates share: the promises of an engine, a model to compare engines with,
//! and a hand-turned clock.
//!
//! A promise is a function named as a sentence; [`engine_conformance!`] turns all of them into tests of one
//! engine. The same promises run over the in-memory reference engine and every engine that stores.

mod clock;
pub mod engine;

pub use clock::ManualClock;

// The macros name it through `$crate`, so that their callers need no dependency of their own.
#[doc(hidden)]
pub use tokio;
