//! An import that is killed goes on where it was: nothing is missing, nothing is there twice.

use larimar_testkit::{TemporaryServer, serde_json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const ROWS: usize = 10_000;
const LIMIT: Duration = Duration::from_secs(120);

fn command(server: &TemporaryServer, arguments: &[&str]) -> Command {
    let mut command = Command::new(EXE);
    command.args(arguments).args(["--connection-string", &connection_string(server)]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn connection_string(server: &TemporaryServer) -> String {
    let text = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    format!("{text};TableEndpoint=http://{}/devstoreaccount1;", server.table_address())
}

/// Rows in partitions of 100, with some that cannot be written.
fn input(path: &Path) {
    let mut csv = "PartitionKey,RowKey,Number,Text\r\n".to_owned();
    for row in 0..ROWS {
        let number = if row % 2000 == 1999 { "many".to_owned() } else { row.to_string() };
        write!(csv, "part{:05},{row:06},{number},\"text, of {row}\"\r\n", row / 100).expect("a text");
    }
    std::fs::write(path, csv).expect("a file");
}

/// How many rows are done, as the state says.
fn rows_done(state: &Path) -> u64 {
    let text = std::fs::read(state).unwrap_or_default();
    let state: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    state.and_then(|state| state["position"]["rows"].as_u64()).unwrap_or(0)
}

/// Waits until more rows are done than before; whether the process still runs then.
fn wait_for_progress(child: &mut Child, state: &Path, before: u64) -> bool {
    let started = Instant::now();
    while rows_done(state) <= before {
        if child.try_wait().expect("a process").is_some() {
            return false;
        }
        assert!(started.elapsed() < LIMIT, "no progress");
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Ends a process as Ctrl-C does; it says how to go on.
fn interrupt(child: Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a process");
    assert!(sent.success());
    let output = child.wait_with_output().expect("a process");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("the same command continues this import; remove "), "{text}");
}

fn resumed(mode: &str) {
    let server = TemporaryServer::start(EXE, &["--durability", "memory"]);
    let folder = tempfile::tempdir().expect("a directory");
    let (path, schema) = (folder.path().join("rows.csv"), folder.path().join("schema.json"));
    input(&path);
    std::fs::write(&schema, r#"{"Number": "Int32"}"#).expect("a file");
    let state = folder.path().join("rows.csv.import-state");
    let (file, schema) = (path.display().to_string(), schema.display().to_string());
    let arguments = ["import", "Rows", &file, "--schema", &schema, "--mode", mode];
    let mut kills = 0;
    while kills < 3 {
        let before = rows_done(&state);
        let mut child = command(&server, &arguments).spawn().expect("a process");
        if !wait_for_progress(&mut child, &state, before) {
            panic!("it ended after {kills} kills: {:?}", child.wait_with_output());
        }
        kills += 1;
        if kills == 1 {
            interrupt(child);
            continue;
        }
        child.kill().expect("killed");
        child.wait().expect("a process");
    }
    let done = rows_done(&state);
    assert!(done > 0 && done < ROWS as u64, "{done}");
    let output = command(&server, &arguments).output().expect("a process");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "some rows are refused: {text}");
    assert!(text.contains("resuming") && text.contains(&format!("after row {done}")), "{text}");
    assert!(!state.exists(), "all is done");

    let refused = std::fs::read_to_string(folder.path().join("rows.csv.refused.jsonl")).expect("refused rows");
    let refused: Vec<u64> = refused
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["line"].as_u64().expect("a line"))
        .collect();
    let wrong: Vec<u64> = (0..ROWS as u64).filter(|row| row % 2000 == 1999).map(|row| row + 2).collect();
    assert_eq!(refused, wrong, "each refused row once");
    let written = text.lines().find(|line| line.contains("rows written")).expect("a summary");
    assert!(written.contains(&format!("Rows: {} rows written", ROWS - wrong.len())), "{written}");

    let output = command(&server, &["export", "Rows", "--select", "Number"]).output().expect("a process");
    let mut found = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let number = row["Number"].as_u64().expect("a number");
        assert_eq!(found.insert(row["RowKey"].as_str().expect("a key").to_owned(), number), None);
    }
    let expected = (0..ROWS as u64).filter(|row| row % 2000 != 1999).map(|row| (format!("{row:06}"), row)).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_import_whose_table_was_deleted_starts_anew() {
    let server = TemporaryServer::start(EXE, &["--durability", "memory"]);
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("rows.csv");
    input(&path);
    let file = path.display().to_string();
    let arguments = ["import", "Rows", &file, "--mode", "replace"];
    let mut child = command(&server, &arguments).spawn().expect("a process");
    assert!(wait_for_progress(&mut child, &folder.path().join("rows.csv.import-state"), 0), "it ended early");
    child.kill().expect("killed");
    child.wait().expect("a process");
    assert!(command(&server, &["table", "delete", "Rows", "--yes"]).output().expect("a process").status.success());
    let output = command(&server, &arguments).output().expect("a process");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("table Rows is gone, so the import starts anew"), "{text}");
    let output = command(&server, &["table", "count", "Rows"]).output().expect("a process");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), ROWS.to_string());
}

#[test]
fn an_import_that_replaces_goes_on_after_it_was_killed() {
    resumed("replace");
}

#[test]
fn an_import_that_inserts_goes_on_after_it_was_killed() {
    resumed("insert");
}
