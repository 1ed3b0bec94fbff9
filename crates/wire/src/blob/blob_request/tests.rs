//! Requests to blobs become the operations they ask for, or the protocol's refusals.

use super::*;
use crate::blob::operation::BodyChecks;
use crate::blob::{BlobRequest, CopySource};
use crate::operation::Operation as _;
use larimar_model::Metadata;
use larimar_model::blob::{ByteRange, Conditions, LeaseAction, Tags};

const SNAPSHOT: &str = "2022-05-05T01:02:03.1234567Z";

fn parse_with(method: &str, query: &str, headers: &[(&str, &str)]) -> Result<BlobOperation, ErrorReply> {
    let request = BlobRequest::parse(&RequestHead::new(method, "/abc/b", query, headers.iter().copied()), "/abc/b")?;
    let BlobRequest::Blob(_, _, operation) = request else { panic!("{request:?}") };
    Ok(operation)
}

fn parse(method: &str, query: &str, headers: &[(&str, &str)]) -> Result<BlobOperation, ErrorCode> {
    parse_with(method, query, headers).map_err(|error| error.code)
}

/// The name that the facts of an operation give it.
fn name_of(operation: &BlobOperation) -> &'static str {
    let (container, blob) = ("abc".parse().expect("a name"), "b".parse().expect("a name"));
    BlobRequest::Blob(container, blob, operation.clone()).facts().name
}

fn checks(length: u64) -> BodyChecks {
    BodyChecks { length, ..BodyChecks::default() }
}

const RANGE_MD5: &str = "x-ms-range-get-content-md5";
const RANGE_CRC64: &str = "x-ms-range-get-content-crc64";

fn source(bytes_max: u64) -> Source {
    let url = CopySource::parse("http://h/c/b").expect("a URL");
    Source { url, range: None, bytes_max, md5: None, crc64: None, conditions: Conditions::NONE, if_tags: None }
}

fn put_of(content: PutBlobContent) -> BlobOperation {
    BlobOperation::Put(Box::new(PutBlob { content, blob: NewBlob::default(), access: AccessConditions::default() }))
}

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const EMPTY: (&str, &str) = ("content-length", "0");
const SOURCE: (&str, &str) = ("x-ms-copy-source", "http://h/c/b");

#[test]
fn x2_puts_and_copies() {
    for (headers, operation, name) in [
        (vec![BLOCK, ("content-length", "5")], put_of(PutBlobContent::Block(checks(5))), "PutBlob"),
        (vec![("x-ms-blob-type", "AppendBlob"), EMPTY], put_of(PutBlobContent::Append), "PutBlob"),
        (
            vec![
                ("x-ms-blob-type", "PageBlob"),
                EMPTY,
                ("x-ms-blob-content-length", "1024"),
                ("x-ms-blob-sequence-number", "7"),
            ],
            put_of(PutBlobContent::Page { length: 1024, sequence_number: 7 }),
            "PutBlob",
        ),
        (
            vec![BLOCK, EMPTY, SOURCE],
            put_of(PutBlobContent::BlockFrom {
                source: source(limits::PUT_BLOB_BYTES_MAX),
                copy_headers: true,
                copy_tags: false,
            }),
            "PutBlobFromURL",
        ),
        (
            vec![BLOCK, SOURCE, ("x-ms-copy-source-blob-properties", "false")],
            put_of(PutBlobContent::BlockFrom {
                source: source(limits::PUT_BLOB_BYTES_MAX),
                copy_headers: false,
                copy_tags: false,
            }),
            "PutBlobFromURL",
        ),
    ] {
        assert_eq!(parse("PUT", "", &headers).as_ref(), Ok(&operation), "{headers:?}");
        assert_eq!(name_of(&operation), name);
    }
    let full = parse(
        "PUT",
        "",
        &[
            BLOCK,
            EMPTY,
            ("x-ms-access-tier", "Cool"),
            ("x-ms-tags", "a=b"),
            ("x-ms-meta-c", "d"),
            ("if-none-match", "*"),
        ],
    );
    let Ok(BlobOperation::Put(put)) = full else { panic!("{full:?}") };
    assert_eq!(put.blob.tier.map(AccessTier::as_str), Some("Cool"));
    assert_eq!((put.blob.tags.len(), put.blob.metadata.get("c")), (1, Some("d")));
    assert!(put.access.conditions.if_none_match.is_some());

    let plain = parse("PUT", "", &[SOURCE]);
    let Ok(BlobOperation::Copy(copy)) = plain else { panic!("{plain:?}") };
    assert_eq!((copy.is_sync, copy.metadata.as_ref(), copy.tags.as_ref()), (false, None, Some(&Tags::new())));
    let other =
        [SOURCE, EMPTY, ("x-ms-requires-sync", "true"), ("x-ms-meta-a", "1"), ("x-ms-copy-source-tag-option", "COPY")];
    let Ok(BlobOperation::Copy(copy)) = parse("PUT", "", &other) else { panic!("a copy") };
    assert_eq!((copy.is_sync, copy.metadata.is_some(), copy.tags), (true, true, None));
}

