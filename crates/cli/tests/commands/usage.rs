//! What a newcomer meets: wrong flags, missing servers, wrong keys, and the exit code of each.

use super::{EXE, Fixture, KEY, clean, refusal};
use std::net::TcpListener;
use std::process::Command;

/// Runs the binary without a server, in an empty directory.
fn alone(arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = clean(Command::new(EXE), folder.path()).args(arguments).output().expect("the binary runs");
    refusal(output)
}

#[test]
fn wrong_command_lines_say_what_is_meant() {
    for (arguments, word) in [
        (&["table"][..], "Usage: larimar table <COMMAND>"),
        (&["tabel"], "there is no command \"tabel\"; use table"),
        (&["table", "qeury"], "'query'"),
        (&["table", "query"], "<TABLE>"),
        (&["table", "query", "Customers", "--slect", "Name"], "--select"),
        (&["table", "query", "Customers", "--output", "xml"], "[possible values: table, json, csv]"),
        (&["table", "query", "Customers", "--table-port", "3"], "--table-port"),
        (&["--table-port", "3", "table", "list"], "'larimar table' has flags of its own"),
        (&["table", "list", "--account", "shop"], "AZURE_STORAGE_KEY"),
        (&["table", "list", "--connection-string", "nonsense"], "connection string"),
        (&["table", "list", "--endpoint", "nonsense", "--sas", "sig=1"], "https://account.table.core.windows.net"),
        (&["table", "put", "Customers", "Name=x"], "PartitionKey=… is missing"),
        (&["table", "remove", "Customers", "p"], "<ROW>"),
        (&["table", "remove", "Customers", "--yes", "--filter", " "], "expected a filter, found an empty text"),
        (&["queue", "move", "orders"], "-poison"),
        (&["blob", "get", "photos"], "expected CONTAINER/NAME"),
    ] {
        let (code, said) = alone(arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

#[test]
fn a_refused_command_line_shows_no_secret() {
    for arguments in [
        &["table", "list", "AccountName=a;AccountKey=c2VzYW1l"][..],
        &["table", "list", "--conection-string", "AccountName=a;AccountKey=c2VzYW1l"],
        &["table", "list", "--connection-string", "AccountName=a;AccountKey=c2VzYW1l!"],
        &["table", "list", "--endpoint", "nonsense?sig=c2VzYW1l"],
    ] {
        let (code, said) = alone(arguments);
        assert_eq!(code, 2, "{said}");
        assert!(!said.contains("c2VzYW1l"), "{said}");
    }
}

#[test]
fn a_server_that_does_not_run_is_reported_at_once() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let endpoint = format!("http://{free}/devstoreaccount1");
    let started = std::time::Instant::now();
    for service in ["table", "queue", "blob"] {
        let (code, said) = alone(&[service, "list", "--endpoint", &endpoint]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(&format!("no server listens at http://{free}; start one with `larimar`")), "{said}");
    }
    let account = format!("AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={endpoint}");
    let other = "AccountName=devstoreaccount2;AccountKey=a2V5;TableEndpoint=http://10.255.255.1/devstoreaccount2";
    let (code, said) = alone(&["copy", &account, other, "--only", "tables"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("or name another as FROM or TO") && !said.contains("--connection-string"), "{said}");
    assert!(started.elapsed().as_secs() < 60, "the client's retries would take longer on a busy machine");
}

#[test]
fn the_server_of_the_settings_here_is_the_default() {
    let fixture = Fixture::start();
    let server = &fixture.server;
    let settings = format!(
        "table_port = {}\nqueue_port = {}\nblob_port = {}\n",
        server.table_address().port(),
        server.queue_address().port(),
        server.blob_address().port()
    );
    std::fs::write(fixture.folder.path().join("larimar.toml"), settings).expect("a file");
    for service in ["table", "queue", "blob"] {
        let output = clean(Command::new(EXE), fixture.folder.path()).args([service, "list"]).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::write(fixture.folder.path().join("larimar.toml"), "table_prot = 1\n").expect("a file");
    let output = clean(Command::new(EXE), fixture.folder.path()).args(["table", "list"]).output().expect("it runs");
    let (code, said) = refusal(output);
    assert!(code == 2 && said.contains("table_prot"), "{said}");
}

#[test]
fn exit_codes_tell_failures_apart() {
    let fixture = Fixture::start();
    let endpoint = format!("http://{}/devstoreaccount1", fixture.server.table_address());
    let with_key =
        |key: &str| format!("larimar table list --endpoint {endpoint} --account devstoreaccount1 --key {key}");
    fixture.run(&with_key(KEY));
    std::fs::write(fixture.folder.path().join("key"), format!("{KEY}\n")).expect("a file");
    fixture.run(&with_key("@key"));
    fixture.run("larimar table create Customers");
    for (line, expected, word) in [
        (with_key("d3Jvbmc=").as_str(), 4, "check the account's name and key"),
        (with_key("'not base64'").as_str(), 2, "base64"),
        ("larimar table query Missing", 3, "TableNotFound"),
        ("larimar table count Missing", 3, "TableNotFound"),
        ("larimar table get Customers a b", 3, "has no entity 'a' 'b'"),
        ("larimar table remove Customers a b", 3, "has no entity 'a' 'b'"),
        ("larimar table create Customers", 1, "table 'Customers' exists already"),
        ("larimar table query Customers --filter 'Age gt'", 1, "InvalidInput"),
        ("larimar table clear Customers </dev/null", 2, "--yes"),
        ("larimar table delete Customers </dev/null", 2, "--yes"),
        ("larimar table remove Customers --filter 'Age gt 3' </dev/null", 2, "--yes"),
        ("larimar queue peek missing", 3, "QueueNotFound"),
        ("larimar queue drain missing </dev/null", 2, "--yes"),
        ("larimar blob get photos/a.jpg -", 3, "ContainerNotFound"),
    ] {
        let (code, said) = fixture.refused(line);
        assert_eq!(code, expected, "{line}: {said}");
        assert!(said.contains(word), "{line}: {said}");
    }
    fixture.run("larimar table delete Customers --yes");
}

#[test]
fn help_of_a_command_has_its_own_flags_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = |arguments: &[&str]| {
        let output = clean(Command::new(EXE), folder.path()).args(arguments).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).expect("text")
    };
    for arguments in [&["table", "query", "--help"][..], &["table", "put", "-h"], &["queue", "move", "--help"]] {
        let text = help(arguments);
        assert!(text.contains("--connection-string") && !text.contains("--table-port"), "{text}");
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest <= 80, "{longest} columns: {text}");
    }
    let top = help(&["--help"]);
    assert!(top.starts_with("Azure Table, Queue and Blob Storage that anyone can run\n"), "{top}");
    for word in ["\nServer:\n  serve ", "\nData of any account:\n  table ", "\nOther:\n  completions "] {
        assert!(top.contains(word), "{word} in {top}");
    }
    assert!(help(&["help", "table"]).contains("query"));
    for group in ["table", "queue", "blob"] {
        let text = help(&[group, "--help"]);
        assert!(text.contains("\n  list ") && text.contains("  List the "), "{text}");
        let commands = text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        assert!(commands.clone().count() >= 5, "{text}");
        assert!(commands.into_iter().all(|line| !line.starts_with("   ")), "a command has one line: {text}");
    }
}
