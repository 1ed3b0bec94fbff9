//! A backup to a disk that becomes full, and a restore onto one without room: both end with the reason, and the server goes
//! on. A backup of a server whose own disk becomes full is given up.

use super::EXE;
use super::disk_full::{FOLDER, run};
use super::full_disk::{disk, eventually, expect_full, expect_room, take_all_space};
use larimar_testkit::{Dice, Launch};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[test]
fn a_full_disk_ends_a_backup_and_a_restore_with_the_reason() {
    run("faults::backup_disk::on_a_small_disk");
}

#[test]
fn a_backup_is_given_up_when_the_disk_of_the_server_becomes_full() {
    run("faults::backup_disk::of_a_full_server");
}

#[test]
#[ignore = "started by the test above, on a small file system"]
fn of_a_full_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, disk().join("data")).engine("local").argument("--blob-grace").argument("1s").start();
    server.client().create_table("small");
    let blobs = server.blobs();
    blobs.request("PUT", "/photos?restype=container").send().is_status(201);
    let large = blobs.request("PUT", "/photos/large").header("x-ms-blob-type", "BlockBlob");
    large.body(vec![7; 60 << 20]).send().is_status(201);
    let (port, data) = (server.admin_address().port().to_string(), server.data());
    let backup = |arguments: &[&str], paths: &[&Path]| {
        let output = larimar(&[&["backup"], arguments, &["--admin-port", &port, "--data-dir"]].concat(), paths);
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text")).concat()
    };
    let place = folder.path().join("place");
    std::thread::scope(|scope| {
        // The blob alone would take a minute.
        let running = scope.spawn(|| backup(&["--rate", "1"], &[&data, &place]));
        let chunks = place.join("chunks");
        while !running.is_finished() && !chunks.read_dir().is_ok_and(|mut chunks| chunks.next().is_some()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        // The file keeps the room that it took: only what the client deletes is free again.
        take_all_space(&disk().join("ballast"));
        expect_full(&server);
        let began = std::time::Instant::now();
        eventually("a blob is deleted", &server, || blobs.request("DELETE", "/photos/large").send(), 202);
        expect_room(&server);
        assert!(began.elapsed() < std::time::Duration::from_secs(40), "the backup kept the disk full");
        let said = running.join().expect("an end");
        assert!(said.contains("the disk of the data directory is full") && said.contains("is given up"), "{said}");
    });
    let status = backup(&["status"], &[&data]);
    assert!(status.starts_with("failed: ") && status.contains("is given up"), "{status}");
}

fn larimar(arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(EXE).args(arguments).args(paths).output().expect("the binary runs")
}

#[test]
#[ignore = "started by the test above, on a small file system"]
fn on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(FOLDER).expect("the folder's name"));
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, folder.path().join("data")).engine("local").start();
    let blobs = server.blobs();
    blobs.request("PUT", "/photos?restype=container").send().is_status(201);
    let dice = std::cell::RefCell::new(Dice::new(44));
    let put = |name: &str| {
        let request = blobs.request("PUT", &format!("/photos/{name}")).header("x-ms-blob-type", "BlockBlob");
        let noise: Vec<u8> = (0..20 << 17).flat_map(|_| dice.borrow_mut().next().to_be_bytes()).collect();
        request.body(noise).send()
    };
    put("first").is_status(201);
    let ballast = disk.join("ballast");
    std::fs::write(&ballast, vec![1; 192 << 20]).expect("room for ballast");
    let (port, data) = (server.admin_address().port().to_string(), server.data());
    let backup =
        || larimar(&["backup", "--rate", "max", "--admin-port", &port, "--data-dir"], &[&data, &disk.join("place")]);
    let output = backup();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("No space left on device") && said.contains("chunks"), "{said}");
    put("second").is_status(201);
    // With room again the next one is whole.
    std::fs::write(&ballast, vec![1; 100 << 20]).expect("less ballast");
    let output = backup();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // About 55 MiB are free, and the restore needs 40 and 64 to work.
    let output = larimar(&["restore", "--data"], &[&disk.join("new"), &disk.join("place")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("are free; nothing was changed"), "{said}");
    assert!(!disk.join("new").exists());
    let output = larimar(&["restore", "--data"], &[&folder.path().join("new"), &disk.join("place")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
