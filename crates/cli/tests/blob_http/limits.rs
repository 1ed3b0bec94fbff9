//! Names, sizes and bodies at their limits and past them.

use super::{block_blob, content, put, serve_container};
use larimar_testkit::http::{Sas, exchange, read_response};
use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn x2_names_of_containers() {
    let server = serve_container();
    let client = server.blobs();
    let long = "c".repeat(63);
    for name in ["abc", "a-b", "0a1", "1-2-3", &long, "$web"] {
        client.request("PUT", &format!("/{name}?restype=container")).send().is_status(201);
        client.get(&format!("/{name}?restype=container")).send().is_status(200);
    }
    let longer = "c".repeat(64);
    for (name, code) in [
        ("ab", "OutOfRangeInput"),
        (longer.as_str(), "OutOfRangeInput"),
        ("Abc", "InvalidResourceName"),
        ("-abc", "InvalidResourceName"),
        ("abc-", "InvalidResourceName"),
        ("a--b", "InvalidResourceName"),
        ("a_b", "InvalidResourceName"),
        ("a.b", "InvalidResourceName"),
        ("%C3%BCber", "InvalidResourceName"),
        ("$other", "InvalidResourceName"),
        ("a%20b", "InvalidResourceName"),
    ] {
        client.request("PUT", &format!("/{name}?restype=container")).send().is_error(400, code);
        client.get(&format!("/{name}/blob")).send().is_error(400, code);
    }
}

