//! Restores that are killed, or whose disk becomes full, while they copy the backup and while they apply the archive:
//! nothing opens what they leave, and the same command works afterwards.

use super::EXE;
use super::disk_full::{noise, run};
use super::full_disk::{disk, take_all_space};
use super::gate::Gate;
use crate::archive::wait_archived;
use larimar_engine::{Clock as _, SystemClock};
use larimar_testkit::http::Batch;
use larimar_testkit::{Dice, Launch, Server};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A backup and the archive of a server, and a moment to restore.
struct Archived {
    gate: Gate,
    /// Keeps the store.
    _folder: tempfile::TempDir,
    moment: String,
    /// What the server showed then.
    seen: String,
    /// One with many commits, and that of the last commits before the moment.
    segments: [String; 2],
}

impl Archived {
    fn make() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let gate = Gate::start(&folder.path().join("s3"));
        let launch = Launch::new(EXE, folder.path().join("data")).engine("local").argument("--analytics-flush");
        let launch = launch.argument("1h").argument("--archive").argument(gate.directory().display().to_string());
        let server = launch.start();
        let (tables, mut dice) = (server.client(), Dice::new(16));
        tables.create_table("orders");
        tables.insert("orders", "p", "first", "");
        server.blobs().request("PUT", "/photos?restype=container").send().is_status(201);
        put_blob(&server, "large", 5 << 20, &mut dice);
        wait_archived(&server);
        // More than a restore keeps in memory before it writes to the store.
        for batch in 0..6 {
            let rows = (0..90).fold(Batch::new(), |batch_of, row| {
                let members = format!(r#""V":"{}""#, noise(&mut dice));
                batch_of.insert(&tables, "orders", "p", &format!("{batch}-{row}"), &members)
            });
            assert_eq!(rows.send(&tables).statuses(), vec![204; 90]);
        }
        let bulk = wait_for_segments(&gate.directory(), 10_000_000);
        put_blob(&server, "large", 3 << 20, &mut dice);
        tables.insert("orders", "p", "last", "");
        let moment = SystemClock.now().to_string();
        let seen = seen(&server);
        std::thread::sleep(Duration::from_millis(20));
        tables.insert("orders", "p", "later", "");
        // Then everything is in the archive.
        let (_, status) = server.stop();
        assert_eq!(status.code(), Some(0));
        let last = segments(&gate.directory())[bulk.len()].clone();
        let segments = [bulk.last().expect("a segment").clone(), last];
        Self { gate, _folder: folder, moment, seen, segments }
    }

