//! Requests to the service and to containers become the operations they ask for, or the protocol's refusals.

use super::*;
use crate::blob::ListMarker;
use crate::blob::operation::ListBlobs;
use crate::operation::{Operation as _, Public};
use crate::sas::{Letters, Need, ResourceType, Target};
use larimar_model::Metadata;
use larimar_model::blob::{AccessConditions, Conditions, LeaseAction, LeaseId, ListInclude, PublicAccess};
use proptest::prelude::*;

fn parse_with(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<BlobRequest, ErrorReply> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    BlobRequest::parse(&RequestHead::new(method, path, query, headers.iter().copied()), path)
}

fn parse(method: &str, target: &str) -> Result<BlobRequest, ErrorCode> {
    parse_with(method, target, &[]).map_err(|error| error.code)
}

fn container(operation: ContainerOperation) -> BlobRequest {
    BlobRequest::Container("abc".parse().expect("a name"), operation)
}

#[test]
fn x2_every_operation_of_the_service_and_of_containers_has_its_request() {
    use ContainerOperation as C;
    use ServiceOperation as S;
    for (method, target, request, name) in [
        ("GET", "/?comp=list", BlobRequest::Service(S::ListContainers(ListContainers::default())), "ListContainers"),
        (
            "GET",
            "/?restype=service&comp=properties",
            BlobRequest::Service(S::GetProperties),
            "GetBlobServiceProperties",
        ),
        (
            "PUT",
            "/?restype=service&comp=properties",
            BlobRequest::Service(S::SetProperties),
            "SetBlobServiceProperties",
        ),
        ("GET", "/?restype=service&comp=stats", BlobRequest::Service(S::GetStats), "GetBlobServiceStats"),
        ("POST", "/?comp=batch", BlobRequest::Service(S::Batch), "BlobBatch"),
        ("POST", "/?restype=container&comp=batch", BlobRequest::Service(S::Batch), "BlobBatch"),
        (
            "PUT",
            "/abc?restype=container",
            container(C::Create { metadata: Metadata::new(), public_access: PublicAccess::None }),
            "CreateContainer",
        ),
        ("HEAD", "/abc?restype=container", container(C::GetProperties { lease: None }), "GetContainerProperties"),
        (
            "GET",
            "/abc?restype=container&comp=metadata",
            container(C::GetMetadata { lease: None }),
            "GetContainerMetadata",
        ),
        (
            "PUT",
            "/abc?restype=container&comp=metadata",
            container(C::SetMetadata { metadata: Metadata::new(), access: AccessConditions::default() }),
            "SetContainerMetadata",
        ),
        ("GET", "/abc?restype=container&comp=acl", container(C::GetAcl { lease: None }), "GetContainerACL"),
        (
            "PUT",
            "/abc?restype=container&comp=acl",
            container(C::SetAcl { public_access: PublicAccess::None, access: AccessConditions::default() }),
            "SetContainerACL",
        ),
        (
            "DELETE",
            "/abc?restype=container",
            container(C::Delete { access: AccessConditions::default() }),
            "DeleteContainer",
        ),
        ("GET", "/abc?restype=container&comp=list", container(C::ListBlobs(ListBlobs::default())), "ListBlobs"),
        ("POST", "/abc?restype=container&comp=batch", container(C::Batch), "BlobBatch"),
    ] {
        assert_eq!(parse(method, target).as_ref(), Ok(&request), "{method} {target}");
        assert_eq!(request.facts().name, name);
        assert_eq!(request.facts().is_read_only(), matches!(method, "GET" | "HEAD"), "{method} {target}");
    }
}

#[test]
fn account_information_is_asked_of_any_address() {
    let container = || "abc".parse().expect("a name");
    for (target, address) in [
        ("/?restype=account&comp=properties", BlobAddress::Service),
        ("/abc?restype=account&comp=properties", BlobAddress::Container(container())),
        ("/abc/b?restype=account&comp=properties", BlobAddress::Blob(container(), "b".parse().expect("a name"))),
    ] {
        let request = BlobRequest::AccountInfo(address);
        assert_eq!(parse("GET", target).as_ref(), Ok(&request), "{target}");
        assert_eq!(request.facts().name, "GetAccountInformation");
    }
}

