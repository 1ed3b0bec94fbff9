//! Copy Blob and the operations "from URL": sources of this account, with tokens, public ones, and foreign ones.

use super::{HELLO_CRC64, HELLO_MD5, block_blob, content, header, make_container, properties, put, serve_container};
use larimar_testkit::http::{Client, Request, Response, Sas};

fn copy<'c>(client: &'c Client, path: &str, source: &str) -> Request<'c> {
    client.request("PUT", path).header("x-ms-copy-source", source).body("")
}

/// The address of a blob of `box` with a signature that lets it be read: a write from a URL needs one.
fn signed(client: &Client, name: &str) -> String {
    format!("{}/box/{name}?{}", client.base(), Sas::blob("box", name, "rt").token())
}

#[test]
fn x2_a_blob_is_copied_with_all_that_is_told_of_it() {
    let server = serve_container();
    let client = server.blobs();
    let source = format!("{}/box/source%20%C3%BC", client.base());
    let made = block_blob(&client, "/box/source%20%C3%BC", "Hello World")
        .header("x-ms-blob-content-type", "text/plain")
        .header("x-ms-blob-cache-control", "no-cache")
        .header("x-ms-meta-a", "1")
        .send();
    made.is_status(201);
    for sync in [false, true] {
        let token = Sas::blob("box", "source ü", "r").token();
        let request = copy(&client, "/box/copy", &if sync { format!("{source}?{token}") } else { source.clone() });
        let done = if sync { request.header("x-ms-requires-sync", "true") } else { request }.send();
        done.is_status(202);
        assert_eq!(done.header("x-ms-copy-status"), Some("success"));
        let answer = client.get("/box/copy").send();
        assert_eq!(answer.text(), "Hello World");
        for (name, value) in [
            ("Content-Type", "text/plain"),
            ("Cache-Control", "no-cache"),
            ("Content-MD5", HELLO_MD5),
            ("x-ms-meta-a", "1"),
            ("x-ms-copy-id", header(&done, "x-ms-copy-id")),
            ("x-ms-copy-status", "success"),
            ("x-ms-copy-source", &source),
            ("x-ms-copy-progress", "11/11"),
            ("ETag", header(&done, "ETag")),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}: {answer}");
        }
        assert!(answer.header("x-ms-copy-completion-time").is_some());
    }
    copy(&client, "/box/copy", &source).header("x-ms-meta-b", "2").send().is_status(202);
    let answer = properties(&client, "/box/copy");
    assert_eq!(
        (answer.header("x-ms-meta-a"), answer.header("x-ms-meta-b")),
        (None, Some("2")),
        "metadata is one's own"
    );
    // A put ends the story of the copy.
    put(&client, "/box/copy", "x");
    assert_eq!(properties(&client, "/box/copy").header("x-ms-copy-id"), None);
    // A blob copied to itself stays what it is.
    copy(&client, "/box/copy", &format!("{}/box/copy", client.base())).send().is_status(202);
    assert_eq!(content(&client, "/box/copy"), b"x");
}

/// The writes that take bytes from a URL, as recordings of the service name them, on targets of their own types.
fn from_url<'c>(client: &'c Client, operation: &str, source: &str) -> Request<'c> {
    match operation {
        "Copy Blob" => copy(client, "/box/target", source),
        "Copy Blob From URL" => copy(client, "/box/target", source).header("x-ms-requires-sync", "true"),
        "Put Blob From URL" => copy(client, "/box/target", source).header("x-ms-blob-type", "BlockBlob"),
        "Put Block From URL" => copy(client, "/box/target?comp=block&blockid=AAAA", source),
        "Append Block From URL" => copy(client, "/box/log?comp=appendblock", source),
        "Put Page From URL" => copy(client, "/box/disk?comp=page", source)
            .header("x-ms-page-write", "update")
            .header("x-ms-source-range", "bytes=0-511")
            .header("x-ms-range", "bytes=0-511"),
        other => panic!("no operation {other}"),
    }
}

/// Whether the message of an error begins with a text.
fn says(reply: &Response, text: &str) -> bool {
    reply.element("Message").is_some_and(|message| message.starts_with(text))
}

