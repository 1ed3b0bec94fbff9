//! The vocabulary of the Blob service: names, content headers, conditions, properties, leases, blocks, ranges, tags.

mod access;
mod block;
mod conditions;
mod content;
mod lease;
mod name;
mod properties;
mod range;
mod tag_filter;
mod tags;
mod words;

pub use access::AccessConditions;
pub use block::{BlockId, BlockIdError, BlockListEntry, BlockListKind};
pub use conditions::{AppendConditions, BlobETag, Conditions, ETagCondition, SequenceConditions};
pub use content::{ContentHeaders, CopyInfo, IncrementalCopy};
pub use lease::{BreakPeriod, LeaseAction, LeaseDuration, LeaseError, LeaseId, LeaseState, LeaseStatus, LeaseView};
pub use name::{BlobName, BlobNameError, ContainerName};
pub use properties::{BlobProperties, NewBlob, Rehydration};
pub use range::{ByteRange, PageRange, PageRangeError};
pub use tag_filter::{TagComparison, TagCondition, TagFilterError, TagOperator, TagQuery};
pub use tags::{Tags, TagsError};
pub use words::{
    AccessTier, BlobType, DeleteSnapshots, ListInclude, PublicAccess, RehydratePriority, SequenceNumberAction,
    SnapshotTime, UnknownWord,
};
