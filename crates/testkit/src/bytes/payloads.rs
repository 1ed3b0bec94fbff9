//! What is written is read.

use super::{OWNER, payload, put, read_all};
use larimar_engine::SpaceId;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Owner, READ_BYTES_MAX};

const FRAME: u64 = 64 << 10;

/// A payload of any size around the borders of frames, packs and buffers is read as it was written.
pub async fn bytes_come_back(store: &impl ByteStore) {
    let sizes = [1, 2, 4095, 4096, FRAME - 1, FRAME, FRAME + 1, 256 << 10, (256 << 10) + 1, (1 << 20) - 1, 1 << 20];
    let mut written = Vec::new();
    for (seed, size) in sizes.into_iter().enumerate() {
        let bytes = payload(seed as u64, size as usize);
        let extent = put(store, OWNER, &bytes).await.expect("a payload is written");
        assert_eq!(extent.length, size);
        written.push((extent, bytes));
    }
    for (extent, bytes) in written {
        assert!(read_all(store, &extent).await.expect("a payload is read") == bytes, "{} bytes", bytes.len());
    }
}

/// Any part of a payload can be read, wherever it begins and ends.
pub async fn ranges_across_frames_come_back(store: &impl ByteStore) {
    for size in [3 * FRAME + 5, 6 * FRAME] {
        let bytes = payload(size, size as usize);
        let extent = put(store, OWNER, &bytes).await.expect("a payload is written");
        let places = [0, 1, FRAME - 1, FRAME, FRAME + 1, 2 * FRAME, 3 * FRAME + 1, size - 1, size];
        for start in places {
            for end in places.into_iter().filter(|end| *end >= start) {
                let found = store.read(&extent, start..end).await.expect("a part is read");
                assert!(found == bytes[start as usize..end as usize], "{start}..{end} of {size}");
            }
        }
    }
}

/// A payload without bytes has an extent, and reads as no bytes.
pub async fn an_empty_payload_is_a_payload(store: &impl ByteStore) {
    let writer = store.begin(OWNER, Some(0)).await.expect("a payload begins");
    let extent = writer.finish().await.expect("it ends");
    assert_eq!(extent.length, 0);
    assert!(store.read(&extent, 0..10).await.expect("it is read").is_empty());
    let writer = store.begin(OWNER, None).await.expect("a payload begins");
    let other = writer.finish().await.expect("it ends");
    assert_ne!(other, extent, "each payload has a place of its own");
}

/// A range that ends beyond the payload is cut there; one that begins there is empty.
pub async fn a_read_beyond_the_end_ends_there(store: &impl ByteStore) {
    for size in [10, 300_000] {
        let bytes = payload(1, size as usize);
        let extent = put(store, OWNER, &bytes).await.expect("a payload is written");
        assert!(store.read(&extent, size - 3..u64::MAX).await.expect("it is read") == bytes[size as usize - 3..]);
        assert!(store.read(&extent, size..size + 1).await.expect("it is read").is_empty());
        assert!(store.read(&extent, u64::MAX - 1..u64::MAX).await.expect("it is read").is_empty());
        assert!(store.read(&extent, 5..5).await.expect("it is read").is_empty());
    }
}

/// No read returns more than the bound, however much is asked for, and none that has bytes returns none.
pub async fn a_read_returns_a_bounded_number_of_bytes(store: &impl ByteStore) {
    let size = 2 * READ_BYTES_MAX + 17;
    let bytes = payload(3, size as usize);
    let extent = put(store, OWNER, &bytes).await.expect("a payload is written");
    for start in [0, 1, FRAME + 3, READ_BYTES_MAX + 1] {
        let found = store.read(&extent, start..size).await.expect("it is read");
        assert!((1..=READ_BYTES_MAX).contains(&(found.len() as u64)), "{} bytes", found.len());
        assert!(found == bytes[start as usize..start as usize + found.len()]);
    }
}

/// Bytes may arrive in pieces of any size, empty ones among them, and unannounced.
pub async fn pieces_of_any_size_are_joined(store: &impl ByteStore) {
    for (size, piece) in [(1000, 1), (70_000, 999), (300_000, 8192), (3 << 20, 65_537), (5 << 20, 5 << 20)] {
        let bytes = payload(piece as u64, size);
        let mut writer = store.begin(OWNER, None).await.expect("a payload begins");
        for from in (0..size).step_by(piece) {
            writer.write(bytes.slice(from..size.min(from + piece))).await.expect("a piece is taken");
            writer.write(bytes.slice(..0)).await.expect("an empty piece is taken");
        }
        let extent = writer.finish().await.expect("it ends");
        assert!(read_all(store, &extent).await.expect("it is read") == bytes, "{size} bytes in pieces of {piece}");
    }
}

/// What was announced is a hint: fewer or more bytes are kept as they came.
pub async fn an_expectation_may_be_wrong(store: &impl ByteStore) {
    for (expected, size) in [(10, 600_000), (600_000, 10), (1 << 40, 0), (0, 3 << 20)] {
        let bytes = payload(9, size);
        let mut writer = store.begin(OWNER, Some(expected)).await.expect("a payload begins");
        writer.write(bytes.clone()).await.expect("the bytes are taken");
        let extent = writer.finish().await.expect("it ends");
        assert_eq!(extent.length, size as u64);
        assert!(read_all(store, &extent).await.expect("it is read") == bytes, "{size} bytes, {expected} announced");
    }
}

/// Payloads that are written at the same time, small and large, are each whole.
pub async fn concurrent_writers_do_not_mix(store: &impl ByteStore) {
    let write = |number: u64| async move {
        let size = if number.is_multiple_of(8) { 700_000 } else { 1 + number as usize * 311 };
        let bytes = payload(number, size);
        let name = format!("blob-{number}");
        let owner = Owner { space: SpaceId(number % 3), blob: &name };
        let mut writer = store.begin(owner, number.is_multiple_of(2).then_some(size as u64)).await.expect("it begins");
        for from in (0..size).step_by(50_000) {
            writer.write(bytes.slice(from..size.min(from + 50_000))).await.expect("a piece is taken");
            tokio::task::yield_now().await;
        }
        (writer.finish().await.expect("it ends"), bytes)
    };
    let written = futures_util::future::join_all((0..64).map(write)).await;
    for (extent, bytes) in written {
        assert!(read_all(store, &extent).await.expect("it is read") == bytes);
    }
}

/// A payload of more than any buffer or part comes back.
pub async fn many_megabytes_come_back(store: &impl ByteStore) {
    let (pieces, size) = (45_u64, 777_777_usize);
    let mut writer = store.begin(OWNER, Some(pieces * size as u64)).await.expect("a payload begins");
    for seed in 0..pieces {
        writer.write(payload(seed, size)).await.expect("a piece is taken");
    }
    let extent = writer.finish().await.expect("it ends");
    for seed in (0..pieces).rev() {
        let start = seed * size as u64;
        let found = store.read(&extent, start..start + size as u64).await.expect("it is read");
        assert!(found == payload(seed, size), "piece {seed}");
    }
}

/// The figures tell what was written and read.
pub async fn payloads_are_counted(store: &impl ByteStore) {
    let extent = put(store, OWNER, &payload(1, 1000)).await.expect("a payload is written");
    put(store, OWNER, &payload(2, 500_000)).await.expect("a payload is written");
    store.read(&extent, 0..10).await.expect("it is read");
    let figures = store.statistics();
    assert_eq!((figures.payloads_written, figures.bytes_written, figures.bytes_read), (2, 501_000, 10));
    assert_eq!((figures.discarded, figures.payloads_removed), (0, 0));
}
