//! What the server must know about each operation of the Blob service before it runs it: the table of [`Facts`].

use super::address::BlobAddress;
use super::batch::BATCH_BODY_BYTES_MAX;
use super::block_list::BLOCK_LIST_BODY_BYTES_MAX;
use super::operation::{BlobOperation, ContainerOperation, PageWrite, PutBlobContent, ServiceOperation};
use super::request::BlobRequest;
use super::tags_xml::TAGS_BODY_BYTES_MAX;
use crate::operation::{BodyLimit, Endpoint, Facts, Format, Operation, Public, SETTINGS_BODY_BYTES_MAX};
use crate::sas::{Need, Target};
use larimar_model::blob::{BlobName, BlockListKind, ContainerName, LeaseAction, SnapshotTime, TagCondition};

impl Operation for BlobRequest {
    fn facts(&self) -> Facts<'_> {
        match self {
            Self::Service(operation) => operation.facts(),
            Self::Container(container, operation) => operation.facts(container),
            Self::Blob(container, blob, operation) => operation.facts(container, blob),
            // Without credentials the answer is that there is no such resource, which the handler gives.
            Self::AccountInfo(address) => {
                Facts::read("GetAccountInformation", Need::anything(address.target())).public(Public::Read)
            }
        }
    }
}

impl ServiceOperation {
    fn facts(&self) -> Facts<'_> {
        match self {
            Self::ListContainers(_) => Facts::read("ListContainers", Need::LIST_CONTAINERS).answers(Format::Xml),
            Self::FindBlobs(_) => Facts::read("FindBlobsByTags", Need::FIND_BLOBS).answers(Format::Xml),
            Self::GetProperties => Facts::read("GetBlobServiceProperties", Need::READ_SERVICE).answers(Format::Xml),
            Self::SetProperties => Facts::write("SetBlobServiceProperties", Need::WRITE_SERVICE).body(settings_body()),
            Self::GetStats => {
                Facts::read("GetBlobServiceStats", Need::READ_SERVICE).on(Endpoint::Secondary).answers(Format::Xml)
            }
            Self::Batch => batch(Target::Account),
        }
    }
}

impl ContainerOperation {
    fn facts<'a>(&'a self, container: &'a ContainerName) -> Facts<'a> {
        let name = container.as_str();
        let is_logs = is_logs(container);
        match self {
            Self::Create { .. } => Facts::write("CreateContainer", Need::CREATE_CONTAINER).reserved_if(is_logs),
            Self::GetProperties { .. } => {
                Facts::read("GetContainerProperties", Need::READ_CONTAINER).public(Public::List)
            }
            Self::GetMetadata { .. } => Facts::read("GetContainerMetadata", Need::READ_CONTAINER).public(Public::List),
            Self::SetMetadata { .. } => Facts::write("SetContainerMetadata", Need::WRITE_CONTAINER),
            Self::GetAcl { .. } => Facts::read("GetContainerACL", Need::ACL).answers(Format::Xml),
            Self::SetAcl { .. } => {
                Facts::write("SetContainerACL", Need::ACL).reserved_if(is_logs).body(settings_body())
            }
            Self::Delete { .. } => Facts::delete("DeleteContainer", Need::DELETE_CONTAINER).reserved_if(is_logs),
            Self::Lease { action, .. } => match action {
                LeaseAction::Acquire { .. } => Facts::write("AcquireContainerLease", Need::LEASE_CONTAINER),
                LeaseAction::Renew { .. } => Facts::write("RenewContainerLease", Need::LEASE_CONTAINER),
                LeaseAction::Change { .. } => Facts::write("ChangeContainerLease", Need::LEASE_CONTAINER),
                LeaseAction::Release { .. } => Facts::write("ReleaseContainerLease", Need::LEASE_CONTAINER),
                LeaseAction::Break { .. } => Facts::write("BreakContainerLease", Need::BREAK_CONTAINER_LEASE),
            },
            Self::ListBlobs(list) => {
                let facts = Facts::read("ListBlobs", Need::list_blobs(name)).answers(Format::Xml);
                // Tags are never public.
                match list.include.tags {
                    true => facts.and(Some(Need::list_tags(name))),
                    false => facts.public(Public::List),
                }
            }
            Self::FindBlobs(_) => Facts::read("FindBlobsByTags", Need::find_blobs(name)).answers(Format::Xml),
            Self::Batch => batch(Target::Container(name)),
        }
    }
}

