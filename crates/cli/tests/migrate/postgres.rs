//! Between an embedded store and PostgreSQL, there and back.

use crate::migrate::interrupted::{copied_rows, interrupt};
use crate::migrate::{EXE, command, fill, fill_many, launch, migrated, refused, report, seen, stop, text};
use larimar_testkit::Launch;
use larimar_testkit::postgres::Cluster;

#[test]
fn a_store_goes_to_postgresql_and_back_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, back) = (folder.path().join("from"), folder.path().join("back"));
    let url = Cluster::shared().fresh_url();
    let server = launch(&from).start();
    fill(&server.client());
    fill_many(&server.client(), "many", 25);
    let expected = seen(&server.client());
    stop(server);

    let there = report(&migrated(text(&from), &url, &[]));
    assert!(there.iter().any(|line| line.contains("/many ") && line.contains(" 2500 ")), "{there:?}");
    let said = refused(text(&from), &url, &[]);
    assert!(said.contains("already in the destination"), "{said}");

    let server = Launch::new(EXE, folder.path().join("unused")).engine(&url).start();
    assert_eq!(seen(&server.client()), expected);
    stop(server);
    assert!(!folder.path().join("unused").exists(), "a server on PostgreSQL makes no data folder");

    assert_eq!(report(&migrated(&url, text(&back), &[])), there);
    assert_eq!(report(&migrated(text(&from), text(&back), &["--verify-only"])), there);
    let server = launch(&back).start();
    assert_eq!(seen(&server.client()), expected);
    server.client().insert("many", "p", "more", "");
    stop(server);
    let said = refused(text(&back), &url, &["--verify-only"]);
    assert!(said.contains("table devstoreaccount1/many") && !said.contains("people"), "{said}");
}

#[test]
fn a_migration_to_postgresql_that_was_killed_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = folder.path().join("from");
    let server = launch(&from).start();
    fill_many(&server.client(), "many", 200);
    stop(server);
    let (url, before) = (0..10)
        .find_map(|_| {
            let url = Cluster::shared().fresh_url();
            let (_, rows) = interrupt(text(&from), &url, "-KILL")?;
            Some((url, rows))
        })
        .expect("one of several runs is interrupted");
    let output = command(&["--from", text(&from), "--to", &url]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.lines().find_map(copied_rows).is_none_or(|first| first > before), "{said}");
    assert_eq!(
        report(&migrated(text(&from), &url, &["--verify-only"])),
        report(&String::from_utf8_lossy(&output.stdout))
    );
}
