//! What nothing points to is removed, and nothing else.

use super::{OWNER, Rows, eventually, payload, put, read_all};
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Extent, Owner, Owners, Reclaimed};
use larimar_engine::{Fault, SpaceId};

/// A writer that goes away before the end leaves nothing, whatever was written.
pub async fn a_writer_that_is_dropped_leaves_nothing(store: &impl ByteStore) {
    for size in [0, 10, 300_000, 3 << 20, 20 << 20] {
        let mut writer = store.begin(OWNER, Some(size as u64)).await.expect("a payload begins");
        for from in (0..size).step_by(1 << 20) {
            writer.write(payload(1, (size - from).min(1 << 20))).await.expect("a piece is taken");
        }
        drop(writer);
    }
    eventually("nothing is left", || async { seen(store).await == 0 }).await;
    assert_eq!(store.statistics().payloads_written, 0);
}

/// What is discarded is removed: it cannot be read, and a sweep does not find it.
pub async fn a_discarded_payload_is_removed(store: &impl ByteStore) {
    for size in [100, 400_000] {
        let extent = put(store, OWNER, &payload(1, size)).await.expect("a payload is written");
        let removed = store.statistics().payloads_removed;
        store.discard(vec![extent]);
        eventually("it is removed", || async { store.statistics().payloads_removed == removed + 1 }).await;
        assert_eq!(store.statistics().discarded, 0);
        let reclaimed = store.reclaim(&Rows::default()).await.expect("a sweep ends");
        assert_eq!((reclaimed.removed, reclaimed.removed_bytes), (0, 0), "{size} bytes");
    }
}

/// Neighbours of a discarded payload stay.
pub async fn discarding_one_payload_leaves_the_others(store: &impl ByteStore) {
    let mut kept = Vec::new();
    let mut discarded = Vec::new();
    for seed in 0..40 {
        let bytes = payload(seed, if seed % 10 == 0 { 300_000 } else { 2_000 });
        let extent = put(store, OWNER, &bytes).await.expect("a payload is written");
        if seed % 3 == 0 { discarded.push(extent) } else { kept.push((extent, bytes)) }
    }
    let count = discarded.len() as u64;
    store.discard(discarded);
    eventually("they are removed", || async { store.statistics().payloads_removed == count }).await;
    for (extent, bytes) in kept {
        assert!(read_all(store, &extent).await.expect("a neighbour is read") == bytes);
    }
}

/// Discarding again what is gone harms nothing.
pub async fn a_payload_may_be_discarded_twice(store: &impl ByteStore) {
    for size in [100, 400_000] {
        let bytes = payload(5, size);
        let kept = put(store, OWNER, &bytes).await.expect("a payload is written");
        let gone = put(store, OWNER, &payload(6, size)).await.expect("a payload is written");
        let removed = store.statistics().payloads_removed;
        store.discard(vec![gone, gone]);
        store.discard(vec![gone]);
        eventually("all is done", || async { store.statistics().discarded == 0 }).await;
        assert!(store.statistics().payloads_removed > removed);
        assert!(read_all(store, &kept).await.expect("the other is read") == bytes);
    }
}

/// Reading a missing payload is reported as damage: a row points to bytes that are gone.
pub async fn an_unknown_payload_is_not_read(store: &impl ByteStore) {
    for last in [0, 1] {
        let mut file = [9; 16];
        file[15] = last;
        let unknown = Extent { file, offset: 60, length: 10 };
        let found = store.read(&unknown, 0..10).await;
        assert!(matches!(found, Err(Fault::Damaged(_))), "{found:?}");
        store.discard(vec![unknown]);
    }
    eventually("all is done", || async { store.statistics().discarded == 0 }).await;
}

/// After a sweep, what owners point to is there and the rest is gone.
pub async fn a_sweep_removes_what_nothing_points_to_and_keeps_the_rest(store: &impl ByteStore) {
    let mut rows = Rows::default();
    let mut kept = Vec::new();
    let mut unwanted_bytes = 0;
    for seed in 0..60_u64 {
        let bytes = payload(seed, if seed % 7 == 0 { 280_000 } else { 100 + seed as usize });
        let name = format!("b{}", seed % 5);
        let owner = Owner { space: SpaceId(seed % 2), blob: &name };
        let extent = put(store, owner, &bytes).await.expect("a payload is written");
        if seed % 4 == 0 {
            unwanted_bytes += bytes.len() as u64;
        } else {
            rows.point(owner, extent);
            kept.push((extent, bytes));
        }
    }
    let reclaimed = store.reclaim(&rows).await.expect("a sweep ends");
    assert_eq!(reclaimed, Reclaimed { seen: 60, removed: 15, removed_bytes: unwanted_bytes });
    eventually("they are removed", || async { store.statistics().payloads_removed == 15 }).await;
    for (extent, bytes) in kept {
        assert!(read_all(store, &extent).await.expect("it is read") == bytes);
    }
    assert_eq!(store.reclaim(&rows).await.expect("a sweep ends").removed, 0);
    store.reclaim(&Rows::default()).await.expect("a sweep ends");
    eventually("everything is removed", || async { seen(store).await == 0 }).await;
}

/// Owners are asked by the names that payloads were written with.
pub async fn a_sweep_asks_the_owner_that_was_named(store: &impl ByteStore) {
    let long = "n".repeat(1024);
    let wide = "\u{1F600}/ü\u{0}\n%2F".repeat(70);
    let mut rows = Rows::default();
    for (number, name) in ["", "a", "$logs/blob", &long, &wide].into_iter().enumerate() {
        for size in [50, 500_000] {
            let owner = Owner { space: SpaceId(u64::MAX - number as u64), blob: name };
            let extent = put(store, owner, &payload(1, size)).await.expect("a payload is written");
            rows.point(owner, extent);
        }
    }
    let reclaimed = store.reclaim(&rows).await.expect("a sweep ends");
    assert_eq!(reclaimed, Reclaimed { seen: 10, removed: 0, removed_bytes: 0 });
}

/// A sweep in the middle of writes takes nothing that a row is about to point to: writers who are not done keep all.
pub async fn a_sweep_beside_writers_loses_nothing(store: &impl ByteStore) {
    let bytes = payload(4, 5 << 20);
    let mut writer = store.begin(OWNER, None).await.expect("a payload begins");
    for part in 0..5 {
        writer.write(bytes.slice(part << 20..(part + 1) << 20)).await.expect("a piece is taken");
        store.reclaim(&Rows::default()).await.expect("a sweep ends");
    }
    let extent = writer.finish().await.expect("it ends");
    assert!(read_all(store, &extent).await.expect("it is read") == bytes);
}

/// Where the owners do not answer, the sweep fails and everything stays.
pub async fn a_sweep_that_gets_no_answer_removes_nothing(store: &impl ByteStore) {
    struct Silent;
    impl Owners for Silent {
        async fn release(&self, _: Owner<'_>, _: &[Extent]) -> Result<Vec<bool>, Fault> {
            Err(Fault::Unavailable("no answer".to_owned()))
        }
    }
    let bytes = payload(4, 1000);
    let extent = put(store, OWNER, &bytes).await.expect("a payload is written");
    assert_eq!(store.reclaim(&Silent).await, Err(Fault::Unavailable("no answer".to_owned())));
    assert_eq!(store.statistics().discarded, 0);
    assert!(read_all(store, &extent).await.expect("it is read") == bytes);
}

/// How many payloads a sweep finds, all of them unwanted.
async fn seen(store: &impl ByteStore) -> u64 {
    store.reclaim(&Rows::default()).await.expect("a sweep ends").seen
}
