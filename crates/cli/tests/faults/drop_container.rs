//! The space of a deleted container and of replaced blocks comes back soon after the time of grace, without a restart.

use super::EXE;
use larimar_testkit::Launch;
use larimar_testkit::http::Client;
use std::path::Path;
use std::time::{Duration, Instant};

const BYTES: usize = 1 << 20;

#[test]
fn the_space_of_a_deleted_container_and_of_replaced_blocks_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(EXE, folder.path()).argument("--blob-grace").argument("1s");
    let server = launch.start();
    let client = server.blobs();
    for container in ["gone", "kept"] {
        client.request("PUT", &format!("/{container}?restype=container")).send().is_status(201);
    }
    put_blob(&client, "/kept/blob");
    for number in 0..5 {
        put_blob(&client, &format!("/gone/{number}"));
    }
    expect_files(folder.path(), 6);
    for _ in 0..3 {
        client.request("PUT", "/kept/begun?comp=block&blockid=AAAA").body(vec![7; BYTES]).send().is_status(201);
    }
    expect_files(folder.path(), 7);
    client.request("DELETE", "/gone?restype=container").send().is_status(202);
    expect_files(folder.path(), 2);

    // What is to do is known after a crash too.
    put_blob(&client, "/kept/other");
    client.request("DELETE", "/kept?restype=container").send().is_status(202);
    let server = server.kill().start();
    expect_files(folder.path(), 0);
    drop(server);
}

fn put_blob(client: &Client, path: &str) {
    let request = client.request("PUT", path).header("x-ms-blob-type", "BlockBlob");
    request.body(vec![7; BYTES]).send().is_status(201);
}

/// Waits until so many payloads have a file of their own.
fn expect_files(data: &Path, count: usize) {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let folders = std::fs::read_dir(data.join("blobs/files")).expect("the folder of blobs");
        let found: usize =
            folders.map(|folder| std::fs::read_dir(folder.expect("a folder").path()).expect("a folder").count()).sum();
        if found == count {
            return;
        }
        assert!(Instant::now() < until, "{found} files instead of {count}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