#[test]
fn x2_reads() {
    let read = BlobRead { snapshot: SNAPSHOT.parse().ok(), access: AccessConditions::default() };
    let range = Some(ByteRange { start: 5, last: Some(9) });
    let query = format!("snapshot={SNAPSHOT}");
    let get = |read, range, range_checksum| BlobOperation::Get(GetBlob { read, range, range_checksum });
    let (md5, crc64) = (Some(RangeChecksum::Md5), Some(RangeChecksum::Crc64));
    for (method, query, headers, operation) in [
        ("GET", "", vec![], get(BlobRead::default(), None, None)),
        ("GET", &*query, vec![("Range", "bytes=0-"), ("x-ms-range", "bytes=5-9")], get(read.clone(), range, None)),
        ("GET", "", vec![("Range", "bytes=5-9"), (RANGE_MD5, "true")], get(BlobRead::default(), range, md5)),
        ("GET", "", vec![("Range", "bytes=5-9"), (RANGE_CRC64, "True")], get(BlobRead::default(), range, crc64)),
        ("GET", "", vec![("Range", "items=5-9")], get(BlobRead::default(), None, None)),
        ("HEAD", &*query, vec![], BlobOperation::GetProperties(read)),
        ("HEAD", "comp=metadata", vec![], BlobOperation::GetMetadata(BlobRead::default())),
        (
            "GET",
            "comp=blocklist&blocklisttype=All",
            vec![],
            BlobOperation::GetBlockList {
                kind: BlockListKind::All,
                snapshot: None,
                access: AccessConditions::default(),
            },
        ),
        (
            "GET",
            "comp=blocklist",
            vec![],
            BlobOperation::GetBlockList {
                kind: BlockListKind::Committed,
                snapshot: None,
                access: AccessConditions::default(),
            },
        ),
        (
            "GET",
            &format!("comp=pagelist&prevsnapshot={SNAPSHOT}&maxresults=3&marker=1!MQ"),
            vec![("Range", "bytes=5-9")],
            BlobOperation::GetPageRanges(GetPageRanges {
                read: BlobRead::default(),
                previous: SNAPSHOT.parse().ok(),
                range,
                from: Some("1".to_owned()),
                count_max: Some(3),
            }),
        ),
        ("GET", "comp=tags", vec![], BlobOperation::GetTags { snapshot: None, access: AccessConditions::default() }),
    ] {
        assert_eq!(parse(method, query, &headers), Ok(operation), "{method} {query}");
    }
}

/// Requests with the operations that they are, and the names of those.
type Cases<'a> = Vec<(&'a str, &'a str, Vec<(&'a str, &'a str)>, BlobOperation, &'a str)>;

fn check_all(cases: Cases<'_>) {
    for (method, query, headers, operation, name) in cases {
        assert_eq!(parse(method, query, &headers).as_ref(), Ok(&operation), "{method} {query}");
        assert_eq!(name_of(&operation), name);
    }
}

#[test]
fn x2_incremental_copies() {
    let copy = IncrementalCopyBlob { source: source(u64::MAX), access: AccessConditions::default() };
    let operation = BlobOperation::IncrementalCopy(Box::new(copy));
    check_all(vec![("PUT", "comp=incrementalcopy", vec![SOURCE], operation, "IncrementalCopyBlob")]);
    assert_eq!(parse("PUT", "comp=incrementalcopy", &[]), Err(ErrorCode::MissingRequiredHeader));
    assert_eq!(parse("GET", "comp=incrementalcopy", &[SOURCE]), Err(ErrorCode::UnsupportedHttpVerb));
}

