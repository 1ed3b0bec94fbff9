//! `larimar compact`: on a data directory that no server uses, through a server that does, and over PostgreSQL.

use larimar_testkit::http::Client;
use larimar_testkit::{Launch, Server};
use std::path::Path;
use std::process::{Command, Output};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

fn compact(data: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(EXE);
    command.arg("compact").arg("--data-dir").arg(data).args(more);
    command.output().expect("the binary runs")
}

#[track_caller]
fn compacted(data: &Path, more: &[&str]) -> String {
    let output = compact(data, more);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn stop(server: Server) {
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}

/// A blob that stays, a container with four blobs of 1 MiB that is deleted, and a table that is dropped.
fn fill(server: &Server) {
    let blobs = server.blobs();
    let put = |name: &str, bytes: usize| {
        let request = blobs.request("PUT", name).header("x-ms-blob-type", "BlockBlob");
        request.body(vec![7; bytes]).send().is_status(201);
    };
    for container in ["/kept", "/gone"] {
        blobs.request("PUT", &format!("{container}?restype=container")).send().is_status(201);
    }
    put("/kept/blob", 1 << 20);
    for number in 0..4 {
        put(&format!("/gone/{number}"), 1 << 20);
    }
    blobs.request("DELETE", "/gone?restype=container").send().is_status(202);
    let tables: Client = server.client();
    tables.create_table("dropped");
    tables.insert("dropped", "p", "r", r#""Text":"some text""#);
    tables.delete("/Tables('dropped')").send().is_status(204);
}

/// The bytes of files below a directory.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| match entry.file_type().expect("a type").is_dir() {
            true => bytes_of(&entry.path()),
            false => entry.metadata().map_or(0, |found| found.len()),
        })
        .sum()
}

#[test]
fn a_data_directory_that_no_server_uses_is_compacted_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let launch = Launch::new(EXE, &data).engine("local");
    let server = launch.start();
    fill(&server);
    stop(server);
    assert!(bytes_of(&data.join("blobs")) > 5 << 20, "deleted blobs are kept for readers");
    let printed = compacted(&data, &[]);
    assert!(printed.contains("blobs: ") && printed.contains("rows: "), "{printed}");
    assert!(bytes_of(&data.join("blobs")) < 2 << 20, "{printed}");
    compacted(&data, &[]);
    let server = launch.start();
    assert_eq!(server.blobs().get("/kept/blob").send().body.len(), 1 << 20);
    stop(server);
}

#[test]
fn a_server_compacts_its_store_and_goes_on_serving() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Launch::new(EXE, &data).engine("local").start();
    fill(&server);
    let port = server.admin_address().port().to_string();
    let printed = compacted(&data, &["--admin-port", &port]);
    assert!(printed.contains("rows: ") && printed.contains("bytes are freed"), "{printed}");
    assert_eq!(server.blobs().get("/kept/blob").send().body.len(), 1 << 20);
    let metrics = Client::new(server.admin_address()).anonymous().request("GET", "").target("/metrics").send();
    assert!(metrics.text().contains("larimar_reclaimable_bytes{of=\"rows\"} 0\n"), "{}", metrics.text());
    assert!(metrics.text().contains("larimar_reclaimable_bytes{of=\"payloads\"} "), "{}", metrics.text());
    // Without the token it is refused.
    let refused = Client::new(server.admin_address()).anonymous().request("POST", "").target("/compact").send();
    assert_eq!(refused.status, 401);
    let output = compact(&data, &["--admin-port", "1"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("did not answer"), "{said}");
    stop(server);
}

#[test]
fn what_is_not_a_store_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (data, reason) in
        [(folder.path().to_owned(), "there is no store"), (folder.path().join("none"), "no directory")]
    {
        let output = compact(&data, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is made there");
}

#[cfg(feature = "test-postgres")]
#[test]
fn over_postgresql_blobs_are_swept_and_the_rest_is_left_to_the_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let url = larimar_testkit::postgres::Cluster::shared().fresh_url();
    let server = Launch::new(EXE, &data).engine(&url).start();
    fill(&server);
    let store = format!("file://{}", data.with_extension("blobs").display());
    let printed = compacted(&data, &["--engine", &url, "--blob-store", &store, "--blob-grace", "1s"]);
    assert!(printed.contains("blobs: ") && printed.contains("VACUUM FULL"), "{printed}");
    assert_eq!(server.blobs().get("/kept/blob").send().body.len(), 1 << 20);
    stop(server);
}
