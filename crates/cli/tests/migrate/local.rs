//! From one embedded store to another.

use crate::migrate::{fill, launch, migrate, migrated, refused, report, seen, stop, text};
use larimar_testkit::http::entity_path;

#[test]
fn a_copy_is_served_with_the_same_etags_lists_and_properties() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let server = launch(&from).start();
    fill(&server.client());
    let expected = seen(&server.client());
    stop(server);

    let printed = migrated(text(&from), &format!("local:{}", text(&to)), &[]);
    let lines = report(&printed);
    assert_eq!(lines.len(), 5, "{printed}");
    let starts = [
        "kind ",
        "settings  devstoreaccount1 ",
        "table     devstoreaccount1/orders ",
        "table     devstoreaccount1/people ",
        "total ",
    ];
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{printed}");
    }
    assert!(printed.lines().last().is_some_and(|line| line.starts_with("copied and verified: local:")), "{printed}");
    assert_eq!(report(&migrated(text(&from), text(&to), &["--verify-only"])), lines);
    let said = refused(text(&from), text(&to), &[]);
    assert!(said.contains("already in the destination") && said.contains("nothing was copied"), "{said}");

    let server = launch(&to).start();
    assert_eq!(seen(&server.client()), expected);
    // An etag of the source is good in the copy, and a new one is later.
    let path = entity_path("people", "sales", "42");
    let etag = expected[0].split(' ').next().expect("an etag").to_owned();
    let reply = server.client().put(&path, "{}").if_match(&etag).send();
    reply.is_status(204);
    assert!(reply.header("ETag").expect("an etag") > etag.as_str());
    stop(server);

    let said = refused(text(&from), text(&to), &["--verify-only"]);
    assert!(said.contains("table devstoreaccount1/people") && !said.contains("orders"), "{said}");
    assert_eq!(
        report(&migrated(text(&from), text(&from.with_extension("again")), &[])),
        lines,
        "the source is untouched"
    );
}

#[test]
fn a_store_that_is_in_use_or_not_there_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let (other, empty) = (folder.path().join("other"), folder.path().join("empty"));
    stop(launch(&other).start());
    let server = launch(&from).start();
    for arguments in [[text(&from), text(&to)], [text(&other), text(&from)]] {
        let said = refused(arguments[0], arguments[1], &[]);
        assert!(said.contains("stop that server") && said.contains(text(&from)), "{said}");
    }
    server.client().get("/Tables").send().is_status(200);
    stop(server);
    let said = refused(text(&folder.path().join("none")), text(&to), &[]);
    assert!(said.contains("there is no such directory"), "{said}");
    std::fs::create_dir(&empty).expect("a folder");
    let said = refused(text(&empty), text(&to), &[]);
    assert!(said.contains("there is no store in this directory"), "{said}");
    assert_eq!(std::fs::read_dir(&empty).expect("a folder").count(), 0, "nothing is made there");
    let said = refused(text(&from), &format!("local:{}", text(&from)), &[]);
    assert!(said.contains("the same store"), "{said}");
}

/// A server that was started once has counted its own requests; the copy takes the place of that.
#[test]
fn a_destination_that_holds_only_metrics_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let metrics = |server: &larimar_testkit::Server| {
        let rows = server.client().get("/$MetricsHourPrimaryTransactionsTable()").send();
        rows.status == 200 && !rows.values().is_empty()
    };
    for data in [&from, &to] {
        let server = launch(data).argument("--analytics-flush=1s").start();
        if data == &from {
            server.client().create_table("orders");
            server.client().insert("orders", "p", "r", "");
        }
        let has_metrics = (0..2400).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(25));
            metrics(&server)
        });
        assert!(has_metrics, "no metrics in {}", data.display());
        stop(server);
    }
    let printed = migrated(text(&from), text(&to), &[]);
    assert!(printed.contains("$metricshourprimarytransactionstable"), "{printed}");
    let server = launch(&to).start();
    server.client().get(&entity_path("orders", "p", "r")).send().is_status(200);
    stop(server);
    // What has tables of its own is still refused.
    let said = refused(text(&from), text(&to), &[]);
    assert!(said.contains("already in the destination"), "{said}");
}

#[test]
fn a_wrong_store_is_refused_without_showing_it() {
    let output = migrate("here", "postgres://u:se/cret@h/d", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("(flag --to): expected local:PATH") && !said.contains("cret"), "{said}");
}
