//! The operations of the Blob service.

use super::{Case, Place, check_names, names};
use larimar_model::blob::LeaseAction;
use larimar_wire::blob::{BlobOperation, BlobRequest, ContainerOperation, PageWrite, PutBlobContent, ServiceOperation};
use larimar_wire::operation::Operation as _;
use larimar_wire::request_head::RequestHead;

names!(name(BlobRequest) {
    BlobRequest::AccountInfo(_) => "GetAccountInformation",
    BlobRequest::Service(ServiceOperation::ListContainers(_)) => "ListContainers",
    BlobRequest::Service(ServiceOperation::FindBlobs(_)) => "FindBlobsByTags",
    BlobRequest::Service(ServiceOperation::GetProperties) => "GetBlobServiceProperties",
    BlobRequest::Service(ServiceOperation::SetProperties) => "SetBlobServiceProperties",
    BlobRequest::Service(ServiceOperation::GetStats) => "GetBlobServiceStats",
    BlobRequest::Service(ServiceOperation::Batch) => "BlobBatch",
    BlobRequest::Container(_, ContainerOperation::Create { .. }) => "CreateContainer",
    BlobRequest::Container(_, ContainerOperation::GetProperties { .. }) => "GetContainerProperties",
    BlobRequest::Container(_, ContainerOperation::GetMetadata { .. }) => "GetContainerMetadata",
    BlobRequest::Container(_, ContainerOperation::SetMetadata { .. }) => "SetContainerMetadata",
    BlobRequest::Container(_, ContainerOperation::GetAcl { .. }) => "GetContainerACL",
    BlobRequest::Container(_, ContainerOperation::SetAcl { .. }) => "SetContainerACL",
    BlobRequest::Container(_, ContainerOperation::Delete { .. }) => "DeleteContainer",
    BlobRequest::Container(_, ContainerOperation::Lease { action: LeaseAction::Acquire { .. }, .. }) => "AcquireContainerLease",
    BlobRequest::Container(_, ContainerOperation::Lease { action: LeaseAction::Renew { .. }, .. }) => "RenewContainerLease",
    BlobRequest::Container(_, ContainerOperation::Lease { action: LeaseAction::Change { .. }, .. }) => "ChangeContainerLease",
    BlobRequest::Container(_, ContainerOperation::Lease { action: LeaseAction::Release { .. }, .. }) => "ReleaseContainerLease",
    BlobRequest::Container(_, ContainerOperation::Lease { action: LeaseAction::Break { .. }, .. }) => "BreakContainerLease",
    BlobRequest::Container(_, ContainerOperation::ListBlobs(_)) => "ListBlobs",
    BlobRequest::Container(_, ContainerOperation::FindBlobs(_)) => "FindBlobsByTags",
    BlobRequest::Container(_, ContainerOperation::Batch) => "BlobBatch",
    BlobRequest::Blob(_, _, BlobOperation::Put(put)) if matches!(put.content, PutBlobContent::BlockFrom { .. }) => "PutBlobFromURL",
    BlobRequest::Blob(_, _, BlobOperation::Put(_)) => "PutBlob",
    BlobRequest::Blob(_, _, BlobOperation::Get(_)) => "GetBlob",
    BlobRequest::Blob(_, _, BlobOperation::GetProperties(_)) => "GetBlobProperties",
    BlobRequest::Blob(_, _, BlobOperation::GetMetadata(_)) => "GetBlobMetadata",
    BlobRequest::Blob(_, _, BlobOperation::SetMetadata { .. }) => "SetBlobMetadata",
    BlobRequest::Blob(_, _, BlobOperation::SetHeaders(_)) => "SetBlobProperties",
    BlobRequest::Blob(_, _, BlobOperation::Delete { .. }) => "DeleteBlob",
    BlobRequest::Blob(_, _, BlobOperation::Snapshot { .. }) => "SnapshotBlob",
    BlobRequest::Blob(_, _, BlobOperation::Lease { action: LeaseAction::Acquire { .. }, .. }) => "AcquireBlobLease",
    BlobRequest::Blob(_, _, BlobOperation::Lease { action: LeaseAction::Renew { .. }, .. }) => "RenewBlobLease",
    BlobRequest::Blob(_, _, BlobOperation::Lease { action: LeaseAction::Change { .. }, .. }) => "ChangeBlobLease",
    BlobRequest::Blob(_, _, BlobOperation::Lease { action: LeaseAction::Release { .. }, .. }) => "ReleaseBlobLease",
    BlobRequest::Blob(_, _, BlobOperation::Lease { action: LeaseAction::Break { .. }, .. }) => "BreakBlobLease",
    BlobRequest::Blob(_, _, BlobOperation::Copy(_)) => "CopyBlob",
    BlobRequest::Blob(_, _, BlobOperation::IncrementalCopy(_)) => "IncrementalCopyBlob",
    BlobRequest::Blob(_, _, BlobOperation::AbortCopy { .. }) => "AbortCopyBlob",
    BlobRequest::Blob(_, _, BlobOperation::SetTier { .. }) => "SetBlobTier",
    BlobRequest::Blob(_, _, BlobOperation::GetTags { .. }) => "GetBlobTags",
    BlobRequest::Blob(_, _, BlobOperation::SetTags { .. }) => "SetBlobTags",
    BlobRequest::Blob(_, _, BlobOperation::PutBlock(put)) if put.source.is_some() => "PutBlockFromURL",
    BlobRequest::Blob(_, _, BlobOperation::PutBlock(_)) => "PutBlock",
    BlobRequest::Blob(_, _, BlobOperation::PutBlockList(_)) => "PutBlockList",
    BlobRequest::Blob(_, _, BlobOperation::GetBlockList { .. }) => "GetBlockList",
    BlobRequest::Blob(_, _, BlobOperation::AppendBlock(append)) if append.source.is_some() => "AppendBlockFromURL",
    BlobRequest::Blob(_, _, BlobOperation::AppendBlock(_)) => "AppendBlock",
    BlobRequest::Blob(_, _, BlobOperation::Seal { .. }) => "AppendBlobSeal",
    BlobRequest::Blob(_, _, BlobOperation::PutPage(put)) if matches!(put.write, PageWrite::Clear) => "ClearPage",
    BlobRequest::Blob(_, _, BlobOperation::PutPage(put)) if matches!(put.write, PageWrite::UpdateFrom(_)) => "PutPageFromURL",
    BlobRequest::Blob(_, _, BlobOperation::PutPage(_)) => "PutPage",
    BlobRequest::Blob(_, _, BlobOperation::GetPageRanges(_)) => "GetPageRegions",
});

