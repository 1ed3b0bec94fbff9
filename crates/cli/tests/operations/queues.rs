//! The operations of the Queue service.

use super::{Case, check_names, names};
use larimar_wire::operation::Operation as _;
use larimar_wire::queue::QueueOperation;
use larimar_wire::request_head::RequestHead;

names!(name(QueueOperation) {
    QueueOperation::ListQueues(_) => "ListQueues",
    QueueOperation::GetServiceProperties => "GetQueueServiceProperties",
    QueueOperation::SetServiceProperties => "SetQueueServiceProperties",
    QueueOperation::GetServiceStats => "GetQueueServiceStats",
    QueueOperation::CreateQueue(..) => "CreateQueue",
    QueueOperation::DeleteQueue(_) => "DeleteQueue",
    QueueOperation::GetMetadata(_) => "GetQueueMetadata",
    QueueOperation::SetMetadata(..) => "SetQueueMetadata",
    QueueOperation::GetAcl(_) => "GetQueueACL",
    QueueOperation::SetAcl(_) => "SetQueueACL",
    QueueOperation::PutMessage { .. } => "PutMessage",
    QueueOperation::GetMessages { .. } => "GetMessages",
    QueueOperation::PeekMessages { .. } => "PeekMessages",
    QueueOperation::ClearMessages(_) => "ClearMessages",
    QueueOperation::DeleteMessage { .. } => "DeleteMessage",
    QueueOperation::UpdateMessage { .. } => "UpdateMessage",
});

/// Requests for all operations, on the queue `jobs`.
pub(super) fn cases() -> Vec<Case> {
    let message = "<QueueMessage><MessageText>m</MessageText></QueueMessage>";
    let id = "/jobs/messages/5974b586-0df3-4e2d-ad0c-18e3892bfca2?popreceipt=AgAAAAMAAAAAAAAA";
    let update = "/jobs/messages/5974b586-0df3-4e2d-ad0c-18e3892bfca2?popreceipt=AgAAAAMAAAAAAAAA&visibilitytimeout=1";
    vec![
        Case::new("GET", "/?comp=list"),
        Case::new("GET", "/?restype=service&comp=properties"),
        Case::new("PUT", "/?restype=service&comp=properties").body("<StorageServiceProperties/>"),
        Case::new("GET", "/?restype=service&comp=stats"),
        Case::new("PUT", "/new"),
        Case::new("DELETE", "/gone"),
        Case::new("GET", "/jobs?comp=metadata"),
        Case::new("PUT", "/jobs?comp=metadata"),
        Case::new("GET", "/jobs?comp=acl"),
        Case::new("PUT", "/jobs?comp=acl").body("<SignedIdentifiers/>"),
        Case::new("POST", "/jobs/messages").body(message),
        Case::new("GET", "/jobs/messages"),
        Case::new("GET", "/jobs/messages?peekonly=true"),
        Case::new("DELETE", "/jobs/messages"),
        Case::new("DELETE", id),
        Case::new("PUT", update).body(message),
    ]
}

/// The operation that a case asks for.
pub(super) fn parse(case: &Case) -> QueueOperation {
    let (path, query) = case.path_and_query();
    let parsed = QueueOperation::parse(&RequestHead::new(case.method, path, query, case.pairs()), path);
    parsed.unwrap_or_else(|error| panic!("{case:?}: {error:?}"))
}

#[test]
fn every_operation_on_queues_has_a_case() {
    let operations: Vec<QueueOperation> = cases().iter().map(parse).collect();
    let named: Vec<_> = operations.iter().map(|operation| (name(operation), operation.facts())).collect();
    check_names(NAMES, &named);
}