#[test]
fn x2_writes_of_what_is_about_a_blob() {
    let id = "c9da6455-213d-42c9-9a79-3e9149a57833";
    let (copy, tier) = (format!("comp=copy&copyid={id}"), format!("comp=tier&snapshot={SNAPSHOT}"));
    check_all(vec![
        (
            "PUT",
            "comp=metadata",
            vec![],
            BlobOperation::SetMetadata { metadata: Metadata::new(), access: AccessConditions::default() },
            "SetBlobMetadata",
        ),
        (
            "PUT",
            "comp=snapshot",
            vec![],
            BlobOperation::Snapshot { metadata: None, access: AccessConditions::default() },
            "SnapshotBlob",
        ),
        (
            "PUT",
            "comp=lease",
            vec![("x-ms-lease-action", "break")],
            BlobOperation::Lease { action: LeaseAction::Break { period: None }, access: AccessConditions::default() },
            "BreakBlobLease",
        ),
        (
            "PUT",
            &copy,
            vec![("x-ms-copy-action", "abort")],
            BlobOperation::AbortCopy { id: Guid::parse(id).expect("a Guid"), lease: None },
            "AbortCopyBlob",
        ),
        (
            "PUT",
            &tier,
            vec![("x-ms-access-tier", "Archive")],
            BlobOperation::SetTier {
                tier: "Archive".parse().expect("a tier"),
                snapshot: SNAPSHOT.parse().ok(),
                priority: None,
                access: AccessConditions::default(),
            },
            "SetBlobTier",
        ),
        (
            "PUT",
            "comp=tags",
            vec![("content-length", "9")],
            BlobOperation::SetTags { access: AccessConditions::default(), checks: checks(9) },
            "SetBlobTags",
        ),
    ]);
}

#[test]
fn x2_deletes() {
    let snapshot = format!("snapshot={SNAPSHOT}");
    check_all(vec![
        (
            "DELETE",
            "",
            vec![("x-ms-delete-snapshots", "only")],
            BlobOperation::Delete {
                snapshot: None,
                snapshots: Some(DeleteSnapshots::Only),
                access: AccessConditions::default(),
            },
            "DeleteBlob",
        ),
        (
            "DELETE",
            &snapshot,
            vec![],
            BlobOperation::Delete {
                snapshot: SNAPSHOT.parse().ok(),
                snapshots: None,
                access: AccessConditions::default(),
            },
            "DeleteBlob",
        ),
    ]);
}

#[test]
fn x2_writes_of_content() {
    let block = |length, source| {
        let id = BlockId::parse("AA+/").expect("an id");
        BlobOperation::PutBlock(Box::new(PutBlock { id, checks: checks(length), source, lease: None }))
    };
    let append = |checks, source, append| {
        BlobOperation::AppendBlock(Box::new(AppendBlock {
            checks,
            source,
            append,
            access: AccessConditions::default(),
        }))
    };
    let appended = AppendConditions { position: Some(3), size_max: Some(9) };
    check_all(vec![
        ("PUT", "comp=block&blockid=AA%2B/", vec![("content-length", "9")], block(9, None), "PutBlock"),
        (
            "PUT",
            "comp=block&blockid=AA+/",
            vec![SOURCE, EMPTY],
            block(0, Some(source(limits::BLOCK_BYTES_MAX))),
            "PutBlockFromURL",
        ),
        (
            "PUT",
            "comp=appendblock",
            vec![("content-length", "9")],
            append(checks(9), None, AppendConditions::default()),
            "AppendBlock",
        ),
        (
            "PUT",
            "comp=appendblock",
            vec![SOURCE, ("x-ms-blob-condition-appendpos", "3"), ("x-ms-blob-condition-maxsize", "9")],
            append(checks(0), Some(source(limits::APPEND_BYTES_MAX)), appended),
            "AppendBlockFromURL",
        ),
    ]);
    let list = parse(
        "PUT",
        "comp=blocklist",
        &[("content-length", "99"), ("x-ms-blob-content-type", "a/b"), ("content-type", "application/xml")],
    );
    let Ok(BlobOperation::PutBlockList(list)) = list else { panic!("{list:?}") };
    assert_eq!((list.checks.length, list.blob.content.content_type.as_deref()), (99, Some("a/b")));
}

