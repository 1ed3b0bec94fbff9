//! The embedded storage engine of Larimar: one process, files on disk.
//!
//! [`store`] is the ordered key-value store below.

pub mod budget;
pub mod store;
