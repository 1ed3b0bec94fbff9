//! The operations of the Table service.

use super::{Case, Place, check_names, names};
use larimar_testkit::http::entity;
use larimar_wire::operation::Operation as _;
use larimar_wire::request_head::RequestHead;
use larimar_wire::table::{TableOperation, TableRequest, WriteEntity, WriteKind};

names!(name(TableOperation) {
    TableOperation::QueryTables(_) => "QueryTables",
    TableOperation::GetTable(_) => "QueryTable",
    TableOperation::CreateTable => "CreateTable",
    TableOperation::DeleteTable(_) => "DeleteTable",
    TableOperation::GetTableAcl(_) => "GetTableACL",
    TableOperation::SetTableAcl(_) => "SetTableACL",
    TableOperation::QueryEntities(_) => "QueryEntities",
    TableOperation::GetEntity(_) => "QueryEntity",
    TableOperation::Write(WriteEntity { kind: WriteKind::Insert, .. }) => "InsertEntity",
    TableOperation::Write(WriteEntity { kind: WriteKind::Replace(_, Some(_)), .. }) => "UpdateEntity",
    TableOperation::Write(WriteEntity { kind: WriteKind::Replace(_, None), .. }) => "InsertOrReplaceEntity",
    TableOperation::Write(WriteEntity { kind: WriteKind::Merge(_, Some(_)), .. }) => "MergeEntity",
    TableOperation::Write(WriteEntity { kind: WriteKind::Merge(_, None), .. }) => "InsertOrMergeEntity",
    TableOperation::Write(WriteEntity { kind: WriteKind::Delete(..), .. }) => "DeleteEntity",
    TableOperation::Refused(..) => "Unknown",
    TableOperation::Batch => "EntityGroupTransaction",
    TableOperation::GetSchema => "GetTableServiceSchema",
    TableOperation::GetServiceProperties => "GetTableServiceProperties",
    TableOperation::SetServiceProperties => "SetTableServiceProperties",
    TableOperation::GetServiceStats => "GetTableServiceStats",
});

/// Requests for all operations, on the table `tab`.
pub(super) fn cases() -> Vec<Case> {
    let one = "/tab(PartitionKey='p',RowKey='r')";
    let json = |case: Case| case.header("Content-Type", "application/json").body(entity("p", "r", ""));
    let any = |case: Case| case.header("If-Match", "*");
    let writes = [
        json(Case::new("POST", "/tab")),
        any(json(Case::new("PUT", one))),
        json(Case::new("PUT", one)),
        any(json(Case::new("MERGE", one))),
        json(Case::new("MERGE", one)),
        any(Case::new("DELETE", one)),
    ];
    let reads = [Case::new("GET", "/tab()"), Case::new("GET", one)];
    let mut cases = vec![
        Case::new("GET", "/Tables"),
        Case::new("GET", "/Tables('tab')"),
        Case::new("POST", "/Tables").header("Content-Type", "application/json").body("{\"TableName\":\"new\"}"),
        Case::new("DELETE", "/Tables('gone')"),
        Case::new("GET", "/tab?comp=acl"),
        Case::new("PUT", "/tab?comp=acl").body("<SignedIdentifiers/>"),
        Case::new("GET", "/tab/$batch"),
        Case::new("POST", "/$batch").header("Content-Type", "multipart/mixed; boundary=b").body("--b--"),
        Case::new("GET", "/$metadata"),
        Case::new("GET", "/?restype=service&comp=properties"),
        Case::new("PUT", "/?restype=service&comp=properties").body("<StorageServiceProperties/>"),
        Case::new("GET", "/?restype=service&comp=stats"),
    ];
    cases.extend(reads.iter().chain(&writes).cloned());
    cases.extend(reads.map(|case| case.part_of(Place::BatchQuery)));
    cases.extend(writes.map(|case| case.part_of(Place::Changeset)));
    cases
}

/// The operation that a case asks for.
pub(super) fn parse(case: &Case) -> TableOperation {
    let (path, query) = case.path_and_query();
    let head = RequestHead::new(case.method, path, query, case.pairs());
    let parsed = TableRequest::parse(&head, "devstoreaccount1", path);
    parsed.unwrap_or_else(|error| panic!("{case:?}: {error:?}")).operation
}

#[test]
fn every_operation_on_tables_has_a_case() {
    let operations: Vec<TableOperation> = cases().iter().map(parse).collect();
    let named: Vec<_> = operations.iter().map(|operation| (name(operation), operation.facts())).collect();
    check_names(NAMES, &named);
}