#[test]
fn x2_writes_of_pages() {
    let page = |write| {
        let range = PageRange::new(512, 1024).expect("pages");
        let sequence = SequenceConditions::default();
        BlobOperation::PutPage(Box::new(PutPage { range, write, sequence, access: AccessConditions::default() }))
    };
    let pages = ("x-ms-range", "bytes=512-1023");
    check_all(vec![
        ("PUT", "comp=page", vec![pages, EMPTY, ("x-ms-page-write", "clear")], page(PageWrite::Clear), "ClearPage"),
        (
            "PUT",
            "comp=page",
            vec![pages, ("content-length", "512"), ("x-ms-page-write", "Update")],
            page(PageWrite::Update(checks(512))),
            "PutPage",
        ),
        (
            "PUT",
            "comp=page",
            vec![pages, EMPTY, SOURCE, ("x-ms-page-write", "update"), ("x-ms-source-range", "bytes=100-611")],
            page(PageWrite::UpdateFrom(Source {
                range: Some(ByteRange { start: 100, last: Some(611) }),
                ..source(512)
            })),
            "PutPageFromURL",
        ),
    ]);
}

#[test]
fn set_properties_clears_what_it_does_not_name_unless_it_names_only_length_and_number() {
    let read = |headers: &[(&str, &str)]| match parse("PUT", "comp=properties", headers) {
        Ok(BlobOperation::SetHeaders(set)) => {
            Ok((set.headers.map(|h| h.content_type), set.length, set.sequence_number))
        }
        Ok(other) => panic!("{other:?}"),
        Err(code) => Err(code),
    };
    let length = ("x-ms-blob-content-length", "512");
    let number = ("x-ms-blob-sequence-number", "7");
    let action = |word| ("x-ms-sequence-number-action", word);
    let cleared = Some(Some(String::new()));
    assert_eq!(read(&[]), Ok((cleared.clone(), None, None)));
    assert_eq!(read(&[("x-ms-blob-content-type", "a/b")]), Ok((Some(Some("a/b".to_owned())), None, None)));
    assert_eq!(read(&[length]), Ok((None, Some(512), None)));
    assert_eq!(read(&[length, ("x-ms-blob-cache-control", "")]), Ok((cleared, Some(512), None)));
    assert_eq!(read(&[number, action("max")]), Ok((None, None, Some(SequenceNumberAction::Max(7)))));
    assert_eq!(read(&[number, action("Update")]), Ok((None, None, Some(SequenceNumberAction::Update(7)))));
    assert_eq!(read(&[action("increment")]), Ok((None, None, Some(SequenceNumberAction::Increment))));
    for (headers, code) in [
        (vec![number], ErrorCode::MissingRequiredHeader),
        (vec![action("max")], ErrorCode::MissingRequiredHeader),
        (vec![number, action("increment")], ErrorCode::InvalidHeaderValue),
        (vec![action("halve")], ErrorCode::InvalidHeaderValue),
        (vec![("x-ms-blob-content-length", "511")], ErrorCode::InvalidHeaderValue),
        (vec![("x-ms-blob-sequence-number", "9223372036854775808"), action("max")], ErrorCode::InvalidHeaderValue),
    ] {
        assert_eq!(read(&headers), Err(code), "{headers:?}");
    }
}

#[test]
fn bodies_at_and_past_the_limits_of_their_versions() {
    const MIB: u64 = 1024 * 1024;
    for (query, version, max) in [
        ("", "2015-12-11", 64 * MIB),
        ("", "2016-05-31", 256 * MIB),
        ("", "2019-07-07", 256 * MIB),
        ("", "2019-12-12", 5000 * MIB),
        ("comp=block&blockid=AAAA", "2015-12-11", 4 * MIB),
        ("comp=block&blockid=AAAA", "2016-05-31", 100 * MIB),
        ("comp=block&blockid=AAAA", "2019-12-12", 4000 * MIB),
        ("comp=appendblock", "2022-11-01", 4 * MIB),
        ("comp=appendblock", "2022-11-02", 100 * MIB),
    ] {
        for (length, expected) in [(max, None), (max + 1, Some(ErrorCode::RequestBodyTooLarge))] {
            let length = length.to_string();
            let parsed = parse("PUT", query, &[BLOCK, ("content-length", &length), ("x-ms-version", version)]);
            assert_eq!(parsed.err(), expected, "{query} {version} {length}");
        }
    }
}

