//! Append blobs: blocks added at the end, and the conditions on where and how far.

use super::{HELLO_CRC64, HELLO_MD5, content, header, properties, put, serve_container};
use larimar_testkit::http::{Client, Response};

fn make(client: &Client, path: &str) -> Response {
    let reply = client.request("PUT", path).header("x-ms-blob-type", "AppendBlob").body("").send();
    reply.is_status(201);
    reply
}

fn append(client: &Client, path: &str, bytes: &str, headers: &[(&str, &str)]) -> Response {
    let request = client.request("PUT", &format!("{path}?comp=appendblock")).body(bytes);
    headers.iter().fold(request, |request, (name, value)| request.header(name, *value)).send()
}

#[test]
fn x2_blocks_are_appended_one_after_the_other() {
    let server = serve_container();
    let client = server.blobs();
    let mut etag = header(&make(&client, "/box/log"), "ETag").to_owned();
    for (n, (text, offset)) in [("one,", "0"), ("two,", "4"), ("three", "8")].into_iter().enumerate() {
        let done = append(&client, "/box/log", text, &[]);
        done.is_status(201);
        assert_eq!(done.header("x-ms-blob-append-offset"), Some(offset));
        assert_eq!(done.header("x-ms-blob-committed-block-count"), Some((n + 1).to_string().as_str()));
        assert_ne!(header(&done, "ETag"), etag);
        header(&done, "ETag").clone_into(&mut etag);
    }
    assert_eq!(content(&client, "/box/log"), b"one,two,three");
    let answer = properties(&client, "/box/log");
    assert_eq!(answer.header("x-ms-blob-type"), Some("AppendBlob"));
    assert_eq!(answer.header("x-ms-blob-committed-block-count"), Some("3"));
    assert_eq!(answer.header("Content-MD5"), None);
    let range = client.get("/box/log").header("Range", "bytes=3-8").send();
    assert_eq!((range.status, range.text()), (206, ",two,t"));
    append(&client, "/box/none", "x", &[]).is_error(404, "BlobNotFound");
    append(&client, "/box/log", "", &[]).is_error(400, "InvalidHeaderValue");
    let full = client.request("PUT", "/box/full").header("x-ms-blob-type", "AppendBlob").body("content").send();
    full.is_error(400, "InvalidHeaderValue");
}

#[test]
fn x2_an_append_goes_by_its_conditions() {
    let server = serve_container();
    let client = server.blobs();
    let made = make(&client, "/box/log");
    let position = "x-ms-blob-condition-appendpos";
    let size = "x-ms-blob-condition-maxsize";
    append(&client, "/box/log", "abc", &[(position, "1")]).is_error(412, "AppendPositionConditionNotMet");
    append(&client, "/box/log", "abc", &[(position, "0")]).is_status(201);
    append(&client, "/box/log", "abc", &[(position, "0")]).is_error(412, "AppendPositionConditionNotMet");
    append(&client, "/box/log", "def", &[(size, "5")]).is_error(412, "MaxBlobSizeConditionNotMet");
    append(&client, "/box/log", "def", &[(size, "6"), (position, "3")]).is_status(201);
    append(&client, "/box/log", "x", &[(position, "end")]).is_error(400, "InvalidHeaderValue");
    append(&client, "/box/log", "x", &[("If-Match", header(&made, "ETag"))]).is_error(412, "ConditionNotMet");
    let now = header(&properties(&client, "/box/log"), "ETag").to_owned();
    append(&client, "/box/log", "g", &[("If-Match", &now)]).is_status(201);
    assert_eq!(content(&client, "/box/log"), b"abcdefg");
}

#[test]
fn x2_appended_bytes_are_checked() {
    let server = serve_container();
    let client = server.blobs();
    make(&client, "/box/log");
    let wrong = append(&client, "/box/log", "Hello World", &[("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")]);
    wrong.is_error(400, "Md5Mismatch");
    append(&client, "/box/log", "Hello World", &[("x-ms-content-crc64", "AAAAAAAAAAA=")])
        .is_error(400, "Crc64Mismatch");
    assert_eq!(content(&client, "/box/log"), b"");
    let good = append(&client, "/box/log", "Hello World", &[("Content-MD5", HELLO_MD5)]);
    assert_eq!((good.status, good.header("Content-MD5")), (201, Some(HELLO_MD5)));
    let good = append(&client, "/box/log", "Hello World", &[("x-ms-content-crc64", HELLO_CRC64)]);
    assert_eq!((good.status, good.header("x-ms-content-crc64")), (201, Some(HELLO_CRC64)));
}

#[test]
fn x2_an_append_is_as_long_as_its_version_allows() {
    let server = serve_container();
    let client = server.blobs();
    make(&client, "/box/log");
    let long = vec![b'x'; 4 * 1024 * 1024 + 1];
    let append = |version: &str| {
        let request = client.request("PUT", "/box/log?comp=appendblock").header("x-ms-version", version);
        request.body(long.clone()).send()
    };
    append("2021-12-02").is_error(413, "RequestBodyTooLarge");
    append("2022-11-02").is_status(201);
}

#[test]
fn x2_a_sealed_blob_takes_no_more_blocks() {
    let server = serve_container();
    let client = server.blobs();
    let made = |path: &str| client.request("PUT", path).header("x-ms-blob-type", "AppendBlob").body("").send();
    let append = |path: &str| client.request("PUT", &format!("{path}?comp=appendblock")).body("more").send();
    let seal = |path: &str| client.request("PUT", &format!("{path}?comp=seal")).body("");
    made("/box/a").is_status(201);
    append("/box/a").is_status(201);
    let early = seal("/box/a").header("x-ms-blob-condition-appendpos", "3").send();
    early.is_error(412, "AppendPositionConditionNotMet");
    seal("/box/a").header("If-Match", "\"0x1\"").send().is_error(412, "ConditionNotMet");
    assert_eq!(properties(&client, "/box/a").header("x-ms-blob-sealed"), None);
    let sealed = seal("/box/a").header("x-ms-blob-condition-appendpos", "4").send();
    sealed.is_status(200);
    assert_eq!(sealed.header("x-ms-blob-sealed"), Some("true"));
    append("/box/a").is_error(409, "BlobIsSealed");
    assert_eq!(client.get("/box/a").send().header("x-ms-blob-sealed"), Some("true"));
    let head = properties(&client, "/box/a");
    assert_eq!((head.header("x-ms-blob-sealed"), head.header("etag")), (Some("true"), sealed.header("etag")));
    let listed = client.get("/box?restype=container&comp=list").send();
    assert_eq!(listed.element("Sealed"), Some("true"), "{listed}");
    // A copy is as its source, or as it is asked for.
    let source = format!("{}/box/a", client.base());
    let copy = |path: &str| client.request("PUT", path).header("x-ms-copy-source", &source).body("");
    for (wanted, expected) in [(None, Some("true")), (Some("true"), Some("true")), (Some("false"), None)] {
        let request = copy("/box/copy");
        let request = match wanted {
            Some(word) => request.header("x-ms-seal-blob", word),
            None => request,
        };
        request.send().is_status(202);
        assert_eq!(properties(&client, "/box/copy").header("x-ms-blob-sealed"), expected);
    }
    append("/box/copy").is_status(201);
    copy("/box/copy").header("x-ms-seal-blob", "perhaps").send().is_error(400, "InvalidHeaderValue");
    put(&client, "/box/blocks", "x");
    seal("/box/blocks").send().is_error(409, "InvalidBlobType");
    seal("/box/none").send().is_error(404, "BlobNotFound");
    made("/box/a").is_status(201);
    append("/box/a").is_status(201);
}
