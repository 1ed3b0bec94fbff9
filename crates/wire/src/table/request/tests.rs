//! Tests of the routes, as tables of request and outcome.

use super::*;

fn parse(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<TableRequest, (ErrorCode, u16)> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let head = RequestHead::new(method, path, query, headers.iter().copied());
    TableRequest::parse(&head, "acct", path).map_err(|error| (error.code, error.status))
}

fn name(method: &str, target: &str) -> Result<&'static str, (ErrorCode, u16)> {
    parse(method, target, &[("If-Match", "*")]).map(|r| r.facts().name)
}

#[test]
fn every_operation_has_its_method_and_path() {
    for (method, target, operation) in [
        ("GET", "/Tables", "QueryTables"),
        ("GET", "/Tables()", "QueryTables"),
        ("GET", "/Tables('abc')", "QueryTable"),
        ("POST", "/Tables", "CreateTable"),
        ("DELETE", "/Tables('abc')", "DeleteTable"),
        ("DELETE", "/Tables(%27abc%27)", "DeleteTable"),
        ("GET", "/abc?comp=acl", "GetTableACL"),
        ("HEAD", "/abc?comp=acl", "GetTableACL"),
        ("PUT", "/abc?comp=acl", "SetTableACL"),
        ("GET", "/abc()", "QueryEntities"),
        ("GET", "//abc", "QueryEntities"),
        ("GET", "/abc(PartitionKey='a',RowKey='b')", "QueryEntity"),
        ("POST", "/abc", "InsertEntity"),
        ("POST", "/abc()", "InsertEntity"),
        ("PUT", "/abc(PartitionKey='a',RowKey='b')", "UpdateEntity"),
        ("MERGE", "/abc(RowKey='b', PartitionKey='a')", "MergeEntity"),
        ("PATCH", "/abc(PartitionKey='',RowKey='')", "MergeEntity"),
        ("DELETE", "/abc(PartitionKey='a%27%27',RowKey='b''')", "DeleteEntity"),
        ("POST", "/$batch", "EntityGroupTransaction"),
        ("GET", "/?restype=service&comp=properties", "GetTableServiceProperties"),
        ("PUT", "/?restype=service&comp=properties", "SetTableServiceProperties"),
        ("GET", "/?restype=service&comp=stats", "GetTableServiceStats"),
    ] {
        assert_eq!(name(method, target), Ok(operation), "{method} {target}");
    }
}

#[test]
fn m4_m5_without_a_condition_replace_and_merge_are_upserts() {
    let target = "/abc(PartitionKey='a',RowKey='b')";
    for (method, operation) in
        [("PUT", "InsertOrReplaceEntity"), ("MERGE", "InsertOrMergeEntity"), ("PATCH", "InsertOrMergeEntity")]
    {
        assert_eq!(parse(method, target, &[]).map(|r| r.facts().name), Ok(operation), "{method}");
    }
    assert_eq!(parse("DELETE", target, &[]).map_err(|e| e.1).err(), Some(400));
}

#[test]
fn what_makes_no_sense_has_its_own_error() {
    for (method, target, code, status) in [
        ("GET", "/", ErrorCode::InvalidQueryParameterValue, 400),
        ("GET", "/abc?restype=service&comp=properties", ErrorCode::InvalidUri, 400),
        ("GET", "/abc(PartitionKey='a')", ErrorCode::InvalidInput, 400),
        ("GET", "/abc('a')", ErrorCode::InvalidInput, 400),
        ("GET", "/abc(PartitionKey='a',RowKey='b',X='c')", ErrorCode::InvalidInput, 400),
        ("GET", "/abc(PartitionKey='a%2Fb',RowKey='b')", ErrorCode::InvalidInput, 400),
        ("GET", "/abc(PartitionKey='a%23b',RowKey='b')", ErrorCode::OutOfRangeInput, 400),
        ("GET", "/abc(PartitionKey='a%ZZ',RowKey='b')", ErrorCode::InvalidInput, 400),
        ("GET", "/abc(PartitionKey='%FF',RowKey='b')", ErrorCode::InvalidInput, 400),
        ("GET", "/ab", ErrorCode::OutOfRangeInput, 400),
        ("GET", "/a-bc", ErrorCode::InvalidResourceName, 400),
        ("GET", "/abc/def", ErrorCode::InvalidUri, 400),
        ("PUT", "/abc", ErrorCode::MethodNotAllowed, 405),
        ("POST", "/abc(PartitionKey='a',RowKey='b')", ErrorCode::MethodNotAllowed, 405),
        ("PUT", "/Tables", ErrorCode::MethodNotAllowed, 405),
        ("GET", "/$batch", ErrorCode::MethodNotAllowed, 405),
        ("BREW", "/abc", ErrorCode::UnsupportedHttpVerb, 405),
        ("POST", "/$metadata", ErrorCode::MethodNotAllowed, 405),
        ("POST", "/a%2F%2F", ErrorCode::InvalidResourceName, 400),
        ("GET", "/abc?$orderby=a", ErrorCode::NotImplemented, 501),
    ] {
        assert_eq!(name(method, target), Err((code, status)), "{method} {target}");
    }
}

#[test]
fn verbs_are_tunnelled_through_post() {
    let target = "/abc(PartitionKey='a',RowKey='b')";
    let tunnelled = |method, value, count| {
        let headers = [[("X-HTTP-Method", value), ("If-Match", "*")], [("X-HTTP-Method", value), ("accept", "*/*")]];
        parse(method, target, &headers[..count].concat()).map(|r| r.facts().name)
    };
    assert_eq!(tunnelled("POST", "MERGE", 1), Ok("MergeEntity"));
    assert_eq!(tunnelled("POST", "DELETE", 1), Ok("DeleteEntity"));
    assert_eq!(tunnelled("POST", "MERGE", 2), Err((ErrorCode::XMethodIncorrectCount, 400)));
    assert_eq!(tunnelled("POST", "GET", 1), Err((ErrorCode::XMethodIncorrectValue, 400)));
    assert_eq!(tunnelled("PUT", "MERGE", 1), Err((ErrorCode::XMethodNotUsingPost, 400)));
}

#[test]
fn m7_conditions_are_read_strictly() {
    let target = "/abc(PartitionKey='a',RowKey='b')";
    let with = |if_match| parse("PUT", target, &[("if-match", if_match)]).map_err(|e| e.0);
    assert_eq!(with("\"abc\"").err(), Some(ErrorCode::InvalidInput));
    assert_eq!(with("").err(), Some(ErrorCode::InvalidInput));
    assert!(with("W/\"abc\"").is_ok());
    let both = [("If-Match", "*"), ("If-None-Match", "*")];
    assert_eq!(parse("PUT", target, &both).err(), Some((ErrorCode::InvalidInput, 400)));
}

#[test]
fn atom_bodies_are_refused() {
    let atom = [("Content-Type", "application/atom+xml")];
    assert_eq!(parse("POST", "/abc", &atom).err(), Some((ErrorCode::AtomFormatNotSupported, 415)));
}

#[test]
fn what_answers_without_json_may_be_asked_for_atom() {
    let atom = [("Accept", "application/atom+xml,application/xml"), ("If-Match", "*")];
    assert_eq!(parse("GET", "/abc", &atom).err(), Some((ErrorCode::AtomFormatNotSupported, 415)));
    for (method, target) in
        [("POST", "/$batch"), ("DELETE", "/Tables('abc')"), ("PUT", "/abc(PartitionKey='a',RowKey='b')")]
    {
        assert!(parse(method, target, &atom).is_ok(), "{method} {target}");
    }
}