fn with_targets(client: &Client) -> String {
    put(client, "/box/source", vec![b's'; 512]);
    put(client, "/box/target", "there");
    client.request("PUT", "/box/log").header("x-ms-blob-type", "AppendBlob").body("").send().is_status(201);
    let disk = client.request("PUT", "/box/disk").header("x-ms-blob-type", "PageBlob");
    disk.header("x-ms-blob-content-length", "512").body("").send().is_status(201);
    signed(client, "source")
}

const PAST: &str = "Sat, 01 Jan 2000 00:00:00 GMT";
const FUTURE: &str = "Tue, 01 Jan 2030 00:00:00 GMT";
const NO_TARGET: &str = "The target condition specified using HTTP conditional header(s) is not met.";
const NO_CONDITION: &str = "The condition specified using HTTP conditional header(s) is not met.";
const NO_SOURCE: &str = "The source condition specified using HTTP conditional header(s) is not met.";
const UNVERIFIED: &str = "Could not verify the copy source within the specified time.";

/// Recordings of the service: the code for a condition on the target depends on the operation and on the condition.
#[test]
fn conditions_on_the_target_of_a_write_from_a_url() {
    let server = serve_container();
    let client = server.blobs();
    let source = with_targets(&client);
    let etag = |path: &str| header(&properties(&client, path), "ETag").to_owned();
    let (target, own) = (("TargetConditionNotMet", NO_TARGET), ("ConditionNotMet", NO_CONDITION));
    for (operation, path, if_match, others) in [
        ("Copy Blob", "/box/target", target, target),
        ("Copy Blob From URL", "/box/target", target, own),
        ("Put Blob From URL", "/box/target", target, own),
        ("Put Page From URL", "/box/disk", target, own),
        ("Append Block From URL", "/box/log", own, own),
    ] {
        for (name, value, (code, message)) in [
            ("If-Match", "\"0x8D0\"", if_match),
            ("If-None-Match", &*etag(path), others),
            ("If-Modified-Since", FUTURE, others),
            ("If-Unmodified-Since", PAST, others),
        ] {
            let refused = from_url(&client, operation, &source).header(name, value).send();
            refused.is_error(412, code);
            assert!(says(&refused, message), "{operation} {name}: {refused}");
        }
        let done = from_url(&client, operation, &source).header("If-Match", etag(path)).send();
        assert!(matches!(done.status, 201 | 202), "{operation}: {done}");
    }
    assert_eq!(content(&client, "/box/log").len(), 512, "only the last append took place");
}

/// Recordings of the service: the status and the code for a condition on the source depend on both as well.
#[test]
fn conditions_on_the_source_of_a_write_from_a_url() {
    let server = serve_container();
    let client = server.blobs();
    let source = with_targets(&client);
    let etag = header(&properties(&client, "/box/source"), "ETag").to_owned();
    let condition = (412, "SourceConditionNotMet", NO_SOURCE);
    let verified = (412, "CannotVerifyCopySource", NO_CONDITION);
    let unverified = (412, "CannotVerifyCopySource", UNVERIFIED);
    let unmodified = (304, "CannotVerifyCopySource", "");
    for (operation, if_match, if_unmodified, others) in [
        ("Copy Blob", condition, condition, condition),
        ("Copy Blob From URL", condition, verified, unmodified),
        ("Put Blob From URL", condition, verified, unmodified),
        ("Put Block From URL", condition, verified, unmodified),
        ("Append Block From URL", unverified, unverified, unmodified),
        ("Put Page From URL", unverified, unverified, unmodified),
    ] {
        for (name, value, (status, code, message)) in [
            ("x-ms-source-if-match", "\"0x8D0\"", if_match),
            ("x-ms-source-if-unmodified-since", PAST, if_unmodified),
            ("x-ms-source-if-none-match", &*etag, others),
            ("x-ms-source-if-modified-since", FUTURE, others),
        ] {
            let refused = from_url(&client, operation, &source).header(name, value).send();
            assert_eq!((refused.status, refused.header("x-ms-error-code")), (status, Some(code)), "{operation} {name}");
            match status {
                304 => assert_eq!(refused.body, b"", "{operation} {name}"),
                _ => assert!(says(&refused, message), "{operation} {name}: {refused}"),
            }
        }
        let done = from_url(&client, operation, &source).header("x-ms-source-if-match", &*etag).send();
        assert!(matches!(done.status, 201 | 202), "{operation}: {done}");
    }
}