impl BlobOperation {
    fn facts<'a>(&'a self, container: &'a ContainerName, blob: &'a BlobName) -> Facts<'a> {
        let facts = self.facts_without_conditions(container, blob);
        match self.if_tags() {
            // The result of a condition on tags reveals them, and tags are never public.
            Some(_) => {
                let tags = Need::tag_blob(container.as_str(), blob.as_str(), self.snapshot());
                Facts { needs: [Some(tags), facts.needs[0]], public: None, ..facts }
            }
            None => facts,
        }
    }

    fn facts_without_conditions<'a>(&'a self, container: &'a ContainerName, blob: &'a BlobName) -> Facts<'a> {
        let (container, blob, is_logs) = (container.as_str(), blob.as_str(), is_logs(container));
        let read = |name, snapshot| Facts::read(name, Need::read_blob(container, blob, snapshot)).public(Public::Read);
        let write = |name| Facts::write(name, Need::write_blob(container, blob)).reserved_if(is_logs);
        let create = |name, with_tags: bool| {
            let tags = with_tags.then_some(Need::tag_blob(container, blob, None));
            Facts::write(name, Need::create_blob(container, blob)).and(tags).reserved_if(is_logs)
        };
        match self {
            Self::Put(put) => {
                let has_tags = !put.blob.tags.is_empty();
                match &put.content {
                    PutBlobContent::Block(_) => create("PutBlob", has_tags).body(BodyLimit::Streamed),
                    PutBlobContent::BlockFrom { copy_tags, .. } => create("PutBlobFromURL", *copy_tags || has_tags),
                    PutBlobContent::Append | PutBlobContent::Page { .. } => create("PutBlob", has_tags),
                }
            }
            Self::Get(get) => read("GetBlob", get.read.snapshot).answers(Format::Stream),
            Self::GetProperties(get) => read("GetBlobProperties", get.snapshot),
            Self::GetMetadata(get) => read("GetBlobMetadata", get.snapshot),
            Self::SetMetadata { .. } => write("SetBlobMetadata"),
            Self::SetHeaders(_) => write("SetBlobProperties"),
            Self::Delete { snapshot, .. } => Facts::delete("DeleteBlob", Need::delete_blob(container, blob, *snapshot)),
            Self::Snapshot { .. } => {
                Facts::write("SnapshotBlob", Need::snapshot_blob(container, blob)).reserved_if(is_logs)
            }
            Self::Lease { action, .. } => lease(*action, container, blob),
            Self::Copy(copy) => create("CopyBlob", copy.tags.as_ref().is_none_or(|tags| !tags.is_empty())),
            Self::IncrementalCopy(_) => create("IncrementalCopyBlob", false),
            Self::AbortCopy { .. } => write("AbortCopyBlob"),
            Self::SetTier { .. } => write("SetBlobTier"),
            Self::GetTags { snapshot, .. } => {
                Facts::read("GetBlobTags", Need::tag_blob(container, blob, *snapshot)).answers(Format::Xml)
            }
            Self::SetTags { .. } => Facts::write("SetBlobTags", Need::tag_blob(container, blob, None))
                .reserved_if(is_logs)
                .body(BodyLimit::Bytes(TAGS_BODY_BYTES_MAX as usize)),
            Self::PutBlock(put) => match put.source {
                Some(_) => write("PutBlockFromURL"),
                None => write("PutBlock").body(BodyLimit::Streamed),
            },
            Self::PutBlockList(put) => create("PutBlockList", !put.blob.tags.is_empty())
                .body(BodyLimit::Bytes(BLOCK_LIST_BODY_BYTES_MAX as usize)),
            Self::GetBlockList { snapshot, kind, .. } => block_list(*kind, read("GetBlockList", *snapshot)),
            Self::AppendBlock(append) => {
                let append_facts = |name| Facts::write(name, Need::append_block(container, blob)).reserved_if(is_logs);
                match append.source {
                    Some(_) => append_facts("AppendBlockFromURL"),
                    None => append_facts("AppendBlock").body(BodyLimit::Streamed),
                }
            }
            Self::Seal { .. } => write("AppendBlobSeal"),
            Self::PutPage(put) => match put.write {
                PageWrite::Clear => write("ClearPage"),
                PageWrite::Update(_) => write("PutPage").body(BodyLimit::Streamed),
                PageWrite::UpdateFrom(_) => write("PutPageFromURL"),
            },
            Self::GetPageRanges(get) => read("GetPageRegions", get.read.snapshot).answers(Format::Xml),
        }
    }

    /// The snapshot that the operation works on.
    fn snapshot(&self) -> Option<SnapshotTime> {
        match self {
            Self::Get(get) => get.read.snapshot,
            Self::GetProperties(get) | Self::GetMetadata(get) => get.snapshot,
            Self::GetPageRanges(get) => get.read.snapshot,
            Self::Delete { snapshot, .. }
            | Self::SetTier { snapshot, .. }
            | Self::GetTags { snapshot, .. }
            | Self::GetBlockList { snapshot, .. } => *snapshot,
            Self::Put(_)
            | Self::SetMetadata { .. }
            | Self::SetHeaders(_)
            | Self::Snapshot { .. }
            | Self::Lease { .. }
            | Self::Copy(_)
            | Self::IncrementalCopy(_)
            | Self::AbortCopy { .. }
            | Self::SetTags { .. }
            | Self::PutBlock(_)
            | Self::PutBlockList(_)
            | Self::AppendBlock(_)
            | Self::Seal { .. }
            | Self::PutPage(_) => None,
        }
    }

    /// `x-ms-if-tags`.
    fn if_tags(&self) -> Option<&TagCondition> {
        let access = match self {
            Self::Put(put) => &put.access,
            Self::Get(get) => &get.read.access,
            Self::GetProperties(get) | Self::GetMetadata(get) => &get.access,
            Self::SetHeaders(set) => &set.access,
            Self::Copy(copy) => &copy.access,
            Self::IncrementalCopy(copy) => &copy.access,
            Self::PutBlockList(put) => &put.access,
            Self::AppendBlock(append) => &append.access,
            Self::PutPage(put) => &put.access,
            Self::GetPageRanges(get) => &get.read.access,
            Self::SetMetadata { access, .. }
            | Self::Delete { access, .. }
            | Self::Snapshot { access, .. }
            | Self::Lease { access, .. }
            | Self::SetTier { access, .. }
            | Self::GetTags { access, .. }
            | Self::SetTags { access, .. }
            | Self::GetBlockList { access, .. }
            | Self::Seal { access, .. } => access,
            // Requests for these are refused if they have the header.
            Self::AbortCopy { .. } | Self::PutBlock(_) => return None,
        };
        access.if_tags.as_ref()
    }
}

