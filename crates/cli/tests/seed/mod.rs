//! `larimar serve --seed`: an empty store is filled from exported files before the server serves.

mod interrupted;
mod refused;
mod reset;
#[cfg(feature = "test-postgres")]
mod shared;

use larimar_testkit::serde_json::{self, Value};
use larimar_testkit::{Launch, Server};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A server of this directory that is filled from the files of another directory in it.
fn launch(folder: &TempDir) -> Launch {
    let launch = Launch::new(EXE, folder.path().join("data"));
    launch.argument(format!("--seed={}", folder.path().join("files").display()))
}

/// Writes a file of the seed.
fn write(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) {
    let path = folder.path().join("files").join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}

/// JSON lines of so many rows, in partitions of 100.
fn lines(rows: usize) -> String {
    (0..rows).fold(String::new(), |mut text, row| {
        writeln!(text, r#"{{"PartitionKey":"p{:05}","RowKey":"{row:06}","Number":{row}}}"#, row / 100).expect("text");
        text
    })
}

fn export(server: &Server, arguments: &[&str]) -> Vec<u8> {
    let address = format!("TableEndpoint=http://{}/devstoreaccount1", server.table_address());
    let account = format!("AccountName=devstoreaccount1;AccountKey={KEY};{address}");
    let command = Command::new(EXE).arg("export").args(arguments).args(["--connection-string", &account]).output();
    let output = command.expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Every table of the development account with its rows in order, without their times.
fn tables(server: &Server) -> BTreeMap<String, Vec<Value>> {
    let names = server.client().get("/Tables").send().column("TableName");
    let rows = |name: &String| {
        let text = String::from_utf8(export(server, &[name, "--parallel", "1"])).expect("text");
        let rows = text.lines().map(|line| {
            let mut row: Value = serde_json::from_str(line).expect("JSON");
            let members = row.as_object_mut().expect("an object");
            members.retain(|name, _| !name.starts_with("Timestamp"));
            row
        });
        rows.collect()
    };
    names.iter().map(|name| (name.clone(), rows(name))).collect()
}

/// Waits until a server has logged this; its log comes by another pipe than its banner.
#[track_caller]
fn has_logged(server: &Server, text: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    while !server.output().contains(text) {
        assert!(Instant::now() < until, "{text} is not in {}", server.output());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn what_was_exported_is_there_again_in_every_format() {
    let source_folder = folder();
    let source = Launch::new(EXE, source_folder.path().join("data")).argument("--durability=memory").start();
    let client = source.client();
    client.create_table("Values");
    let members = r#""I":7,"L@odata.type":"Edm.Int64","L":"9007199254740993","D@odata.type":"Edm.Double","D":"NaN",
        "B":true,"T@odata.type":"Edm.DateTime","T":"2026-01-02T03:04:05.1234567Z","G@odata.type":"Edm.Guid",
        "G":"0f8fad5b-d9cb-469f-a165-70867728950e","Y@odata.type":"Edm.Binary","Y":"AAH/","S":"=1+1,\"\n'""#;
    client.insert("Values", "", "", members);
    client.insert("Values", "p q,'\u{e9}\u{1F600}", "0", r#""I":"a text""#);
    client.insert("Values", "p", "1", r#""I@odata.type":"Edm.Double","I":"-0.0""#);
    client.create_table("Empty");
    client.create_table("Many");
    for row in 0..150 {
        client.insert("Many", "p", &format!("{row:03}"), r#""Number":1"#);
    }
    let expected = tables(&source);
    assert_eq!(expected.values().map(Vec::len).collect::<Vec<_>>(), [0, 150, 3]);
    for format in ["csv", "jsonl", "parquet"] {
        let folder = folder();
        let files = folder.path().join("files");
        export(&source, &["--all", "--to", files.to_str().expect("text"), "--format", format]);
        assert_eq!(std::fs::read_dir(&files).expect("a directory").count(), 3);
        let server = launch(&folder).argument("--durability=memory").start();
        assert_eq!(tables(&server), expected, "{format}");
        has_logged(&server, "filled the store");
        assert_eq!(std::fs::read_dir(&files).expect("a directory").count(), 3, "nothing is left beside the files");
    }
}

#[test]
fn a_store_with_tables_is_left_alone() {
    let folder = folder();
    write(&folder, "Orders.jsonl", lines(3));
    let server = launch(&folder).start();
    let client = server.client();
    assert_eq!(tables(&server)["Orders"].len(), 3);
    client.insert("Orders", "p", "new", "");
    client.create_table("Other");
    write(&folder, "Later.jsonl", lines(1));
    let before = tables(&server);
    let server = server.kill().start();
    assert_eq!(tables(&server), before);
    has_logged(&server, "the store is not empty, so it is not filled");
    // Without a table it is empty, though the account has other things.
    server.queues().request("PUT", "/jobs").send().is_status(201);
    for name in before.keys() {
        server.client().delete(&format!("/Tables('{name}')")).send().is_status(204);
    }
    let server = server.kill().start();
    assert_eq!(tables(&server).keys().collect::<Vec<_>>(), ["Later", "Orders"]);
}

#[test]
fn a_directory_named_after_an_account_fills_that_account() {
    let folder = folder();
    write(&folder, "First.csv", "PartitionKey,RowKey,Count\np,r,1\n");
    write(&folder, "two/Second.csv", "PartitionKey,RowKey,Zip\np,r,01234\n");
    write(&folder, "two/Second.schema.csv", "Zip,Edm.String\n");
    write(&folder, ".hidden", "");
    let accounts = format!("devstoreaccount1:{KEY};two:a2V5IHR3bw==");
    let server = launch(&folder).environment("LARIMAR_ACCOUNTS", &accounts).argument("--strict").start();
    let two = server.client().of_account("two", "a2V5IHR3bw==");
    assert_eq!(tables(&server).keys().collect::<Vec<_>>(), ["First"]);
    assert_eq!(two.get("/Tables").send().column("TableName"), ["Second"]);
    assert_eq!(two.get("/Second()").send().column("Zip"), ["01234"]);
}

/// The settings file names it relative to itself, as every path.
#[test]
fn the_directory_may_come_from_the_settings_file() {
    let folder = folder();
    write(&folder, "Orders.jsonl", lines(1));
    let file = folder.path().join("larimar.toml");
    std::fs::write(&file, "seed = 'files'\n").expect("a file");
    let launch = Launch::new(EXE, folder.path().join("data")).argument(format!("--config={}", file.display()));
    assert_eq!(tables(&launch.start())["Orders"].len(), 1);
}

/// A path for the file of `name` in the seed, as messages show it.
fn shown(folder: &TempDir, name: &str) -> String {
    Path::new(folder.path()).join("files").join(name).display().to_string()
}
