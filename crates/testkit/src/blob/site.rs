//! A container on a fresh engine, and short ways to say what tests do with it.

use crate::Dice;
use crate::engine::layer::{Layer, Layered};
use crate::postgres::TurnedClock;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Bytes, Extent};
use larimar_engine::blob::{
    Access, BlobRef, BlobReject, Blobs, ListItem, ListPage, ListQuery, NewBlob, NewContainer, OpenBlob, Written,
};
use larimar_engine::{
    Act, Beside, Budget, Engine, EngineError, Fault, Flow, Key, KeyRange, Op, Position, ReadError, Reads, Reject,
    RowRef, Rows as _, Snapshot, SpaceId, WriteError,
};
use larimar_model::Timestamp;
use larimar_model::blob::{BlobName, BlockId, BlockListEntry, ByteRange, SnapshotTime};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The service with an empty container, and a clock that moves a little with every question.
#[derive(Debug)]
pub struct Site<E, B> {
    /// The service.
    pub blobs: Arc<Blobs<Layered<Counting<E>>, B>>,
    /// The container's number.
    pub container: SpaceId,
    engine: Arc<Layered<Counting<E>>>,
    bytes: Arc<B>,
    clock: Arc<AtomicU64>,
    visited: Arc<AtomicU64>,
    written: Arc<WrittenRows>,
    calls_left: Arc<AtomicU64>,
    kept: Arc<dyn Kept>,
}

/// What a test keeps until it ends, such as a folder; for an engine that is shared, also the clock that it goes by.
pub trait Kept: std::fmt::Debug + Send + Sync + 'static {
    /// Turns the clock of a shared engine forward.
    fn advance(&self, _span: Duration) {}
}

impl Kept for () {}

impl Kept for tempfile::TempDir {}

impl Kept for TurnedClock<'static> {
    fn advance(&self, span: Duration) {
        TurnedClock::advance(self, span);
    }
}

/// What was written so far.
#[derive(Debug, Default)]
struct WrittenRows {
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// An engine that counts the rows its scans visit and those it writes, and lets others go on before each of its calls: also an engine that
/// answers at once has then many callers at a time. It can be told to fail after so many calls, as if the process stopped
/// there.
pub struct Counting<E> {
    engine: Arc<E>,
    visited: Arc<AtomicU64>,
    written: Arc<WrittenRows>,
    calls_left: Arc<AtomicU64>,
    turns: Mutex<Dice>,
    interruptions: Mutex<VecDeque<Interruption>>,
}

/// What happens before a call: how many calls come before that one, and what it is.
pub(super) type Interruption = (u64, Pin<Box<dyn Future<Output = ()> + Send>>);

impl<E: std::fmt::Debug> std::fmt::Debug for Counting<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counting").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Calls of an engine that does not stop.
const ENDLESS: u64 = u64::MAX;
/// Calls of an engine that stops after its next write.
const UNTIL_WRITE: u64 = u64::MAX - 1;

impl WrittenRows {
    fn count(&self, ops: &[Op<'_>]) {
        for op in ops {
            let bytes = match op.act {
                Act::Put(body) => body.len() as u64,
                Act::Delete | Act::Edit(_) => 0,
                Act::Check => continue,
            };
            self.rows.fetch_add(1, SeqCst);
            self.bytes.fetch_add(bytes, SeqCst);
        }
    }
}

impl<E> Counting<E> {
    /// Lets others go on, now more and now fewer of them, so that callers meet in many orders.
    async fn wait_a_turn(&self) {
        self.interrupt().await;
        let turns = {
            let mut dice = self.turns.lock().expect("nobody panics with the dice");
            if dice.below(16) == 0 { 60 } else { dice.below(4) }
        };
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    /// Lets the next interruption happen if it is its turn. The calls that it makes itself do not count.
    async fn interrupt(&self) {
        let (due, mut later) = {
            let mut waiting = self.interruptions.lock().expect("nobody panics with the interruptions");
            match waiting.front_mut() {
                Some((0, _)) => {}
                Some((calls, _)) => {
                    *calls -= 1;
                    return;
                }
                None => return,
            }
            (waiting.pop_front(), std::mem::take(&mut *waiting))
        };
        if let Some((_, due)) = due {
            due.await;
        }
        self.interruptions.lock().expect("nobody panics with the interruptions").append(&mut later);
    }

    /// Takes one of the calls that are left. Of the last write it may be that it is done and only its answer is lost.
    fn take_call(&self) -> Result<(), Fault> {
        let take = |left: u64| if left >= UNTIL_WRITE { None } else { left.checked_sub(1) };
        match self.calls_left.fetch_update(SeqCst, SeqCst, take) {
            Ok(_) | Err(ENDLESS | UNTIL_WRITE) => Ok(()),
            Err(_) => Err(Fault::Unavailable("the engine has stopped".to_owned())),
        }
    }

    fn loses_answer(&self) -> bool {
        self.calls_left.load(SeqCst) == 0 && self.turns.lock().expect("nobody panics with the dice").below(2) == 0
    }
}

impl<E: Engine> Layer for Counting<E> {
    type Below = E;
    type Snapshot = CountingSnapshot<E::Snapshot>;

