//! Incremental Copy Blob: what recordings and the reference of the service say of the destination and its snapshots.

use super::{content, header, properties, put, serve_container};
use larimar_testkit::http::{Client, Request, Response, Sas};

fn make_disk(client: &Client, path: &str) {
    let request = client.request("PUT", path).header("x-ms-blob-type", "PageBlob").header("x-ms-meta-disk", "1");
    request.header("x-ms-blob-content-length", "4096").body("").send().is_status(201);
    write(client, path, 0, b'a');
}

/// Writes a page.
fn write(client: &Client, path: &str, start: u64, byte: u8) {
    let request = client.request("PUT", &format!("{path}?comp=page")).header("x-ms-page-write", "update");
    let request = request.header("x-ms-range", format!("bytes={start}-{}", start + 511));
    request.body(vec![byte; 512]).send().is_status(201);
}

fn snapshot(client: &Client, path: &str) -> String {
    let reply = client.request("PUT", &format!("{path}?comp=snapshot")).body("").send();
    reply.is_status(201);
    header(&reply, "x-ms-snapshot").to_owned()
}

/// The address of a new snapshot of a blob.
fn new_source(client: &Client, path: &str) -> String {
    format!("{}{path}?snapshot={}", client.base(), snapshot(client, path))
}

fn copy<'c>(client: &'c Client, path: &str, source: &str) -> Request<'c> {
    client.request("PUT", &format!("{path}?comp=incrementalcopy")).header("x-ms-copy-source", source).body("")
}

fn says(reply: &Response, message: &str) -> bool {
    reply.element("Message").is_some_and(|answer| answer.starts_with(message))
}

/// Recordings of the service, `StartCopyIncrementalAsync`; those of managed disks tell what snapshots show.
#[test]
fn x2_snapshots_of_a_page_blob_are_copied_incrementally() {
    let server = serve_container();
    let client = server.blobs();
    make_disk(&client, "/box/disk");
    let mut made = Vec::new();
    for (number, byte) in [b'b', b'c'].into_iter().enumerate() {
        write(&client, "/box/disk", 1024 * (number as u64 + 1), byte);
        let source = new_source(&client, "/box/disk");
        let done = copy(&client, "/box/backup", &source).send();
        done.is_status(202);
        assert_eq!(done.header("x-ms-copy-status"), Some("pending"), "as the service always says");
        let answer = properties(&client, "/box/backup");
        for (name, value) in [
            ("x-ms-incremental-copy", "true"),
            ("x-ms-copy-id", header(&done, "x-ms-copy-id")),
            ("x-ms-copy-status", "success"),
            ("x-ms-copy-progress", "4096/4096"),
            ("x-ms-copy-source", &source),
            ("x-ms-blob-type", "PageBlob"),
            ("x-ms-meta-disk", "1"),
            ("Content-Length", "4096"),
            ("ETag", header(&done, "ETag")),
            ("Last-Modified", header(&done, "Last-Modified")),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}: {answer}");
        }
        let time = header(&answer, "x-ms-copy-destination-snapshot").to_owned();
        let path = format!("/box/backup?snapshot={time}");
        let read = client.get(&path).send();
        assert_eq!(read.header("x-ms-incremental-copy"), Some("true"));
        assert_eq!(read.header("x-ms-copy-destination-snapshot"), Some(&*time));
        assert_eq!(
            read.body,
            content(&client, source.strip_prefix(&client.base()).expect("an address of this server"))
        );
        made.push(time);
    }
    let changed =
        client.get(&format!("/box/backup?comp=pagelist&snapshot={}&prevsnapshot={}", made[1], made[0])).send();
    assert_eq!((changed.elements("Start"), changed.elements("End")), (vec!["2048"], vec!["2559"]), "{changed}");
    let list = client.get("/box?restype=container&comp=list&prefix=backup&include=copy,snapshots").send();
    assert_eq!(list.elements("Snapshot"), made);
    assert_eq!(list.elements("IncrementalCopy"), ["true"; 3]);
    assert_eq!(list.elements("CopyDestinationSnapshot"), [&*made[0], &*made[1], &*made[1]]);
    let plain = client.get("/box?restype=container&comp=list&prefix=backup").send();
    assert_eq!((plain.elements("Name").len(), plain.element("IncrementalCopy")), (1, None));
    client.delete("/box/backup").send().is_error(409, "SnapshotsPresent");
    client.delete("/box/backup").header("x-ms-delete-snapshots", "include").send().is_status(202);
    put(&client, "/box/backup", "an ordinary blob again");
    assert_eq!(properties(&client, "/box/backup").header("x-ms-incremental-copy"), None);
}