const LEASE: &str = "5974b586-0df3-4e2d-ad0c-18e3892bfca2";
const SOURCE: &str = "http://127.0.0.1/devstoreaccount1/box/block";
const SNAPSHOT: &str = "http://127.0.0.1/devstoreaccount1/box/pages?snapshot=2020-01-01T00:00:00.0000000Z";

/// Requests for all operations, on the container `box` and its blobs `block`, `append` and `pages`.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = service_cases();
    cases.extend(container_cases());
    cases.extend(lease_cases("/box?restype=container&comp=lease"));
    cases.extend(lease_cases("/box/block?comp=lease"));
    cases.extend(blob_cases());
    cases.extend(block_cases());
    cases.extend(tag_cases());
    let tier = Case::new("PUT", "/box/block?comp=tier").header("x-ms-access-tier", "Cool");
    cases.push(tier.clone());
    cases.push(Case::new("DELETE", "/box/block").part_of(Place::BlobBatch));
    cases.push(tier.part_of(Place::BlobBatch));
    cases
}

fn service_cases() -> Vec<Case> {
    let batch = |target| Case::new("POST", target).header("Content-Type", "multipart/mixed; boundary=b").body("--b--");
    vec![
        Case::new("GET", "/?comp=list"),
        Case::new("GET", "/?comp=blobs&where=%22a%22%3D%27b%27"),
        Case::new("GET", "/?restype=service&comp=properties"),
        Case::new("PUT", "/?restype=service&comp=properties").body("<StorageServiceProperties/>"),
        Case::new("GET", "/?restype=service&comp=stats"),
        Case::new("GET", "/?restype=account&comp=properties"),
        batch("/?comp=batch"),
        batch("/box?restype=container&comp=batch"),
    ]
}

fn container_cases() -> Vec<Case> {
    vec![
        Case::new("PUT", "/new?restype=container"),
        Case::new("GET", "/box?restype=container"),
        Case::new("GET", "/box?restype=container&comp=metadata"),
        Case::new("PUT", "/box?restype=container&comp=metadata"),
        Case::new("GET", "/box?restype=container&comp=acl"),
        Case::new("PUT", "/box?restype=container&comp=acl").body("<SignedIdentifiers/>"),
        Case::new("DELETE", "/gone?restype=container"),
        Case::new("GET", "/box?restype=container&comp=list"),
        Case::new("GET", "/box?restype=container&comp=blobs&where=%22a%22%3D%27b%27"),
        Case::new("GET", "/box?restype=account&comp=properties"),
    ]
}

