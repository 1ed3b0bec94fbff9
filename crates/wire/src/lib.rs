//! The Azure Table wire protocol: bytes to typed operations and back.

pub mod error_body;
pub mod error_code;
pub mod signature;
pub mod uri;
pub mod acl;
pub mod sas;
pub mod xml;
pub mod table;
