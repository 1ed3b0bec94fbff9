//! A backup of servers over PostgreSQL, restored into a data directory and migrated into another database.

use crate::migrate::every_kind::{Claimed, delete, fill_blobs, fill_queues, handle, seen as seen_others, store_of};
use crate::migrate::{EXE, fill, fill_many, launch, migrated, report, seen, stop, text};
use larimar_testkit::postgres::Cluster;
use larimar_testkit::{Launch, Server};
use std::path::Path;
use std::process::Command;

fn served(folder: &Path, url: &str, store: &str) -> Server {
    let launch = Launch::new(EXE, folder.join("unused")).engine(url).argument("--analytics-flush=1h");
    launch.argument(format!("--blob-store={store}")).start()
}

#[track_caller]
fn succeeded(command: &mut Command) -> String {
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Messages for several reads, each with contents of its own.
fn fill_long_queue(server: &Server) {
    let queues = server.queues();
    queues.request("PUT", "/long").send().is_status(201);
    for number in 0..300 {
        let body = format!("<QueueMessage><MessageText>message {number}</MessageText></QueueMessage>");
        queues.request("POST", "/long/messages?visibilitytimeout=1000").body(body).send().is_status(201);
    }
}

#[test]
fn a_backup_of_postgresql_is_restored_and_goes_into_another_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (Cluster::shared().fresh_url(), Cluster::shared().fresh_url());
    let (from_blobs, to_blobs) = (store_of(folder.path(), "from"), store_of(folder.path(), "to"));
    let server = served(folder.path(), &from, &from_blobs);
    fill(&server.client());
    fill_many(&server.client(), "many", 25);
    let claimed = fill_queues(&server.queues());
    fill_long_queue(&server);
    fill_blobs(&server.blobs());
    let expected = (seen(&server.client()), seen_others(&server));

    let place = folder.path().join("place");
    let mut backup = Command::new(EXE);
    backup.args(["backup", text(&place), "--rate", "max", "--engine", &from]);
    backup.arg("--admin-port").arg(server.admin_address().port().to_string());
    let printed = succeeded(backup.env("XDG_RUNTIME_DIR", server.runtime_directory()));
    assert!(printed.starts_with("done: backup to "), "{printed}");
    let generation = std::fs::read_dir(place.join("generations")).expect("a place").next().expect("a backup");
    let generation = generation.expect("a file");
    assert!(generation.file_name().to_string_lossy().ends_with("Z-0"), "commits have no numbers: {generation:?}");
    let written = std::fs::read_to_string(generation.path()).expect("text");
    assert!(written.contains(r#""engine":"postgres""#), "{written}");
    // Whatever is written afterwards is not in it.
    server.client().insert("orders", "p", "later", "");
    server.client().delete("/orders(PartitionKey='p',RowKey='later')").header("If-Match", "*").send().is_status(204);
    // A server that stops in order writes its metrics.
    server.kill();

    let restored = folder.path().join("restored");
    succeeded(Command::new(EXE).args(["restore", text(&place), "--data", text(&restored)]));
    let there = report(&migrated(&from, text(&restored), &["--verify-only", "--from-blob-store", &from_blobs]));
    assert!(there.iter().any(|line| line.contains("/long ") && line.contains(" 300 ")), "{there:?}");
    let printed = migrated(text(&restored), &to, &["--to-blob-store", &to_blobs]);
    assert_eq!(report(&printed), there);

    let server = served(folder.path(), &to, &to_blobs);
    assert_eq!((seen(&server.client()), seen_others(&server)), expected);
    delete(&server, &claimed);
    let claim = server.queues().get("/jobs/messages?visibilitytimeout=600").send();
    claim.is_status(200);
    delete(&server, &Claimed(handle(&claim)));
    // Single spaces of the backup go into a server over PostgreSQL, too.
    let mut restore = Command::new(EXE);
    restore.args(["restore", text(&place), "queue:long=again", "container:photos=again", "--into-server"]);
    restore.args(["--account", "devstoreaccount1", "--rate", "max", "--engine", &to]);
    restore.arg("--admin-port").arg(server.admin_address().port().to_string());
    succeeded(restore.env("XDG_RUNTIME_DIR", server.runtime_directory()));
    let again = server.queues().get("/again?comp=metadata").send();
    assert_eq!(again.header("x-ms-approximate-messages-count"), Some("300"));
    assert_eq!(server.blobs().get("/again/large").send().body, vec![7; 3 << 20]);
    stop(server);
    // The data directory serves by itself, too, with the receipts that PostgreSQL made.
    let server = launch(&restored).start();
    assert_eq!((seen(&server.client()), seen_others(&server)), expected);
    delete(&server, &claimed);
    stop(server);
}
