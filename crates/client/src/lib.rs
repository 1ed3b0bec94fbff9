//! A client for Azure Table Storage and everything that speaks its protocol: Larimar, Azurite, Cosmos DB for Table
//! and the service itself.

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
    ContainerItem, Download, ListOptions, UploadOptions,
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
pub use table::{
    BulkGroup, BulkOperation, BulkReport, BulkWriter, Continuation, ContinuationError, CorsRule, Logging, Metrics,
    Page, ParallelQuery, Query, Replication, ServiceProperties, StoredPolicy, Table, TableItem, TableService,
    Transaction, TransactionError, TransactionRefusal, Update,
};
pub use timestamp::{Timestamp, TimestampError};
pub use transport::{BoxError, BoxFuture, HttpTransport, Transport, TransportError};
pub use value::Value;