/// Recordings of the service: a source that is missing. Its own clients' tests: a write from a URL does not read a private
/// source with the caller's key.
/// A refusal repeats what was signed, but not the secrets in it: answers are logged.
#[test]
fn a_refused_signature_does_not_repeat_the_secrets_of_a_source() {
    let server = serve_container();
    let wrong = server.blobs().of_account("devstoreaccount1", "d3Jvbmc=");
    let source = "http://elsewhere.test/box/a?sv=2021-06-08&sig=c2VjcmV0LXNpZw%3D%3D&sp=r";
    let copy = wrong.request("PUT", "/box/b").header("x-ms-copy-source", source).body("");
    let copy = copy.header("x-ms-copy-source-authorization", "Bearer secret-token");
    let refused = copy.header("x-ms-encryption-key", "c2VjcmV0LWtleQ==").send();
    refused.is_error(403, "AuthenticationFailed");
    let detail = refused.element("AuthenticationErrorDetail").expect("a detail");
    assert!(detail.contains("x-ms-copy-source:http://elsewhere.test/box/a?sv=2021-06-08"), "{detail}");
    for secret in ["c2VjcmV0LXNpZw", "secret-token", "c2VjcmV0LWtleQ"] {
        assert!(!refused.text().contains(secret), "{secret} in {refused}");
    }
}

#[test]
fn sources_that_are_missing_or_private() {
    let server = serve_container();
    let client = server.blobs();
    with_targets(&client);
    let missing = signed(&client, "missing");
    let private = format!("{}/box/source", client.base());
    let no_blob = "The specified blob does not exist.";
    for (operation, code, message) in [
        ("Copy Blob", "BlobNotFound", no_blob),
        ("Copy Blob From URL", "CannotVerifyCopySource", no_blob),
        ("Put Blob From URL", "CannotVerifyCopySource", no_blob),
        ("Put Block From URL", "CannotVerifyCopySource", no_blob),
        ("Append Block From URL", "CannotVerifyCopySource", UNVERIFIED),
        ("Put Page From URL", "CannotVerifyCopySource", UNVERIFIED),
    ] {
        let refused = from_url(&client, operation, &missing).send();
        refused.is_error(404, code);
        assert!(says(&refused, message), "{operation}: {refused}");
        let unsigned = from_url(&client, operation, &private).send();
        match operation {
            "Copy Blob" => unsigned.is_status(202),
            _ => assert_eq!(
                unsigned.header("x-ms-error-code"),
                Some("CannotVerifyCopySource"),
                "{operation}: {unsigned}"
            ),
        }
    }
    assert_eq!(content(&client, "/box/log"), b"");
}

#[test]
fn x2_sources_that_cannot_be_had_are_refused() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let base = client.base();
    let port = client.address().port();
    for source in ["/box/a", "box/a", "a", "ftp://127.0.0.1/x/y", "http://", "http:///devstoreaccount1/box/a"] {
        copy(&client, "/box/b", source).send().is_error(400, "InvalidHeaderValue");
    }
    copy(&client, "/box/b", &format!("{base}/box/{}", "x".repeat(2048))).send().is_error(400, "InvalidHeaderValue");
    for source in [
        "http://example.com/devstoreaccount1/box/a".to_owned(),
        "https://other.blob.core.windows.net/box/a".to_owned(),
        format!("http://127.0.0.1:{port}/otheraccount/box/a"),
        format!("http://169.254.169.254:{port}/devstoreaccount1/box/a"),
    ] {
        for request in [
            copy(&client, "/box/b", &source),
            copy(&client, "/box/b", &source).header("x-ms-blob-type", "BlockBlob"),
            copy(&client, "/box/b?comp=block&blockid=AAAA", &source),
        ] {
            let refused = request.send();
            refused.is_error(404, "CannotVerifyCopySource");
        }
    }
    client.get("/box/b").send().is_error(404, "BlobNotFound");
    client.get("/box/b?comp=blocklist&blocklisttype=all").send().is_error(404, "BlobNotFound");
    // The name of the machine is not what makes it this one.
    copy(&client, "/box/b", &format!("http://localhost:{port}/devstoreaccount1/box/a")).send().is_status(202);
}

