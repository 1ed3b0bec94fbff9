//! The Blob service over HTTP, as the protocol notes have it, against the built binary. Test names carry the numbers of
//! the design guide.

mod access;
mod appends;
mod archive;
mod batches;
mod blobs;
mod blocks;
mod checksums;
mod concurrency;
mod conditions;
mod containers;
mod copies;
mod finds;
mod incremental;
mod leases;
mod limits;
mod lists;
mod pages;
mod properties;
mod reads;
mod service;
mod snapshots;
mod tags;
mod tokens;

use larimar_testkit::TemporaryServer;
use larimar_testkit::http::{Client, Request, Response};

/// The MD5 of `Hello World`, as headers write it.
const HELLO_MD5: &str = "sQqNsWTgdUEFt6mb5y4/5Q==";
/// The CRC-64 of `Hello World`, as a recorded answer has it.
const HELLO_CRC64: &str = "YeJLfssylmU=";

/// A server of one's own. What is tested here does not depend on how acknowledged writes reach the disk.
fn serve() -> TemporaryServer {
    TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async", "--log-level", "warn"])
}

/// A server with one container, `box`.
fn serve_container() -> TemporaryServer {
    let server = serve();
    make_container(&server.blobs(), "box");
    server
}

#[track_caller]
fn make_container(client: &Client, name: &str) -> Response {
    let reply = client.request("PUT", &format!("/{name}?restype=container")).send();
    reply.is_status(201);
    reply
}

/// A Put Blob of a block blob.
fn block_blob<'c>(client: &'c Client, path: &str, content: impl Into<Vec<u8>>) -> Request<'c> {
    client.request("PUT", path).header("x-ms-blob-type", "BlockBlob").body(content)
}

/// Puts a block blob.
#[track_caller]
fn put(client: &Client, path: &str, content: impl Into<Vec<u8>>) -> Response {
    let reply = block_blob(client, path, content).send();
    reply.is_status(201);
    reply
}

/// The bytes of a blob, which must be there.
#[track_caller]
fn content(client: &Client, path: &str) -> Vec<u8> {
    let reply = client.get(path).send();
    reply.is_status(200);
    reply.body
}

/// A header that the answer must have.
#[track_caller]
fn header<'r>(reply: &'r Response, name: &str) -> &'r str {
    reply.header(name).unwrap_or_else(|| panic!("no {name}: {reply}"))
}

/// What the service says of a blob.
#[track_caller]
fn properties(client: &Client, path: &str) -> Response {
    let reply = client.request("HEAD", path).send();
    reply.is_status(200);
    reply
}
