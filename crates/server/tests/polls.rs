//! No request keeps a thread of the runtime for long. What can be counted is checked; how long polls take is printed with
//! `cargo test --release -p larimar-server --test suite polls:: -- --include-ignored --nocapture`.

use hyper::body::Incoming;
use hyper::{Request, Response};
use larimar_engine::blob::Blobs;
use larimar_engine::blob::bytes::MemoryBytes;
use larimar_engine::{
    Act, Budget, Clock as _, Expect, Flow, KeyRange, MemoryEngine, Op, Position, Rows as _, SpaceKind, SpaceName,
    Spaces as _, SystemClock,
};
use larimar_server::{
    Account, AccountKey, BlobService, Handler, Listener, ListenerSettings, Metrics, Peer, QueueService, ResponseBody,
    Settings, Storage, TableService,
};
use larimar_testkit::Polls;
use larimar_testkit::http::{ACCOUNT, Batch, Client, KEY, encode, entity};
use larimar_wire::sas::Service;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A service whose handling is watched.
struct Watched<H> {
    inner: H,
    seen: Arc<Mutex<Vec<Polls>>>,
}

impl<H: Handler> Handler for Watched<H> {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        let (response, polls) = Polls::watch(self.inner.handle(request, peer)).await;
        self.seen.lock().expect("no panic").push(polls);
        response
    }
}

/// The three services in memory, watched.
struct Fixture {
    runtime: Runtime,
    engine: Arc<MemoryEngine>,
    seen: Arc<Mutex<Vec<Polls>>>,
    metrics: Arc<Metrics>,
}

impl Fixture {
    fn start() -> (Self, Client, Client, Client) {
        let runtime = Runtime::new().expect("a runtime");
        let engine = Arc::new(MemoryEngine::new());
        let fixture = Self { runtime, engine: Arc::clone(&engine), seen: Arc::default(), metrics: Arc::default() };
        let key = AccountKey::from_base64(KEY).expect("the well-known key");
        let accounts = vec![Account { name: ACCOUNT.to_owned(), keys: vec![key] }];
        let settings = Settings { accounts, ..Settings::default() };
        let clock = Arc::new(SystemClock);
        let storage = Storage::new(Arc::clone(&engine), clock, settings, Arc::clone(&fixture.metrics));
        let blobs = Arc::new(Blobs::new(engine, Arc::new(MemoryBytes::new(Duration::from_secs(60)))));
        let tables = fixture.serve(Service::Table, TableService::new(Arc::clone(&storage)));
        let queues = fixture.serve(Service::Queue, QueueService::new(Arc::clone(&storage)));
        let blobs = fixture.serve(Service::Blob, BlobService::new(storage, blobs));
        (fixture, tables, queues, blobs)
    }

    fn serve(&self, service: Service, inner: impl Handler) -> Client {
        let handler = Arc::new(Watched { inner, seen: Arc::clone(&self.seen) });
        let listener = Listener::new(handler, Arc::clone(&self.metrics), ListenerSettings::default());
        let socket = self.runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        self.runtime.spawn(listener.serve(socket, std::future::pending()));
        Client::of_service(address, service)
    }

    /// Puts as many blocks of a blob as a list may have, with different ids: one over the wire, the others by its row.
    fn put_blocks(&self, blobs: &Client, name: &str) {
        let first = block_id(0);
        blobs.request("PUT", &format!("/box/{name}?comp=block&blockid={first}")).body("x").send().is_status(201);
        self.runtime.block_on(async {
            let space = SpaceName { account: ACCOUNT, kind: SpaceKind::Container, name: "box" };
            let space = self.engine.space(space).await.expect("no fault").expect("the container").id;
            let budget = Budget { rows_max: usize::MAX, deadline: Instant::now() + Duration::from_secs(3600) };
            let range = KeyRange { start: Position::new(name, "u"), end: Some(Position::new(name, "v")) };
            let mut block = None;
            let scan = self.engine.scan(space, &range, budget, |row| {
                block = Some((row.row.to_owned(), row.body.to_vec()));
                Flow::Continue
            });
            scan.await.expect("a scan");
            let (row, body) = block.expect("the block's row");
            let stem = row.strip_suffix(&first).expect("the id ends the row's name");
            let rows: Vec<String> = (1..BLOCKS).map(|number| format!("{stem}{}", block_id(number))).collect();
            let ops: Vec<Op<'_>> =
                rows.iter().map(|row| Op { row, expect: Expect::Absent, act: Act::Put(&body) }).collect();
            self.engine.apply(space, name, &ops, SystemClock.now()).await.expect("they are put");
        });
    }

    /// How the request that was answered last was polled.
    fn last(&self) -> Polls {
        *self.seen.lock().expect("no panic").last().expect("a request")
    }

