//! Writes to an opened store, of every kind that continues something stored: conditions on old etags, receipts and
//! leases given out before, blocks staged before, snapshots whose pages are shared.

use crate::stores::fill::{self, FACT, LEASE, append, block_blob, commit, delete, handles, message, pages, put, stage};
use crate::stores::seen;
use larimar_testkit::Server;
use larimar_testkit::http::{Batch, Client, encode, entity, entity_path};

/// Writes to everything that `fill` has made, and looks at each thing once.
pub(crate) fn all(server: &Server, expected: &str) {
    tables(&server.client());
    let queues = server.queues();
    hidden_messages(&queues, expected);
    messages(&queues);
    let blobs = server.blobs();
    tags(&blobs);
    blocks(&blobs);
    page_blob(&blobs);
    append(&blobs, "a line after opening\n");
    leases(&blobs);
    delete(&blobs, "/dropped?restype=container");
    put(&blobs.request("PUT", "/after?restype=container"));
    put(&block_blob(&blobs, "/after/a", "made after opening"));
}

fn tables(client: &Client) {
    let path = entity_path("types", "all", "values");
    let etag = client.get(&path).send().header("ETag").expect("an etag").to_owned();
    client.put(&path, "{}").if_match("W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"").send().is_status(412);
    put(&client.merge(&path, r#"{"Opened":true}"#).if_match(&etag));
    let merged = client.get(&path).send();
    assert_eq!(
        (merged.json()["Opened"].as_bool(), merged.json()["Small"].as_i64()),
        (Some(true), Some(-2_147_483_648))
    );
    assert!(merged.header("ETag") > Some(&etag), "versions go on after those of the old store");
    client.post("/again", entity("p", "kept", "")).send().is_status(409);
    client.insert("again", "p", "deleted", r#""Life":3"#);
    let batch =
        Batch::new().delete(client, "batches", "p", "002", "*").upsert(client, "batches", "p", "003", r#""Number":-3"#);
    assert_eq!(batch.send(client).statuses(), [204, 204]);
    delete(client, "/Tables('remade')");
    client.create_table("dropped");
    assert!(client.get("/dropped()").send().values().is_empty(), "rows of the table dropped before stay gone");
}

/// Blobs are found by tags that were stored before there was an index; snapshots are not.
fn tags(client: &Client) {
    let found = |value: &str| {
        let reply = client.get("/?comp=blobs").query("where", &format!("kind='{value}'")).send();
        reply.is_status(200);
        reply.elements("Name").join(" ")
    };
    assert_eq!((found("replaced"), found("small")), ("small.txt".to_owned(), String::new()));
    let other = "<Tags><TagSet><Tag><Key>kind</Key><Value>opened</Value></Tag></TagSet></Tags>";
    client.request("PUT", "/docs/small.txt?comp=tags").xml(other).send().is_status(204);
    assert_eq!((found("replaced"), found("opened")), (String::new(), "small.txt".to_owned()));
}

/// Messages that were claimed or delayed for a week: out of sight until then, and changed with their old receipts.
fn hidden_messages(client: &Client, expected: &str) {
    let facts: Vec<(&str, &str)> =
        expected.lines().filter_map(|line| line.strip_prefix(FACT)?.split_once(' ')).collect();
    assert_eq!(facts.len(), 2, "one claimed and one delayed message");
    let peek = || client.get(&format!("/{}/messages?peekonly=true&numofmessages=32", seen::HIDDEN)).send();
    for (number, (path, visible)) in facts.iter().enumerate() {
        if fill::unix_seconds() < visible.parse().expect("seconds") {
            assert_eq!(peek().elements("MessageId").len(), number, "only those made visible before");
        }
        let body = "<QueueMessage><MessageText>opened</MessageText></QueueMessage>";
        put(&client.request("PUT", &format!("{path}&visibilitytimeout=0")).xml(body));
    }
    let found = peek();
    assert_eq!(found.elements("MessageText"), ["opened", "opened"]);
    let mut counts = found.elements("DequeueCount");
    counts.sort_unstable();
    assert_eq!(counts, ["0", "1"]);
}

fn messages(client: &Client) {
    let claimed = client.get("/jobs/messages?visibilitytimeout=600").send();
    let [path] = handles(&claimed, "jobs").try_into().expect("one message");
    delete(client, &path);
    message(client, "jobs", "after opening", "?messagettl=-1");
}

fn blocks(client: &Client) {
    commit(client, "/docs/not-committed", &["Uncommitted:AAAA", "Uncommitted:BBBB"]);
    assert_eq!(client.get("/docs/not-committed").send().text(), "never committed");
    stage(client, "/docs/blocks", "FFFF", "!");
    commit(client, "/docs/blocks", &["Committed:BBBB", "Uncommitted:EEEE", "Uncommitted:FFFF"]);
    assert_eq!(client.get("/docs/blocks").send().text(), "two,waiting!");
    put(&block_blob(client, "/docs/empty", "no longer"));
    let delete = client.request("DELETE", "/docs/small.txt").header("x-ms-delete-snapshots", "only");
    put(&delete);
    put(&client.request("PUT", "/docs/large.bin?comp=snapshot").body(""));
}

/// Overwrites pages that a snapshot shares, which must keep its own.
fn page_blob(client: &Client) {
    let list = client.get("/disks?restype=container&comp=list&include=snapshots").send();
    let snapshot = format!("/disks/a.vhd?snapshot={}", encode(list.element("Snapshot").expect("a snapshot")));
    let before = client.get(&snapshot).send();
    before.is_status(200);
    pages(client, 0, 2048, b'n');
    let now = client.get("/disks/a.vhd").header("x-ms-range", "bytes=0-2559").send();
    assert_eq!(now.body, [vec![b'n'; 2048], vec![0; 512]].concat());
    assert_eq!(client.get(&snapshot).send().body, before.body);
    assert_eq!(before.body[..1536], [vec![0; 512], vec![b'a'; 1024]].concat());
    put(&client.request("PUT", "/disks/a.vhd?comp=snapshot").body(""));
}

fn leases(client: &Client) {
    block_blob(client, "/docs/leased", "without the lease").send().is_error(412, "LeaseIdMissing");
    put(&block_blob(client, "/docs/leased", "with the lease").header("x-ms-lease-id", LEASE));
    client.request("DELETE", "/locked?restype=container").send().is_error(412, "LeaseIdMissing");
    for path in ["/docs/leased?comp=lease", "/locked?restype=container&comp=lease"] {
        let request = client.request("PUT", path).header("x-ms-lease-action", "release");
        put(&request.header("x-ms-lease-id", LEASE).body(""));
    }
    put(&block_blob(client, "/docs/leased-for-a-while", "its lease has ended"));
}
