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
    // A loss of power takes this back as well.
    let _ = std::fs::remove_file(launch.data().join("watermark"));
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

/// Rows in a table file and, after it, in the journal, of a server that was killed.
fn killed_with_tables() -> (TempDir, Launch) {
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(EXE, folder.path().join("data")).argument("--reserve=0");
    let server = launch.start();
    server.client().create_table("tab");
    // The table's name and its rows are in two files, as each clean end makes one.
    let server = server.stop().0.start();
    let client = server.client();
    for row in 0..40 {
        client.insert("tab", "p", &format!("a{row:02}"), &format!(r#""V":"{}""#, "x".repeat(2000)));
    }
    drop(client);
    let (launch, _) = server.stop();
    let server = launch.start();
    for row in 0..3 {
        server.client().insert("tab", "p", &format!("b{row}"), "");
    }
    (folder, server.kill())
}

fn table_file(data: &Path) -> PathBuf {
    let files = std::fs::read_dir(data.join("store/keyspaces/1/tables")).expect("tables").flatten();
    let size = |path: &PathBuf| path.metadata().expect("a file").len();
    files.map(|entry| entry.path()).max_by_key(size).expect("a table file")
}

fn manifest(data: &Path) -> PathBuf {
    let files = std::fs::read_dir(data.join("store/keyspaces/1")).expect("a tree").flatten().map(|entry| entry.path());
    let is_manifest = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('v'));
    files.filter(is_manifest).max().expect("a manifest")
}

fn edit(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("the file can be read");
    edit(&mut bytes);
    std::fs::write(path, bytes).expect("the file can be written");
}

/// One kind of damage, and what is to come of it.
struct Case {
    name: &'static str,
    damage: fn(&Path),
    /// Words of the server's refusal; none if it starts, and reads then fail by the row.
    start: Option<&'static str>,
    /// Words of the report.
    report: &'static str,
    /// Rows that must be left after `--force`: how many of the 40 in the table file, and of the 3 in the journal.
    left: (std::ops::RangeInclusive<usize>, usize),
}

const CASES: &[Case] = &[
    Case {
        name: "a table file cut in half",
        damage: |data| edit(&table_file(data), |bytes| bytes.truncate(bytes.len() / 2)),
        start: Some("tables/"),
        report: "cut short, or its end is damaged (lost: the rows in it)",
        left: (0..=0, 3),
    },
    Case {
        name: "a table file gone",
        damage: |data| std::fs::remove_file(table_file(data)).expect("a file"),
        start: Some("it is missing"),
        report: "it is missing (lost: the rows in it)",
        left: (0..=0, 3),
    },
    Case {
        name: "a bit flipped in a table file",
        damage: |data| edit(&table_file(data), |bytes| bytes[40_000] ^= 4),
        start: None,
        report: "its checksum is not the one in the manifest (lost: the rows in its damaged blocks)",
        left: (30..=39, 3),
    },
    Case {
        name: "a bit flipped in the manifest",
        damage: |data| edit(&manifest(data), |bytes| bytes[20] ^= 4),
        start: Some("its checksum is not the one in `current`"),
        report: "its checksum is not the one in `current`",
        left: (40..=40, 3),
    },
    Case {
        name: "the manifest gone",
        damage: |data| std::fs::remove_file(manifest(data)).expect("a file"),
        start: Some("it is missing"),
        report: "it is missing (lost: which table files belong to the store)",
        left: (40..=40, 3),
    },
    Case {
        name: "`current` gone",
        damage: |data| std::fs::remove_file(data.join("store/keyspaces/1/current")).expect("a file"),
        start: Some("keyspaces/1/current: it is missing"),
        report: "keyspaces/1/current: it is missing",
        left: (40..=40, 3),
    },
    Case {
        name: "`version` gone",
        damage: |data| std::fs::remove_file(data.join("store/version")).expect("a file"),
        start: Some("store/version: it is missing"),
        report: "store/version: it is missing (lost: nothing but the store's mark)",
        left: (40..=40, 3),
    },
    Case {
        name: "the journal gone",
        damage: |data| std::fs::remove_file(data.join("store/0.jnl")).expect("a file"),
        start: Some("0.jnl: it is missing"),
        report: "0.jnl: it is missing (lost: the commits in it that were not flushed to tables)",
        left: (40..=40, 0),
    },
    Case {
        name: "the journal cut at its end",
        damage: |data| {
            edit(&data.join("store/0.jnl"), |bytes| {
                let end = bytes.iter().rposition(|byte| *byte != 0).expect("the journal is used") + 1;
                bytes.truncate(end - 5);
            });
        },
        start: Some("at least 1 are missing"),
        report: "lost: at least 1 acknowledged commits",
        left: (40..=40, 2),
    },
    Case {
        name: "the inventory flipped",
        damage: |data| edit(&data.join("inventory"), |bytes| bytes[30] ^= 4),
        start: Some("inventory: it cannot be read"),
        report: "inventory: it cannot be read",
        left: (40..=40, 3),
    },
];

#[test]
fn each_damage_is_named_and_what_is_left_is_saved_when_forced() {
    for Case { name, damage, start, report, left } in CASES {
        let (_folder, launch) = killed_with_tables();
        damage(launch.data());
        match (launch.try_start(), start) {
            (Err(said), Some(words)) => {
                assert!(said.contains(words) && said.contains("larimar repair"), "{name}: {said}");
                assert!(!said.contains("panicked"), "{name}: {said}");
            }
            (Ok(server), None) => drop(server.kill()),
            (Ok(_), Some(_)) => panic!("{name}: the server starts"),
            (Err(said), None) => panic!("{name}: {said}"),
        }
        let shown = repair(launch.data(), &[]);
        assert!(!shown.status.success(), "{name}: {}", text(&shown));
        assert!(text(&shown).contains(report) && text(&shown).contains("--force"), "{name}: {}", text(&shown));
        let forced = repair(launch.data(), &["--force"]);
        assert!(forced.status.success(), "{name}: {}", text(&forced));
        let (left, in_journal) = left;
        let rows = rows(&launch);
        let count = |letter: char| rows.iter().filter(|row| row.starts_with(letter)).count();
        assert!(left.contains(&count('a')) && count('b') == *in_journal, "{name}: {rows:?}\n{}", text(&forced));
        let intact = repair(launch.data(), &[]);
        assert!(intact.status.success() && text(&intact).contains("opens as it is"), "{name}: {}", text(&intact));
    }
}

#[test]
fn a_store_of_a_later_release_is_left_to_it_by_name() {
    let (_folder, launch) = killed_with_tables();
    let inventory = launch.data().join("inventory");
    let text_of = std::fs::read_to_string(&inventory).expect("an inventory");
    assert!(text_of.contains(concat!("release ", env!("CARGO_PKG_VERSION"))), "{text_of}");
    let (body, _) = text_of.trim_end().rsplit_once('\n').expect("a sum at the end");
    let body = format!("{body}\n").replace("format 1", "format 2").replace(env!("CARGO_PKG_VERSION"), "7.8.9");
    let sum = xxhash_rust::xxh3::xxh3_64(body.as_bytes());
    std::fs::write(&inventory, format!("{body}sum {sum:016x}\n")).expect("a file");
    let said = launch.try_start().expect_err("it is too new");
    assert!(said.contains("release 7.8.9") && said.contains("format 2"), "{said}");
    for arguments in [&[][..], &["--force"]] {
        let output = repair(launch.data(), arguments);
        assert!(!output.status.success() && text(&output).contains("release 7.8.9"), "{}", text(&output));
    }
    std::fs::write(&inventory, text_of).expect("a file");
    assert_eq!(rows(&launch).len(), 43, "nothing was changed");
}