#[test]
fn x2_a_guest_needs_a_token_or_a_public_source() {
    let server = serve_container();
    let owner = server.blobs();
    make_container(&owner, "private");
    let open = owner.request("PUT", "/open?restype=container").header("x-ms-blob-public-access", "blob").send();
    open.is_status(201);
    put(&owner, "/private/a", "private");
    put(&owner, "/open/a", "open");
    let guest = owner.with_sas(&Sas::container("box", "cw").token());
    let base = owner.base();
    let status = |path: &str, source: &str| {
        let reply: Response = copy(&guest, path, source).send();
        (reply.status, reply.code())
    };
    let refused = |status: u16| (status, "CannotVerifyCopySource".to_owned());
    let done = (202, String::new());
    assert_eq!(status("/box/1", &format!("{base}/open/a")), done);
    let token = Sas::blob("private", "a", "r").token();
    assert_eq!(status("/box/2", &format!("{base}/private/a?{token}")), done);
    assert_eq!(content(&owner, "/box/2"), b"private");
    assert_eq!(status("/box/3", &format!("{base}/private/a")), refused(401));
    let wrong = Sas::blob("private", "a", "w").token();
    assert_eq!(status("/box/3", &format!("{base}/private/a?{wrong}")), refused(403));
    let expired = Sas::blob("private", "a", "r").with("se", "2020-01-01T00:00:00Z").token();
    assert_eq!(status("/box/3", &format!("{base}/private/a?{expired}")), refused(403));
    owner.get("/box/3").send().is_error(404, "BlobNotFound");
    // A token that creates does not overwrite.
    let creator = owner.with_sas(&Sas::container("box", "c").token());
    copy(&creator, "/box/4", &format!("{base}/open/a")).send().is_status(202);
    copy(&creator, "/box/4", &format!("{base}/open/a")).send().is_error(403, "UnauthorizedBlobOverwrite");
    let reader = owner.with_sas(&Sas::container("box", "r").token());
    copy(&reader, "/box/5", &format!("{base}/open/a")).send().is_error(403, "AuthorizationPermissionMismatch");
}

#[test]
fn x2_snapshots_and_every_type_of_blob_are_copied() {
    let server = serve_container();
    let client = server.blobs();
    let base = client.base();
    put(&client, "/box/a", "old");
    let taken = client.request("PUT", "/box/a?comp=snapshot").send();
    put(&client, "/box/a", "new");
    let source = format!("{base}/box/a?snapshot={}", header(&taken, "x-ms-snapshot"));
    copy(&client, "/box/b", &source).send().is_status(202);
    assert_eq!(content(&client, "/box/b"), b"old");
    client.request("PUT", "/box/log").header("x-ms-blob-type", "AppendBlob").body("").send().is_status(201);
    client.request("PUT", "/box/log?comp=appendblock").body("one,two").send().is_status(201);
    copy(&client, "/box/log2", &format!("{base}/box/log")).send().is_status(202);
    client.request("PUT", "/box/log2?comp=appendblock").body(",three").send().is_status(201);
    assert_eq!(content(&client, "/box/log2"), b"one,two,three");
    assert_eq!(content(&client, "/box/log"), b"one,two");
    let disk = client.request("PUT", "/box/disk").header("x-ms-blob-type", "PageBlob");
    disk.header("x-ms-blob-content-length", "1024").body("").send().is_status(201);
    let page = client.request("PUT", "/box/disk?comp=page").header("x-ms-page-write", "update");
    page.header("x-ms-range", "bytes=512-1023").body(vec![b'p'; 512]).send().is_status(201);
    copy(&client, "/box/disk2", &format!("{base}/box/disk")).send().is_status(202);
    assert_eq!(properties(&client, "/box/disk2").header("x-ms-blob-type"), Some("PageBlob"));
    assert_eq!(content(&client, "/box/disk2"), content(&client, "/box/disk"));
    assert_eq!(client.get("/box/disk2?comp=pagelist").send().elements("Start"), ["512"]);
    copy(&client, "/box/log", &format!("{base}/box/disk")).send().is_error(409, "InvalidBlobType");
    assert_eq!(content(&client, "/box/log"), b"one,two");
    let none = client.request("PUT", "/box/b?comp=copy&copyid=aaaaaaaa-0000-4000-8000-000000000000");
    none.header("x-ms-copy-action", "abort").send().is_error(409, "NoPendingCopyOperation");
}

