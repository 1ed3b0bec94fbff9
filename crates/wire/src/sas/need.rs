//! What each operation needs a token to allow, service by service.

use super::ResourceType;
use larimar_model::blob::SnapshotTime;

/// What an operation needs a token to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need<'a> {
    /// The kinds of resources it counts among; one of them suffices.
    pub types: &'static [ResourceType],
    /// The letters.
    pub letters: Letters,
    /// What it works on.
    pub target: Target<'a>,
}

/// What an operation works on, as tokens for one resource tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// What only account tokens reach: the service, or the making and unmaking of what it holds.
    Account,
    /// The entities of a table, its name in any case.
    Table(&'a str),
    /// A queue and its messages.
    Queue(&'a str),
    /// A container.
    Container(&'a str),
    /// A blob.
    Blob {
        /// Its container.
        container: &'a str,
        /// Its name.
        blob: &'a str,
        /// The snapshot, if the operation works on one.
        snapshot: Option<SnapshotTime>,
    },
}

/// The letters that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    /// All of these.
    All(&'static str),
    /// One of these.
    Any(&'static str),
    /// No letters suffice: the operation needs an account key.
    Never,
}

/// The operations of every service, and those of the Table service (service: create an account SAS, create a
/// service SAS).
impl<'a> Need<'a> {
    /// Get Service Properties, Get Service Stats.
    pub const READ_SERVICE: Self = Self::new(&[ResourceType::Service], Letters::All("r"));
    /// Set Service Properties.
    pub const WRITE_SERVICE: Self = Self::new(&[ResourceType::Service], Letters::All("w"));
    /// Query Tables, which the service counts among the operations on containers.
    pub const QUERY_TABLES: Self = Self::new(&[ResourceType::Container], Letters::All("l"));
    /// Query Tables for one table by its name.
    pub const GET_TABLE: Self = Self::new(&[ResourceType::Container], Letters::All("l"));
    /// Create Table.
    pub const CREATE_TABLE: Self = Self::new(&[ResourceType::Container], Letters::Any("cw"));
    /// Delete Table.
    pub const DELETE_TABLE: Self = Self::new(&[ResourceType::Container], Letters::All("d"));
    /// Get and Set ACL.
    pub const ACL: Self = Self::new(&[ResourceType::Container], Letters::Never);

    /// Query Entities, and the read of one.
    #[must_use]
    pub const fn query(table: &'a str) -> Self {
        Self::entities(table, "r")
    }

    /// Insert Entity.
    #[must_use]
    pub const fn insert(table: &'a str) -> Self {
        Self::entities(table, "a")
    }

    /// Update Entity and Merge Entity.
    #[must_use]
    pub const fn update(table: &'a str) -> Self {
        Self::entities(table, "u")
    }

    /// Insert Or Replace Entity and Insert Or Merge Entity.
    #[must_use]
    pub const fn upsert(table: &'a str) -> Self {
        Self::entities(table, "au")
    }

    /// Delete Entity.
    #[must_use]
    pub const fn delete(table: &'a str) -> Self {
        Self::entities(table, "d")
    }

    const fn entities(table: &'a str, letters: &'static str) -> Self {
        Self { types: &[ResourceType::Object], letters: Letters::All(letters), target: Target::Table(table) }
    }

    const fn new(types: &'static [ResourceType], letters: Letters) -> Self {
        Self { types, letters, target: Target::Account }
    }
}

/// The operations of the Queue service.
impl<'a> Need<'a> {
    /// List Queues.
    pub const LIST_QUEUES: Self = Self::new(&[ResourceType::Service], Letters::All("l"));
    /// Create Queue.
    pub const CREATE_QUEUE: Self = Self::new(&[ResourceType::Container], Letters::Any("cw"));
    /// Delete Queue.
    pub const DELETE_QUEUE: Self = Self::new(&[ResourceType::Container], Letters::All("d"));
    /// Set Queue Metadata.
    pub const SET_QUEUE_METADATA: Self = Self::new(&[ResourceType::Container], Letters::All("w"));
    /// Clear Messages.
    pub const CLEAR_MESSAGES: Self = Self::new(OBJECT, Letters::All("d"));

    /// Get Queue Metadata.
    #[must_use]
    pub const fn get_queue_metadata(queue: &'a str) -> Self {
        Self { types: &[ResourceType::Container], letters: Letters::All("r"), target: Target::Queue(queue) }
    }

    /// Put Message.
    #[must_use]
    pub const fn put_message(queue: &'a str) -> Self {
        Self::messages(queue, "a")
    }

    /// Peek Messages.
    #[must_use]
    pub const fn peek_messages(queue: &'a str) -> Self {
        Self::messages(queue, "r")
    }

    /// Get Messages and Delete Message.
    #[must_use]
    pub const fn process_messages(queue: &'a str) -> Self {
        Self::messages(queue, "p")
    }

    /// Update Message.
    #[must_use]
    pub const fn update_message(queue: &'a str) -> Self {
        Self::messages(queue, "u")
    }

    const fn messages(queue: &'a str, letters: &'static str) -> Self {
        Self { types: OBJECT, letters: Letters::All(letters), target: Target::Queue(queue) }
    }
}

/// The operations of the Blob service on the service and on containers.
impl<'a> Need<'a> {
    /// List Containers.
    pub const LIST_CONTAINERS: Self = Self::new(&[ResourceType::Service], Letters::All("l"));
    /// Create Container.
    pub const CREATE_CONTAINER: Self = Self::new(&[ResourceType::Container], Letters::Any("cw"));
    /// Delete Container.
    pub const DELETE_CONTAINER: Self = Self::new(&[ResourceType::Container], Letters::All("d"));
    /// Get Container Properties and Get Container Metadata.
    pub const READ_CONTAINER: Self = Self::new(&[ResourceType::Container], Letters::All("r"));
    /// Set Container Metadata.
    pub const WRITE_CONTAINER: Self = Self::new(&[ResourceType::Container], Letters::All("w"));
    /// Lease Container: acquire, renew, change, release.
    pub const LEASE_CONTAINER: Self = Self::WRITE_CONTAINER;
    /// Lease Container: break.
    pub const BREAK_CONTAINER_LEASE: Self = Self::new(&[ResourceType::Container], Letters::Any("wd"));
    /// Find Blobs by Tags in the whole account.
    pub const FIND_BLOBS: Self = Self::new(OBJECT, Letters::All("f"));

    /// List Blobs.
    #[must_use]
    pub const fn list_blobs(container: &'a str) -> Self {
        Self { types: &[ResourceType::Container], letters: Letters::All("l"), target: Target::Container(container) }
    }

    /// List Blobs with tags, besides [`Need::list_blobs`].
    #[must_use]
    pub const fn list_tags(container: &'a str) -> Self {
        Self { types: OBJECT, letters: Letters::All("t"), target: Target::Container(container) }
    }

    /// Find Blobs by Tags in one container.
    #[must_use]
    pub const fn find_blobs(container: &'a str) -> Self {
        Self { types: OBJECT, letters: Letters::All("f"), target: Target::Container(container) }
    }

    /// Get Account Information and Blob Batch, which any token for what they address allows. The parts of a
    /// batch are each checked for themselves.
    #[must_use]
    pub const fn anything(target: Target<'a>) -> Self {
        let types = &[ResourceType::Service, ResourceType::Container, ResourceType::Object];
        Self { types, letters: Letters::Any("racwdxyltfmeopiu"), target }
    }
}

/// The operations of the Blob service on blobs.
impl<'a> Need<'a> {
    /// Get Blob and its properties, metadata, block list and page ranges; the source of a copy.
    #[must_use]
    pub const fn read_blob(container: &'a str, blob: &'a str, snapshot: Option<SnapshotTime>) -> Self {
        let target = Target::Blob { container, blob, snapshot };
        Self { types: OBJECT, letters: Letters::All("r"), target }
    }

    /// Put Blob, Put Blob From URL, Copy Blob. If there is a blob already, see [`super::Grant::permits_overwrite`].
    #[must_use]
    pub const fn create_blob(container: &'a str, blob: &'a str) -> Self {
        Self::blob(container, blob, Letters::Any("cw"))
    }

    /// Snapshot Blob.
    #[must_use]
    pub const fn snapshot_blob(container: &'a str, blob: &'a str) -> Self {
        Self::blob(container, blob, Letters::Any("cw"))
    }

    /// Put Block, Put Block List, Put Page, Set Blob Properties, Metadata and Tier, Abort Copy Blob, Lease
    /// Blob: acquire, renew, change, release.
    #[must_use]
    pub const fn write_blob(container: &'a str, blob: &'a str) -> Self {
        Self::blob(container, blob, Letters::All("w"))
    }

    /// Append Block.
    #[must_use]
    pub const fn append_block(container: &'a str, blob: &'a str) -> Self {
        Self::blob(container, blob, Letters::Any("aw"))
    }

    /// Lease Blob: break.
    #[must_use]
    pub const fn break_blob_lease(container: &'a str, blob: &'a str) -> Self {
        Self::blob(container, blob, Letters::Any("wd"))
    }

    /// Delete Blob.
    #[must_use]
    pub const fn delete_blob(container: &'a str, blob: &'a str, snapshot: Option<SnapshotTime>) -> Self {
        Self { types: OBJECT, letters: Letters::All("d"), target: Target::Blob { container, blob, snapshot } }
    }

    /// Get and Set Blob Tags, and tags that come with a write.
    #[must_use]
    pub const fn tag_blob(container: &'a str, blob: &'a str, snapshot: Option<SnapshotTime>) -> Self {
        Self { types: OBJECT, letters: Letters::All("t"), target: Target::Blob { container, blob, snapshot } }
    }

    const fn blob(container: &'a str, blob: &'a str, letters: Letters) -> Self {
        Self { types: OBJECT, letters, target: Target::Blob { container, blob, snapshot: None } }
    }
}

const OBJECT: &[ResourceType] = &[ResourceType::Object];
