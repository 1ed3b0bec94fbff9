//! Shared access signatures.
mod permissions;
pub use permissions::Permissions;