/// The service's reference: the destination is for copies, Get Blob Properties and Delete Blob; recordings: and for leases.
#[test]
fn x2_the_destination_of_incremental_copies_is_not_used_otherwise() {
    let server = serve_container();
    let client = server.blobs();
    make_disk(&client, "/box/disk");
    copy(&client, "/box/backup", &new_source(&client, "/box/disk")).send().is_status(202);
    let before = properties(&client, "/box/backup");
    let url = format!("{}/box/backup", client.base());
    let page = [("x-ms-range", "bytes=0-511"), ("x-ms-page-write", "clear")];
    for (method, path, headers) in [
        ("GET", "/box/backup", &[][..]),
        ("GET", "/box/backup?comp=pagelist", &[]),
        ("PUT", "/box/backup?comp=page", &page),
        ("PUT", "/box/backup?comp=snapshot", &[]),
        ("PUT", "/box/backup?comp=metadata", &[]),
        ("PUT", "/box/backup?comp=properties", &[]),
        ("PUT", "/box/backup?comp=properties", &[("x-ms-blob-content-length", "512")]),
        ("PUT", "/box/backup?comp=tier", &[("x-ms-access-tier", "P10")]),
        ("PUT", "/box/backup", &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")]),
        ("PUT", "/box/backup", &[("x-ms-blob-type", "BlockBlob")]),
        ("PUT", "/box/other", &[("x-ms-copy-source", &*url)]),
    ] {
        let request = client.request(method, path);
        let request = if method == "GET" { request } else { request.body("") };
        let refused = headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send();
        refused.is_error(409, "OperationNotAllowedOnIncrementalCopyBlob");
        assert!(says(&refused, "The specified operation is not allowed on an incremental copy blob."), "{refused}");
    }
    let after = properties(&client, "/box/backup");
    assert_eq!(after.header("ETag"), before.header("ETag"));
    let lease = client.request("PUT", "/box/backup?comp=lease").header("x-ms-lease-action", "acquire").body("");
    lease.header("x-ms-lease-duration", "-1").send().is_status(201);
    // Recorded, with a message of its own.
    let refused = copy(&client, "/box/backup", &new_source(&client, "/box/disk")).send();
    refused.is_error(412, "LeaseIdMissing");
    assert!(says(&refused, "There is currently a lease on the blob and no lease ID was specified"), "{refused}");
}

#[test]
fn x2_what_cannot_be_copied_incrementally_is_refused() {
    let server = serve_container();
    let client = server.blobs();
    for path in ["/box/disk", "/box/twin"] {
        make_disk(&client, path);
    }
    put(&client, "/box/text", "x");
    let base = format!("{}/box/disk", client.base());
    let (first, twin, second) =
        (new_source(&client, "/box/disk"), new_source(&client, "/box/twin"), new_source(&client, "/box/disk"));
    let text = new_source(&client, "/box/text");
    let refuses = |path: &str, source: &str, (status, code): (u16, &str)| {
        copy(&client, path, source).send().is_error(status, code);
    };
    refuses("/box/backup", &base, (409, "IncrementalCopySourceMustBeSnapshot"));
    refuses("/box/backup", &text, (409, "InvalidSourceBlobType"));
    refuses("/box/backup", &format!("{base}?snapshot=2020-01-01T00:00:00.0000000Z"), (404, "BlobNotFound"));
    refuses("/box/backup", "http://198.51.100.1/account/box/disk?snapshot=2020-01-01", (404, "CannotVerifyCopySource"));
    refuses("/box/twin", &first, (409, "BlobAlreadyExists"));
    refuses("/box/text", &first, (409, "BlobAlreadyExists"));
    client.request("HEAD", "/box/backup").send().is_status(404);
    copy(&client, "/box/backup", &second).send().is_status(202);
    refuses("/box/backup", &first, (409, "IncrementalCopyOfEralierVersionSnapshotNotAllowed"));
    refuses("/box/backup", &second, (409, "IncrementalCopyOfEralierVersionSnapshotNotAllowed"));
    refuses("/box/backup", &twin, (409, "IncrementalCopyBlobMismatch"));
    // The same source under another name of the host.
    let third = new_source(&client, "/box/disk").replace("127.0.0.1", "localhost");
    copy(&client, "/box/backup", &third).send().is_status(202);
    let (_, time) = third.rsplit_once('=').expect("a snapshot");
    client.delete(&format!("/box/disk?snapshot={time}")).send().is_status(202);
    refuses("/box/backup", &new_source(&client, "/box/disk"), (409, "PreviousSnapshotNotFound"));
    let missing = client.request("PUT", "/box/backup?comp=incrementalcopy").body("").send();
    missing.is_error(400, "MissingRequiredHeader");
    client.get("/box/backup?comp=incrementalcopy").send().is_error(405, "UnsupportedHttpVerb");
    let list = client.get("/box?restype=container&comp=list&prefix=backup&include=snapshots").send();
    assert_eq!(list.elements("Snapshot").len(), 2, "{list}");
}

/// Recordings of the service, `StartCopyIncrementalAsync_AccessConditionsFail`.
#[test]
fn conditions_on_the_destination_of_an_incremental_copy() {
    let server = serve_container();
    let client = server.blobs();
    make_disk(&client, "/box/disk");
    copy(&client, "/box/backup", &new_source(&client, "/box/disk")).send().is_status(202);
    let etag = header(&properties(&client, "/box/backup"), "ETag").to_owned();
    let source = new_source(&client, "/box/disk");
    for (name, value, code) in [
        ("If-Match", "\"0x8D0\"", "TargetConditionNotMet"),
        ("If-None-Match", &*etag, "ConditionNotMet"),
        ("If-Modified-Since", "Tue, 01 Jan 2030 00:00:00 GMT", "ConditionNotMet"),
        ("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT", "ConditionNotMet"),
    ] {
        copy(&client, "/box/backup", &source).header(name, value).send().is_error(412, code);
    }
    copy(&client, "/box/backup", &source).header("If-Match", &*etag).send().is_status(202);
}

#[test]
fn s2_tokens_for_incremental_copies() {
    let server = serve_container();
    let owner = server.blobs();
    make_disk(&owner, "/box/disk");
    let private = new_source(&owner, "/box/disk");
    let signed = |source: &str| format!("{source}&{}", Sas::blob("box", "disk", "r").token());
    let with = |permissions: &str| owner.with_sas(&Sas::container("box", permissions).token());
    let denied = copy(&with("cw"), "/box/backup", &private).send();
    assert!(matches!(denied.status, 401 | 403 | 404), "a private source needs a token of its own: {denied}");
    copy(&with("rdl"), "/box/backup", &signed(&private)).send().is_error(403, "AuthorizationPermissionMismatch");
    copy(&with("c"), "/box/backup", &signed(&private)).send().is_status(202);
    let answer = properties(&owner, "/box/backup");
    assert_eq!(answer.header("x-ms-copy-source"), Some(&*private), "the signature is not shown");
    let later = signed(&new_source(&owner, "/box/disk"));
    copy(&with("c"), "/box/backup", &later).send().is_error(403, "UnauthorizedBlobOverwrite");
    copy(&with("w"), "/box/backup", &later).send().is_status(202);
}
