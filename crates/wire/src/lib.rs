//! The wire protocols of the Azure Table, Queue and Blob services: bytes to typed operations and back.

pub mod acl;
pub mod analytics;
pub mod blob;
pub mod cors;
pub mod error_body;
pub mod error_code;
pub mod marker;
mod multipart;
pub mod operation;
pub mod queue;
pub mod request_head;
pub mod sas;
pub mod service_properties;
pub mod service_stats;
pub mod signature;
pub mod table;
pub mod uri;
pub mod xml;