impl BlobAddress {
    fn target(&self) -> Target<'_> {
        match self {
            Self::Service => Target::Account,
            Self::Container(container) => Target::Container(container.as_str()),
            Self::Blob(container, blob) => {
                Target::Blob { container: container.as_str(), blob: blob.as_str(), snapshot: None }
            }
        }
    }
}

/// Blob Batch: any signature for what it addresses suffices, as each part is authorised for itself.
const fn batch(target: Target<'_>) -> Facts<'_> {
    Facts::write("BlobBatch", Need::anything(target))
        .body(BodyLimit::Bytes(BATCH_BODY_BYTES_MAX))
        .answers(Format::Multipart)
}

/// Get Block List: uncommitted blocks are never public (service: set container ACL).
const fn block_list(kind: BlockListKind, read: Facts<'_>) -> Facts<'_> {
    match kind {
        BlockListKind::Committed => read.answers(Format::Xml),
        BlockListKind::Uncommitted | BlockListKind::All => Facts { public: None, ..read.answers(Format::Xml) },
    }
}

const fn lease<'a>(action: LeaseAction, container: &'a str, blob: &'a str) -> Facts<'a> {
    let write = Need::write_blob(container, blob);
    match action {
        LeaseAction::Acquire { .. } => Facts::write("AcquireBlobLease", write),
        LeaseAction::Renew { .. } => Facts::write("RenewBlobLease", write),
        LeaseAction::Change { .. } => Facts::write("ChangeBlobLease", write),
        LeaseAction::Release { .. } => Facts::write("ReleaseBlobLease", write),
        LeaseAction::Break { .. } => Facts::write("BreakBlobLease", Need::break_blob_lease(container, blob)),
    }
}

const fn settings_body() -> BodyLimit {
    BodyLimit::Bytes(SETTINGS_BODY_BYTES_MAX)
}

/// Whether this is the container of the service's logs: clients read and delete logs, and write none.
fn is_logs(container: &ContainerName) -> bool {
    container.as_str() == ContainerName::LOGS
}
