//! Put Blob, Get Blob, Delete Blob: content, headers, metadata, checksums.

use super::{HELLO_CRC64, HELLO_MD5, block_blob, content, header, properties, put, serve_container};

#[test]
fn x2_a_block_blob_is_put_and_read() {
    let server = serve_container();
    let client = server.blobs();
    let made = put(&client, "/box/hello", "Hello World");
    assert_eq!(made.header("Content-MD5"), Some(HELLO_MD5));
    assert_eq!(made.header("x-ms-content-crc64"), Some(HELLO_CRC64));
    assert_eq!(made.header("x-ms-request-server-encrypted"), Some("true"));
    assert_eq!(made.header("Content-Length"), Some("0"));
    let found = client.get("/box/hello").send();
    found.is_status(200);
    assert_eq!(found.body, b"Hello World");
    for (name, value) in [
        ("Content-Length", "11"),
        ("Content-Type", "application/octet-stream"),
        ("Content-MD5", HELLO_MD5),
        ("Accept-Ranges", "bytes"),
        ("ETag", header(&made, "ETag")),
        ("Last-Modified", header(&made, "Last-Modified")),
        ("x-ms-creation-time", header(&made, "Last-Modified")),
        ("x-ms-blob-type", "BlockBlob"),
        ("x-ms-lease-status", "unlocked"),
        ("x-ms-lease-state", "available"),
        ("x-ms-server-encrypted", "true"),
    ] {
        assert_eq!(found.header(name), Some(value), "{name}: {found}");
    }
    for absent in ["Content-Range", "Content-Encoding", "Cache-Control", "x-ms-tag-count", "x-ms-copy-id"] {
        assert_eq!(found.header(absent), None, "{found}");
    }
}

#[test]
fn x2_head_tells_the_length_and_sends_no_bytes() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", vec![7; 100_000]);
    put(&client, "/box/empty", "");
    let answer = properties(&client, "/box/a");
    assert_eq!(answer.header("Content-Length"), Some("100000"));
    assert_eq!(answer.header("x-ms-access-tier"), Some("Hot"));
    assert_eq!(answer.header("x-ms-access-tier-inferred"), Some("true"));
    assert_eq!(properties(&client, "/box/empty").header("Content-Length"), Some("0"));
    // The connection serves on, so no byte of a body followed.
    assert_eq!(properties(&client, "/box/a").header("Content-Length"), Some("100000"));
    let missing = client.request("HEAD", "/box/missing").send();
    missing.is_error(404, "BlobNotFound");
    assert_eq!(missing.header("x-ms-error-code"), Some("BlobNotFound"));
}

/// Recorded answers of the service have no type either. DuckDB and pyarrow would read the document that it names.
#[test]
fn x2_errors_of_head_name_no_type_of_a_document() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "x");
    let none = client.request("HEAD", "/box/none").send();
    none.is_error(404, "BlobNotFound");
    let changed = client.request("HEAD", "/box/a").header("If-Match", "\"0x8D0\"").send();
    changed.is_error(412, "ConditionNotMet");
    let no_container = client.request("HEAD", "/none?restype=container").send();
    no_container.is_error(404, "ContainerNotFound");
    let foreign = client.request("HEAD", "/box/a").unsigned().send();
    let no_queue = server.queues().request("HEAD", "/none?comp=metadata").send();
    no_queue.is_error(404, "QueueNotFound");
    for reply in [none, changed, no_container, foreign, no_queue] {
        assert!(reply.status >= 400, "{reply}");
        assert_eq!(reply.header("Content-Type"), None, "{reply}");
    }
    let document = client.get("/box/none").send();
    assert_eq!(document.header("Content-Type"), Some("application/xml"), "{document}");
}

#[test]
fn x2_content_headers_come_back_and_the_longer_names_win() {
    let server = serve_container();
    let client = server.blobs();
    let sent = block_blob(&client, "/box/a", "Hello World")
        .header("Content-Type", "text/plain")
        .header("Content-Encoding", "gzip")
        .header("Content-Language", "en")
        .header("Cache-Control", "no-store")
        .header("x-ms-blob-content-type", "text/html; charset=utf-8")
        .header("x-ms-blob-content-language", "de")
        .header("x-ms-blob-content-disposition", "attachment; filename=\"a b.txt\"")
        .header("x-ms-meta-Mixed_Case", " kept \u{7e} ")
        .header("x-ms-meta-empty", "");
    sent.send().is_status(201);
    for answer in [properties(&client, "/box/a"), client.get("/box/a").send()] {
        for (name, value) in [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Encoding", "gzip"),
            ("Content-Language", "de"),
            ("Cache-Control", "no-store"),
            ("Content-Disposition", "attachment; filename=\"a b.txt\""),
            ("x-ms-meta-Mixed_Case", "kept \u{7e}"),
            ("x-ms-meta-empty", ""),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}: {answer}");
        }
    }
    // A blob that is put again keeps nothing of the old.
    put(&client, "/box/a", "new");
    let answer = properties(&client, "/box/a");
    for gone in ["Content-Encoding", "Cache-Control", "Content-Disposition", "x-ms-meta-empty"] {
        assert_eq!(answer.header(gone), None, "{answer}");
    }
    assert_eq!(answer.header("Content-Type"), Some("application/octet-stream"));
}

