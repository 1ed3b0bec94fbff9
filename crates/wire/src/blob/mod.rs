//! The wire format of the Blob service.
//!
//! The path of a request is parsed into a [`BlobAddress`] (`address.rs`), the request into a [`BlobRequest`]
//! (`request.rs`, `container_request.rs`, `blob_request.rs`, `headers.rs`). What the server must know about each operation
//! is in `facts.rs`. `block_list.rs`, `tags_xml.rs` and `batch.rs` parse bodies and write responses; `list_xml.rs`,
//! `page_list.rs` and `properties.rs` write responses.

mod address;
pub mod batch;
mod blob_request;
mod block_list;
mod container_request;
mod facts;
mod find;
mod headers;
mod list_marker;
mod list_xml;
mod operation;
mod page_list;
mod properties;
mod request;
mod tags_xml;

pub use address::BlobAddress;
pub use block_list::{BLOCK_LIST_BODY_BYTES_MAX, ListedBlock, parse_block_list, write_block_list};
pub use find::{FindMarker, FoundBlob, write_found_blobs};
pub use headers::{CopySource, format_md5, wrong_tier};
pub use list_marker::ListMarker;
pub use list_xml::{ListEntry, ListedBlob, ListedContainer, write_blob_list, write_container_list};
pub use operation::{
    AppendBlock, BlobOperation, BlobRead, BodyChecks, ContainerOperation, CopyBlob, FindBlobs, GetBlob, GetPageRanges,
    IncrementalCopyBlob, ListBlobs, ListContainers, PageWrite, PutBlob, PutBlobContent, PutBlock, PutBlockList,
    PutPage, RangeChecksum, ServiceOperation, SetHeaders, Source,
};
pub use page_list::{ListedPages, write_page_list};
pub use properties::{ContainerProperties, blob_headers, tier_headers};
pub use request::BlobRequest;
pub use tags_xml::{TAGS_BODY_BYTES_MAX, parse_tags, write_tags};
