//! A table that another server deletes and makes anew is found at once, though the engine's lookup is a moment old.

use larimar_engine::{
    Beside, Budget, Fault, Flow, Key, KeyRange, MemoryEngine, MemorySnapshot, Op, Position, ReadError, Reads, RowRef,
    Rows as _, Snapshot, Space, SpaceId, SpaceKind, SpaceName, Spaces as _, SystemClock, WriteError,
};
use larimar_model::Timestamp;
use larimar_server::{Account, AccountKey, Listener, ListenerSettings, Metrics, Settings, Storage, TableService};
use larimar_testkit::engine::layer::{Layer, Layered};
use larimar_testkit::http::{self, ACCOUNT, Batch, BatchReply, Client, KEY, entity_path};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

const TABLE: SpaceName<'_> = SpaceName { account: ACCOUNT, kind: SpaceKind::Table, name: "shared" };

/// An engine that looks a table up once, and again only after its number was refused.
#[derive(Default)]
struct Stale {
    inner: MemoryEngine,
    seen: Arc<Seen>,
}

/// What was looked up.
#[derive(Default)]
struct Seen(Mutex<HashMap<String, Space>>);

impl Seen {
    fn forget(&self, id: SpaceId) {
        self.0.lock().expect("no panic").retain(|_, space| space.id != id);
    }

    fn noting<T>(&self, id: SpaceId, result: Result<T, ReadError>) -> Result<T, ReadError> {
        if matches!(result, Err(ReadError::SpaceGone)) {
            self.forget(id);
        }
        result
    }
}

/// A snapshot whose refusals are noted too.
struct StaleSnapshot {
    inner: MemorySnapshot,
    seen: Arc<Seen>,
}

impl Snapshot for StaleSnapshot {
    async fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        self.seen.noting(space, self.inner.scan(space, range, budget, visit).await)
    }

    async fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<usize>, ReadError> {
        self.seen.noting(space, self.inner.get_many(space, keys, budget, visit).await)
    }
}

impl Layer for Stale {
    type Below = MemoryEngine;
    type Snapshot = StaleSnapshot;

    fn below(&self) -> &MemoryEngine {
        &self.inner
    }

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<StaleSnapshot, Fault> {
        Ok(StaleSnapshot { inner: self.inner.snapshot(reads, deadline).await?, seen: Arc::clone(&self.seen) })
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        self.seen.noting(key.space, self.inner.get(key, visit).await)
    }

    async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        self.seen.noting(space, self.inner.scan(space, range, budget, visit).await)
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        let result = self.inner.apply_with(space, partition, ops, beside, now).await;
        if matches!(result, Err(WriteError::SpaceGone)) {
            self.seen.forget(space);
        }
        result
    }

    async fn recent_space(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        if let Some(space) = self.seen.0.lock().expect("no panic").get(name.name) {
            return Ok(Some(space.clone()));
        }
        let found = self.inner.space(name).await?;
        if let Some(space) = &found {
            self.seen.0.lock().expect("no panic").insert(name.name.to_owned(), space.clone());
        }
        Ok(found)
    }
}

/// A server over the engine, and what another server may do to the engine.
struct Fixture {
    engine: Arc<Layered<Stale>>,
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl Fixture {
    fn start() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let engine = Arc::new(Layered::<Stale>::default());
        let key = AccountKey::from_base64(KEY).expect("the well-known key");
        let accounts = vec![Account { name: ACCOUNT.to_owned(), keys: vec![key] }];
        let metrics = Arc::new(Metrics::default());
        let settings = Settings { accounts, ..Settings::default() };
        let storage = Storage::new(Arc::clone(&engine), Arc::new(SystemClock), settings, Arc::clone(&metrics));
        let service = TableService::new(storage);
        let settings = ListenerSettings {
            connections_max: 16,
            header_bytes_max: 64 << 10,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            shutdown_grace: Duration::ZERO,
            ..ListenerSettings::default()
        };
        let listener = Listener::new(Arc::new(service), metrics, settings);
        let socket = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = socket.local_addr().expect("a bound socket");
        runtime.spawn(listener.serve(socket, std::future::pending()));
        let client = Client::new(address);
        client.create_table("shared");
        Self { engine, client, runtime }
    }

    /// Another server deletes the table; ours has its number and goes on with it.
    fn drop_table(&self) -> Arc<[u8]> {
        self.runtime.block_on(async {
            let space = self.engine.recent_space(TABLE).await.expect("no fault").expect("a table");
            assert!(self.engine.0.inner.drop_space(TABLE).await.expect("no fault"));
            space.meta
        })
    }

    /// Another server deletes the table and makes it anew, with one entity.
    fn replace_table(&self) {
        let meta = self.drop_table();
        self.runtime.block_on(async {
            let id = self.engine.0.inner.create_space(TABLE, &meta).await.expect("no fault").expect("a new table");
            let row = RowRef { partition: "p", row: "there", version: Timestamp::from_ticks(1 << 59), body: BODY };
            self.engine.0.inner.restore(id, &[row]).await.expect("a row");
        });
    }
}

/// An entity without properties.
const BODY: &[u8] = &[];

#[test]
fn every_operation_finds_the_table_that_took_the_name() {
    let fixture = Fixture::start();
    let client = &fixture.client;
    let there = entity_path("shared", "p", "there");
    type Operation<'a> = (&'a str, &'a dyn Fn());
    let operations: &[Operation<'_>] = &[
        ("get", &|| client.get(&there).send().is_status(200)),
        ("query", &|| assert_eq!(client.get("/shared()").send().values().len(), 1)),
        ("insert", &|| client.post("/shared", http::entity("p", "new", "")).send().is_status(201)),
        ("merge", &|| client.merge(&there, "{}").header("If-Match", "*").send().is_status(204)),
        ("delete", &|| client.delete(&there).send().is_status(204)),
        ("transaction", &|| {
            let batch =
                Batch::new().insert(client, "shared", "p", "new", "").upsert(client, "shared", "p", "there", "");
            assert_eq!(batch.send(client).statuses(), [204, 204]);
        }),
        ("query in a batch", &|| assert_eq!(query_batch(client, &there).statuses(), [200])),
    ];
    for (name, operation) in operations {
        println!("{name}");
        fixture.replace_table();
        operation();
    }
}

#[test]
fn a_table_that_is_gone_is_told_by_every_operation() {
    let fixture = Fixture::start();
    let client = &fixture.client;
    let meta = fixture.drop_table();
    let there = entity_path("shared", "p", "there");
    let again = || {
        let stale = fixture.engine.0.inner.create_space(TABLE, &meta);
        fixture.runtime.block_on(stale).expect("no fault").expect("a new table");
        fixture.drop_table();
    };
    client.get(&there).send().is_error(404, "TableNotFound");
    again();
    client.post("/shared", http::entity("p", "new", "")).send().is_error(404, "TableNotFound");
    again();
    assert_eq!(Batch::new().insert(client, "shared", "p", "new", "").send(client).statuses(), [404]);
    again();
    assert_eq!(query_batch(client, &there).statuses(), [404]);
}

/// A batch of one query.
fn query_batch(client: &Client, path: &str) -> BatchReply {
    let target = format!("{}{path}", client.base());
    let body = format!(
        "--batch_q\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
         GET {target} HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n\r\n\r\n--batch_q--\r\n"
    );
    BatchReply::new(Batch::raw(client, body).header("Content-Type", "multipart/mixed; boundary=batch_q").send())
}
