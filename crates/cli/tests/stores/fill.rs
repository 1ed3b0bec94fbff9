//! A store with something of every kind: each type of property, transactions, rows deleted and inserted again, dropped
//! tables and containers, messages in every state, blobs of all kinds with all that is stored of them.
//!
//! Its first part is in tables of the store (the server was stopped in order), its second in the journal (killed).

use crate::stores::{seen, stop};
use larimar_testkit::Launch;
use larimar_testkit::http::{Batch, Client, Request, Response, encode, entity_path};
use std::time::{Duration, Instant, SystemTime};

/// Begins a line of `seen.txt` that later tests need and clients cannot see.
pub(crate) const FACT: &str = "fact ";

/// The lease of `/docs/leased` and of the container `locked`; neither ends.
pub(crate) const LEASE: &str = "0f6a1f0c-3d6e-4a3b-9d55-2b1c4d5e6f70";

/// Of a region of a page blob's map (`docs/format.md`).
const REGION_BYTES: u64 = 16 * 1024 * 1024;
const WEEK_SECONDS: u64 = 604_800;

/// Makes the store and returns what clients see of it.
pub(crate) fn make(launch: &Launch) -> String {
    let server = launch.start();
    first_tables(&server.client());
    let mut facts = first_queues(&server.queues());
    first_blobs(&server.blobs());
    first_tagged(&server.blobs());
    let server = stop(server).start();
    second_tables(&server.client());
    facts.push_str(&second_queues(&server.queues()));
    second_blobs(&server.blobs());
    second_tagged(&server.blobs());
    wait_until_expired(&server.blobs(), "/docs/leased-for-a-while");
    let seen = seen::of(&server) + &facts;
    server.kill();
    seen
}

