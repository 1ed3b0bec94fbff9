//! The integration tests of the crate, as one program.

mod guide;
mod others;
mod properties;
mod refusals;
mod robust;
mod shape;
mod trials;
