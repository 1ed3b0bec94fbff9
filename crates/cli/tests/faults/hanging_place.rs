//! Backups and archives to a place that does not answer: a file system that hangs, and an object store that accepts
//! connections and says nothing. They end or wait, requests go on, and the server stops in time.

use super::EXE;
use super::disk_full::run;
use super::full_disk::disk;
use crate::archive::{page, wait_archived};
use larimar_testkit::{Launch, Server};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A file system over a directory that answers nothing, until the value is dropped: then everything fails.
struct HangingDisk {
    folder: std::path::PathBuf,
    device: Option<File>,
}

impl HangingDisk {
    /// `None` if this system has none.
    fn mount(folder: &Path) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        // Nothing reads the requests from the device.
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0";
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", "fuse", "-o", options, "none"]).arg(folder);
        let mounted = mount.stdin(device.try_clone().ok()?).stderr(Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then(|| Self { folder: folder.to_owned(), device: Some(device) })
    }
}

impl Drop for HangingDisk {
    fn drop(&mut self) {
        drop(self.device.take());
        let unmounted = Command::new("umount").arg("-l").arg(&self.folder).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "umount failed");
    }
}

fn larimar(server: &Server, arguments: &[&str]) -> Child {
    let mut command = Command::new(EXE);
    command.args(arguments).arg("--data-dir").arg(server.data());
    command.arg("--admin-port").arg(server.admin_address().port().to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
}

/// Sends the request of `larimar backup`, and does not wait.
fn ask_for_backup(server: &Server, to: &Path) -> TcpStream {
    let token = std::fs::read_to_string(server.data().join("admin-token")).expect("a token");
    let mut socket = TcpStream::connect(server.admin_address()).expect("a connection");
    let head = format!("POST /backup?to={} HTTP/1.1\r\nhost: {}", to.display(), server.admin_address());
    let rest = format!("authorization: Bearer {}\r\ncontent-length: 0\r\n\r\n", token.trim());
    socket.write_all(format!("{head}\r\n{rest}").as_bytes()).expect("sent");
    socket
}

fn said(child: Child) -> String {
    let Output { stdout, stderr, .. } = child.wait_with_output().expect("an end");
    String::from_utf8([stdout, stderr].concat()).expect("text")
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not {what} within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn insert(server: &Server, row: usize) {
    server.client().insert("orders", "p", &row.to_string(), "");
}

/// Stops a server whose place hangs.
fn stop_in_time(server: Server) -> Launch {
    let began = Instant::now();
    let (launch, status) = server.stop();
    assert_eq!(status.code(), Some(0));
    assert!(began.elapsed() < STOP_TIME_MAX, "the server stopped after {:?}", began.elapsed());
    launch
}

#[test]
fn a_file_system_that_hangs_stops_neither_requests_nor_the_end_of_the_server() {
    run("faults::hanging_place::on_a_file_system_that_hangs");
}

#[test]
#[ignore = "started by the test above, in a namespace where it may mount"]
fn on_a_file_system_that_hangs() {
    let (place, backups) = (disk().join("place"), disk().join("backups"));
    std::fs::create_dir(&backups).expect("a directory");
    let folder = tempfile::tempdir().expect("a directory");
    let launch = Launch::new(EXE, folder.path().join("data")).engine("local").argument("--archive");
    let server = launch.argument(place.display().to_string()).start();
    server.client().create_table("orders");
    insert(&server, 0);
    wait_archived(&server);
    let Some(hanging) = HangingDisk::mount(&place) else {
        println!("NOT RUN: this system mounts no file system that hangs");
        return;
    };
    let _other = HangingDisk::mount(&backups).expect("a file system");
    for row in 1..40 {
        insert(&server, row);
    }
    wait("behind", || !page(&server, "/metrics").contains("larimar_archive_spool_bytes 0\n"));
    // More requests than the server has threads for them.
    let sockets: Vec<_> = (0..8).map(|_| ask_for_backup(&server, &backups.join("more"))).collect();
    std::thread::sleep(Duration::from_millis(300));
    for row in 40..80 {
        insert(&server, row);
    }
    assert!(page(&server, "/ready").contains("archive: "));
    let launch = stop_in_time(server);
    for mut socket in sockets {
        let mut said = String::new();
        // Those that had no answer yet were closed.
        let _ = socket.read_to_string(&mut said);
        assert!(said.is_empty() || said.contains("its file system did not answer within 10s"), "{said}");
    }
    // A server starts all the same, and what waited is archived when the place is there again.
    let server = launch.start();
    insert(&server, 80);
    drop(hanging);
    wait_archived(&server);
    assert!(page(&server, "/metrics").contains("larimar_archive_gaps_total 0\n"));
    server.stop();
}

/// A server whose object store accepts connections and says nothing.
fn start_with_silence(folder: &Path, archive: Option<&str>) -> (Server, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let mut launch = Launch::new(EXE, folder.join("data")).engine("local");
    for (name, value) in [
        ("AWS_ENDPOINT", &*endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "here"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ] {
        launch = launch.environment(name, value);
    }
    if let Some(archive) = archive {
        launch = launch.argument("--archive").argument(archive);
    }
    let server = launch.start();
    server.client().create_table("orders");
    (server, listener)
}

const TO: &str = "s3://bucket/larimar";

#[test]
fn a_backup_to_a_store_that_says_nothing_is_cancelled_and_ends_with_the_server() {
    let folder = tempfile::tempdir().expect("a directory");
    let (server, _listener) = start_with_silence(folder.path(), Some(TO));
    let running = || page(&server, "/metrics").contains("larimar_backup_running 1\n");
    let command = larimar(&server, &["backup", TO]);
    wait("running", running);
    insert(&server, 1);
    let cancelled = said(larimar(&server, &["backup", "cancel"]));
    assert!(cancelled.starts_with("cancelled: "), "{cancelled}");
    let ended = said(command);
    assert!(ended.contains("cancelled"), "{ended}");
    // A single restore, too.
    let command = larimar(&server, &["restore", TO, "table:orders=copy", "--into-server"]);
    wait("running", || said(larimar(&server, &["restore", "status"])).starts_with("running"));
    let cancelled = said(larimar(&server, &["restore", "cancel"]));
    assert!(cancelled.starts_with("cancelled: "), "{cancelled}");
    said(command);
    let command = larimar(&server, &["backup", TO]);
    wait("running", running);
    insert(&server, 2);
    stop_in_time(server);
    assert!(said(command).contains("the backup was interrupted"));
}

#[test]
fn a_backup_to_a_store_that_says_nothing_ends_by_itself() {
    let folder = tempfile::tempdir().expect("a directory");
    let (server, _listener) = start_with_silence(folder.path(), None);
    let began = Instant::now();
    let said = said(larimar(&server, &["backup", TO]));
    println!("after {:?}: {said}", began.elapsed());
    assert!(said.contains(TO) && began.elapsed() < Duration::from_secs(330), "{:?}: {said}", began.elapsed());
    let status = self::said(larimar(&server, &["backup", "status"]));
    assert!(status.starts_with("failed: "), "{status}");
    stop_in_time(server);
}

/// The server waits up to two seconds for the archive, and the machine may be busy.
const STOP_TIME_MAX: Duration = Duration::from_secs(20);