    fn restore(&self, data: &Path) -> Command {
        let mut command = Command::new(EXE);
        command.args(["restore", &Gate::address(), "--to-time", &self.moment, "--data"]).arg(data);
        command.envs(self.gate.variables()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A restore that is stopped while it copies the backup.
    fn copying(&self, data: &Path) -> Child {
        // The index, and the first chunk.
        self.gate.hold("/chunks/", 2);
        let child = self.restore(data).spawn().expect("the binary runs");
        self.gate.wait();
        child
    }

    /// A restore that is stopped when it reads a segment to apply it.
    fn applying(&self, data: &Path, segment: &str) -> Child {
        let child = self.copying(data);
        // It has read all segments once by now, to check them.
        self.gate.hold(segment, 0);
        self.gate.wait();
        child
    }

    /// Restores without a fault, and compares.
    fn restored_alike(&self, data: &Path) {
        self.gate.open();
        let output = self.restore(data).output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let server = Launch::new(EXE, data).engine("local").start();
        assert!(seen(&server) == self.seen, "{}", seen(&server));
        let (_, status) = server.stop();
        assert_eq!(status.code(), Some(0));
    }
}

/// Waits until the segments of a place have so many bytes; returns their names.
fn wait_for_segments(place: &Path, bytes: u64) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while disk_bytes(&place.join("archive")) < bytes {
        assert!(Instant::now() < deadline, "{} bytes in the archive", disk_bytes(&place.join("archive")));
        std::thread::sleep(Duration::from_millis(20));
    }
    segments(place)
}

/// The names of the segments in a place, in order.
fn segments(place: &Path) -> Vec<String> {
    let lines = place.join("archive").read_dir().expect("lines").flatten();
    let files = lines.filter_map(|line| line.path().read_dir().ok()).flatten().flatten();
    let names = files.map(|file| file.file_name().into_string().expect("text"));
    let mut names: Vec<_> = names.filter(|name| name.len() == 41).collect();
    names.sort();
    names
}

fn put_blob(server: &Server, name: &str, bytes: usize, dice: &mut Dice) {
    let body: Vec<u8> = std::iter::repeat_with(|| dice.next().to_be_bytes()).take(bytes / 8).flatten().collect();
    let blobs = server.blobs();
    blobs
        .request("PUT", &format!("/photos/{name}"))
        .header("x-ms-blob-type", "BlockBlob")
        .body(body)
        .send()
        .is_status(201);
}

/// The etags of all rows and blobs, and the bytes of the blobs by their checksum.
fn seen(server: &Server) -> String {
    let (mut text, mut next) = (String::new(), None::<(String, String)>);
    loop {
        let client = server.client();
        let mut request =
            client.get("/orders()").accept("application/json;odata=fullmetadata").query("$select", "RowKey");
        if let Some((partition, row)) = &next {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let reply = request.send();
        reply.is_status(200);
        text += &reply.text().replace(&client.base(), "");
        let part = |name: &str| reply.header(name).map(str::to_owned);
        next = part("x-ms-continuation-NextPartitionKey").zip(part("x-ms-continuation-NextRowKey"));
        if next.is_none() {
            break;
        }
    }
    let blob = server.blobs().get("/photos/large").send();
    blob.is_status(200);
    let sum = blob.body.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    text + &format!("\n{:?} {} bytes {sum:x}", blob.header("ETag"), blob.body.len())
}

/// Nothing opens a directory whose restore was not finished.
#[track_caller]
fn is_unfinished(data: &Path) {
    let said = Launch::new(EXE, data).engine("local").try_start().expect_err("a refusal");
    assert!(said.contains("a restore into this directory was not finished; run `larimar restore` again"), "{said}");
}

/// Bytes of a directory on its disk.
fn disk_bytes(folder: &Path) -> u64 {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let bytes = |path: PathBuf| match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&path),
        Ok(metadata) => std::os::unix::fs::MetadataExt::blocks(&metadata) * 512,
        Err(_) => 0,
    };
    entries.map(|entry| bytes(entry.path())).sum()
}

fn kill(mut child: Child) {
    child.kill().expect("a process");
    child.wait().expect("an end");
}

#[test]
fn a_restore_that_is_killed_while_it_copies_or_applies_commits_is_run_again() {
    let archived = Archived::make();
    let folder = tempfile::tempdir().expect("a directory");
    let new = folder.path().join("new");
    kill(archived.copying(&new));
    is_unfinished(&new);
    // The next one begins again, and is killed when a part of the commits is in the store.
    let child = archived.applying(&new, &archived.segments[1]);
    let deadline = Instant::now() + Duration::from_secs(60);
    while disk_bytes(&new.join("store")) < 6 << 20 {
        assert!(Instant::now() < deadline, "{} bytes in the store", disk_bytes(&new.join("store")));
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(child);
    is_unfinished(&new);
    archived.restored_alike(&new);
}

#[test]
fn a_disk_that_becomes_full_ends_a_restore_that_is_run_again() {
    run("faults::restores::on_a_small_disk");
}

#[test]
#[ignore = "started by the test above, on a small file system"]
fn on_a_small_disk() {
    let archived = Archived::make();
    let (new, ballast) = (disk().join("new"), disk().join("ballast"));
    let fails = |child: Child| {
        // The check before it has found enough room.
        take_all_space(&ballast);
        archived.gate.open();
        let Output { status, stderr, .. } = child.wait_with_output().expect("an end");
        let said = String::from_utf8(stderr).expect("text");
        assert_eq!(status.code(), Some(1), "{said}");
        println!("{said}");
        assert!(said.contains("No space left on device") && said.contains("is not a data directory"), "{said}");
        is_unfinished(&new);
        std::fs::remove_file(&ballast).expect("the ballast is there");
    };
    fails(archived.copying(&new));
    fails(archived.applying(&new, &archived.segments[0]));
    archived.restored_alike(&new);
}