    fn below(&self) -> &E {
        &self.engine
    }

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<Self::Snapshot, Fault> {
        self.wait_a_turn().await;
        self.take_call()?;
        let snapshot = self.engine.snapshot(reads, deadline).await?;
        Ok(CountingSnapshot { snapshot, visited: Arc::clone(&self.visited) })
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        self.wait_a_turn().await;
        self.take_call()?;
        self.engine.get(key, visit).await
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        self.wait_a_turn().await;
        self.take_call()?;
        self.written.count(ops);
        self.written.rows.fetch_add(beside.len() as u64, SeqCst);
        let applied = self.engine.apply_with(space, partition, ops, beside, now).await;
        if self.loses_answer() {
            return Err(Fault::Ambiguous("the engine has stopped".to_owned()).into());
        }
        let _ = self.calls_left.compare_exchange(UNTIL_WRITE, 0, SeqCst, SeqCst);
        applied
    }

    async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let counted = |row: RowRef<'_>| {
            self.visited.fetch_add(1, SeqCst);
            visit(row)
        };
        self.wait_a_turn().await;
        self.take_call()?;
        self.engine.scan(space, range, budget, counted).await
    }
}

/// A snapshot that counts the rows it reads.
#[derive(Debug)]
pub struct CountingSnapshot<S> {
    snapshot: S,
    visited: Arc<AtomicU64>,
}

impl<S: Snapshot> Snapshot for CountingSnapshot<S> {
    async fn scan(
        &mut self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let visited = &self.visited;
        let counted = |row: RowRef<'_>| {
            visited.fetch_add(1, SeqCst);
            visit(row)
        };
        self.snapshot.scan(space, range, budget, counted).await
    }

    async fn get_many(
        &mut self,
        space: SpaceId,
        keys: &[(&str, &str)],
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<usize>, ReadError> {
        let visited = &self.visited;
        let counted = |row: RowRef<'_>| {
            visited.fetch_add(1, SeqCst);
            visit(row)
        };
        self.snapshot.get_many(space, keys, budget, counted).await
    }
}

/// The account that the site's container is in.
pub(super) const ACCOUNT: &str = "account";

impl<E: Engine, B: ByteStore> Site<E, B> {
    /// Makes the container `container`.
    pub async fn open(engine: Arc<E>, bytes: Arc<B>, kept: impl Kept) -> Self {
        let visited = Arc::new(AtomicU64::new(0));
        let written = Arc::<WrittenRows>::default();
        let calls_left = Arc::new(AtomicU64::new(ENDLESS));
        let engine = Arc::new(Layered(Counting {
            engine,
            visited: Arc::clone(&visited),
            written: Arc::clone(&written),
            calls_left: Arc::clone(&calls_left),
            turns: Mutex::new(Dice::new(7)),
            interruptions: Mutex::default(),
        }));
        let blobs = Arc::new(Blobs::new(Arc::clone(&engine), Arc::clone(&bytes)));
        let clock = Arc::new(AtomicU64::new(Timestamp::parse("2030-01-01T00:00:00Z").expect("a time").ticks()));
        let mut site = Self {
            blobs,
            container: SpaceId::SYSTEM,
            engine,
            bytes,
            clock,
            visited,
            written,
            calls_left,
            kept: Arc::new(kept),
        };
        let name = "container".parse().expect("a name");
        let created = site.blobs.create_container(ACCOUNT, &name, &NewContainer::default(), site.now()).await;
        site.container = created.expect("a container").id;
        site
    }

