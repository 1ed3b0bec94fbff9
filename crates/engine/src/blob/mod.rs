//! Blobs: what they mean, in rows of the container's space, and where their bytes live.

pub mod bytes;