/// Requests with the codes that they are refused with.
type Refusals<'a> = Vec<(&'a str, &'a str, Vec<(&'a str, &'a str)>, ErrorCode)>;

fn refuse_all(cases: Refusals<'_>) {
    for (method, query, headers, code) in cases {
        assert_eq!(parse(method, query, &headers), Err(code), "{method} {query} {headers:?}");
    }
}

#[test]
fn other_writes_are_refused() {
    refuse_all(vec![
        ("PUT", "", vec![], ErrorCode::MissingRequiredHeader),
        ("PUT", "", vec![("x-ms-blob-type", "Tape")], ErrorCode::InvalidHeaderValue),
        ("PUT", "", vec![BLOCK], ErrorCode::MissingContentLengthHeader),
        ("PUT", "", vec![BLOCK, ("content-length", "x")], ErrorCode::InvalidHeaderValue),
        ("PUT", "", vec![BLOCK, EMPTY, ("x-ms-access-tier", "P10")], ErrorCode::InvalidHeaderValue),
        ("PUT", "", vec![BLOCK, EMPTY, ("x-ms-access-tier", "Warm")], ErrorCode::InvalidHeaderValue),
        ("PUT", "", vec![("x-ms-blob-type", "AppendBlob"), ("content-length", "1")], ErrorCode::InvalidHeaderValue),
        ("PUT", "", vec![("x-ms-copy-source", "http://h/c/b"), ("content-length", "1")], ErrorCode::InvalidHeaderValue),
        (
            "PUT",
            "",
            vec![("x-ms-copy-source", "http://h/c/b"), ("Transfer-Encoding", "chunked")],
            ErrorCode::InvalidHeaderValue,
        ),
        ("PUT", "", vec![("x-ms-blob-type", "PageBlob"), EMPTY], ErrorCode::MissingRequiredHeader),
        (
            "PUT",
            "",
            vec![("x-ms-blob-type", "PageBlob"), EMPTY, ("x-ms-blob-content-length", "1")],
            ErrorCode::InvalidHeaderValue,
        ),
        ("PUT", "", vec![("x-ms-blob-type", "PageBlob"), EMPTY, SOURCE], ErrorCode::UnsupportedHeader),
        ("PUT", "", vec![("x-ms-copy-source", "/c/b")], ErrorCode::InvalidHeaderValue),
        ("PUT", "snapshot=2022-05-05T01:02:03Z", vec![BLOCK, EMPTY], ErrorCode::InvalidQueryParameterValue),
        ("PUT", "comp=block", vec![EMPTY], ErrorCode::MissingRequiredQueryParameter),
        ("PUT", "comp=block&blockid=A", vec![("content-length", "1")], ErrorCode::InvalidQueryParameterValue),
        ("PUT", "comp=block&blockid=AAAA", vec![EMPTY], ErrorCode::InvalidHeaderValue),
        ("PUT", "comp=block&blockid=AAAA", vec![SOURCE, ("content-length", "1")], ErrorCode::InvalidHeaderValue),
        ("PUT", "comp=blocklist", vec![], ErrorCode::MissingContentLengthHeader),
        ("PUT", "comp=blocklist", vec![("content-length", "9000000000")], ErrorCode::RequestBodyTooLarge),
        ("PUT", "comp=tags", vec![], ErrorCode::MissingContentLengthHeader),
        ("PUT", "comp=tier", vec![], ErrorCode::MissingRequiredHeader),
        ("PUT", "comp=tier", vec![("x-ms-access-tier", "Warm")], ErrorCode::InvalidHeaderValue),
        ("PUT", "comp=copy&copyid=x", vec![("x-ms-copy-action", "abort")], ErrorCode::InvalidQueryParameterValue),
        ("PUT", "comp=copy", vec![("x-ms-copy-action", "abort")], ErrorCode::MissingRequiredQueryParameter),
        ("PUT", "comp=copy", vec![("x-ms-copy-action", "go")], ErrorCode::InvalidHeaderValue),
    ]);
}