#[test]
fn containers_take_their_headers() {
    let created =
        parse_with("PUT", "/abc?restype=container", &[("x-ms-meta-a", "1"), ("x-ms-blob-public-access", "blob")]);
    let Ok(BlobRequest::Container(_, ContainerOperation::Create { metadata, public_access })) = created else {
        panic!("{created:?}")
    };
    assert_eq!((metadata.get("a"), public_access), (Some("1"), PublicAccess::Blob));
    let wrong = parse_with("PUT", "/abc?restype=container", &[("x-ms-blob-public-access", "all")]);
    assert_eq!(wrong.map_err(|error| error.code), Err(ErrorCode::InvalidHeaderValue));
    let id = "c9da6455-213d-42c9-9a79-3e9149a57833";
    let renewed = parse_with(
        "PUT",
        "/abc?restype=container&comp=lease",
        &[("x-ms-lease-action", "renew"), ("x-ms-lease-id", id)],
    );
    let action = LeaseAction::Renew { id: LeaseId::parse(id).expect("an id") };
    let request = container(ContainerOperation::Lease { action, conditions: Conditions::NONE });
    assert_eq!(renewed, Ok(request.clone()));
    assert_eq!(request.facts().name, "RenewContainerLease");
    let etag = parse_with("DELETE", "/abc?restype=container", &[("if-match", "*")]);
    assert_eq!(etag.map_err(|error| error.code), Err(ErrorCode::ConditionHeadersNotSupported));
}

#[test]
fn listings_have_their_options() {
    let marker = ListMarker { name: "a/b".to_owned(), snapshot: "2022-05-05T01:02:03Z".parse().ok() };
    let text = marker.encode();
    let target = format!(
        "/abc?restype=container&comp=list&prefix=a&delimiter=%2F&marker={text}&maxresults=7&include=metadata,copy,tags,uncommittedblobs,deleted&startFrom=b"
    );
    let include = ListInclude { snapshots: false, metadata: true, uncommitted: true, copy: true, tags: true };
    let expected = ListBlobs {
        prefix: Some("a".to_owned()),
        delimiter: Some("/".to_owned()),
        marker: Some(text),
        from: Some(marker),
        start: Some("b".to_owned()),
        count_max: Some(7),
        include,
    };
    assert_eq!(parse("GET", &target), Ok(container(ContainerOperation::ListBlobs(expected))));
    let snapshots = parse("GET", "/abc?restype=container&comp=list&include=snapshots&maxresults=50000");
    let Ok(BlobRequest::Container(_, ContainerOperation::ListBlobs(list))) = snapshots else { panic!("{snapshots:?}") };
    assert_eq!((list.include.snapshots, list.page()), (true, 5000));
    let containers = parse("GET", "/?comp=list&include=metadata,system&prefix=a&marker=1!YQ&maxresults=2");
    let expected = ListContainers {
        prefix: Some("a".to_owned()),
        marker: Some("1!YQ".to_owned()),
        from: Some("a".to_owned()),
        count_max: Some(2),
        metadata: true,
        system: true,
    };
    assert_eq!(expected.page(), 2);
    assert_eq!(containers, Ok(BlobRequest::Service(ServiceOperation::ListContainers(expected))));
}

