//! What is measured of the Queue and Blob services.

use crate::target::{Service, Target};

/// Bytes of a mebibyte.
pub(crate) const MIB: usize = 1 << 20;
/// Blocks of a blob that is put in blocks.
pub(crate) const BLOCKS: usize = 16;
/// The number of connections that the targets are about.
const CONNECTIONS: u64 = 16;

/// One kind of load on queues or blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Task {
    /// Get a message and delete it, one consumer.
    QueueTakeOne,
    /// Get a message and delete it, 16 consumers.
    QueueTake,
    /// Put a message.
    QueuePut,
    /// List a container of 5,000 blobs.
    BlobList,
    /// Get a blob of 4 KiB.
    BlobGetSmall,
    /// Get a blob of 1 MiB.
    BlobGetMedium,
    /// Get a blob of 64 MiB.
    BlobGetLarge,
    /// Put a new blob of 4 KiB.
    BlobPutSmall,
    /// Put a new blob of 1 MiB.
    BlobPutMedium,
    /// Put a new blob of 64 MiB in one request.
    BlobPutLarge,
    /// Put a new blob of 64 MiB in 16 blocks, one after the other, and their list.
    BlobPutBlocks,
}

impl Task {
    /// Every task in the order of measuring. Messages are taken before more are put than can be taken; blobs are read
    /// before new ones are written.
    pub(crate) const ALL: [Self; 11] = [
        Self::QueueTakeOne,
        Self::QueueTake,
        Self::QueuePut,
        Self::BlobList,
        Self::BlobGetSmall,
        Self::BlobGetMedium,
        Self::BlobGetLarge,
        Self::BlobPutSmall,
        Self::BlobPutMedium,
        Self::BlobPutLarge,
        Self::BlobPutBlocks,
    ];

    /// The service it is for.
    pub(crate) fn service(self) -> Service {
        match self {
            Self::QueueTakeOne | Self::QueueTake | Self::QueuePut => Service::Queue,
            _ => Service::Blob,
        }
    }

    /// The name in reports.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::QueueTakeOne => "get + delete, 1 consumer",
            Self::QueueTake => "get + delete, 16 consumers",
            Self::QueuePut => "put message",
            Self::BlobList => "list 5,000 blobs",
            Self::BlobGetSmall => "get 4 KiB",
            Self::BlobGetMedium => "get 1 MiB",
            Self::BlobGetLarge => "get 64 MiB",
            Self::BlobPutSmall => "put 4 KiB",
            Self::BlobPutMedium => "put 1 MiB",
            Self::BlobPutLarge => "put 64 MiB",
            Self::BlobPutBlocks => "put 64 MiB in 16 blocks",
        }
    }

    /// How many connections work at it.
    pub(crate) fn connections(self) -> u64 {
        if self == Self::QueueTakeOne { 1 } else { CONNECTIONS }
    }

    /// Whether it changes what the server keeps.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::BlobList | Self::BlobGetSmall | Self::BlobGetMedium | Self::BlobGetLarge)
    }

    /// The size of the blob that an operation moves, if it moves one.
    pub(crate) fn size(self) -> Option<Size> {
        match self {
            Self::QueueTakeOne | Self::QueueTake | Self::QueuePut | Self::BlobList => None,
            Self::BlobGetSmall | Self::BlobPutSmall => Some(Size::Small),
            Self::BlobGetMedium | Self::BlobPutMedium => Some(Size::Medium),
            Self::BlobGetLarge | Self::BlobPutLarge | Self::BlobPutBlocks => Some(Size::Large),
        }
    }

    /// Whether a server takes part in it: a bare server knows nothing but whole files.
    pub(crate) fn concerns(self, target: Target) -> bool {
        match target {
            Target::Larimar | Target::Azurite => true,
            Target::Bare => !matches!(self, Self::BlobList | Self::BlobPutBlocks) && self.service() == Service::Blob,
            Target::LarimarEmpty => false,
        }
    }
}

/// The sizes of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Medium,
    Large,
}

impl Size {
    pub(crate) const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The bytes of a blob.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Small => 4 << 10,
            Self::Medium => MIB,
            Self::Large => 64 * MIB,
        }
    }

    /// How many blobs there are to read. All of them fit into the page cache.
    pub(crate) fn stored(self) -> u64 {
        match self {
            Self::Small => 5_000,
            Self::Medium => 128,
            Self::Large => 8,
        }
    }

    /// The container of the blobs to read.
    pub(crate) fn container(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_measured_once_and_blobs_to_read_fill_a_page() {
        for task in Task::ALL {
            assert_eq!(Task::ALL.iter().filter(|other| **other == task).count(), 1);
            assert!(task.concerns(Target::Larimar) && task.concerns(Target::Azurite));
        }
        assert_eq!(Size::Small.stored(), super::super::request::PAGE_BLOBS);
        assert_eq!(Size::Large.bytes() % BLOCKS, 0);
    }
}
