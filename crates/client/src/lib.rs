//! A client for Azure Table Storage and everything that speaks its protocol: the service itself, Cosmos DB for Table,
//! Larimar and Azurite.
//!
//! `cargo add larimar-client`, and `cargo add tokio --features macros,rt-multi-thread` for the runtime:
//!
//! ```
//! use larimar_client::{Account, Entity, IfMatch};
//!
//! #[derive(Debug, PartialEq, Entity)]
//! struct Employee {
//!     #[entity(partition_key)]
//!     department: String,
//!     #[entity(row_key)]
//!     id: String,
//!     last_name: String,
//!     email: Option<String>,
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     # let server = larimar_embedded::Larimar::ephemeral().await?;
//!     # let connection_string = server.connection_string();
//!     // The portal shows that of a storage account; "UseDevelopmentStorage=true" is a server on this machine.
//!     let account = Account::connect(&connection_string)?;
//!     let employees = account.table("Employees");
//!     employees.create_if_missing().await?;
//!
//!     let jones = Employee { department: "Sales".into(), id: "000123".into(), last_name: "Jones".into(), email: None };
//!     employees.insert(&jones).await?;
//!     assert_eq!(employees.get("Sales", "000123").await?.as_ref(), Some(&jones));
//!
//!     let by_name = employees.query::<Employee>().partition("Sales").filter(Employee::last_name().eq("Jones"));
//!     assert_eq!(by_name.all().await?, [jones]);
//!     employees.delete("Sales", "000123", IfMatch::Any).await?;
//!     Ok(())
//! }
//! ```
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | connect, by key, signature or token; time-outs, retries, proxies | [`Account::builder`], [`RetryPolicy`] |
//! | make a type an entity | [`entities`], [`Entity`], [`DynamicEntity`] |
//! | read and write one entity | [`Table`] |
//! | ask for many | [`Query`], [`Filter`], [`Column`], [`keys`] |
//! | write many | [`Table::transaction`], [`Table::bulk`] |
//! | change an entity that others change too | [`Table::update_with_retry`] |
//! | hand out rights | [`sas`], [`StoredPolicy`] |
//! | keep values secret from the service | the module `encryption`, a feature |
//! | know what went wrong | [`Error`] |
//! | count, record or lose requests in tests | [`Transport`] |
//!
//! Handles ([`Account`], [`Table`]) are cheap to clone and shared freely between tasks. Every future may be
//! dropped: dropping a read is safe; a dropped write may or may not have been applied. Calls run in a Tokio runtime
//! with input, output and time enabled, and each is a `tracing` span at level debug. Streams are those of the `futures`
//! crates, whose `TryStreamExt` (`cargo add futures-util`) has the methods to read them. For tests, the crate
//! `larimar-embedded` has a server that starts within the process.
//!
//! # Features
//!
//! | feature | default | |
//! |---|---|---|
//! | `derive` | yes | `#[derive(Entity)]` and the other macros of [`entities`] |
//! | `rustls` | yes | https, with the certificates that the operating system trusts |
//! | `queue` | | queues and their messages: `Account::queue` |
//! | `blob` | | containers and their blobs: `Account::container` |
//! | `encryption` | | client-side encryption: `Table::encrypted` |
//! | `chrono`, `time`, `uuid` | | properties of these crates' types |
//! | `azure_core` | | tokens from the credentials of the Azure SDK for Rust: `AzureCredential` |

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod account;
#[cfg(feature = "azure_core")]
mod azure;
#[cfg(feature = "blob")]
mod blob;
mod column;
mod connection_string;
mod credential;
mod dynamic;
#[cfg(feature = "encryption")]
pub mod encryption;
mod encryption_error;
pub mod entities;
mod entity;
mod error;
mod etag;
mod filter;
mod guid;
pub mod keys;
mod marks;
#[cfg(any(feature = "queue", feature = "blob"))]
mod metadata;
#[cfg_attr(
    not(all(feature = "queue", feature = "blob")),
    allow(dead_code, reason = "parts of it serve queues and blobs only")
)]
mod pipeline;
mod properties;
mod property;
#[cfg(feature = "queue")]
mod queue;
mod random;
mod retry;
pub mod sas;
mod service;
mod service_properties;
mod stored_policy;
mod table;
mod timestamp;
mod transport;
mod value;

pub use account::{Account, AccountBuilder, AccountError};
#[cfg(feature = "azure_core")]
pub use azure::AzureCredential;
#[cfg(feature = "blob")]
pub use blob::{
    AppendOptions, Blob, BlobCondition, BlobItem, BlobKind, BlobPage, BlobProperties, BlobService, Container,
    ContainerAccess, ContainerItem, ContentHeaders, Download, ListOptions, PublicAccess, UploadOptions,
};
pub use column::{Column, ColumnError, IntoLiteral};
pub use connection_string::ConnectionStringError;
pub use credential::{AccessToken, InvalidKey, SharedKey, TokenProvider};
pub use dynamic::DynamicEntity;
pub use encryption_error::EncryptionError;
pub use entity::{EncryptedProperty, Entity, EntityError};
pub use error::{Error, Result, ServiceError};
pub use etag::{ETag, IfMatch};
pub use filter::Filter;
pub use guid::{Guid, GuidError};
#[cfg(feature = "derive")]
pub use larimar_client_derive::{Entity, EntityEnum, Properties, Property};
pub use properties::Properties;
pub use property::{Property, PropertyError};
#[cfg(feature = "queue")]
pub use queue::{Message, PeekedMessage, PutOptions, Queue, QueueItem, QueueService};
pub use retry::RetryPolicy;
pub use service::EndpointError;
pub use service_properties::{CorsRule, Logging, Metrics, Replication, ServiceProperties};
pub use stored_policy::StoredPolicy;
pub use table::{
    BulkGroup, BulkOperation, BulkReport, BulkWriter, Continuation, ContinuationError, Explanation, Page,
    ParallelQuery, Query, Table, TableItem, TableService, Transaction, TransactionError, TransactionRefusal, Update,
};
pub use timestamp::{Timestamp, TimestampError};
pub use transport::{BoxError, BoxFuture, HttpTransport, Transport, TransportError};
pub use value::Value;

/// Keeps the example of the readme running.
#[cfg(all(doctest, feature = "derive"))]
#[doc = include_str!("../README.md")]
struct Readme;