    /// The same container as another server sees it: what servers do to keep out of their own way does not help it.
    pub fn second(&self) -> Self {
        self.served_by(Blobs::new(Arc::clone(&self.engine), Arc::clone(&self.bytes)))
    }

    /// As [`Site::second`], by a server where a rehydration takes this long.
    pub fn rehydrating(&self, time: Duration) -> Self {
        let blobs = Blobs::new(Arc::clone(&self.engine), Arc::clone(&self.bytes));
        self.served_by(blobs.with_rehydration_time(time))
    }

    fn served_by(&self, blobs: Blobs<Layered<Counting<E>>, B>) -> Self {
        Self {
            blobs: Arc::new(blobs),
            container: self.container,
            engine: Arc::clone(&self.engine),
            bytes: Arc::clone(&self.bytes),
            clock: Arc::clone(&self.clock),
            visited: Arc::clone(&self.visited),
            written: Arc::clone(&self.written),
            calls_left: Arc::clone(&self.calls_left),
            kept: Arc::clone(&self.kept),
        }
    }

    /// Runs what others do in the middle of an operation: each before the engine's call that comes after so many calls
    /// since the one before it. Whatever the operation did not come to is forgotten.
    pub(super) async fn interrupted<T>(&self, others: Vec<Interruption>, operation: impl Future<Output = T>) -> T {
        *self.engine.0.interruptions.lock().expect("nobody panics with the interruptions") = others.into();
        let outcome = operation.await;
        self.engine.0.interruptions.lock().expect("nobody panics with the interruptions").clear();
        outcome
    }

    /// The time, a millisecond after the last time it was asked for.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.clock.fetch_add(10_000, SeqCst))
    }

    /// Turns the clock forward, and that of a shared engine, which notices soon.
    pub async fn advance(&self, span: Duration) {
        let before = self.blobs.engine().now(self.now()).await.expect("no fault").latest;
        self.clock.fetch_add(span.as_nanos() as u64 / 100, SeqCst);
        self.kept.advance(span);
        crate::bytes::eventually("the clock is turned", async || {
            self.blobs.engine().now(self.now()).await.expect("no fault").earliest >= before.after(span)
        })
        .await;
    }

    /// Lets the engine fail after so many calls, until [`Site::go_on`].
    pub fn stop_after(&self, calls: u64) {
        self.calls_left.store(calls, SeqCst);
    }

    /// Lets the engine fail after its next write, until [`Site::go_on`]: changes are committed and nothing is cleaned up.
    pub fn stop_after_write(&self) {
        self.calls_left.store(UNTIL_WRITE, SeqCst);
    }

    /// Lets the engine work again.
    pub fn go_on(&self) {
        self.calls_left.store(ENDLESS, SeqCst);
    }

    /// A blob of the container.
    pub fn at<'a>(&self, name: &'a BlobName) -> BlobRef<'a> {
        BlobRef { container: self.container, name }
    }

    /// Writes bytes for a blob.
    pub async fn payload(&self, name: &BlobName, bytes: &[u8]) -> Extent {
        let mut writer = self.blobs.begin(self.at(name), Some(bytes.len() as u64)).await.expect("a payload begins");
        writer.write(Bytes::copy_from_slice(bytes)).await.expect("bytes are taken");
        writer.finish().await.expect("the payload is written")
    }

    /// Puts a block blob without conditions.
    pub async fn put(&self, name: &BlobName, bytes: &[u8]) -> Written {
        self.put_if(name, bytes, &Access::default()).await.expect("it is put")
    }

    /// Puts a block blob.
    pub async fn put_if(&self, name: &BlobName, bytes: &[u8], access: &Access) -> Result<Written, EngineError> {
        let extent = self.payload(name, bytes).await;
        self.blobs.put_block_blob(self.at(name), Some(extent), &NewBlob::default(), access, self.now()).await
    }

    /// Puts a block.
    pub async fn put_block(&self, name: &BlobName, id: &BlockId, bytes: &[u8]) -> Result<(), EngineError> {
        let extent = self.payload(name, bytes).await;
        self.blobs.put_block(self.at(name), id, extent, None, self.now()).await
    }

    /// Commits a list of blocks.
    pub async fn commit(&self, name: &BlobName, list: &[BlockListEntry]) -> Result<Written, EngineError> {
        self.blobs.put_block_list(self.at(name), list, &NewBlob::default(), &Access::default(), self.now()).await
    }

    /// Reads a whole blob.
    pub async fn read(&self, name: &BlobName) -> Result<Vec<u8>, EngineError> {
        self.read_of(name, None, None).await
    }

    /// Reads a blob or a snapshot, or a range of it.
    pub async fn read_of(
        &self,
        name: &BlobName,
        snapshot: Option<SnapshotTime>,
        range: Option<ByteRange>,
    ) -> Result<Vec<u8>, EngineError> {
        let open = self.blobs.open(self.at(name), snapshot, range, &Access::default(), self.now()).await?;
        drain(open).await
    }

    /// A page of a listing.
    pub async fn list(&self, query: &ListQuery) -> ListPage {
        self.blobs.list_blobs(self.container, query, self.now()).await.expect("a page")
    }

    /// Payloads that are there.
    pub fn payloads(&self) -> u64 {
        let figures = self.blobs.bytes().statistics();
        figures.payloads_written - figures.payloads_removed
    }

    /// Waits until so many payloads are there.
    pub async fn expect_payloads(&self, count: u64, why: &str) {
        crate::bytes::eventually(why, || async { self.payloads() == count }).await;
    }

    /// Rows that scans have visited so far.
    pub fn visited(&self) -> u64 {
        self.visited.load(SeqCst)
    }

    /// Rows that were put or deleted so far, and the bytes that were put.
    pub fn written(&self) -> (u64, u64) {
        (self.written.rows.load(SeqCst), self.written.bytes.load(SeqCst))
    }

    /// All rows of the container but those of the index of tags: blob and row name.
    pub async fn rows(&self) -> Vec<(String, String)> {
        let mut rows = self.all_rows().await;
        rows.retain(|(blob, _)| !blob.is_empty());
        rows
    }

    /// The names of the rows of the index of tags; the first says how far it was built.
    pub async fn index_rows(&self) -> Vec<String> {
        let rows = self.all_rows().await.into_iter();
        rows.filter(|(blob, _)| blob.is_empty()).map(|(_, row)| row).collect()
    }

    async fn all_rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut range = KeyRange::all();
        loop {
            let budget = Budget { rows_max: 10_000, deadline: std::time::Instant::now() + Duration::from_secs(60) };
            let next = self.blobs.engine().scan(self.container, &range, budget, |row| {
                rows.push((row.partition.to_owned(), row.row.to_owned()));
                Flow::Continue
            });
            match next.await.expect("a scan") {
                Some(next) => range.start = next,
                None => return rows,
            }
        }
    }
}

