//! Restores into a running server whose disk becomes full: nothing of them is seen, and nothing of them stays.

use super::EXE;
use super::disk_full::run;
use super::full_disk::{disk, take_all_space};
use super::gate::Gate;
use crate::output::{refused, succeeded};
use crate::single_restore::larimar;
use larimar_testkit::{Dice, Launch, Server};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn a_full_disk_ends_a_restore_into_a_server_and_nothing_of_it_stays() {
    run("faults::single_restores::on_a_small_disk");
}

/// How many spaces a backup of the server has; one that is being filled counts.
fn spaces(server: &Server, folder: &Path, place: &Path) -> String {
    let printed = succeeded(larimar(server, folder, &["backup", "--rate", "max", &place.display().to_string()]));
    let line = printed.lines().find(|line| line.contains("tables, queues and containers")).expect("a line");
    let words: Vec<_> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "tables,").expect("the words");
    words[at - 1].to_owned()
}

fn blob_bytes(server: &Server) -> u64 {
    fn bytes(path: PathBuf) -> u64 {
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => {
                path.read_dir().into_iter().flatten().flatten().map(|entry| bytes(entry.path())).sum()
            }
            Ok(found) => std::os::unix::fs::MetadataExt::blocks(&found) * 512,
            Err(_) => 0,
        }
    }
    bytes(server.data().join("blobs"))
}

fn containers(server: &Server) -> usize {
    server.blobs().get("/?comp=list").send().text().matches("<Container>").count()
}

#[test]
#[ignore = "started by the test above, on a small file system"]
fn on_a_small_disk() {
    let folder = tempfile::tempdir().expect("a directory");
    let gate = Gate::start(&folder.path().join("s3"));
    let launch = Launch::new(EXE, disk().join("data")).engine("local").argument("--blob-grace").argument("1s");
    let launch = launch.argument("--analytics-flush").argument("1h");
    let launch = gate.variables().iter().fold(launch, |launch, (name, value)| launch.environment(name, value));
    let server = launch.start();
    let (blobs, mut dice) = (server.blobs(), Dice::new(7));
    blobs.request("PUT", "/photos?restype=container").send().is_status(201);
    for (name, bytes) in [("a", 100_000), ("b", 6 << 20), ("c", 200_000)] {
        let noise: Vec<u8> = std::iter::repeat_with(|| dice.next().to_be_bytes()).take(bytes / 8).flatten().collect();
        let put = blobs.request("PUT", &format!("/photos/{name}")).header("x-ms-blob-type", "BlockBlob");
        put.body(noise).send().is_status(201);
    }
    let place = gate.directory();
    assert_eq!(spaces(&server, folder.path(), &place), "1");
    let (before, ballast) = (blob_bytes(&server), disk().join("ballast"));
    let address = Gate::address();
    let line = ["restore", &address, "container:photos=copy", "--into-server", "--account", "devstoreaccount1"];
    let max = ["--rate", "max"];
    // There is not enough room from the beginning.
    std::fs::write(&ballast, vec![1; 110 << 20]).expect("room for ballast");
    let said = refused(larimar(&server, folder.path(), &[&line[..], &max].concat()));
    assert!(said.contains("can be used; nothing was changed"), "{said}");
    std::fs::remove_file(&ballast).expect("the ballast is there");
    // Another process takes the room while the restore runs: the index and a chunk are read.
    gate.hold("/chunks/", 2);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| larimar(&server, folder.path(), &[&line[..], &max].concat()));
        gate.wait();
        take_all_space(&ballast);
        gate.open();
        let said = refused(running.join().expect("an end"));
        assert!(said.contains("the disk is full"), "{said}");
    });
    assert_eq!(containers(&server), 1);
    blobs.get("/photos/b").send().is_status(200);
    std::fs::remove_file(&ballast).expect("the ballast is there");
    let deadline = Instant::now() + Duration::from_secs(60);
    while blob_bytes(&server) > before + (64 << 10) {
        assert!(Instant::now() < deadline, "{} bytes of blobs instead of {before}", blob_bytes(&server));
        std::thread::sleep(Duration::from_millis(50));
    }
    while blobs.request("PUT", "/photos?restype=container&comp=metadata").send().status != 200 {
        assert!(Instant::now() < deadline, "writes do not go on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(spaces(&server, folder.path(), &place), "1", "the hidden container is gone");
    succeeded(larimar(&server, folder.path(), &[&line[..], &max].concat()));
    for name in ["a", "b", "c"] {
        let get = |container: &str| blobs.get(&format!("/{container}/{name}")).send();
        assert!(get("copy").body == get("photos").body && get("copy").header("ETag") == get("photos").header("ETag"));
    }
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}
