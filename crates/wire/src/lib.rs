//! The Azure Table wire protocol: bytes to typed operations and back.

pub mod acl;
pub mod cors;
pub mod error_body;
pub mod error_code;
pub mod sas;
pub mod service_properties;
pub mod service_stats;
pub mod signature;
pub mod table;
pub mod uri;
pub mod xml;
