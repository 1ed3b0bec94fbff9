//! The crate's integration tests: one program, a module per subject.

mod corpus;
mod suite;