/// Reads an open blob to its end.
pub(super) async fn drain<B: ByteStore>(mut open: OpenBlob<B>) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Vec::new();
    while let Some(piece) = open.content.next().await? {
        assert!(!piece.is_empty() && piece.len() <= 1 << 20, "pieces are bounded");
        bytes.extend_from_slice(&piece);
    }
    assert_eq!(bytes.len() as u64, open.range.end - open.range.start);
    Ok(bytes)
}

/// A blob's name.
pub(super) fn blob(name: &str) -> BlobName {
    name.parse().expect("a name")
}

/// A block's id: base64 of three bytes.
pub(super) fn id(number: u32) -> BlockId {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |shift: u32| char::from(DIGITS[(number >> shift & 63) as usize]);
    let text: String = [digit(18), digit(12), digit(6), digit(0)].into_iter().collect();
    BlockId::parse(&text).expect("an id")
}

/// Bytes that tell where they are from.
pub(super) fn filled(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|n| seed.wrapping_mul(31).wrapping_add(n as u8).wrapping_add((n >> 8) as u8)).collect()
}

/// What a refusal of the Blob service looks like.
pub(super) fn refused<T>(reject: impl Into<BlobReject>) -> Result<T, EngineError> {
    Err(EngineError::Reject(Reject::Blob(reject.into())))
}

/// The names of a page, snapshots marked by `@`, prefixes as they are.
pub(super) fn names(page: &ListPage) -> Vec<String> {
    let name = |item: &ListItem| match item {
        ListItem::Prefix(prefix) => prefix.clone(),
        ListItem::Blob(blob) if blob.snapshot.is_some() => format!("{}@", blob.name),
        ListItem::Blob(blob) => blob.name.clone(),
    };
    page.items.iter().map(name).collect()
}