#[test]
fn x2_names_of_blobs() {
    let server = serve_container();
    let client = server.blobs();
    let (long, wide) = ("b".repeat(1024), "%C3%BC".repeat(1024));
    let deep = vec!["d"; 254].join("/");
    for name in [&long, &wide, &deep] {
        put(&client, &format!("/box/{name}"), "x");
        assert_eq!(content(&client, &format!("/box/{name}")), b"x");
    }
    block_blob(&client, &format!("/box/{long}b"), "x").send().is_error(400, "OutOfRangeInput");
    block_blob(&client, &format!("/box/{wide}b"), "x").send().is_error(400, "OutOfRangeInput");
    block_blob(&client, &format!("/box/{deep}/d"), "x").send().is_error(400, "InvalidResourceName");
    for path in ["/box/%", "/box/%zz", "/box/%ff", "/box/%C3", "/box/a%2"] {
        let refused = client.request("GET", path).send();
        assert!((400..=403).contains(&refused.status), "{path}: {refused}");
    }
    // However a name is escaped, it is the same name; names differ in case.
    put(&client, "/box/Name%2dA", "upper");
    put(&client, "/box/name-a", "lower");
    assert_eq!(content(&client, "/box/%4eame-A"), b"upper");
    assert_eq!(content(&client, "//box/name-a"), b"lower");
    put(&client, "/box/dir/x", "slash");
    assert_eq!(content(&client, "/box/dir%2Fx"), b"slash");
    assert_eq!(content(&client, "/box/dir%2fx"), b"slash");
    client.get("/box/dir//x").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_metadata_has_names_and_a_size() {
    let server = serve_container();
    let client = server.blobs();
    let put = |name: &str, value: String| block_blob(&client, "/box/a", "x").header(name, value).send();
    put("x-ms-meta-a", "v".repeat(8191)).is_status(201);
    assert_eq!(client.request("HEAD", "/box/a").send().header("x-ms-meta-a").map(str::len), Some(8191));
    put("x-ms-meta-a", "v".repeat(8192)).is_error(400, "MetadataTooLarge");
    put("x-ms-meta-", "v".to_owned()).is_error(400, "EmptyMetadataKey");
    for name in ["x-ms-meta-1a", "x-ms-meta-a-b", "x-ms-meta-a.b"] {
        put(name, "v".to_owned()).is_error(400, "InvalidMetadata");
    }
    let bytes = block_blob(&client, "/box/b", "x").header("x-ms-meta-a", "ü").to_bytes();
    let reply = exchange(client.address(), &bytes).expect("an answer");
    assert!((400..=403).contains(&reply.status), "{reply}");
    let many =
        (0..60).fold(block_blob(&client, "/box/c", "x"), |request, n| request.header(&format!("x-ms-meta-m{n}"), "v"));
    many.send().is_status(201);
    let container =
        client.request("PUT", "/box?restype=container&comp=metadata").header("x-ms-meta-a", "v".repeat(8192));
    container.send().is_error(400, "MetadataTooLarge");
    client.get("/box/b").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_a_body_has_a_length_and_is_as_long() {
    let server = serve_container();
    let client = server.blobs();
    for path in ["/box/a", "/box/a?comp=block&blockid=AAAA", "/box/a?comp=blocklist"] {
        let request = client.request("PUT", path).header("x-ms-blob-type", "BlockBlob");
        request.send().is_error(411, "MissingContentLengthHeader");
    }
    for kind in ["AppendBlob", "PageBlob"] {
        let request = client.request("PUT", "/box/a").header("x-ms-blob-type", kind);
        request.header("x-ms-blob-content-length", "512").send().is_error(411, "MissingContentLengthHeader");
    }
    let chunked =
        client.request("PUT", "/box/a").header("x-ms-blob-type", "BlockBlob").header("Transfer-Encoding", "chunked");
    let mut bytes = chunked.to_bytes();
    bytes.extend_from_slice(b"5\r\nhello\r\n0\r\n\r\n");
    exchange(client.address(), &bytes).expect("an answer").is_error(411, "MissingContentLengthHeader");
    // Less than was announced: nothing of it becomes visible.
    let mut short = block_blob(&client, "/box/short", "x".repeat(100_000)).to_bytes();
    short.truncate(short.len() - 1);
    if let Ok(reply) = exchange(client.address(), &short) {
        assert!((400..500).contains(&reply.status), "{reply}");
    }
    client.get("/box/short").send().is_error(404, "BlobNotFound");
    // Bytes beyond Content-Length do not belong to this request.
    let mut long = block_blob(&client, "/box/long", "12345").to_bytes();
    long.extend_from_slice(b"67890\r\n\r\n");
    let _ = exchange(client.address(), &long);
    assert_eq!(content(&client, "/box/long"), b"12345");
    let huge = block_blob(&client, "/box/huge", "").header("Content-Length", "5242880001").to_bytes();
    let refused = exchange(client.address(), &huge).expect("an answer");
    refused.is_error(413, "RequestBodyTooLarge");
    assert_eq!(refused.element("MaxLimit"), Some("5242880000"), "{refused}");
    let block =
        client.request("PUT", "/box/huge?comp=block&blockid=AAAA").header("Content-Length", "4194304001").to_bytes();
    exchange(client.address(), &block).expect("an answer").is_error(413, "RequestBodyTooLarge");
    for (version, length) in [("2019-07-07", "268435457"), ("2015-12-11", "67108865")] {
        let old = block_blob(&client, "/box/huge", "").header("Content-Length", length).header("x-ms-version", version);
        exchange(client.address(), &old.to_bytes()).expect("an answer").is_error(413, "RequestBodyTooLarge");
    }
}

#[test]
fn x2_a_client_may_ask_before_it_sends_the_body() {
    let server = serve_container();
    let client = server.blobs();
    let body = "x".repeat(200_000);
    let start = |request: &[u8]| {
        let mut stream = TcpStream::connect(client.address()).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
        stream.write_all(&request[..request.len() - body.len()]).expect("the head is sent");
        stream
    };
    let good = block_blob(&client, "/box/a", body.clone()).header("Expect", "100-continue").to_bytes();
    let mut stream = start(&good);
    read_response(&stream, true).expect("an interim answer").is_status(100);
    stream.write_all(body.as_bytes()).expect("the body is sent");
    read_response(&stream, true).expect("an answer").is_status(201);
    assert_eq!(content(&client, "/box/a").len(), 200_000);
    // What is refused by its head is refused without waiting for ever.
    let bad = block_blob(&client, "/nowhere/a", body.clone()).header("Expect", "100-continue").to_bytes();
    let mut stream = start(&bad);
    let mut reply = read_response(&stream, true).expect("an answer");
    if reply.status == 100 {
        stream.write_all(body.as_bytes()).expect("the body is sent");
        reply = read_response(&stream, true).expect("an answer");
    }
    reply.is_error(404, "ContainerNotFound");
}

#[test]
fn x2_errors_have_the_shape_that_clients_read() {
    let server = serve_container();
    let client = server.blobs();
    let reply = client.get("/box/none").header("x-ms-client-request-id", "mine").send();
    reply.is_error(404, "BlobNotFound");
    assert_eq!(reply.header("x-ms-error-code"), Some("BlobNotFound"));
    assert_eq!(reply.header("Content-Type"), Some("application/xml"));
    assert_eq!(reply.header("x-ms-client-request-id"), Some("mine"));
    let id = reply.header("x-ms-request-id").expect("an id");
    let text = reply.text();
    assert!(
        text.starts_with("\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>BlobNotFound</Code><Message>")
    );
    assert!(text.contains(&format!("The specified blob does not exist.\nRequestId:{id}\nTime:20")), "{text}");
    let header = block_blob(&client, "/box/a", "x").header("x-ms-access-tier", "Warm").send();
    assert_eq!((header.element("HeaderName"), header.element("HeaderValue")), (Some("x-ms-access-tier"), Some("Warm")));
    let parameter = client.get("/box?restype=container&comp=list&maxresults=x").send();
    assert_eq!(parameter.element("QueryParameterName"), Some("maxresults"));
    assert_eq!(parameter.element("QueryParameterValue"), Some("x"));
    let version = client.get("/box/none").header("x-ms-version", "yesterday").send();
    version.is_error(400, "InvalidHeaderValue");
}

#[test]
fn x2_a_long_body_that_is_refused_does_not_hide_the_answer() {
    let server = serve_container();
    let client = server.blobs();
    for length in [1_000_000, 6_000_000, 30_000_000] {
        let refused = block_blob(&client, "/nowhere/a", vec![b'x'; length]).send();
        refused.is_error(404, "ContainerNotFound");
        let refused = block_blob(&client.anonymous(), "/box/a", vec![b'x'; length]).send();
        refused.is_error(401, "NoAuthenticationInformation");
    }
    client.get("/box/a").send().is_error(404, "BlobNotFound");
}

#[test]
fn x2_headers_that_cannot_be_read_are_refused_and_not_left_out() {
    let server = serve_container();
    let owner = server.blobs();
    // A token signs no headers, so that nothing else finds out.
    let guest = owner.with_sas(&Sas::container("box", "rcw").token());
    let put = |name: &str, value: &str| block_blob(&guest, "/box/a", "x").header(name, value).send();
    put("x-ms-meta-a", "ü").is_error(400, "InvalidMetadata");
    put("x-ms-blob-content-disposition", "attachment; filename=\"ü\"").is_error(400, "InvalidHeaderValue");
    put("x-ms-lease-id", "ü").is_error(400, "InvalidHeaderValue");
    let twice =
        |name: &str, values: [&str; 2]| block_blob(&guest, "/box/a", "x").also(name, values[0]).also(name, values[1]);
    twice("x-ms-meta-a", ["1", "2"]).send().is_error(400, "InvalidMetadata");
    owner.get("/box/a").send().is_error(404, "BlobNotFound");
    let message = server.queues().with_sas(&Sas::account("co", "rwc").with("ss", "q").token());
    message.request("PUT", "/jobs").header("x-ms-meta-a", "ü").send().is_error(400, "InvalidMetadata");
    message.request("PUT", "/jobs").send().is_status(201);
}
