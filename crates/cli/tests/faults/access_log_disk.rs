//! An access log on a disk that becomes full: requests go on, lost lines are counted, and every line of the file is whole.

use super::EXE;
use super::disk_full::{FOLDER, admin, run};
use larimar_testkit::{Launch, Server};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[test]
fn a_full_disk_costs_lines_of_the_access_log_and_nothing_else() {
    run("faults::access_log_disk::on_a_small_disk");
}

fn lost(server: &Server) -> u64 {
    let (_, page) = admin(server, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix("larimar_access_log_lost_total "));
    line.and_then(|count| count.parse().ok()).expect("a count")
}

#[test]
#[ignore = "started by the test above, on a small file system"]
fn on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).expect("the folder's name"));
    let folder = tempfile::tempdir().expect("a folder");
    let log = disk.join("access");
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--access-log");
    let server = launch.argument(log.to_str().expect("text")).start();
    let client = server.client();
    // A page or two are left for the log.
    let ballast = disk.join("ballast");
    fs::write(&ballast, vec![1; 190 << 20]).expect("room for ballast");
    let mut rest = fs::OpenOptions::new().create(true).append(true).open(disk.join("rest")).expect("a file");
    while std::io::Write::write_all(&mut rest, &[1; 4096]).is_ok() {}
    rest.set_len(rest.metadata().expect("a file").len().saturating_sub(8192)).expect("two pages");
    let mut sent = 0;
    while lost(&server) == 0 {
        client.get("/Tables").send().is_status(200);
        sent += 1;
        assert!(sent < 1000, "the disk is full by now");
    }
    fs::remove_file(&ballast).expect("the ballast is there");
    // Lines are written again by themselves.
    let until = Instant::now() + Duration::from_secs(30);
    let before = fs::read_to_string(&log).expect("text").len();
    while fs::metadata(&log).expect("a file").len() <= before as u64 {
        client.get("/Tables").send().is_status(200);
        sent += 1;
        assert!(Instant::now() < until, "nothing is written");
    }
    let lost = lost(&server);
    assert_eq!(server.stop().1.code(), Some(0));
    let text = fs::read_to_string(&log).expect("text");
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).expect(line);
    }
    assert_eq!(text.lines().count() as u64 + lost, sent, "each request has a line or is counted");
}
