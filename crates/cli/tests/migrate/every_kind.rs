//! Every kind of message and blob, between all pairs of engines, and what clients see of them before and after.

use crate::migrate::interrupted::interrupt;
use crate::migrate::{ACL, launch, migrate, migrated, refused, report, stop, text};
#[cfg(feature = "test-postgres")]
use larimar_testkit::Launch;
use larimar_testkit::Server;
use larimar_testkit::http::{Client, Response, encode};
#[cfg(feature = "test-postgres")]
use std::path::Path;

/// A claimed message, as its consumer knows it.
pub(crate) struct Claimed(pub(crate) String);

pub(crate) fn handle(reply: &Response) -> String {
    let (id, receipt) = (reply.element("MessageId"), reply.element("PopReceipt"));
    format!("/jobs/messages/{}?popreceipt={}", id.expect("an id"), encode(receipt.expect("a receipt")))
}

pub(crate) fn fill_queues(client: &Client) -> Claimed {
    client.request("PUT", "/jobs").header("x-ms-meta-team", "blue").send().is_status(201);
    client.request("PUT", "/empty").send().is_status(201);
    client.request("PUT", "/jobs?comp=acl").xml(ACL).send().is_status(204);
    for (message, query) in [("one", ""), ("two", ""), ("later", "?visibilitytimeout=1000"), ("kept", "?messagettl=-1")]
    {
        let body = format!("<QueueMessage><MessageText>{message}</MessageText></QueueMessage>");
        client.request("POST", &format!("/jobs/messages{query}")).body(body).send().is_status(201);
    }
    let claimed = client.get("/jobs/messages?visibilitytimeout=600").send();
    claimed.is_status(200);
    Claimed(handle(&claimed))
}

pub(crate) fn fill_blobs(client: &Client) {
    let put = |path: &str| client.request("PUT", path);
    put("/photos?restype=container").header("x-ms-meta-team", "blue").send().is_status(201);
    put("/photos?restype=container&comp=acl").header("x-ms-blob-public-access", "blob").xml(ACL).send().is_status(200);
    put("/bare?restype=container").send().is_status(201);
    put("/bare?restype=container&comp=lease")
        .header("x-ms-lease-action", "acquire")
        .header("x-ms-lease-duration", "-1")
        .send()
        .is_status(201);
    let block = |path: &str| put(path).header("x-ms-blob-type", "BlockBlob");
    block("/photos/plain")
        .header("x-ms-tags", "colour=red")
        .header("x-ms-meta-name", "value")
        .header("x-ms-access-tier", "Cool")
        .body("plain bytes")
        .send()
        .is_status(201);
    put("/photos/plain?comp=snapshot").send().is_status(201);
    block("/photos/large").body(vec![7; 3 << 20]).send().is_status(201);
    for (id, body) in [("AAAA", "first "), ("BBBB", "second")] {
        put(&format!("/photos/blocks?comp=block&blockid={id}")).body(body).send().is_status(201);
    }
    let list = "<BlockList><Latest>AAAA</Latest><Latest>BBBB</Latest><Latest>AAAA</Latest></BlockList>";
    put("/photos/blocks?comp=blocklist").xml(list).send().is_status(201);
    put("/photos/blocks?comp=block&blockid=CCCC").body("not committed").send().is_status(201);
    put("/photos/only?comp=block&blockid=DDDD").body("not committed").send().is_status(201);
    put("/photos/log").header("x-ms-blob-type", "AppendBlob").body("").send().is_status(201);
    put("/photos/log?comp=appendblock").body("a line\n").send().is_status(201);
    put("/photos/log?comp=seal").header("x-ms-version", "2019-12-12").send().is_status(200);
    put("/photos/disk")
        .header("x-ms-blob-type", "PageBlob")
        .header("x-ms-blob-content-length", "33554432")
        .body("")
        .send()
        .is_status(201);
    for (first, last, byte) in [(0, 1023, 1), (16_776_704, 16_777_727, 2)] {
        put("/photos/disk?comp=page")
            .header("x-ms-page-write", "update")
            .header("x-ms-range", format!("bytes={first}-{last}"))
            .body(vec![byte; last - first + 1])
            .send()
            .is_status(201);
    }
    put("/photos/disk?comp=snapshot").send().is_status(201);
    put("/photos/disk?comp=page")
        .header("x-ms-page-write", "update")
        .header("x-ms-range", "bytes=512-1023")
        .body(vec![3; 512])
        .send()
        .is_status(201);
}

