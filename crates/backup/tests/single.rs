//! Single spaces restored into a store in use: what a server that died left, and a queue that does not fit in memory.

use crate::round_trip::{Store, noise};
use larimar_backup::{JobState, Place, Rate, SingleJob, Wanted};
use larimar_engine::blob::Reclaimer;
use larimar_engine::queue::{Message, MessageIds};
use larimar_engine::{
    Clock as _, Engine as _, Messages as _, SpaceKind, SpaceName, Spaces as _, SystemClock, sweep_hidden,
};
use larimar_model::Timestamp;
use larimar_model::queue::Receipt;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn job(store: &Store) -> SingleJob<larimar_engine_local::LocalEngine, larimar_engine::blob::bytes::MemoryBytes> {
    SingleJob::new(Arc::clone(&store.engine), Some(Arc::clone(&store.bytes)), false, Arc::default())
}

fn wanted(kind: SpaceKind, text: &str) -> Vec<Wanted> {
    vec![Wanted::read(kind, text, "one", "one").expect("names")]
}

#[test]
fn what_a_server_that_died_has_restored_is_dropped_and_its_bytes_go() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = Place::directory(folder.path().join("place"));
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let first = runtime();
    let store = Store::in_folder(folder.path().join("data"));
    first.block_on(async {
        let photos = store.create_container("photos").await;
        for number in 0..8 {
            store.put_blob(photos, &format!("blob{number}"), noise(number, 600_000)).await;
        }
        store.back_up(&place).await;
        let job = job(&store);
        job.start(place.clone(), None, wanted(SpaceKind::Container, "photos=copy"), Rate::Bytes(1)).expect("started");
        let deadline = Instant::now() + Duration::from_secs(60);
        while job.status().totals.payloads == 0 {
            assert!(Instant::now() < deadline && job.status().state == JobState::Running, "{:?}", job.status());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    // The task ends where it is, as in a process that is killed.
    first.shutdown_timeout(Duration::from_secs(60));
    let bytes = Arc::clone(&store.bytes);
    assert!(bytes.payloads() > 8, "{} payloads", bytes.payloads());
    drop(store);
    runtime().block_on(async {
        let store = Store::in_folder_with(folder.path().join("data"), Arc::clone(&bytes));
        let name = SpaceName { account: "one", kind: SpaceKind::Container, name: "" };
        let names = async || {
            let spaces = store.engine.list_spaces(name, 10).await.expect("no fault");
            spaces.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["photos"]);
        let now = SystemClock.now();
        assert_eq!(sweep_hidden(&*store.engine, now).await, Ok(0), "another server may be filling it");
        assert_eq!(sweep_hidden(&*store.engine, now.after(Duration::from_secs(6 * 60))).await, Ok(1));
        let mut reclaimer = Reclaimer::new(Duration::ZERO);
        while reclaimer.step(&store.blobs).await.expect("no fault") {}
        store.blobs.compact(SystemClock.now()).await.expect("a compaction");
        assert_eq!(bytes.payloads(), 8, "those of the container that is there");
        let deadline = Instant::now() + Duration::from_secs(60);
        while store.engine.statistics().dropped_spaces > 0 {
            assert!(Instant::now() < deadline, "the rows are not reclaimed");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(names().await, ["photos"]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_with_more_messages_than_are_joined_at_once_is_restored_exactly() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = Place::directory(folder.path().join("place"));
    let (store, ids, now) = (Store::new(), MessageIds::default(), SystemClock.now());
    let jobs = store.create(SpaceKind::Queue, "jobs").await;
    let message = |number: u64| {
        // Messages become visible in another order than they were put.
        let visible_at = now.after(Duration::from_millis(number.wrapping_mul(7_919) % 1_000_003));
        Message {
            id: ids.next(now),
            inserted: now,
            expires: Timestamp::MAX,
            dequeue_count: (number % 5) as u32,
            receipt: Receipt { visible_at, nonce: 0 },
            visible_at,
            text: number.to_string().into_bytes(),
        }
    };
    let messages: Vec<Message> = (0..MESSAGES).map(message).collect();
    for some in messages.chunks(1000) {
        store.engine.restore_messages(jobs, some, now).await.expect("messages");
    }
    store.back_up(&place).await;
    let job = job(&store);
    job.start(place, None, wanted(SpaceKind::Queue, "jobs=copy"), Rate::Max).expect("started");
    let deadline = Instant::now() + Duration::from_secs(600);
    while job.status().state == JobState::Running {
        assert!(Instant::now() < deadline, "{:?}", job.status());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((job.status().state, job.status().totals.rows), (JobState::Done, MESSAGES), "{:?}", job.status());
    let name = SpaceName { account: "one", kind: SpaceKind::Queue, name: "copy" };
    let copy = store.engine.space(name).await.expect("no fault").expect("a queue").id;
    let (mut after, mut seen) = (None, 0);
    loop {
        let expected = store.engine.read_messages(jobs, after, 1000).await.expect("messages");
        let found = store.engine.read_messages(copy, after, 1000).await.expect("messages");
        assert!(found == expected, "the messages after {after:?} differ");
        let Some(last) = found.last() else { break };
        (after, seen) = (Some((last.visible_at, last.id)), seen + found.len() as u64);
    }
    assert_eq!(seen, MESSAGES);
}

/// More than the 200,000 that are joined at once.
const MESSAGES: u64 = 210_000;
