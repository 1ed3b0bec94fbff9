//! A container on a fresh engine, and shorthands for tests.

use super::counting::{Counting, ENDLESS, Interruption, UNTIL_WRITE, WrittenRows};
use crate::Dice;
use crate::engine::layer::Layered;
use crate::postgres::TurnedClock;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Bytes, Extent};
use larimar_engine::blob::{
    AccessConditions, BlobRef, BlobReject, Blobs, CopyRequest, CopySource, ListItem, ListPage, ListQuery, NewBlob,
    NewContainer, OpenBlob, Written,
};
use larimar_engine::{Budget, Engine, EngineError, Flow, KeyRange, Reject, Rows as _, SpaceId};
use larimar_model::blob::{BlobName, BlockId, BlockListEntry, ByteRange, Conditions, SnapshotTime};
use larimar_model::{Guid, Timestamp};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The service with an empty container, and a clock that advances with every read.
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

/// What a test keeps until it ends, such as a directory; for a shared engine, also the clock of its database.
pub trait Kept: std::fmt::Debug + Send + Sync + 'static {
    /// Turns the clock of a shared engine forward.
    fn advance(&self, _span: Duration) {}

    /// The rounds of a long test: `few` where each round costs round trips, `many` on an engine in this process. A
    /// default run has fewer, unless `LARIMAR_ROUNDS` is 10 or more, as in `cargo xtask test --rest`.
    fn rounds(&self, many: u32, few: u32) -> u32 {
        let tenths = std::env::var("LARIMAR_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS_TENTHS);
        few.max(many * tenths.min(10) / 10)
    }
}

impl Kept for () {}

impl Kept for tempfile::TempDir {}

impl Kept for TurnedClock<'static> {
    fn advance(&self, span: Duration) {
        TurnedClock::advance(self, span);
    }

    fn rounds(&self, _many: u32, few: u32) -> u32 {
        few
    }
}

/// How many tenths of the rounds a default run has.
const ROUNDS_TENTHS: u32 = 3;

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
            dice: Mutex::new(Dice::new(7)),
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

    /// The same container through another server, which shares no locks with this one.
    pub fn second(&self) -> Self {
        self.served_by(Blobs::new(Arc::clone(&self.engine), Arc::clone(&self.bytes)))
    }

    /// As [`Site::second`], with another rehydration time.
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

    /// Runs an operation with interruptions, each before an engine call, counted from the interruption before it.
    /// Interruptions that are not reached are dropped.
    pub(super) async fn interrupted<T>(&self, others: Vec<Interruption>, operation: impl Future<Output = T>) -> T {
        *self.engine.0.interruptions.lock().expect("no panic while locked") = others.into();
        let outcome = operation.await;
        self.engine.0.interruptions.lock().expect("no panic while locked").clear();
        outcome
    }

    /// The rounds of a long test on this engine, as [`Kept::rounds`].
    pub fn rounds(&self, many: u32, few: u32) -> u32 {
        self.kept.rounds(many, few)
    }

    /// The time: each call is a millisecond later.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.clock.fetch_add(10_000, SeqCst))
    }

    /// Advances the clock, and that of a shared engine, and waits until the engine uses it.
    pub async fn advance(&self, span: Duration) {
        let before = self.blobs.engine().now(self.now()).await.expect("no fault").latest;
        self.clock.fetch_add(span.as_nanos() as u64 / 100, SeqCst);
        self.kept.advance(span);
        crate::bytes::eventually("the clock is turned", async || {
            self.blobs.engine().now(self.now()).await.expect("no fault").earliest >= before.after(span)
        })
        .await;
    }

    /// Lets the engine fail after a number of calls, until [`Site::go_on`].
    pub fn stop_after(&self, calls: u64) {
        self.calls_left.store(calls, SeqCst);
    }

    /// Lets the engine fail after its next write, until [`Site::go_on`]: changes are committed and nothing is
    /// reclaimed.
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

    /// A blob or a snapshot as the source of a copy, without conditions.
    pub(super) fn source<'a>(&self, name: &'a BlobName, snapshot: Option<SnapshotTime>) -> CopySource<'a> {
        CopySource { at: self.at(name), snapshot, conditions: Conditions::NONE, if_tags: None }
    }

    /// Writes bytes for a blob.
    pub async fn payload(&self, name: &BlobName, bytes: &[u8]) -> Extent {
        let mut writer = self.blobs.begin(self.at(name), Some(bytes.len() as u64)).await.expect("a payload begins");
        writer.write(Bytes::copy_from_slice(bytes)).await.expect("bytes are taken");
        writer.finish().await.expect("the payload is written")
    }

    /// Puts a block blob without conditions.
    pub async fn put(&self, name: &BlobName, bytes: &[u8]) -> Written {
        self.put_if(name, bytes, &AccessConditions::default()).await.expect("it is put")
    }

    /// Puts a block blob.
    pub async fn put_if(
        &self,
        name: &BlobName,
        bytes: &[u8],
        access: &AccessConditions,
    ) -> Result<Written, EngineError> {
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
        self.blobs
            .put_block_list(self.at(name), list, &NewBlob::default(), &AccessConditions::default(), self.now())
            .await
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
        let open = self.blobs.open(self.at(name), snapshot, range, &AccessConditions::default(), self.now()).await?;
        drain(open).await
    }

    /// A page of a listing.
    pub async fn list(&self, query: &ListQuery) -> ListPage {
        self.blobs.list_blobs(self.container, query, self.now()).await.expect("a page")
    }

    /// The number of payloads.
    pub fn payloads(&self) -> u64 {
        let figures = self.blobs.bytes().statistics();
        figures.payloads_written - figures.payloads_removed
    }

    /// Waits until there are `count` payloads.
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

    /// All rows of the container except the tag index: blob and row name.
    pub async fn rows(&self) -> Vec<(String, String)> {
        let mut rows = self.all_rows().await;
        rows.retain(|(blob, _)| !blob.is_empty());
        rows
    }

    /// The names of the rows of the tag index; the first is its progress.
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

/// A copy that takes everything over from its source.
pub(super) fn plain_copy() -> CopyRequest {
    CopyRequest {
        id: Guid([1; 16]),
        source_url: String::new(),
        metadata: None,
        tags: None,
        tier: None,
        seal: None,
        rehydrate: None,
    }
}

/// A block's id: base64 of three bytes.
pub(super) fn id(number: u32) -> BlockId {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |shift: u32| char::from(DIGITS[(number >> shift & 63) as usize]);
    let text: String = [digit(18), digit(12), digit(6), digit(0)].into_iter().collect();
    BlockId::parse(&text).expect("an id")
}

/// Bytes that identify their seed and offset.
pub(super) fn filled(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|n| seed.wrapping_mul(31).wrapping_add(n as u8).wrapping_add((n >> 8) as u8)).collect()
}

/// A rejection of the Blob service.
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
