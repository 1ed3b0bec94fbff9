//! Azure Table, Queue and Blob Storage inside a test.
//!
//! [`Larimar::ephemeral`] starts a server on free loopback ports within milliseconds. It keeps everything in memory,
//! runs in the Tokio runtime of the caller and stops when its value is dropped. Every server is separate from every
//! other, so tests run side by side and need no cleaning up.
//!
//! ```
//! use larimar_embedded::Larimar;
//!
//! # #[tokio::main] async fn main() -> Result<(), larimar_embedded::StartError> {
//! let server = Larimar::ephemeral().await?;
//! let connection_string = server.connection_string(); // for any Azure SDK, or for larimar-client
//! // ... the test ...
//! assert_eq!(server.requests().table, 0); // how many requests it took
//! # Ok(()) }
//! ```
//!
//! It answers as the Larimar server does: same protocol, same error codes, same limits. A strict one
//! ([`Builder::strict`]) adds what hurts in production and helps in tests.

mod builder;
mod counting;
mod error;
mod server;

pub use builder::Builder;
pub use counting::Requests;
pub use error::StartError;
pub use server::Larimar;

/// Keeps the example of the readme compiling.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
