//! `larimar serve --archive`: lines over restarts, gaps, and a place that does not take commits.

use larimar_engine::{Clock as _, SystemClock};
use larimar_testkit::http::Client;
use larimar_testkit::{Launch, Server};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

fn launch(folder: &Path) -> Launch {
    Launch::new(EXE, folder.join("data")).engine("local").argument("--analytics-flush").argument("1h")
}

fn archived(folder: &Path) -> Launch {
    launch(folder).argument("--archive").argument(folder.join("place").display().to_string())
}

fn page(server: &Server, target: &str) -> String {
    let admin = Client::new(server.admin_address()).anonymous();
    admin.request("GET", "").target(target).send().text().to_owned()
}

#[track_caller]
fn wait_ready(server: &Server, part: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !page(server, "/ready").contains(part) {
        assert!(Instant::now() < deadline, "not {part}: {}", page(server, "/ready"));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the open line can be restored and has everything.
fn wait_archived(server: &Server) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let metrics = page(server, "/metrics");
        if ["restorable 1", "spool_bytes 0", "failing 0"]
            .iter()
            .all(|part| metrics.contains(&format!("larimar_archive_{part}\n")))
        {
            return;
        }
        assert!(Instant::now() < deadline, "{metrics}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn lines(folder: &Path) -> usize {
    let entries = folder
        .join("place/archive")
        .read_dir()
        .map_or(0, |entries| entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count());
    entries
}

/// What the command prints, and whether it succeeded.
fn restore(folder: &Path, to: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(EXE);
    let output = command.args(["restore", "place", "--data", to]).args(arguments).current_dir(folder).output();
    let output = output.expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).expect("text"))
}

fn has_row(server: &Server, row: &str) -> bool {
    server.client().request("GET", &format!("/orders(PartitionKey='p',RowKey='{row}')")).send().status == 200
}

#[test]
fn a_stopped_server_continues_its_line_and_one_that_ran_without_leaves_a_gap() {
    let folder = tempfile::tempdir().expect("a directory");
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

    let (is_restored, text) = restore(folder.path(), "gap", &["--to-time", &within]);
    assert!(!is_restored && !folder.path().join("gap/inventory").exists(), "{text}");
    for (data, arguments, rows) in [("then", vec!["--to-time", &before], 2), ("now", vec![], 4)] {
        let (is_restored, text) = restore(folder.path(), data, &arguments);
        assert!(is_restored, "{text}");
        let server = Launch::new(EXE, folder.path().join(data)).engine("local").start();
        let found: Vec<_> = ["1", "2", "3", "4"].into_iter().filter(|row| has_row(&server, row)).collect();
        assert_eq!(found.len(), rows, "{data}: {found:?}");
    }
}

#[test]
fn writes_go_on_while_the_place_does_not_take_commits() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("place"), "a file").expect("a file");
    let server = archived(folder.path()).start();
    server.client().create_table("orders");
    server.client().insert("orders", "p", "1", r#""A":1"#);
    wait_ready(&server, "archive: not archiving; ");
    assert!(page(&server, "/metrics").contains("larimar_archive_failing 1\n"));
    std::fs::remove_file(folder.path().join("place")).expect("removed");
    wait_archived(&server);
    assert!(page(&server, "/metrics").contains("larimar_archive_gaps_total 0\n"));
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}