    fn report(&self, what: &str) {
        let Polls { count, longest, total } = self.last();
        println!("{what:<60} longest {longest:>10.1?}   {count:>5} polls   {total:>10.1?} in all");
    }
}

/// Blocks of the longest list.
const BLOCKS: u32 = 50_000;

/// The id of a block, nearly as long as one may be.
fn block_id(number: u32) -> String {
    format!("{number:08}{}", "A".repeat(72))
}

/// The body of Put Block List.
fn block_list(entry: &str) -> String {
    let entries = (0..BLOCKS).map(|number| format!("<{entry}>{}</{entry}>", block_id(number))).collect::<String>();
    format!("<BlockList>{entries}</BlockList>")
}

/// A hundred rows of 250 properties.
fn fill_wide(client: &Client) {
    client.create_table("wide");
    let members = (0..250).map(|i| format!("\"P{i}\":7")).collect::<Vec<_>>().join(",");
    let batch = (0..100).fold(Batch::new(), |batch, i| batch.insert(client, "wide", "p", &format!("{i:03}"), &members));
    batch.request(client).send().is_status(202);
}

/// A query inside a batch, whose filter is as long as one may be and admits nothing.
fn query_in_batch(client: &Client) {
    let filter = (0..2_900).map(|i| format!("P{} eq {}", i % 250, i + 8)).collect::<Vec<_>>().join(" or ");
    let url = format!("{}/wide()?$filter={}", client.base(), encode(&filter).replace("%20", "+"));
    let get = format!("GET {url} HTTP/1.1\r\nAccept: application/json\r\n\r\n");
    let body = format!("--b\r\nContent-Type: application/http\r\n\r\n{get}\r\n--b--\r\n");
    let reply =
        client.request("POST", "/$batch").header("Content-Type", "multipart/mixed; boundary=b").body(body).send();
    reply.is_status(202);
    assert!(reply.text().contains("HTTP/1.1 200"), "{reply}");
}

#[test]
fn q9_a_long_filter_over_wide_rows_is_answered_in_many_polls() {
    let (fixture, client, ..) = Fixture::start();
    fill_wide(&client);
    query_in_batch(&client);
    // 100 rows of at least 2,900 comparisons each, and a turn for others after every 50,000 steps; one row may go beyond.
    let polls = fixture.last();
    assert!(polls.count >= 100 * 2_900 / (50_000 + 6_100), "{polls:?}");
}

/// Runs a request, which takes turns with others often enough.
fn takes_turns(fixture: &Fixture, what: &str, polls_min: u32, request: impl FnOnce()) {
    request();
    let polls = fixture.last();
    fixture.report(what);
    if std::env::var_os("LOOK").is_none() {
        assert!(polls.count >= u64::from(polls_min), "{what} is done in {} polls, expected {polls_min}", polls.count);
    }
}

#[test]
fn lists_of_fifty_thousand_blocks_are_put_and_got_in_many_polls() {
    let (fixture, _, _, blobs) = Fixture::start();
    blobs.request("PUT", "/box?restype=container").send().is_status(201);
    let list = |kind: &str| blobs.get(&format!("/box/disk?comp=blocklist&blocklisttype={kind}")).send().is_status(200);
    let put = |entry: &str| {
        blobs.request("PUT", "/box/disk?comp=blocklist").body(block_list(entry)).send().is_status(201);
    };
    // Others have a turn after 512 blocks, or as many rows of blocks, and a chunk of the blob has 512 blocks.
    let slices = BLOCKS / 512;
    fixture.put_blocks(&blobs, "disk");
    takes_turns(&fixture, "get a list of 50,000 uncommitted blocks", slices, || list("uncommitted"));
    // Rows are read, looked up and cut into chunks; then all rows are looked through, and those of blocks are removed.
    takes_turns(&fixture, "put a list of 50,000 uncommitted blocks", 8 * slices, || put("Latest"));
    takes_turns(&fixture, "get a list of 50,000 committed blocks", slices, || list("committed"));
    // The old chunks are read and cut again; then those of both lists are looked through twice.
    takes_turns(&fixture, "put a list of 50,000 committed blocks", 6 * slices, || put("Committed"));
    takes_turns(&fixture, "get a blob of 50,000 blocks", slices, || {
        assert_eq!(blobs.get("/box/disk").send().body.len(), BLOCKS as usize);
    });
    takes_turns(&fixture, "copy a blob of 50,000 blocks", 4 * slices, || {
        let source = format!("{}/box/disk", blobs.base());
        blobs.request("PUT", "/box/copy").header("x-ms-copy-source", source.as_str()).send().is_status(202);
    });
    takes_turns(&fixture, "delete a blob of 50,000 blocks", 2 * slices, || {
        blobs.request("DELETE", "/box/disk").send().is_status(202);
    });
}