/// What clients see of queues and containers.
pub(crate) fn seen(server: &Server) -> Vec<String> {
    let (queues, blobs) = (server.queues(), server.blobs());
    let mut seen = Vec::new();
    let mut look = |client: &Client, path: &str| {
        let reply = client.get(path).send();
        reply.is_status(200);
        let headers =
            ["ETag", "Last-Modified", "x-ms-meta-team", "x-ms-tag-count", "x-ms-access-tier", "x-ms-blob-sealed"];
        let headers = headers.map(|name| reply.header(name).unwrap_or_default().to_owned());
        // Listings name the address of the server.
        let body = String::from_utf8_lossy(&reply.body).replace(&client.base(), "");
        seen.push(format!("{path} {headers:?} {body}"));
    };
    for path in [
        "/?comp=list&include=metadata",
        "/jobs?comp=acl",
        "/jobs?comp=metadata",
        "/jobs/messages?peekonly=true&numofmessages=32",
    ] {
        look(&queues, path);
    }
    for path in [
        "/?comp=list&include=metadata",
        "/photos?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs,tags,copy",
        "/photos?restype=container&comp=acl",
        "/bare?restype=container",
        "/?comp=blobs&where=colour%3D'red'",
        "/photos/plain",
        "/photos/large",
        "/photos/blocks",
        "/photos/blocks?comp=blocklist&blocklisttype=all",
        "/photos/only?comp=blocklist&blocklisttype=all",
        "/photos/log",
        "/photos/disk",
        "/photos/disk?comp=pagelist",
    ] {
        look(&blobs, path);
    }
    seen
}

/// A store of bytes below a directory.
#[cfg(feature = "test-postgres")]
pub(super) fn store_of(folder: &Path, name: &str) -> String {
    let folder = folder.join(name);
    std::fs::create_dir(&folder).expect("a folder");
    format!("file://{}", text(&folder))
}

/// A consumer goes on with the receipt that it has.
pub(crate) fn delete(server: &Server, claimed: &Claimed) {
    server.queues().delete(&claimed.0).send().is_status(204);
}

#[test]
fn messages_and_blobs_are_the_same_in_another_data_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let server = launch(&from).start();
    let claimed = fill_queues(&server.queues());
    fill_blobs(&server.blobs());
    let expected = seen(&server);
    stop(server);
    let printed = migrated(text(&from), text(&to), &[]);
    for part in
        ["queue      devstoreaccount1/jobs", "queue      devstoreaccount1/empty", "container  devstoreaccount1/photos"]
    {
        assert!(printed.contains(part), "{printed}");
    }
    assert_eq!(report(&migrated(text(&from), text(&to), &["--verify-only"])), report(&printed));
    let server = launch(&to).start();
    assert_eq!(seen(&server), expected);
    delete(&server, &claimed);
    server.blobs().delete("/photos/large").send().is_status(202);
    stop(server);
    let said = refused(text(&from), text(&to), &["--verify-only"]);
    assert!(
        said.contains("queue devstoreaccount1/jobs") && said.contains("container devstoreaccount1/photos"),
        "{said}"
    );
    assert!(!said.contains("devstoreaccount1/empty"), "{said}");
    let said = refused(text(&from), text(&to), &[]);
    assert!(said.contains("already in the destination") && said.contains("nothing was copied"), "{said}");
}

