//! The procedure of `docs/backup-postgresql.md` with the database's own tools: its very settings and commands, on a database
//! that servers write to.

use crate::migrate::every_kind::{delete, fill_blobs, fill_queues, seen};
use larimar_testkit::postgres::{Cluster, Options, Stop};
use larimar_testkit::{Launch, Server};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/backup-postgresql.md");

/// The fenced blocks of a language in the section about the database's tools. `folder` replaces the root of the page's paths.
fn blocks(language: &str, folder: &Path) -> Vec<String> {
    let page = fs::read_to_string(PAGE).expect("the page");
    let (_, section) = page.split_once("\n## The database's own tools\n").expect("the section");
    let (open, backups) = (format!("```{language}\n"), folder.join("backups"));
    let blocks = section.split(&open).skip(1).map(|rest| rest.split("```").next().expect("a block"));
    blocks.map(|block| block.replace("/backups", &backups.display().to_string())).collect()
}

/// Settings in the form of `postgresql.conf`, by name.
fn settings(lines: &str) -> Vec<(&str, &str)> {
    let lines = lines.lines().map(|line| line.split("  #").next().unwrap_or_default().trim());
    let pairs = lines.filter_map(|line| line.split_once(" = "));
    pairs.map(|(name, value)| (name, value.trim_matches('\''))).collect()
}

/// A directory that PostgreSQL's user can write to, too.
fn shared_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [folder.path().to_owned(), folder.path().join("backups"), folder.path().join("backups/wal")] {
        fs::create_dir_all(&path).expect("a folder");
        fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("permissions");
    }
    folder
}

fn back_up(server: &Server, url: &str, place: &Path) -> Output {
    let mut command = Command::new(EXE);
    command.arg("backup").arg(place).args(["--rate", "max", "--engine", url]);
    command.arg("--admin-port").arg(server.admin_address().port().to_string());
    command.env("XDG_RUNTIME_DIR", server.runtime_directory()).output().expect("the binary runs")
}

fn rows(server: &Server) -> String {
    let rows = server.client().get("/orders()").header("Accept", "application/json;odata=fullmetadata").send();
    rows.is_status(200);
    rows.text().replace(&server.client().base(), "")
}

/// A payload of 3 MiB, `/photos/large`.
fn large_payload(folder: &Path) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let found = entry.metadata().expect("metadata");
            match found.is_dir() {
                true => folders.push(entry.path()),
                false if found.len() > 3 << 20 => return entry.path(),
                false => {}
            }
        }
    }
    panic!("there is no large payload");
}

#[test]
fn the_procedure_with_the_databases_tools_restores_a_moment() {
    let folder = shared_folder();
    let (conf, commands) = (blocks("ini", folder.path()), blocks("sh", folder.path()));
    let ([conf], [take, restore]) = (&conf[..], &commands[..]) else { panic!("the page has other blocks") };
    let cluster = Cluster::start_with(&Options { settings: &settings(conf), ..Options::default() });
    let store = folder.path().join("blobs");
    let launch = Launch::new(EXE, folder.path().join("server")).engine(cluster.url());
    let launch = launch.argument(format!("--blob-store=file://{}", store.display()));
    let server = launch.argument("--blob-grace=8d").argument("--analytics-flush=1h").start();
    server.client().create_table("orders");
    server.client().insert("orders", "p", "before", r#""Text":"before the base backup""#);
    let claimed = fill_queues(&server.queues());
    cluster.shell(take);
    server.client().insert("orders", "p", "between", r#""Text":"only in the log""#);
    fill_blobs(&server.blobs());
    let expected = (rows(&server), seen(&server));
    let moment = cluster.sql("SELECT clock_timestamp()");

    // The mistake: it goes to the log and to the store of bytes, too.
    server.client().insert("orders", "p", "after", "");
    server.client().delete("/orders(PartitionKey='p',RowKey='before')").header("If-Match", "*").send().is_status(204);
    delete(&server, &claimed);
    server.queues().request("DELETE", "/empty").send().is_status(204);
    let blobs = server.blobs();
    let large = blobs.request("PUT", "/photos/large").header("x-ms-blob-type", "BlockBlob");
    large.body("replaced").send().is_status(201);
    blobs.request("DELETE", "/photos?restype=container").send().is_status(202);
    // A server looks for deleted containers every 5 seconds, and then discards their payloads.
    std::thread::sleep(Duration::from_secs(7));
    // One that stops in order writes its metrics.
    let launch = server.kill();
    cluster.stop(Stop::Fast);

    let example = "2026-11-16 12:00:00+00";
    assert!(restore.contains(example), "{restore}");
    cluster.shell(&restore.replace(example, &moment));
    let deadline = Instant::now() + Duration::from_secs(60);
    while cluster.sql("SELECT pg_is_in_recovery()") != "f" {
        assert!(Instant::now() < deadline, "the recovery does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let server = launch.start();
    assert_eq!((rows(&server), seen(&server)), expected);
    delete(&server, &claimed);
    server.client().insert("orders", "p", "new", r#""Text":"written after the restore""#);

    // The check of the page: a backup reads every payload.
    let checked = back_up(&server, cluster.url(), &folder.path().join("check"));
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    fs::remove_file(large_payload(&store)).expect("removed");
    let checked = back_up(&server, cluster.url(), &folder.path().join("second"));
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(!checked.status.success() && said.contains("photos") && said.contains("large"), "{said}");
    server.kill();
}