#[test]
fn x2_tags_are_copied_on_demand() {
    let server = serve_container();
    let client = server.blobs();
    block_blob(&client, "/box/a", "x").header("x-ms-tags", "k=v&l=w").send().is_status(201);
    let source = signed(&client, "a");
    let tags = |path: &str| client.get(&format!("{path}?comp=tags")).send().elements("Value").join(" ");
    copy(&client, "/box/b", &source).send().is_status(202);
    assert_eq!(tags("/box/b"), "");
    copy(&client, "/box/b", &source).header("x-ms-tags", "own=1").send().is_status(202);
    assert_eq!(tags("/box/b"), "1");
    let all = copy(&client, "/box/b", &source).header("x-ms-requires-sync", "true");
    all.header("x-ms-copy-source-tag-option", "COPY").send().is_status(202);
    assert_eq!(tags("/box/b"), "v w");
    // Recordings of the service: so are those of Put Blob From URL. There are no others then.
    let from = |option: &str| {
        let put = copy(&client, "/box/c", &source).header("x-ms-blob-type", "BlockBlob");
        put.header("x-ms-copy-source-tag-option", option)
    };
    from("Copy").send().is_status(201);
    assert_eq!(tags("/box/c"), "v w");
    from("REPLACE").header("x-ms-tags", "own=1").send().is_status(201);
    assert_eq!(tags("/box/c"), "1");
    from("COPY").header("x-ms-tags", "own=1").send().is_error(400, "InvalidHeaderValue");
    from("MERGE").send().is_error(400, "InvalidHeaderValue");
}

#[test]
fn x2_blobs_and_blocks_are_made_from_other_blobs() {
    let server = serve_container();
    let client = server.blobs();
    let source = block_blob(&client, "/box/a", "Hello World").header("x-ms-blob-content-type", "text/plain");
    source.header("x-ms-blob-cache-control", "no-cache").header("x-ms-meta-of", "source").send().is_status(201);
    let url = signed(&client, "a");
    let whole =
        copy(&client, "/box/whole", &url).header("x-ms-blob-type", "BlockBlob").header("x-ms-meta-own", "1").send();
    whole.is_status(201);
    assert_eq!((whole.header("Content-MD5"), whole.header("x-ms-content-crc64")), (None, Some(HELLO_CRC64)));
    let answer = properties(&client, "/box/whole");
    assert_eq!(answer.header("x-ms-meta-of"), None, "metadata is one's own");
    assert_eq!(answer.header("Content-MD5"), Some(HELLO_MD5));
    assert_eq!((answer.header("Content-Type"), answer.header("x-ms-meta-own")), (Some("text/plain"), Some("1")));
    assert_eq!(answer.header("x-ms-copy-id"), None, "it is a put");
    // Headers of the request go before those of the source (service: put blob from URL); metadata is the source's where
    // the request has none (recorded).
    let mixed = copy(&client, "/box/mixed", &url).header("x-ms-blob-type", "BlockBlob");
    mixed.header("x-ms-blob-content-type", "text/css").send().is_status(201);
    let answer = properties(&client, "/box/mixed");
    let named = ["Content-Type", "Cache-Control", "x-ms-meta-of"].map(|name| answer.header(name));
    assert_eq!(named, [Some("text/css"), Some("no-cache"), Some("source")]);
    let block = |id: &str, headers: &[(&str, &str)]| {
        let request = copy(&client, &format!("/box/blocks?comp=block&blockid={id}"), &url);
        headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
    };
    let range = "x-ms-source-range";
    block("AAAA", &[(range, "bytes=6-10")]).is_status(201);
    block("BBBB", &[(range, "bytes=5-5")]).is_status(201);
    block("CCCC", &[(range, "bytes=0-4")]).is_status(201);
    block("DDDD", &[(range, "bytes=11-12")]).is_error(416, "InvalidRange");
    block("DDDD", &[(range, "five")]).is_error(400, "InvalidHeaderValue");
    block("DDDD", &[("x-ms-source-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")]).is_error(400, "Md5Mismatch");
    block("DDDD", &[("x-ms-source-if-match", "\"0x8D0\"")]).is_error(412, "SourceConditionNotMet");
    block("DDDD", &[("x-ms-source-content-md5", HELLO_MD5)]).is_status(201);
    let list = "<BlockList><Latest>AAAA</Latest><Latest>BBBB</Latest><Latest>CCCC</Latest></BlockList>";
    client.request("PUT", "/box/blocks?comp=blocklist").xml(list).send().is_status(201);
    assert_eq!(content(&client, "/box/blocks"), b"World Hello");
    client.request("PUT", "/box/log").header("x-ms-blob-type", "AppendBlob").body("").send().is_status(201);
    let append = copy(&client, "/box/log?comp=appendblock", &url).header(range, "bytes=0-4").send();
    append.is_status(201);
    assert_eq!(append.header("x-ms-blob-append-offset"), Some("0"));
    assert_eq!(content(&client, "/box/log"), b"Hello");
    put(&client, "/box/long", vec![b'x'; 4 * 1024 * 1024 + 1]);
    let long = copy(&client, "/box/log?comp=appendblock", &signed(&client, "long"));
    long.header("x-ms-version", "2021-12-02").send().is_error(413, "RequestBodyTooLarge");
    let with_body = client.request("PUT", "/box/blocks?comp=block&blockid=AAAA").header("x-ms-copy-source", url);
    with_body.body("both").send().is_error(400, "InvalidHeaderValue");
}