#[test]
fn a_container_whose_copy_was_killed_goes_on_or_begins_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = folder.path().join("from");
    let server = launch(&from).argument("--durability=async").start();
    fill_many(&server.blobs(), 400);
    stop(server);
    for more in [&[][..], &["--restart"]] {
        let to = (0..10)
            .map(|attempt| folder.path().join(format!("to{}{attempt}", more.len())))
            .find(|to| interrupt(text(&from), text(to), "-KILL").is_some())
            .expect("one of several runs is interrupted");
        let printed = migrated(text(&from), text(&to), more);
        assert!(printed.lines().any(|line| line.contains("/many ") && line.contains(" 402 ")), "{printed}");
        assert_eq!(report(&migrated(text(&from), text(&to), &["--verify-only"])), report(&printed));
        let server = launch(&to).start();
        server.blobs().get("/many/small0399").send().is_status(200);
        assert_eq!(server.blobs().get("/many/large1").send().body, vec![1; 9 << 20]);
        stop(server);
    }
}

/// Two large blobs and many small ones.
fn fill_many(client: &Client, small: usize) {
    client.request("PUT", "/many?restype=container").send().is_status(201);
    let put = |name: String, body: Vec<u8>| {
        let request = client.request("PUT", &format!("/many/{name}")).header("x-ms-blob-type", "BlockBlob");
        request.body(body).send().is_status(201);
    };
    for number in 0..2 {
        put(format!("large{number}"), vec![number; 9 << 20]);
    }
    for number in 0..small {
        put(format!("small{number:04}"), number.to_string().into_bytes());
    }
}

#[test]
fn a_wrong_store_of_bytes_is_refused_without_showing_it() {
    for flag in ["--from-blob-store", "--to-blob-store"] {
        let output = migrate("here", "there", &[flag, "s3://key:secret@bucket"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(flag) && !said.contains("secret"), "{said}");
    }
    let same = ["--from-blob-store", "s3://bucket/folder?x=secret", "--to-blob-store", "s3://bucket/folder/"];
    let said = refused("here", "there", &same);
    assert!(said.contains("name the same store") && !said.contains("secret"), "{said}");
}

#[cfg(feature = "test-postgres")]
#[test]
fn messages_and_blobs_go_over_postgresql_twice_and_back() {
    use crate::migrate::EXE;
    use larimar_testkit::postgres::Cluster;
    let folder = tempfile::tempdir().expect("a folder");
    let (from, back) = (folder.path().join("from"), folder.path().join("back"));
    let server = launch(&from).start();
    let claimed = fill_queues(&server.queues());
    fill_blobs(&server.blobs());
    let expected = seen(&server);
    stop(server);
    let (first, second) = (Cluster::shared().fresh_url(), Cluster::shared().fresh_url());
    let (first_blobs, second_blobs) = (store_of(folder.path(), "first"), store_of(folder.path(), "second"));
    let said = refused(text(&from), &first, &[]);
    assert!(said.contains("--to-blob-store") && said.contains("nothing was copied"), "{said}");
    let there = report(&migrated(text(&from), &first, &["--to-blob-store", &first_blobs]));
    let both = ["--from-blob-store", &first_blobs, "--to-blob-store", &second_blobs];
    assert_eq!(report(&migrated(&first, &second, &both)), there);
    let said = refused(&second, text(&back), &[]);
    assert!(said.contains("--from-blob-store"), "{said}");
    let served = |url: &str, store: &str| {
        let launch = Launch::new(EXE, folder.path().join("unused")).engine(url);
        launch.argument(format!("--blob-store={store}")).start()
    };
    let server = served(&second, &second_blobs);
    assert_eq!(seen(&server), expected);
    stop(server);
    assert_eq!(report(&migrated(&second, text(&back), &["--from-blob-store", &second_blobs])), there);
    let server = launch(&back).start();
    assert_eq!(seen(&server), expected);
    delete(&server, &claimed);
    // A receipt that PostgreSQL made holds in a data directory, too.
    stop(server);
    let server = served(&first, &first_blobs);
    let claim = server.queues().get("/jobs/messages?visibilitytimeout=600").send();
    claim.is_status(200);
    stop(server);
    let again = folder.path().join("again");
    migrated(&first, text(&again), &["--from-blob-store", &first_blobs]);
    let server = launch(&again).start();
    delete(&server, &Claimed(handle(&claim)));
    delete(&server, &claimed);
    stop(server);
}