#[test]
fn x2_a_body_that_is_not_what_its_checksum_says_is_refused() {
    let server = serve_container();
    let client = server.blobs();
    let put = |name: &str, value: &str| block_blob(&client, "/box/a", "Hello World").header(name, value).send();
    put("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==").is_error(400, "Md5Mismatch");
    put("Content-MD5", "nonsense").is_error(400, "InvalidMd5");
    put("Content-MD5", "AAAA").is_error(400, "InvalidMd5");
    put("x-ms-content-crc64", "AAAAAAAAAAA=").is_error(400, "Crc64Mismatch");
    put("x-ms-content-crc64", "AAAA").is_error(400, "InvalidHeaderValue");
    put("x-ms-blob-content-md5", "nonsense").is_error(400, "InvalidMd5");
    let both = block_blob(&client, "/box/a", "Hello World").header("Content-MD5", HELLO_MD5);
    both.header("x-ms-content-crc64", HELLO_CRC64).send().is_error(400, "BothCrc64AndMd5HeaderPresent");
    client.get("/box/a").send().is_error(404, "BlobNotFound");
    put("Content-MD5", HELLO_MD5).is_status(201);
    put("x-ms-content-crc64", HELLO_CRC64).is_status(201);
    // The stored headers are for readers; the server does not interpret them.
    put("x-ms-blob-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==").is_status(201);
    assert_eq!(client.get("/box/a").send().header("Content-MD5"), Some("AAAAAAAAAAAAAAAAAAAAAA=="));
    let block = |name: &str, value: &str| {
        client.request("PUT", "/box/b?comp=block&blockid=AAAA").header(name, value).body("Hello World").send()
    };
    block("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==").is_error(400, "Md5Mismatch");
    block("x-ms-content-crc64", "AAAAAAAAAAA=").is_error(400, "Crc64Mismatch");
    client.get("/box/b?comp=blocklist&blocklisttype=all").send().is_error(404, "BlobNotFound");
    let good = block("Content-MD5", HELLO_MD5);
    good.is_status(201);
    assert_eq!(good.header("Content-MD5"), Some(HELLO_MD5));
    assert_eq!(block("x-ms-content-crc64", HELLO_CRC64).header("x-ms-content-crc64"), Some(HELLO_CRC64));
}

#[test]
fn x2_empty_blobs_are_blobs() {
    let server = serve_container();
    let client = server.blobs();
    let made = put(&client, "/box/empty", "");
    assert_eq!(made.header("Content-MD5"), Some("1B2M2Y8AsgTpgAmY7PhCfg=="));
    assert_eq!(made.header("x-ms-content-crc64"), Some("AAAAAAAAAAA="));
    let found = client.get("/box/empty").send();
    found.is_status(200);
    assert_eq!((found.header("Content-Length"), found.body.len()), (Some("0"), 0));
    // As clients download everything: first a range, and after the refusal all of it.
    let ranged = client.get("/box/empty").header("x-ms-range", "bytes=0-33554431").send();
    ranged.is_error(416, "InvalidRange");
    assert_eq!(ranged.header("Content-Range"), Some("bytes */0"));
    assert_eq!(ranged.header("x-ms-error-code"), Some("InvalidRange"));
}

#[test]
fn x2_a_deleted_blob_is_gone_and_can_be_made_again() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "one");
    let gone = client.request("DELETE", "/box/a").send();
    gone.is_status(202);
    assert_eq!(gone.header("x-ms-delete-type-permanent"), Some("true"));
    for method in ["GET", "HEAD", "DELETE"] {
        client.request(method, "/box/a").send().is_error(404, "BlobNotFound");
    }
    put(&client, "/box/a", "two");
    assert_eq!(content(&client, "/box/a"), b"two");
}

#[test]
fn x2_a_put_of_another_type_replaces_the_blob() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/a", "block");
    let append = client.request("PUT", "/box/a").header("x-ms-blob-type", "AppendBlob").body("").send();
    append.is_status(201);
    let answer = properties(&client, "/box/a");
    assert_eq!((answer.header("x-ms-blob-type"), answer.header("Content-Length")), (Some("AppendBlob"), Some("0")));
    assert_eq!(answer.header("x-ms-blob-committed-block-count"), Some("0"));
    put(&client, "/box/a", "again");
    assert_eq!(properties(&client, "/box/a").header("x-ms-blob-type"), Some("BlockBlob"));
}

#[test]
fn x2_each_type_of_blob_has_its_own_operations() {
    let server = serve_container();
    let client = server.blobs();
    put(&client, "/box/block", "x");
    let make = |name: &str, kind: &str| {
        let request = client.request("PUT", &format!("/box/{name}")).header("x-ms-blob-type", kind);
        request.header("x-ms-blob-content-length", "512").body("").send()
    };
    make("append", "AppendBlob").is_status(201);
    make("page", "PageBlob").is_status(201);
    make("other", "FileBlob").is_error(400, "InvalidHeaderValue");
    client.request("PUT", "/box/other").body("").send().is_error(400, "MissingRequiredHeader");
    for name in ["append", "page"] {
        let block = client.request("PUT", &format!("/box/{name}?comp=block&blockid=AAAA")).body("x").send();
        block.is_error(409, "InvalidBlobType");
        let list = client.request("PUT", &format!("/box/{name}?comp=blocklist")).body("<BlockList/>").send();
        list.is_error(409, "InvalidBlobType");
        client.get(&format!("/box/{name}?comp=blocklist")).send().is_error(409, "InvalidBlobType");
    }
    for name in ["block", "page"] {
        let append = client.request("PUT", &format!("/box/{name}?comp=appendblock")).body("x").send();
        append.is_error(409, "InvalidBlobType");
    }
    for name in ["block", "append"] {
        let page = client.request("PUT", &format!("/box/{name}?comp=page")).header("x-ms-page-write", "clear");
        page.header("x-ms-range", "bytes=0-511").send().is_error(409, "InvalidBlobType");
        client.get(&format!("/box/{name}?comp=pagelist")).send().is_error(409, "InvalidBlobType");
    }
    assert_eq!(content(&client, "/box/block"), b"x");
}