#[test]
#[ignore = "shows how long polls take, for those who look for long ones"]
fn the_longest_poll_of_large_requests() {
    let (fixture, client, queues, blobs) = Fixture::start();
    fill_wide(&client);
    fixture.report("transaction of 100 entities of 250 properties");
    query_in_batch(&client);
    fixture.report("query in a batch with a filter of 60 KB over wide rows");
    let excluded = |key: &str| (0..600).map(|i| format!("{key} ne '{i:03}'")).collect::<Vec<_>>().join(" and ");
    let filter = format!("{} and {}", excluded("PartitionKey"), excluded("RowKey"));
    client.get("/wide()").query("$filter", &filter).send().is_status(200);
    fixture.report("query that excludes 600 values of each key");
    client.get("/wide()").send().is_status(200);
    fixture.report("page of 100 wide entities");
    large_tables(&fixture, &client);
    large_lists(&fixture, &queues, &blobs);
}

fn large_tables(fixture: &Fixture, client: &Client) {
    client.create_table("large");
    let text = |bytes: usize| "x".repeat(bytes);
    let members = (0..14).map(|i| format!("\"S{i}\":\"{}\"", text(32_000))).collect::<Vec<_>>().join(",");
    client.post("/large", entity("p", "one", &members)).send().is_status(201);
    fixture.report("insert of an entity of nearly 1 MiB");
    let escaped = (0..14).map(|i| format!("\"S{i}\":\"{}\"", "\\u0041".repeat(32_000))).collect::<Vec<_>>().join(",");
    client.post("/large", entity("p", "two", &escaped)).send().is_status(201);
    fixture.report("insert of an entity of 2.7 MB of escapes");
    let annotations = (0..110_000).map(|i| format!("\"A{i}@odata.type\":\"Edm.String\"")).collect::<Vec<_>>().join(",");
    let reply = client.post("/large", entity("p", "three", &format!("{annotations},\"P\":1"))).send();
    println!("{} for the next", reply.status);
    fixture.report("insert with as many annotations as fit");
    let batch = (0..100).fold(Batch::new(), |batch, i| {
        batch.insert(client, "large", "q", &format!("{i:03}"), &format!("\"S\":\"{}\"", text(30_000)))
    });
    batch.request(client).send().is_status(202);
    fixture.report("transaction of 100 entities of 30 KB");
    for i in 0..4 {
        client.post("/large", entity("r", &i.to_string(), &members)).send().is_status(201);
    }
    client.get("/large()").query("$filter", "PartitionKey eq 'r'").send().is_status(200);
    fixture.report("page of 4 MB of large entities");
    let path = format!("/large(PartitionKey='{}',RowKey='x')", "%27".repeat(10_000));
    let forged = format!("SharedKey devstoreaccount1:{}=", "A".repeat(43));
    client.get(&path).unsigned().header("Authorization", forged).send().is_status(403);
    fixture.report("wrong signature of a long path");
    for i in 0..1000 {
        client.post("/Tables", format!(r#"{{"TableName":"t{i:04}"}}"#)).send().is_status(201);
    }
    client.get("/Tables").accept("application/json;odata=fullmetadata").send().is_status(200);
    fixture.report("Query Tables over 1,000 tables");
    let filter = (0..1_200).map(|i| format!("TableName eq 'x{i}'")).collect::<Vec<_>>().join(" or ");
    client.get("/Tables").query("$filter", &filter).send().is_status(200);
    fixture.report("Query Tables over 1,000 tables with a filter of 1,200 comparisons");
}

fn large_lists(fixture: &Fixture, queues: &Client, blobs: &Client) {
    let metadata = |request: larimar_testkit::http::Request<'_>| {
        let pairs = (0..1365).fold(request, |request, i| request.also(&format!("x-ms-meta-n{i:04}"), "v"));
        pairs.send().is_status(201);
    };
    metadata(queues.request("PUT", "/jobs"));
    fixture.report("create a queue with 1,365 metadata pairs");
    blobs.request("PUT", "/box?restype=container").send().is_status(201);
    let put = |name: &str| blobs.request("PUT", &format!("/box/{name}")).header("x-ms-blob-type", "BlockBlob");
    metadata(put("many").body(""));
    fixture.report("put a blob with 1,365 metadata pairs");
    let value = "v".repeat(1000);
    for i in 0..5000 {
        put(&format!("b{i:04}")).header("x-ms-meta-a", value.as_str()).body("").send().is_status(201);
    }
    blobs.get("/box?restype=container&comp=list&include=metadata").send().is_status(200);
    fixture.report("list 5,000 blobs with 1 KB of metadata each");
    put("large").body(vec![7; 16 << 20]).send().is_status(201);
    fixture.report("put a blob of 16 MiB");
}