#[test]
fn other_writes_of_pages_are_refused() {
    let pages = ("x-ms-range", "bytes=512-1023");
    let update = ("x-ms-page-write", "update");
    let large = ("x-ms-range", "bytes=0-8388607");
    refuse_all(vec![
        ("PUT", "comp=page", vec![update, EMPTY], ErrorCode::MissingRequiredHeader),
        ("PUT", "comp=page", vec![pages, EMPTY], ErrorCode::MissingRequiredHeader),
        ("PUT", "comp=page", vec![pages, EMPTY, update, SOURCE], ErrorCode::MissingRequiredHeader),
        (
            "PUT",
            "comp=page",
            vec![pages, EMPTY, update, SOURCE, ("x-ms-source-range", "bytes=0-")],
            ErrorCode::InvalidPageRange,
        ),
        (
            "PUT",
            "comp=page",
            vec![pages, EMPTY, update, SOURCE, ("x-ms-source-range", "bytes=0-1023")],
            ErrorCode::InvalidPageRange,
        ),
        ("PUT", "comp=page", vec![pages, update, ("content-length", "511")], ErrorCode::InvalidHeaderValue),
        ("PUT", "comp=page", vec![("range", "bytes=0-510"), update, EMPTY], ErrorCode::InvalidPageRange),
        ("PUT", "comp=page", vec![large, update, ("content-length", "8388608")], ErrorCode::RequestBodyTooLarge),
        (
            "PUT",
            "comp=page",
            vec![large, update, SOURCE, ("x-ms-source-range", "bytes=0-8388607")],
            ErrorCode::InvalidPageRange,
        ),
        ("PUT", "comp=page", vec![pages, ("x-ms-page-write", "erase"), EMPTY], ErrorCode::InvalidHeaderValue),
    ]);
    assert!(parse("PUT", "comp=page", &[large, ("x-ms-page-write", "clear"), EMPTY]).is_ok(), "clearing has no limit");
}

#[test]
fn other_requests_are_refused() {
    refuse_all(vec![
        ("PUT", "comp=undelete", vec![], ErrorCode::NotImplemented),
        ("PUT", "comp=legalhold", vec![], ErrorCode::NotImplemented),
        ("PUT", "comp=immutabilityPolicies", vec![], ErrorCode::NotImplemented),
        ("PUT", "comp=pagelist", vec![], ErrorCode::UnsupportedHttpVerb),
        ("PUT", "comp=other", vec![], ErrorCode::InvalidQueryParameterValue),
        ("POST", "comp=query", vec![], ErrorCode::NotImplemented),
        ("POST", "", vec![], ErrorCode::UnsupportedHttpVerb),
        ("POST", "comp=block", vec![], ErrorCode::UnsupportedHttpVerb),
        ("GET", "comp=block", vec![], ErrorCode::UnsupportedHttpVerb),
        ("GET", "comp=other", vec![], ErrorCode::InvalidQueryParameterValue),
        ("GET", "snapshot=yesterday", vec![], ErrorCode::InvalidQueryParameterValue),
        ("GET", "comp=blocklist&blocklisttype=some", vec![], ErrorCode::InvalidQueryParameterValue),
        ("GET", "", vec![(RANGE_MD5, "true")], ErrorCode::InvalidHeaderValue),
        ("GET", "", vec![(RANGE_CRC64, "true")], ErrorCode::InvalidHeaderValue),
        (
            "GET",
            "",
            vec![(RANGE_CRC64, "true"), (RANGE_MD5, "true"), ("range", "bytes=0-9")],
            ErrorCode::InvalidHeaderValue,
        ),
        ("GET", "", vec![(RANGE_MD5, "true"), ("range", "bytes=0-4194304")], ErrorCode::InvalidHeaderValue),
        ("GET", "", vec![("if-modified-since", "soon")], ErrorCode::InvalidHeaderValue),
        ("GET", "", vec![("if-none-match", "*")], ErrorCode::UnsatisfiableCondition),
        ("HEAD", "", vec![("if-none-match", "*")], ErrorCode::UnsatisfiableCondition),
        ("DELETE", "comp=metadata", vec![], ErrorCode::UnsupportedHttpVerb),
        ("DELETE", "", vec![("x-ms-delete-snapshots", "all")], ErrorCode::InvalidHeaderValue),
        (
            "DELETE",
            "snapshot=2022-05-05T01:02:03Z",
            vec![("x-ms-delete-snapshots", "include")],
            ErrorCode::InvalidQueryParameterValue,
        ),
        ("DELETE", "deletetype=permanent", vec![], ErrorCode::NotImplemented),
    ]);
    assert!(parse("GET", "", &[(RANGE_MD5, "true"), ("range", "bytes=1-4194304")]).is_ok());
}
