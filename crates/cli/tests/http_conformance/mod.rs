//! The Table service over HTTP, byte for byte as the protocol notes have it: every operation, header, level of
//! metadata and limit, against the built binary. Test names carry the numbers of the design guide.

mod access;
mod batches;
mod concurrency;
mod entities;
mod filters;
mod leniency;
mod limits;
mod metadata;
mod pages;
mod recorded;
mod service;
mod signatures;
mod tables;
mod values;

use larimar_testkit::TemporaryServer;

/// A server of one's own. What is tested here does not depend on how acknowledged writes reach the disk.
fn serve() -> TemporaryServer {
    TemporaryServer::start(env!("CARGO_BIN_EXE_larimar"), &["--durability", "async", "--log-level", "warn"])
}

/// A server with one table, `tab`.
fn serve_table() -> TemporaryServer {
    let server = serve();
    server.client().create_table("tab");
    server
}
