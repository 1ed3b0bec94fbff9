//! `larimar serve --archive`: lines over restarts, gaps, and a place that does not take commits.

use crate::output::{refused, succeeded};
use crate::single_restore::larimar;
use larimar_engine::{Clock as _, SystemClock};
use larimar_testkit::http::Client;
use larimar_testkit::{Launch, Server};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

fn launch(folder: &Path) -> Launch {
    Launch::new(EXE, folder.join("data")).engine("local").argument("--analytics-flush").argument("1h")
}

fn archived(folder: &Path) -> Launch {
    launch(folder).argument("--archive").argument(folder.join("place").display().to_string())
}

pub(crate) fn page(server: &Server, target: &str) -> String {
    let admin = Client::new(server.admin_address()).anonymous();
    admin.request("GET", "").target(target).send().text().to_owned()
}

/// Waits until a text has all of these parts; returns it.
#[track_caller]
pub(crate) fn wait(text: impl Fn() -> String, parts: &[&str]) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = text();
        if parts.iter().all(|part| found.contains(part)) {
            return found;
        }
        assert!(Instant::now() < deadline, "not {parts:?}: {found}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the open line can be restored and has everything.
#[track_caller]
pub(crate) fn wait_archived(server: &Server) {
    let parts = ["restorable 1\n", "spool_bytes 0\n", "failing 0\n"].map(|part| format!("larimar_archive_{part}"));
    wait(|| page(server, "/metrics"), &parts.each_ref().map(String::as_str));
}

fn lines(folder: &Path) -> usize {
    let entries = folder.join("place/archive").read_dir();
    entries.map_or(0, |entries| entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count())
}

fn restore(folder: &Path, to: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(EXE);
    command.args(["restore", "place", "--data", to]).args(arguments).current_dir(folder);
    command.output().expect("the binary runs")
}

fn has_row(server: &Server, row: &str) -> bool {
    server.client().request("GET", &format!("/orders(PartitionKey='p',RowKey='{row}')")).send().status == 200
}

#[test]
fn a_stopped_server_continues_its_line_and_one_that_ran_without_leaves_a_gap() {
    let folder = larimar_testkit::memory_directory();
    let server = archived(folder.path()).start();
    server.client().create_table("orders");
    server.client().insert("orders", "p", "1", r#""A":1"#);
    // The last commits are spooled when the engine is closed.
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
    let server = archived(folder.path()).start();
    server.client().insert("orders", "p", "2", r#""A":1"#);
    wait_archived(&server);
    assert_eq!(lines(folder.path()), 1);
    let before = SystemClock.now().to_string();
    std::thread::sleep(Duration::from_millis(20));
    server.client().insert("orders", "p", "3", r#""A":1"#);
    server.stop();
    let server = launch(folder.path()).start();
    server.client().insert("orders", "p", "4", r#""A":1"#);
    let within = SystemClock.now().to_string();
    server.stop();
    let server = archived(folder.path()).start();
    wait_archived(&server);
    assert_eq!(lines(folder.path()), 2);
    server.stop();

    let said = refused(restore(folder.path(), "gap", &["--to-time", &within]));
    for part in [&*within, " is in a gap of the archive: ", "because the server stopped before commits "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!folder.path().join("gap").exists(), "nothing is written");
    for (data, arguments, rows) in [("then", vec!["--to-time", &before], 2), ("now", vec![], 4)] {
        succeeded(restore(folder.path(), data, &arguments));
        let server = Launch::new(EXE, folder.path().join(data)).engine("local").start();
        let found: Vec<_> = ["1", "2", "3", "4"].into_iter().filter(|row| has_row(&server, row)).collect();
        assert_eq!(found.len(), rows, "{data}: {found:?}");
    }
}

#[test]
fn writes_go_on_while_the_place_does_not_take_commits() {
    let folder = larimar_testkit::memory_directory();
    std::fs::write(folder.path().join("place"), "a file").expect("a file");
    let server = archived(folder.path()).start();
    server.client().create_table("orders");
    server.client().insert("orders", "p", "1", r#""A":1"#);
    wait(|| page(&server, "/ready"), &["ready\narchive: waiting for its place, lag "]);
    assert!(page(&server, "/metrics").contains("larimar_archive_failing 1\n"));
    std::fs::remove_file(folder.path().join("place")).expect("removed");
    wait_archived(&server);
    assert!(page(&server, "/metrics").contains("larimar_archive_gaps_total 0\n"));
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}

/// `/ready` and `/metrics` need no credentials.
#[test]
fn pages_without_credentials_have_nothing_of_the_place() {
    let folder = larimar_testkit::memory_directory();
    std::fs::write(folder.path().join("place"), "a file").expect("a file");
    let directory = archived(folder.path()).start();
    let bucket = Launch::new(EXE, folder.path().join("other")).engine("local").argument("--archive");
    let bucket = bucket.argument("s3://my-bucket/my-prefix").environment("AWS_ENDPOINT", "http://127.0.0.1:9/gate");
    let bucket = bucket.environment("AWS_ACCESS_KEY_ID", "my-id").environment("AWS_SECRET_ACCESS_KEY", "my-key");
    let bucket = bucket.environment("AWS_REGION", "us-east-1").environment("AWS_ALLOW_HTTP", "true").start();
    let path = folder.path().join("place").display().to_string();
    for (server, place) in [(directory, path), (bucket, "s3://my-bucket".to_owned())] {
        let status = || succeeded(larimar(&server, folder.path(), &["backup", "status"]));
        let status = wait(status, &[&format!("archive to {place}"), "\n  fails: "]);
        let error = status.lines().find_map(|line| line.strip_prefix("  fails: ")).expect("an error");
        let open = page(&server, "/ready") + &page(&server, "/metrics");
        assert!(open.contains("archive: waiting for its place, lag ") && open.contains("larimar_archive_failing 1\n"));
        for part in [error, &place, "://", "my-", "127.0.0.1", "os error", "rror sending"] {
            assert!(!open.contains(part), "{part}, of {error}: {open}");
        }
    }
}

#[test]
fn blobs_of_a_store_outside_of_the_data_directory_are_restored_into_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let bytes = folder.path().join("bytes");
    let server =
        archived(folder.path()).argument("--blob-store").argument(format!("file://{}", bytes.display())).start();
    let put = |path: &str, length: usize, seed: usize| {
        let body: Vec<u8> =
            (0..length).map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed as u8).collect();
        let blobs = server.blobs();
        blobs.request("PUT", path).header("x-ms-blob-type", "BlockBlob").body(body).send().is_status(201);
    };
    server.blobs().request("PUT", "/photos?restype=container").send().is_status(201);
    put("/photos/small", 1000, 1);
    put("/photos/large", 5 << 20, 2);
    wait_archived(&server);
    // These are in the archive, and not in its full backup.
    put("/photos/replaced-later", 300_000, 3);
    put("/photos/small", 2000, 4);
    wait_archived(&server);
    let seen = |server: &Server| {
        ["small", "large", "replaced-later"].map(|name| {
            let reply = server.blobs().get(&format!("/photos/{name}")).send();
            reply.is_status(200);
            (reply.header("ETag").map(str::to_owned), reply.body)
        })
    };
    let expected = seen(&server);
    server.stop();
    // The restored server needs nothing of the old one.
    std::fs::rename(&bytes, folder.path().join("away")).expect("renamed");
    succeeded(restore(folder.path(), "new", &[]));
    assert!(folder.path().join("new/blobs").is_dir() && !bytes.exists());
    let server = Launch::new(EXE, folder.path().join("new")).engine("local").start();
    assert!(seen(&server) == expected);
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}