#[test]
fn other_requests_are_refused() {
    for (method, target, code) in [
        ("GET", "/", ErrorCode::MissingRequiredQueryParameter),
        ("GET", "/?comp=other", ErrorCode::InvalidQueryParameterValue),
        ("DELETE", "/?comp=list", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/?comp=batch", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/?comp=list&include=other", ErrorCode::InvalidQueryParameterValue),
        ("GET", "/?comp=list&maxresults=0", ErrorCode::OutOfRangeQueryParameterValue),
        ("GET", "/?comp=list&marker=x", ErrorCode::OutOfRangeInput),
        ("GET", "/?comp=list&timeout=x", ErrorCode::InvalidQueryParameterValue),
        ("POST", "/?restype=service&comp=userdelegationkey", ErrorCode::NotImplemented),
        ("GET", "/?comp=blobs", ErrorCode::MissingRequiredQueryParameter),
        ("GET", "/?comp=blobs&where=x", ErrorCode::InvalidQueryParameterValue),
        ("GET", "/?comp=blobs&where=a%3D%271%27&marker=x", ErrorCode::OutOfRangeInput),
        ("GET", "/?comp=blobs&where=a%3D%271%27&maxresults=0", ErrorCode::OutOfRangeQueryParameterValue),
        ("PUT", "/?comp=blobs&where=a%3D%271%27", ErrorCode::UnsupportedHttpVerb),
        ("PUT", "/abc?restype=container&comp=blobs&where=a%3D%271%27", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/abc?restype=container&comp=blobs&where=a%3C%3E%271%27", ErrorCode::InvalidQueryParameterValue),
        ("PUT", "/Abc?restype=container", ErrorCode::InvalidResourceName),
        ("POST", "/abc?restype=container", ErrorCode::UnsupportedHttpVerb),
        ("PUT", "/abc?restype=container&comp=list", ErrorCode::UnsupportedHttpVerb),
        ("PUT", "/abc?restype=container&comp=other", ErrorCode::InvalidQueryParameterValue),
        ("PUT", "/abc?restype=container&comp=undelete", ErrorCode::NotImplemented),
        ("PUT", "/abc?restype=account&comp=properties", ErrorCode::UnsupportedHttpVerb),
        ("GET", "/abc?restype=account&comp=list", ErrorCode::InvalidQueryParameterValue),
        (
            "GET",
            "/abc?restype=container&comp=list&delimiter=/&include=snapshots",
            ErrorCode::InvalidQueryParameterValue,
        ),
        ("GET", "/abc?restype=container&comp=list&include=all", ErrorCode::InvalidQueryParameterValue),
        ("GET", "/abc?restype=container&comp=list&showonly=deleted", ErrorCode::NotImplemented),
        ("GET", "/abc?restype=container&comp=list&marker=1!YQ", ErrorCode::OutOfRangeInput),
        ("GET", "/abc/b?versionid=2022-05-05T01:02:03Z", ErrorCode::NotImplemented),
    ] {
        assert_eq!(parse(method, target), Err(code), "{method} {target}");
    }
}

#[test]
fn facts_follow_tags_conditions_and_the_container() {
    let container = |letters| Need { types: &[ResourceType::Object], letters, target: Target::Container("abc") };
    let blob = |letters| {
        let target = Target::Blob { container: "abc", blob: "b", snapshot: None };
        Some(Need { types: &[ResourceType::Object], letters, target })
    };
    let (read, create, tag) = (blob(Letters::All("r")), blob(Letters::Any("cw")), blob(Letters::All("t")));
    let put = [("x-ms-blob-type", "BlockBlob"), ("content-length", "0")];
    let with = |name, value| [put[0], put[1], (name, value)];
    for (method, target, headers, needs, public) in [
        ("GET", "/abc/b", &[][..], [read, None], Some(Public::Read)),
        ("GET", "/abc/b", &[("x-ms-if-tags", "a = 'b'")], [tag, read], None),
        ("PUT", "/abc/b", &put, [create, None], None),
        ("PUT", "/abc/b", &with("x-ms-tags", "a=b"), [create, tag], None),
        ("PUT", "/abc/b", &with("x-ms-if-tags", "a = 'b'"), [tag, create], None),
        ("PUT", "/abc/b", &[("x-ms-copy-source", "http://h/c/b")], [create, None], None),
        (
            "PUT",
            "/abc/b",
            &[("x-ms-copy-source", "http://h/c/b"), ("x-ms-copy-source-tag-option", "copy")],
            [create, tag],
            None,
        ),
        (
            "GET",
            "/abc?restype=container&comp=list",
            &[],
            [Some(Need { types: &[ResourceType::Container], ..container(Letters::All("l")) }), None],
            Some(Public::List),
        ),
        (
            "GET",
            "/abc?restype=container&comp=list&include=tags",
            &[],
            [
                Some(Need { types: &[ResourceType::Container], ..container(Letters::All("l")) }),
                Some(container(Letters::All("t"))),
            ],
            None,
        ),
    ] {
        let request = parse_with(method, target, headers).expect("a request");
        assert_eq!((request.facts().needs, request.facts().public), (needs, public), "{method} {target} {headers:?}");
    }
}

#[test]
fn clients_read_and_delete_logs_but_write_none() {
    let put = [("x-ms-blob-type", "BlockBlob"), ("content-length", "0")];
    for (method, target, headers, is_reserved) in [
        ("GET", "/$logs/b", &[][..], false),
        ("DELETE", "/$logs/b", &[], false),
        ("PUT", "/$logs/b", &put, true),
        ("PUT", "/$logs/b?comp=metadata", &[], true),
        ("PUT", "/$logs?restype=container", &[], true),
        ("DELETE", "/$logs?restype=container", &[], true),
        ("PUT", "/logs/b", &put, false),
    ] {
        let target = target.replace("/logs", "/abc");
        let request = parse_with(method, &target, headers).expect("a request");
        assert_eq!(request.facts().is_reserved, is_reserved, "{method} {target}");
    }
}

proptest! {
    #[test]
    fn any_request_is_read_or_refused(
        method in "GET|PUT|POST|DELETE|HEAD|PATCH", path in "(/|abc|b|%2F|é|%){0,6}",
        query in "((comp|restype|include|snapshot|marker|blockid|prevsnapshot)=(list|container|account|block|page|copy|lease|snapshots|1!YQ|AAAA|é|%)?&){0,4}",
        name in "x-ms-(blob-type|copy-source|range|page-write|lease-action|access-tier|delete-snapshots|version)",
        value in "BlockBlob|PageBlob|http://h/c/b|bytes=0-511|update|acquire|Hot|include|2011-08-18|é",
    ) {
        let _ = parse_with(&method, &format!("{path}?{query}"), &[(&name, &value), ("content-length", "0")]);
    }
}
