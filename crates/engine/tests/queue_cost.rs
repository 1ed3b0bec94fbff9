//! What a call on a queue costs is counted in rows: the messages it returns, not those that are there, hidden, deleted
//! or in other hands; and what has expired is removed, also in queues without requests.

use larimar_engine::queue::{MessageHandle, NewMessage, RowQueues};
use larimar_engine::{
    Act, Beside, Budget, Fault, Flow, Key, KeyRange, MemoryEngine, MemorySnapshot, Op, Position, ReadError, Reads,
    RowRef, Rows as _, SpaceId, SpaceKind, SpaceName, Spaces as _, WriteError,
};
use larimar_model::Timestamp;
use larimar_testkit::engine::layer::{Layer, Layered};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// An engine that counts the rows it reads and the bytes it writes.
#[derive(Default)]
struct Counting {
    inner: MemoryEngine,
    rows_read: AtomicUsize,
    rows_written: AtomicUsize,
    bytes_written: AtomicUsize,
}

impl Layer for Counting {
    type Below = MemoryEngine;
    type Snapshot = MemorySnapshot;

    fn below(&self) -> &MemoryEngine {
        &self.inner
    }

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<MemorySnapshot, Fault> {
        self.inner.snapshot(reads, deadline).await
    }

    async fn get<R: Send>(
        &self,
        key: Key<'_>,
        visit: impl FnOnce(Option<RowRef<'_>>) -> R + Send,
    ) -> Result<R, ReadError> {
        self.rows_read.fetch_add(1, Relaxed);
        self.inner.get(key, visit).await
    }

    async fn scan(
        &self,
        space: SpaceId,
        range: &KeyRange,
        budget: Budget,
        mut visit: impl FnMut(RowRef<'_>) -> Flow + Send,
    ) -> Result<Option<Position>, ReadError> {
        let counted = |row: RowRef<'_>| {
            self.rows_read.fetch_add(1, Relaxed);
            visit(row)
        };
        self.inner.scan(space, range, budget, counted).await
    }

    async fn apply_with(
        &self,
        space: SpaceId,
        partition: &str,
        ops: &[Op<'_>],
        beside: &[Beside<'_>],
        now: Timestamp,
    ) -> Result<Vec<Timestamp>, WriteError> {
        for op in ops {
            self.rows_written.fetch_add(1, Relaxed);
            if let Act::Put(body) = op.act {
                self.bytes_written.fetch_add(body.len(), Relaxed);
            }
        }
        self.inner.apply_with(space, partition, ops, beside, now).await
    }
}

struct Desk {
    engine: Layered<Counting>,
    queues: RowQueues,
    queue: SpaceId,
}

const NOW: Timestamp = Timestamp::from_ticks(638_500_000_000_000_000);
const LONG: Duration = Duration::from_secs(600);

impl Desk {
    async fn open() -> Self {
        let engine = Layered(Counting::default());
        let name = SpaceName { account: "account", kind: SpaceKind::Queue, name: "queue" };
        let queue = engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
        let desk = Self { engine, queues: RowQueues::default(), queue };
        // The first look after a start walks through the queue once for what has expired; it is empty here.
        desk.put(1, b"first", Duration::ZERO).await;
        assert_eq!(desk.claim(1, NOW).await.len(), 1);
        desk
    }

    async fn put(&self, count: usize, text: &[u8], hidden_for: Duration) -> Vec<MessageHandle> {
        let mut handles = Vec::new();
        for _ in 0..count {
            let new = NewMessage { text, hidden_for, lives_for: None };
            let placed = self.queues.put(&self.engine, self.queue, new, NOW).await.expect("the queue is there");
            handles.push(MessageHandle { id: placed.id, receipt: placed.receipt });
        }
        handles
    }

    async fn claim(&self, max: usize, now: Timestamp) -> Vec<MessageHandle> {
        let claimed = self.queues.claim(&self.engine, self.queue, max, LONG, now).await.expect("the queue is there");
        claimed.into_iter().map(|message| MessageHandle { id: message.id, receipt: message.receipt }).collect()
    }

    async fn delete(&self, handles: &[MessageHandle]) {
        for handle in handles {
            self.queues.delete(&self.engine, self.queue, *handle, NOW).await.expect("the receipt holds");
        }
    }

    /// The rows read and written and the bytes written by a call.
    async fn cost<T>(&self, call: impl Future<Output = T>) -> (T, [usize; 3]) {
        let Counting { rows_read, rows_written, bytes_written, .. } = &self.engine.0;
        let figures = || [rows_read, rows_written, bytes_written].map(|figure| figure.load(Relaxed));
        let before = figures();
        let answer = call.await;
        let after = figures();
        (answer, std::array::from_fn(|figure| after[figure] - before[figure]))
    }
}

#[tokio::test]
async fn a_claim_costs_what_it_returns_however_many_are_hidden_deleted_or_left() {
    let desk = Desk::open().await;
    let text = [b'x'; 1000];
    desk.put(10_000, &text, LONG * 2).await;
    let doomed = desk.put(10_000, &text, Duration::ZERO).await;
    desk.delete(&doomed).await;
    desk.put(10_000, &text, Duration::ZERO).await;
    let (claimed, [read, written, bytes]) = desk.cost(desk.claim(32, NOW)).await;
    assert_eq!(claimed.len(), 32);
    assert!(read <= 2 * 32 + 1, "{read} rows were read");
    assert_eq!(written, 2 * 32, "each message is moved");
    assert!(bytes < 32 * 50, "and its text is left where it is: {bytes} bytes were written");
    // Nor do those that were claimed just now, deleted or not, cost the next one anything.
    desk.delete(&claimed).await;
    for _ in 0..20 {
        let (claimed, [read, ..]) = desk.cost(desk.claim(1, NOW)).await;
        assert_eq!(claimed.len(), 1);
        assert!(read <= 3, "{read} rows were read");
    }
}

#[tokio::test]
async fn a_claim_of_an_empty_queue_costs_nothing_and_a_delete_two_rows() {
    let desk = Desk::open().await;
    desk.put(10_000, b"hidden", LONG * 2).await;
    let (claimed, [read, written, _]) = desk.cost(desk.claim(32, NOW)).await;
    assert_eq!((claimed.len(), read, written), (0, 0, 0));
    let handles = desk.put(1, b"x", Duration::ZERO).await;
    let ((), [read, written, bytes]) = desk.cost(desk.delete(&handles)).await;
    assert_eq!((read, written, bytes), (1, 2, 0));
    let (_, [read, written, _]) = desk.cost(desk.put(1, b"x", Duration::ZERO)).await;
    assert_eq!((read, written), (0, 2));
}

#[tokio::test]
async fn the_count_is_kept_and_not_counted_again() {
    let desk = Desk::open().await;
    desk.put(5_000, b"x", Duration::ZERO).await;
    let count = || desk.queues.count(&desk.engine, desk.queue, NOW);
    assert_eq!(count().await, Ok(5_001));
    let handles = desk.put(10, b"x", Duration::ZERO).await;
    desk.delete(&handles[..3]).await;
    let (counted, [read, ..]) = desk.cost(count()).await;
    assert_eq!(counted, Ok(5_008));
    assert!(read <= 1, "{read} rows were read");
}

#[tokio::test]
async fn expired_messages_at_the_head_are_passed_over_once() {
    let desk = Desk::open().await;
    for _ in 0..3_000 {
        let new = NewMessage { text: b"mortal", hidden_for: Duration::ZERO, lives_for: Some(Duration::from_secs(1)) };
        desk.queues.put(&desk.engine, desk.queue, new, NOW).await.expect("the queue is there");
    }
    desk.put(100, b"lasting", Duration::ZERO).await;
    let later = NOW.after(Duration::from_secs(60));
    // Each claim removes some of them in passing.
    for _ in 0..10 {
        assert_eq!(desk.claim(1, later).await.len(), 1);
    }
    // Once a second a claim searches a slice of the queue as well; of several in a row some do not.
    let mut least = usize::MAX;
    for _ in 0..5 {
        let (claimed, [read, ..]) = desk.cost(desk.claim(1, later)).await;
        assert_eq!(claimed.len(), 1);
        least = least.min(read);
    }
    assert!(least <= 3, "{least} rows were read");
}

#[tokio::test]
async fn expired_messages_of_an_idle_queue_are_removed_while_another_is_in_use() {
    let desk = Desk::open().await;
    let name = SpaceName { account: "another", kind: SpaceKind::Queue, name: "idle" };
    let idle = desk.engine.create_space(name, b"").await.expect("no fault").expect("the name is free");
    for _ in 0..10 {
        let new = NewMessage { text: b"mortal", hidden_for: Duration::ZERO, lives_for: Some(LONG) };
        desk.queues.put(&desk.engine, idle, new, NOW).await.expect("the queue is there");
    }
    let rows = async || {
        let mut rows = 0;
        let budget = Budget { rows_max: 1000, deadline: Instant::now() + LONG };
        let visit = |_: RowRef<'_>| {
            rows += 1;
            Flow::Continue
        };
        desk.engine.scan(idle, &KeyRange::all(), budget, visit).await.expect("the queue is there");
        rows
    };
    assert_eq!(rows().await, 20);
    let patience = Instant::now() + Duration::from_secs(180);
    while rows().await > 0 {
        assert!(Instant::now() < patience, "nobody removes what has expired");
        desk.claim(1, NOW.after(LONG)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
