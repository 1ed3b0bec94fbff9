//! Reclaiming what nothing refers to any more: rows, and payloads that no row points to.
//!
//! A change reclaims what it replaces right after its commit (`unreachable.rs`). What a crash left is found later:
//! `containers.rs` goes over the rows of all containers and then over the payloads in the store of bytes, and `dropped.rs`
//! over the rows of deleted containers.

pub(crate) mod containers;
pub(crate) mod dropped;
pub(crate) mod unreachable;
