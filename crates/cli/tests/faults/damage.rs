//! Damaged journals and the process: a torn end starts without a word, anything else refuses to start and names
//! `larimar repair`, which mends what it can and says what it would lose.

use super::EXE;
use larimar_testkit::Launch;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A server that was killed with these many rows written, one commit each.
fn killed(rows: usize) -> (TempDir, Launch) {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, folder.path().join("data")).start();
    let client = server.client();
    client.create_table("tab");
    for row in 0..rows {
        client.insert("tab", "p", &format!("r{row}"), &format!(r#""V":"{}""#, "x".repeat(500)));
    }
    drop(client);
    (folder, server.kill())
}

fn journal(launch: &Launch) -> PathBuf {
    let store = launch.data().join("store");
    let files = std::fs::read_dir(&store).expect("the store's folder").flatten().map(|entry| entry.path());
    let mut journals: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "jnl")).collect();
    journals.sort();
    journals.pop().expect("a journal")
}

/// Changes the journal and returns where its used part ended before.
fn change(launch: &Launch, change: impl FnOnce(&mut Vec<u8>, usize)) {
    let path = journal(launch);
    let mut bytes = std::fs::read(&path).expect("the journal can be read");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("the journal is used") + 1;
    change(&mut bytes, end);
    std::fs::write(&path, bytes).expect("the journal can be written");
}

fn repair(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(EXE);
    command.arg("repair").arg("--data-dir").arg(data).args(arguments);
    command.output().expect("the binary runs")
}

fn rows(launch: &Launch) -> Vec<String> {
    let server = launch.start();
    server.client().get("/tab()").send().column("RowKey")
}

fn refuses_and_names_repair(launch: &Launch) {
    let said = launch.try_start().expect_err("a damaged store does not open");
    assert!(said.contains("larimar repair"), "{said}");
    assert!(said.contains(&journal(launch).display().to_string()) || said.contains("jnl"), "names the file: {said}");
    assert!(!said.contains("panicked"), "{said}");
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_torn_end_needs_no_repair() {
    let (_folder, launch) = killed(5);
    change(&launch, |bytes, end| bytes.truncate(end - 40));
    assert_eq!(rows(&launch), ["r0", "r1", "r2", "r3"]);
    let (_folder, launch) = killed(5);
    change(&launch, |bytes, end| bytes[end - 40..].fill(0));
    assert_eq!(rows(&launch), ["r0", "r1", "r2", "r3"]);
}

#[test]
fn a_hole_in_the_last_commit_refuses_to_start_until_repaired() {
    let (_folder, launch) = killed(5);
    change(&launch, |bytes, end| bytes[end - 300..end - 100].fill(0));
    refuses_and_names_repair(&launch);
    let output = repair(launch.data(), &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(rows(&launch), ["r0", "r1", "r2", "r3"]);
}

#[test]
fn a_bit_flipped_mid_journal_is_never_cut_silently() {
    let (_folder, launch) = killed(5);
    change(&launch, |bytes, end| bytes[end / 2] ^= 0x10);
    let before = std::fs::read(journal(&launch)).expect("the journal can be read");
    refuses_and_names_repair(&launch);
    let output = repair(launch.data(), &[]);
    assert!(!output.status.success(), "intact commits come after the damage: {}", text(&output));
    assert_eq!(std::fs::read(journal(&launch)).expect("the journal can be read"), before, "nothing was changed");
    refuses_and_names_repair(&launch);
    let forced = repair(launch.data(), &["--force"]);
    assert!(forced.status.success(), "{}", text(&forced));
    let kept = rows(&launch);
    assert!(kept.len() < 5 && kept.iter().enumerate().all(|(i, row)| *row == format!("r{i}")), "{kept:?}");
}

#[test]
fn an_intact_store_is_left_alone() {
    let (_folder, launch) = killed(3);
    let before = std::fs::read(journal(&launch)).expect("the journal can be read");
    let output = repair(launch.data(), &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(std::fs::read(journal(&launch)).expect("the journal can be read"), before);
    assert_eq!(rows(&launch), ["r0", "r1", "r2"]);
}

#[test]
fn a_store_in_use_is_not_repaired() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Launch::new(EXE, folder.path().join("data")).start();
    server.client().create_table("tab");
    let output = repair(&folder.path().join("data"), &[]);
    assert!(!output.status.success(), "{}", text(&output));
    server.client().insert("tab", "p", "r", "");
}