fn lease_cases(target: &'static str) -> Vec<Case> {
    let lease = |action: &str| Case::new("PUT", target).header("x-ms-lease-action", action);
    vec![
        lease("acquire").header("x-ms-lease-duration", "15").header("x-ms-proposed-lease-id", LEASE),
        lease("renew").header("x-ms-lease-id", LEASE),
        lease("change").header("x-ms-lease-id", LEASE).header("x-ms-proposed-lease-id", LEASE),
        lease("release").header("x-ms-lease-id", LEASE),
        lease("break").header("x-ms-lease-break-period", "0"),
    ]
}

fn blob_cases() -> Vec<Case> {
    let block = "/box/block";
    vec![
        Case::new("PUT", block).header("x-ms-blob-type", "BlockBlob").body("b"),
        Case::new("PUT", block).header("x-ms-blob-type", "BlockBlob").header("x-ms-copy-source", SOURCE).body(""),
        Case::new("GET", block),
        Case::new("HEAD", block),
        Case::new("GET", "/box/block?comp=metadata"),
        Case::new("PUT", "/box/block?comp=metadata"),
        Case::new("PUT", "/box/block?comp=properties"),
        Case::new("PUT", "/box/block?comp=snapshot"),
        Case::new("PUT", "/box/copy").header("x-ms-copy-source", SOURCE),
        Case::new("PUT", "/box/copy?comp=incrementalcopy").header("x-ms-copy-source", SNAPSHOT),
        Case::new("PUT", "/box/copy?comp=copy&copyid=5974b586-0df3-4e2d-ad0c-18e3892bfca2")
            .header("x-ms-copy-action", "abort"),
        Case::new("GET", "/box/block?restype=account&comp=properties"),
        Case::new("DELETE", "/box/gone"),
    ]
}

fn block_cases() -> Vec<Case> {
    let page = || Case::new("PUT", "/box/pages?comp=page").header("x-ms-range", "bytes=0-511");
    vec![
        Case::new("PUT", "/box/block?comp=block&blockid=YQ%3D%3D").body("b"),
        Case::new("PUT", "/box/block?comp=block&blockid=YQ%3D%3D").header("x-ms-copy-source", SOURCE).body(""),
        Case::new("PUT", "/box/list?comp=blocklist").body("<BlockList/>"),
        Case::new("GET", "/box/block?comp=blocklist"),
        Case::new("PUT", "/box/append?comp=appendblock").body("b"),
        Case::new("PUT", "/box/append?comp=appendblock").header("x-ms-copy-source", SOURCE).body(""),
        Case::new("PUT", "/box/append?comp=seal"),
        page().header("x-ms-page-write", "update").body("p".repeat(512)),
        page().header("x-ms-page-write", "clear").body(""),
        page()
            .header("x-ms-page-write", "update")
            .header("x-ms-copy-source", SOURCE)
            .header("x-ms-source-range", "bytes=0-511")
            .body(""),
        Case::new("GET", "/box/pages?comp=pagelist"),
    ]
}

/// What needs the permission for tags besides its own.
fn tag_cases() -> Vec<Case> {
    let tags = "<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>";
    vec![
        Case::new("GET", "/box/block?comp=tags"),
        Case::new("PUT", "/box/block?comp=tags").body(tags),
        Case::new("GET", "/box/block").header("x-ms-if-tags", "\"a\" = 'b'"),
        Case::new("PUT", "/box/tagged").header("x-ms-blob-type", "BlockBlob").header("x-ms-tags", "a=b").body("b"),
        Case::new("GET", "/box?restype=container&comp=list&include=tags"),
    ]
}

/// The operation that a case asks for.
pub(super) fn parse(case: &Case) -> BlobRequest {
    let (path, query) = case.path_and_query();
    let length = case.body.len().to_string();
    let headers = case.pairs().into_iter().chain([("Content-Length", length.as_str())]);
    let parsed = BlobRequest::parse(&RequestHead::new(case.method, path, query, headers), path);
    parsed.unwrap_or_else(|error| panic!("{case:?}: {error:?}"))
}

#[test]
fn every_operation_on_blobs_has_a_case() {
    let operations: Vec<BlobRequest> = cases().iter().map(parse).collect();
    let named: Vec<_> = operations.iter().map(|operation| (name(operation), operation.facts())).collect();
    check_names(NAMES, &named);
}
