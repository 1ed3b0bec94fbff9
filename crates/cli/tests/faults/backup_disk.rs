//! A backup to a disk that becomes full, and a restore onto one without room: both end with the reason, and the server goes
//! on.

use super::EXE;
use super::disk_full::{FOLDER, run};
use larimar_testkit::{Dice, Launch};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[test]
fn a_full_disk_ends_a_backup_and_a_restore_with_the_reason() {
    run("faults::backup_disk::on_a_small_disk");
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
