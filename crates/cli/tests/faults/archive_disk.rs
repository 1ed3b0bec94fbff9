//! An archive while the disk of the data directory is full, and while the disk of its place is.

use super::EXE;
use super::disk_full::{is_refused, noise, run};
use super::full_disk::{disk, eventually, expect_full, expect_room, take_all_space};
use crate::archive::{page, wait, wait_archived};
use crate::output::{refused, succeeded};
use crate::single_restore::larimar;
use larimar_engine::{Clock as _, SystemClock};
use larimar_testkit::http::{entity, entity_path};
use larimar_testkit::{Dice, Launch, Server};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

#[test]
fn a_full_data_disk_makes_a_gap_and_moments_around_it_are_exact() {
    run("faults::archive_disk::on_a_full_data_disk");
}

#[test]
fn a_full_disk_of_the_place_makes_commits_wait_and_no_gap() {
    run("faults::archive_disk::to_a_full_place");
}

#[test]
fn the_full_backup_of_an_archive_does_not_begin_on_a_full_disk() {
    run("faults::archive_disk::without_a_full_backup");
}

/// A server that is archived, with a table of two rows.
fn start(data: &Path, place: &Path) -> Server {
    let launch = Launch::new(EXE, data).engine("local").argument("--analytics-flush").argument("1h");
    let server = launch.argument("--archive").argument(place.display().to_string()).start();
    let client = server.client();
    client.create_table("small");
    client.post("/small", entity("p", "kept", "")).send().is_status(201);
    client.post("/small", entity("p", "gone", "")).send().is_status(201);
    wait_archived(&server);
    server
}

/// The rows of the table, with their etags.
fn seen(server: &Server) -> String {
    let client = server.client();
    let reply = client.get("/small()").accept("application/json;odata=fullmetadata").query("$select", "RowKey").send();
    reply.is_status(200);
    assert!(reply.header("x-ms-continuation-NextPartitionKey").is_none());
    reply.text().replace(&client.base(), "")
}

/// A moment, and what the server showed then. What follows is later.
fn moment(server: &Server) -> (String, String) {
    let moment = (SystemClock.now().to_string(), seen(server));
    std::thread::sleep(Duration::from_millis(20));
    moment
}

fn restore(place: &Path, data: &Path, time: &str) -> Output {
    let mut command = Command::new(EXE);
    command.arg("restore").arg(place).arg("--data").arg(data).args(["--to-time", time]);
    command.output().expect("the binary runs")
}

/// What `larimar backup status` prints.
fn status(server: &Server) -> String {
    succeeded(larimar(server, &server.data(), &["backup", "status"]))
}

#[track_caller]
fn restored_alike(place: &Path, (time, expected): &(String, String)) {
    let folder = tempfile::tempdir().expect("a directory");
    succeeded(restore(place, &folder.path().join("new"), time));
    let server = Launch::new(EXE, folder.path().join("new")).engine("local").start();
    assert_eq!(seen(&server), *expected, "{time}");
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn on_a_full_data_disk() {
    let folder = tempfile::tempdir().expect("a directory");
    let (place, ballast) = (folder.path().join("place"), disk().join("ballast"));
    let server = start(&disk().join("data"), &place);
    let (client, mut dice) = (server.client(), Dice::new(1));
    for row in 0..50 {
        client.insert("small", "p", &row.to_string(), &format!(r#""V":"{}""#, noise(&mut dice)));
    }
    let before = moment(&server);
    client.insert("small", "p", "more", "");
    wait_archived(&server);
    take_all_space(&ballast);
    expect_full(&server);
    assert!(is_refused(&client.post("/small", entity("p", "refused", "")).send()));
    eventually("an entity is deleted", &server, || client.delete(&entity_path("small", "p", "gone")).send(), 204);
    let (within, _) = moment(&server);
    wait(|| page(&server, "/ready"), &["archive: not archiving"]);
    wait(|| status(&server), &["  last gap: the disk of the data directory is full"]);
    std::fs::remove_file(&ballast).expect("the ballast is there");
    expect_room(&server);
    wait_archived(&server);
    assert!(page(&server, "/metrics").contains("larimar_archive_gaps_total 1\n"));
    let after = moment(&server);
    client.insert("small", "p", "later", "");
    wait_archived(&server);
    server.stop();
    restored_alike(&place, &before);
    restored_alike(&place, &after);
    let said = refused(restore(&place, &folder.path().join("gap"), &within));
    assert!(said.contains("in a gap of the archive") && !folder.path().join("gap").exists(), "{said}");
    assert!(said.contains("the disk of the data directory is full"), "{said}");
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn to_a_full_place() {
    let folder = tempfile::tempdir().expect("a directory");
    let (place, ballast) = (disk().join("place"), disk().join("ballast"));
    let server = start(&folder.path().join("data"), &place);
    let client = server.client();
    take_all_space(&ballast);
    for row in 0..20 {
        client.insert("small", "p", &row.to_string(), "");
    }
    wait(|| status(&server), &["  fails: ", "No space left on device"]);
    wait(|| page(&server, "/ready"), &["archive: waiting for its place"]);
    assert!(page(&server, "/metrics").contains("larimar_archive_failing 1\n"));
    client.insert("small", "p", "waits", "");
    client.delete(&entity_path("small", "p", "gone")).if_match("*").send().is_status(204);
    let waiting = moment(&server);
    client.insert("small", "p", "later", "");
    let spooled = page(&server, "/metrics");
    assert!(!spooled.contains("larimar_archive_spool_bytes 0\n"), "{spooled}");
    std::fs::remove_file(&ballast).expect("the ballast is there");
    wait_archived(&server);
    let metrics = page(&server, "/metrics");
    assert!(metrics.contains("larimar_archive_gaps_total 0\n") && metrics.contains("larimar_archive_lag_seconds 0\n"));
    let last = moment(&server);
    client.insert("small", "p", "last", "");
    wait_archived(&server);
    server.stop();
    restored_alike(&place, &waiting);
    restored_alike(&place, &last);
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn without_a_full_backup() {
    let folder = tempfile::tempdir().expect("a directory");
    let launch = Launch::new(EXE, disk().join("data")).engine("local").argument("--analytics-flush").argument("1h");
    let server = launch.argument("--blob-grace").argument("1s").start();
    server.client().create_table("small");
    let blobs = server.blobs();
    blobs.request("PUT", "/photos?restype=container").send().is_status(201);
    let large = blobs.request("PUT", "/photos/large").header("x-ms-blob-type", "BlockBlob");
    large.body(vec![7; 60 << 20]).send().is_status(201);
    let (launch, _) = server.stop();
    let server = launch.argument("--archive").argument(folder.path().join("place").display().to_string()).start();
    let metric = |line: &str| page(&server, "/metrics").contains(&format!("larimar_backup_{line}\n"));
    let until = |line: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !metric(line) {
            assert!(Instant::now() < deadline, "not {line}: {}", server.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    // At the default rate the blob takes four seconds.
    until("running 1");
    take_all_space(&disk().join("ballast"));
    until("failed 1");
    expect_full(&server);
    // It would be tried again after two seconds.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        assert!(metric("running 0"), "{}", server.output());
        std::thread::sleep(Duration::from_millis(50));
    }
    let blobs = server.blobs();
    eventually("a blob is deleted", &server, || blobs.request("DELETE", "/photos/large").send(), 202);
    expect_room(&server);
    wait_archived(&server);
}