#[test]
fn x2_pages_are_made_from_other_blobs() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", vec![b'a'; 2048]);
    let url = signed(&client, "a");
    let disk = client.request("PUT", "/box/disk").header("x-ms-blob-type", "PageBlob");
    disk.header("x-ms-blob-content-length", "1024").body("").send().is_status(201);
    let page = |source: &str, target: &str| {
        let request = copy(&client, "/box/disk?comp=page", &url).header("x-ms-page-write", "update");
        request.header("x-ms-source-range", source).header("x-ms-range", target).send()
    };
    page("bytes=100-611", "bytes=512-1023").is_status(201);
    let mut expected = vec![0; 512];
    expected.resize(1024, b'a');
    assert_eq!(content(&client, "/box/disk"), expected);
    page("bytes=0-1023", "bytes=0-511").is_error(416, "InvalidPageRange");
    page("bytes=0-511", "bytes=1024-1535").is_error(416, "InvalidPageRange");
    page("bytes=0-", "bytes=0-511").is_error(416, "InvalidPageRange");
    page("", "bytes=0-511").is_error(400, "MissingRequiredHeader");
    assert_eq!(content(&client, "/box/disk"), expected);
}

/// The token that lets a copy read its source is not shown to readers of the copy, wherever its source is shown.
#[test]
fn s2_a_copy_does_not_show_the_signature_of_its_source() {
    let server = serve_container();
    let owner = server.blobs();
    let open = owner.request("PUT", "/open?restype=container").header("x-ms-blob-public-access", "container").send();
    open.is_status(201);
    put(&owner, "/box/a", "x");
    let taken = owner.request("PUT", "/box/a?comp=snapshot").send();
    let at = header(&taken, "x-ms-snapshot");
    let token = Sas::container("box", "r").token();
    let secret = token.split('&').find_map(|part| part.strip_prefix("sig=")).expect("a signature").to_owned();
    let address = format!("{}/box/a", owner.base());
    for (name, source, shown) in [
        ("blob", format!("{address}?{token}"), address.clone()),
        ("snapshot", format!("{address}?snapshot={at}&{token}"), format!("{address}?snapshot={at}")),
    ] {
        let path = format!("/open/{name}");
        let done = copy(&owner, &path, &source).send();
        done.is_status(202);
        owner.request("PUT", &format!("{path}?comp=snapshot")).send().is_status(201);
        let list = "/open?restype=container&comp=list&include=copy,snapshots";
        for reader in [&owner, &owner.anonymous()] {
            let (got, properties) = (reader.get(&path).send(), reader.request("HEAD", &path).send());
            assert_eq!((header(&got, "x-ms-copy-source"), header(&properties, "x-ms-copy-source")), (&*shown, &*shown));
            let listed = reader.get(list).send();
            assert!(listed.elements("CopySource").contains(&shown.replace('&', "&amp;").as_str()), "{listed}");
            for reply in [&done, &got, &properties, &listed] {
                assert!(!reply.to_string().contains(&secret), "{reply}");
            }
        }
    }
}
