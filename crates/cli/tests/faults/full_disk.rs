//! Clients make room on a full disk themselves: they delete rows, messages and blobs, drop tables and containers, and
//! then all writes work again, without an operator and with default settings. Each test runs on a file system of 200 MB.

use super::EXE;
use super::disk_full::{FOLDER, REFUSED, admin, check, fill, is_refused, noise, run};
use larimar_testkit::http::{Batch, BatchReply, Client, Response, entity, entity_path};
use larimar_testkit::{Dice, Launch, Server};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn after_a_table_is_dropped_all_writes_work_again() {
    run("faults::full_disk::drop_a_table");
}

#[test]
fn after_rows_are_deleted_all_writes_work_again() {
    run("faults::full_disk::delete_rows");
}

#[test]
fn after_blobs_or_a_container_are_deleted_all_writes_work_again() {
    run("faults::full_disk::delete_blobs");
}

#[test]
fn after_messages_are_deleted_all_writes_work_again() {
    run("faults::full_disk::delete_messages");
}

#[test]
fn a_disk_that_another_process_filled_is_freed_by_clients_too() {
    run("faults::full_disk::beside_another_process");
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn drop_a_table() {
    let server = start();
    let (mut acknowledged, mut unsure) = filled(&server);
    let client = server.client();
    check(&client, &acknowledged, &unsure);
    // Thousands of refusals are a few lines in the log.
    let lines = server.output().lines().count();
    for number in 0..REFUSED {
        let reply = client.post("/small", entity("p", &format!("refused-{number}"), "")).send();
        assert!(is_refused(&reply), "{reply}");
    }
    client.post("/Tables", r#"{"TableName":"another"}"#).send().is_status(503);
    let more = server.output().lines().count() - lines;
    assert!(more < 20, "{more} lines for {REFUSED} refused requests: {}", server.output());

    eventually("an entity is deleted", &server, || client.delete(&entity_path("small", "p", "gone")).send(), 204);
    drop(client);
    let server = server.kill().start();
    let client = server.client();
    check(&client, &acknowledged, &unsure);
    // A restart may find a little more room than there was before.
    fill(&client, 1, &mut acknowledged, &mut unsure);
    expect_full(&server);
    check(&client, &acknowledged, &unsure);
    eventually("a table is dropped", &server, || client.delete("/Tables('tab')").send(), 204);
    expect_room(&server);
    let lines = server.output().lines().count();
    assert!(lines < 60, "{lines} lines: {}", server.output());

    // There is as much room as before.
    client.create_table("tab");
    fill(&client, 2, &mut BTreeSet::new(), &mut BTreeSet::new());
    expect_full(&server);
    eventually("a table is dropped", &server, || client.delete("/Tables('tab')").send(), 204);
    expect_room(&server);
    drop(client);
    let server = server.kill().start();
    assert_eq!(rows(&server), ["kept", "new"]);
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn delete_rows() {
    let server = start();
    let (mut acknowledged, unsure) = filled(&server);
    let client = server.client();
    // Another process takes most of the room that a compaction needs.
    let free = metric(&server, "larimar_disk_free_bytes");
    assert!(free < metric(&server, "larimar_disk_needed_bytes") * 9 / 8 + (4 << 20));
    std::fs::write(disk().join("ballast"), vec![1; free - (16 << 20)]).expect("room for ballast");
    let gone: Vec<String> =
        acknowledged.iter().enumerate().filter(|(n, _)| n % 3 != 0).map(|(_, r)| r.clone()).collect();
    for rows in gone.chunks(50) {
        let delete = || {
            rows.iter()
                .fold(Batch::new(), |batch, row| batch.delete(&client, "tab", "p", row, "*"))
                .request(&client)
                .send()
        };
        let reply = eventually("rows are deleted", &server, delete, 202);
        assert_eq!(BatchReply::new(reply).statuses(), vec![204; rows.len()]);
    }
    acknowledged.retain(|row| !gone.contains(row));
    expect_room(&server);
    check(&client, &acknowledged, &unsure);
    drop(client);
    let server = server.kill().start();
    check(&server.client(), &acknowledged, &unsure);
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn delete_blobs() {
    let server = start();
    let client = server.blobs();
    for container in ["some", "more"] {
        client.request("PUT", &format!("/{container}?restype=container")).send().is_status(201);
    }
    let put = |client: &Client, path: &str, bytes: usize| {
        client.request("PUT", path).header("x-ms-blob-type", "BlockBlob").body(vec![7; bytes]).send()
    };
    // Large ones are files, small ones share packs. An upload that runs out of room is refused in its middle.
    let fill_up = |client: &Client, round: usize| {
        let mut blobs = Vec::new();
        for number in 0..2000 {
            let (container, bytes) = if number % 2 == 0 { ("some", 3 << 20) } else { ("more", 200 << 10) };
            let path = format!("/{container}/{round}-{number}");
            let reply = put(client, &path, bytes);
            if is_refused(&reply) {
                return blobs;
            }
            reply.is_status(201);
            blobs.push(path);
        }
        panic!("the disk should be full by now");
    };
    let blobs = fill_up(&client, 0);
    assert!(blobs.len() > 20, "{} blobs", blobs.len());
    expect_full(&server);
    server.client().post("/small", entity("p", "new", "")).send().is_status(503);
    client.get(&blobs[0]).send().is_status(200);
    for path in &blobs[..blobs.len() / 2] {
        eventually("a blob is deleted", &server, || client.request("DELETE", path).send(), 202);
    }
    expect_room(&server);
    put(&client, "/some/new", 3 << 20).is_status(201);

    // A container goes as well, also over a restart.
    let others = fill_up(&client, 1);
    expect_full(&server);
    drop(client);
    let server = server.kill().start();
    let client = server.blobs();
    for path in blobs[blobs.len() / 2..].iter().chain(&others) {
        client.get(path).send().is_status(200);
    }
    // A restart may find a little more room than there was before.
    fill_up(&client, 2);
    expect_full(&server);
    eventually("a container is deleted", &server, || client.request("DELETE", "/some?restype=container").send(), 202);
    expect_room(&server);
    put(&client, "/more/new", 3 << 20).is_status(201);
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn delete_messages() {
    let server = start();
    let client = server.queues();
    client.request("PUT", "/queue").send().is_status(201);
    let mut dice = Dice::new(3);
    let mut put = 0;
    loop {
        let text = format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", noise(&mut dice));
        let reply = client.post("/queue/messages", text).send();
        if is_refused(&reply) {
            break;
        }
        reply.is_status(201);
        put += 1;
        assert!(put < 100_000, "the disk should be full by now");
    }
    expect_full(&server);
    let mut gone = 0;
    while gone < put {
        let reply =
            eventually("messages are taken", &server, || client.get("/queue/messages?numofmessages=32").send(), 200);
        let text = reply.text().to_owned();
        let messages: Vec<_> = between(&text, "MessageId").into_iter().zip(between(&text, "PopReceipt")).collect();
        assert!(!messages.is_empty(), "{gone} of {put} messages: {text}");
        for (id, receipt) in messages {
            let path = format!("/queue/messages/{id}");
            let delete = || client.request("DELETE", &path).query("popreceipt", receipt).send();
            eventually("a message is deleted", &server, delete, 204);
            gone += 1;
        }
    }
    assert_eq!(gone, put);
    expect_room(&server);
}

#[test]
#[ignore = "started by a test above, on a small file system"]
fn beside_another_process() {
    let server = start();
    let client = server.client();
    client.create_table("tab");
    let (mut acknowledged, unsure) = (BTreeSet::new(), BTreeSet::new());
    write_some(&client, 0, &mut acknowledged);
    let ballast = disk().join("ballast");
    take_all_space(&ballast);
    expect_full(&server);
    check(&client, &acknowledged, &unsure);
    eventually("an entity is deleted", &server, || client.delete(&entity_path("small", "p", "gone")).send(), 204);
    eventually("a table is dropped", &server, || client.delete("/Tables('tab')").send(), 204);
    expect_room(&server);

    // Once more, with restarts of the full state.
    std::fs::remove_file(&ballast).expect("the ballast is there");
    client.create_table("tab");
    acknowledged.clear();
    write_some(&client, 1, &mut acknowledged);
    take_all_space(&ballast);
    drop(client);
    let server = server.kill().start();
    let client = server.client();
    expect_full(&server);
    check(&client, &acknowledged, &unsure);
    let server = server.kill().start();
    let client = server.client();
    eventually("a table is dropped", &server, || client.delete("/Tables('tab')").send(), 204);
    expect_room(&server);
    let lines = server.output().lines().count();
    assert!(lines < 60, "{lines} lines: {}", server.output());
    drop(client);
    let server = server.kill().start();
    assert_eq!(rows(&server), ["kept", "new"]);
}

pub(super) fn disk() -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).expect("the folder's name"))
}

/// A server with default settings but for the time of grace, and a table with two rows.
fn start() -> Server {
    let server = Launch::new(EXE, disk().join("data")).argument("--blob-grace").argument("1s").start();
    let client = server.client();
    client.create_table("small");
    client.post("/small", entity("p", "kept", "")).send().is_status(201);
    client.post("/small", entity("p", "gone", "")).send().is_status(201);
    server
}

/// Fills the disk with rows; those that were acknowledged, and those of refused requests.
fn filled(server: &Server) -> (BTreeSet<String>, BTreeSet<String>) {
    let client = server.client();
    client.create_table("tab");
    let (mut acknowledged, mut unsure) = (BTreeSet::new(), BTreeSet::new());
    fill(&client, 0, &mut acknowledged, &mut unsure);
    expect_full(server);
    println!("{} rows filled the disk", acknowledged.len());
    assert!(acknowledged.len() > 1000, "{} rows", acknowledged.len());
    (acknowledged, unsure)
}

/// Writes about 30 MB.
fn write_some(client: &Client, round: usize, acknowledged: &mut BTreeSet<String>) {
    let mut dice = Dice::new(round as u64 + 1);
    for number in 0..1500 {
        let row = format!("{round}-0-{number}");
        let members = format!(r#""V":"{}""#, noise(&mut dice));
        let reply = client.post("/tab", entity("p", &row, &members)).header("Prefer", "return-no-content").send();
        reply.is_status(204);
        acknowledged.insert(row);
    }
}

/// Writes a file until the disk has no room left. The last write takes what is left before it fails. It is not tried again:
/// the server gives up its reserve as soon as the disk is full, and that room is not for this file.
pub(super) fn take_all_space(path: &Path) {
    let mut file = std::fs::File::create(path).expect("a file");
    while file.write_all(&vec![1; 1 << 20]).is_ok() {}
}

/// Waits until only deletes are taken.
pub(super) fn expect_full(server: &Server) {
    wait(server, "the disk should be full", || {
        let (status, text) = admin(server, "/ready");
        status == 503 && text.contains("only deletes")
    });
    let (health, _) = admin(server, "/health");
    assert_eq!(health, 200);
}

/// Waits until all writes are taken.
pub(super) fn expect_room(server: &Server) {
    let client = server.client();
    wait(server, "writes should resume", || client.put(&entity_path("small", "p", "new"), "{}").send().status == 204);
    assert_eq!(admin(server, "/ready").0, 200);
}

/// Repeats a request while the store is being opened.
pub(super) fn eventually(what: &str, server: &Server, send: impl Fn() -> Response, wanted: u16) -> Response {
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = send();
        if reply.status == wanted {
            return reply;
        }
        assert!(is_refused(&reply) && Instant::now() < until, "{what}: {reply} {}", server.output());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn wait(server: &Server, what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        let (_, ready) = admin(server, "/ready");
        assert!(Instant::now() < until, "{what}: {ready} {} {}", files(&disk()), server.output());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The large files of the disk, for a failure's message.
fn files(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            text += &files(&entry.path());
        } else if metadata.len() > 1 << 20 {
            let blocks = std::os::unix::fs::MetadataExt::blocks(&metadata);
            text += &format!("{} {} KiB\n", entry.path().display(), blocks / 2);
        }
    }
    text
}

fn rows(server: &Server) -> Vec<String> {
    server.client().get("/small()").send().column("RowKey")
}

fn metric(server: &Server, name: &str) -> usize {
    let (_, page) = admin(server, "/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no metric {name} in {page}"))
}

/// The texts of an element.
fn between<'a>(text: &'a str, element: &str) -> Vec<&'a str> {
    let (start, end) = (format!("<{element}>"), format!("</{element}>"));
    text.split(&*start).skip(1).filter_map(|part| part.split_once(&*end)).map(|(text, _)| text).collect()
}

/// The machine may be busy; without a load it is a few seconds.
const PATIENCE: Duration = Duration::from_secs(180);