fn first_tables(client: &Client) {
    settings(client);
    client.create_table("Types");
    client.insert(
        "types",
        "all",
        "values",
        r#""Text":"Grüße 世界 🦀","Empty":"","Small":-2147483648,"Big@odata.type":"Edm.Int64","Big":"9223372036854775807",
        "Ratio":0.1,"Infinite@odata.type":"Edm.Double","Infinite":"-Infinity","Nan@odata.type":"Edm.Double","Nan":"NaN",
        "Yes":true,"No":false,"When@odata.type":"Edm.DateTime","When":"2026-02-28T12:34:56.1234567Z",
        "Old@odata.type":"Edm.DateTime","Old":"1601-01-01T00:00:00Z","Bytes@odata.type":"Edm.Binary","Bytes":"AAEC/w==",
        "Id@odata.type":"Edm.Guid","Id":"c9da6455-213d-42c9-9a79-3e9149a57833","Null":null"#,
    );
    client.insert("types", "all", "long", &format!(r#""Text":"{}""#, "long text ".repeat(200)));
    let longest = "k".repeat(512);
    for (partition, row) in [("", ""), ("it's", "a b&c=d"), ("\u{1F600}", "\u{E000}"), (&longest, &longest)] {
        client.insert("types", partition, row, r#""Kind":"key""#);
    }
    put(&client.request("PUT", "/types?comp=acl").xml(acl("r")));
    client.create_table("batches");
    let batch = (0..100).fold(Batch::new(), |batch, row| {
        batch.insert(client, "batches", "p", &format!("{row:03}"), &format!(r#""Number":{row}"#))
    });
    assert!(batch.send(client).statuses().iter().all(|status| *status == 204));
    client.create_table("again");
    for row in ["deleted", "inserted-again", "kept"] {
        client.insert("again", "p", row, r#""Life":1"#);
    }
    delete(client, &entity_path("again", "p", "deleted"));
    delete(client, &entity_path("again", "p", "inserted-again"));
    client.insert("again", "p", "inserted-again", r#""Life":2"#);
    for table in ["dropped", "remade"] {
        client.create_table(table);
        client.insert(table, "p", "r", r#""Life":1"#);
        delete(client, &format!("/Tables('{table}')"));
    }
}

fn second_tables(client: &Client) {
    let batch = Batch::new()
        .upsert(client, "batches", "p", "000", r#""Number":-1"#)
        .delete(client, "batches", "p", "001", "*")
        .insert(client, "batches", "p", "new", r#""Number":100"#);
    assert_eq!(batch.send(client).statuses(), [204, 204, 204]);
    put(&client.merge(&entity_path("again", "p", "kept"), r#"{"More":"merged"}"#).if_match("*"));
    client.create_table("remade");
    client.insert("remade", "p", "r", r#""Life":2"#);
    client.create_table("empty");
}

fn first_queues(client: &Client) -> String {
    settings(client);
    put(&client.request("PUT", "/jobs").header("x-ms-meta-Colour", "red"));
    put(&client.request("PUT", "/jobs?comp=acl").xml(acl("rp")));
    for text in ["one &lt;&amp;&gt; 世界", "two", "claimed once", ""] {
        message(client, "jobs", text, "?messagettl=-1");
    }
    message(client, "jobs", "expires in 2090", "?messagettl=2000000000");
    // The first two are claimed; one comes back at once, the other is deleted.
    let claimed = client.get("/jobs/messages?numofmessages=2&visibilitytimeout=600").send();
    let handles = handles(&claimed, "jobs");
    delete(client, &handles[0]);
    let body = "<QueueMessage><MessageText>two, changed</MessageText></QueueMessage>";
    put(&client.request("PUT", &format!("{}&visibilitytimeout=0", handles[1])).xml(body));
    put(&client.request("PUT", "/hidden"));
    message(client, "hidden", "claimed", "?messagettl=-1");
    let claimed = client.get(&format!("/hidden/messages?visibilitytimeout={WEEK_SECONDS}")).send();
    fact(&claimed)
}

fn second_queues(client: &Client) -> String {
    message(client, "jobs", "in the journal", "?messagettl=-1");
    put(&client.request("PUT", "/dropped"));
    message(client, "dropped", "gone", "?messagettl=-1");
    delete(client, "/dropped");
    fact(&message(client, "hidden", "delayed", &format!("?messagettl=-1&visibilitytimeout={WEEK_SECONDS}")))
}

fn first_blobs(client: &Client) {
    settings(client);
    put(&container(client, "docs").header("x-ms-meta-Owner", "all").header("x-ms-blob-public-access", "blob"));
    put(&client
        .request("PUT", "/docs?restype=container&comp=acl")
        .header("x-ms-blob-public-access", "blob")
        .xml(acl("rl")));
    put(&block_blob(client, "/docs/small.txt", "Hello World")
        .header("x-ms-blob-content-type", "text/plain; charset=utf-8")
        .header("x-ms-blob-content-encoding", "identity")
        .header("x-ms-blob-content-language", "en")
        .header("x-ms-blob-content-disposition", "inline")
        .header("x-ms-blob-cache-control", "no-cache")
        .header("x-ms-meta-A", "1")
        .header("x-ms-meta-b", "two words")
        .header("x-ms-tags", "kind=small&a%20b=c%2Fd"));
    put(&block_blob(client, "/docs/empty", ""));
    put(&block_blob(client, &format!("/docs/{}", seen::path("names/Grüße & <世界> 🦀'.txt")), "named"));
    // More than a pack takes: a file of its own. Git compresses it well.
    put(&block_blob(client, "/docs/large.bin", b"0123456789abcdef".repeat(20_000)));
    put(&client.request("PUT", "/docs/large.bin?comp=tier").header("x-ms-access-tier", "Cool"));
    for (id, text) in [("AAAA", "one,"), ("BBBB", "two,"), ("CCCC", "three,")] {
        stage(client, "/docs/blocks", id, text);
    }
    commit(client, "/docs/blocks", &["Latest:AAAA", "Latest:CCCC", "Latest:BBBB"]);
    put(&client.request("PUT", "/docs/blocks?comp=snapshot").body(""));
    stage(client, "/docs/blocks", "DDDD", "four");
    commit(client, "/docs/blocks", &["Committed:BBBB", "Uncommitted:DDDD"]);
    // So many that the list is stored in chunks.
    stage(client, "/docs/many-blocks", "AAAA", "a");
    stage(client, "/docs/many-blocks", "BBBB", "b");
    commit(client, "/docs/many-blocks", &["Latest:AAAA", "Latest:BBBB", "Latest:BBBB"].repeat(500));
    put(&container(client, "disks"));
    put(&client
        .request("PUT", "/disks/a.vhd")
        .header("x-ms-blob-type", "PageBlob")
        .header("x-ms-blob-content-length", (REGION_BYTES + 8192).to_string())
        .header("x-ms-blob-sequence-number", "7")
        .body(""));
    pages(client, 512, 1024, b'a');
    // Over the boundary of two regions.
    pages(client, REGION_BYTES - 512, 1024, b'b');
    put(&client.request("PUT", "/disks/a.vhd?comp=snapshot").header("x-ms-meta-of", "snapshot").body(""));
    pages(client, 1024, 512, b'c');
    put(&container(client, "logs"));
    put(&client.request("PUT", "/logs/a.log").header("x-ms-blob-type", "AppendBlob").body(""));
    append(client, "first line\n");
    leases(client);
    put(&container(client, "dropped"));
    put(&block_blob(client, "/dropped/a", "gone"));
    delete(client, "/dropped?restype=container");
}

fn leases(client: &Client) {
    for path in ["/docs/leased", "/docs/leased-for-a-while", "/docs/lease-broken"] {
        put(&block_blob(client, path, "leased"));
    }
    lease(client, "/docs/leased?comp=lease", "-1");
    lease(client, "/docs/leased-for-a-while?comp=lease", "15");
    lease(client, "/docs/lease-broken?comp=lease", "-1");
    let end = client.request("PUT", "/docs/lease-broken?comp=lease").header("x-ms-lease-action", "break");
    put(&end.header("x-ms-lease-break-period", "0").body(""));
    put(&container(client, "locked").header("x-ms-meta-k", "v"));
    lease(client, "/locked?restype=container&comp=lease", "-1");
}

fn second_blobs(client: &Client) {
    append(client, "second line, in the journal\n");
    append(client, "third line\n");
    put(&client.request("PUT", "/logs/a.log?comp=snapshot").body(""));
    pages(client, REGION_BYTES + 512, 512, b'd');
    let clear = client.request("PUT", "/disks/a.vhd?comp=page").header("x-ms-page-write", "clear");
    put(&clear.header("x-ms-range", "bytes=512-1023").body(""));
    put(&client.request("PUT", "/docs/small.txt?comp=snapshot").body(""));
    put(&block_blob(client, "/docs/small.txt", "Hello again").header("x-ms-tags", "kind=replaced"));
    for (source, target) in [("/docs/large.bin", "/docs/copy.bin"), ("/disks/a.vhd", "/disks/copy.vhd")] {
        let source = format!("{}{source}", client.base());
        put(&client
            .request("PUT", target)
            .header("x-ms-copy-source", source)
            .header("x-ms-meta-copied", "yes")
            .body(""));
    }
    stage(client, "/docs/not-committed", "AAAA", "never ");
    stage(client, "/docs/not-committed", "BBBB", "committed");
    stage(client, "/docs/blocks", "EEEE", "waiting");
    put(&container(client, "dropped"));
    put(&block_blob(client, "/dropped/b", "made again"));
}

/// Blobs with tags, one of the archive, a sealed one and an incremental copy.
fn first_tagged(client: &Client) {
    put(&container(client, seen::TAGGED));
    for (name, tags) in [("a", "kind=draft&rank=1"), ("b", "kind=draft&rank=2"), ("c", "kind=final&rank=1")] {
        put(&block_blob(client, &format!("/{}/{name}", seen::TAGGED), name).header("x-ms-tags", tags));
    }
    put(&block_blob(client, &format!("/{}/archived", seen::TAGGED), "cold").header("x-ms-access-tier", "Archive"));
    let sealed = format!("/{}/sealed.log", seen::TAGGED);
    put(&client.request("PUT", &sealed).header("x-ms-blob-type", "AppendBlob").body(""));
    put(&client.request("PUT", &format!("{sealed}?comp=appendblock")).body("all there is"));
    put(&client.request("PUT", &format!("{sealed}?comp=seal")).body(""));
    let disk = client.request("PUT", &format!("/{}/disk", seen::TAGGED)).header("x-ms-blob-type", "PageBlob");
    put(&disk.header("x-ms-blob-content-length", "4096").body(""));
    back_up(client, 0, b'1');
}

fn second_tagged(client: &Client) {
    let tags = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet><Tag><Key>kind</Key><Value>final</Value></Tag></TagSet></Tags>";
    put(&client.request("PUT", &format!("/{}/b?comp=tags", seen::TAGGED)).xml(tags));
    put(&block_blob(client, &format!("/{}/d", seen::TAGGED), "d").header("x-ms-tags", "kind=draft&rank=3"));
    delete(client, &format!("/{}/c", seen::TAGGED));
    back_up(client, 1024, b'2');
}

/// Writes a page of the disk and copies a snapshot of it incrementally.
fn back_up(client: &Client, start: u64, byte: u8) {
    let disk = format!("/{}/disk", seen::TAGGED);
    let page = client.request("PUT", &format!("{disk}?comp=page")).header("x-ms-page-write", "update");
    put(&page.header("x-ms-range", format!("bytes={start}-{}", start + 511)).body([byte; 512]));
    let snapshot = put(&client.request("PUT", &format!("{disk}?comp=snapshot")).body(""));
    let snapshot = snapshot.header("x-ms-snapshot").expect("a snapshot");
    let copy = client.request("PUT", &format!("/{}/backup?comp=incrementalcopy", seen::TAGGED));
    put(&copy.header("x-ms-copy-source", format!("{}{disk}?snapshot={snapshot}", client.base())).body(""));
}

/// Service properties with every value set, and nothing that makes the server write by itself.
fn settings(client: &Client) {
    let days = |days: u32| format!("<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>");
    let metrics = |name: &str| format!("<{name}><Version>1.0</Version><Enabled>false</Enabled>{}</{name}>", days(9));
    let logging = "<Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>";
    let cors = "<CorsRule><AllowedOrigins>http://example.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
                <AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>\
                <MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>";
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging>{logging}{}</Logging>{}{}\
         <Cors>{cors}</Cors></StorageServiceProperties>",
        days(8),
        metrics("HourMetrics"),
        metrics("MinuteMetrics"),
    );
    put(&client.request("PUT", "/?restype=service&comp=properties").xml(body));
}

fn acl(permission: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>\
         <Start>2026-01-01T00:00:00Z</Start><Expiry>2120-01-01T00:00:00Z</Expiry><Permission>{permission}</Permission>\
         </AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
}

/// Sends what must succeed.
#[track_caller]
pub(crate) fn put(request: &Request<'_>) -> Response {
    let reply = request.send();
    assert!((200..300).contains(&reply.status), "{reply}");
    reply
}

/// Deletes what must be there. Only entities need the condition.
#[track_caller]
pub(crate) fn delete(client: &Client, path: &str) {
    let request = client.request("DELETE", path);
    put(&if path.contains("PartitionKey=") { request.if_match("*") } else { request });
}

pub(crate) fn message(client: &Client, queue: &str, text: &str, query: &str) -> Response {
    let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
    put(&client.request("POST", &format!("/{queue}/messages{query}")).xml(body))
}

/// The paths of claimed messages, with their receipts.
pub(crate) fn handles(claimed: &Response, queue: &str) -> Vec<String> {
    let receipts = claimed.elements("PopReceipt");
    let pair = |(id, receipt): (&&str, &&str)| format!("/{queue}/messages/{id}?popreceipt={}", encode(receipt));
    claimed.elements("MessageId").iter().zip(&receipts).map(pair).collect()
}

/// What is needed to change a hidden message, and until when it is hidden: seconds since 1970, a little less than it
/// is.
fn fact(reply: &Response) -> String {
    let [path] = handles(reply, seen::HIDDEN).try_into().expect("one message");
    let until = unix_seconds() + WEEK_SECONDS - 600;
    format!("{FACT}{path} {until}\n")
}

pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs()
}

fn container<'c>(client: &'c Client, name: &str) -> Request<'c> {
    client.request("PUT", &format!("/{name}?restype=container"))
}

pub(crate) fn block_blob<'c>(client: &'c Client, path: &str, content: impl Into<Vec<u8>>) -> Request<'c> {
    client.request("PUT", path).header("x-ms-blob-type", "BlockBlob").body(content)
}

pub(crate) fn stage(client: &Client, path: &str, id: &str, text: &str) {
    put(&client.request("PUT", &format!("{path}?comp=block&blockid={id}")).body(text));
}

/// Commits blocks, each as `kind:id`.
pub(crate) fn commit(client: &Client, path: &str, list: &[&str]) {
    let entry = |entry: &&str| {
        let (kind, id) = entry.split_once(':').expect("a kind");
        format!("<{kind}>{id}</{kind}>")
    };
    let list: String = list.iter().map(entry).collect();
    let body = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{list}</BlockList>");
    put(&client.request("PUT", &format!("{path}?comp=blocklist")).xml(body));
}

/// Writes pages of one byte to the page blob.
pub(crate) fn pages(client: &Client, start: u64, length: u64, byte: u8) {
    let bytes = vec![byte; usize::try_from(length).expect("a few pages")];
    let request = client.request("PUT", "/disks/a.vhd?comp=page").header("x-ms-page-write", "update");
    put(&request.header("x-ms-range", format!("bytes={start}-{}", start + length - 1)).body(bytes));
}

pub(crate) fn append(client: &Client, text: &str) {
    put(&client.request("PUT", "/logs/a.log?comp=appendblock").body(text));
}

fn lease(client: &Client, path: &str, seconds: &str) {
    let request = client.request("PUT", path).header("x-ms-lease-action", "acquire");
    put(&request.header("x-ms-lease-duration", seconds).header("x-ms-proposed-lease-id", LEASE).body(""));
}

/// Waits for the end of a lease, so that what clients see no longer changes with time.
fn wait_until_expired(client: &Client, path: &str) {
    let until = Instant::now() + Duration::from_secs(120);
    while client.request("HEAD", path).send().header("x-ms-lease-state") != Some("expired") {
        assert!(Instant::now() < until, "the lease does not end");
        std::thread::sleep(Duration::from_millis(200));
    }
}
