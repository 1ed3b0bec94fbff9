//! An engine, an archiver and a directory: what the archive has of the commits that were made.

use super::line::{Line, SegmentName, Through};
use super::segment::{SEGMENT_BYTES_MAX, Segment, SegmentRecord};
use super::{ArchiveSettings, Archiver, CommitMailbox};
use crate::chunk::ChunkRef;
use crate::{BackupJob, Generation, JobState, Keep, Moment, Place, Plan, Rate, back_up};
use larimar_engine::blob::bytes::{ByteWriter as _, Bytes, Extent, MemoryBytes};
use larimar_engine::blob::{AccessConditions, BlobRef, Blobs, NewBlob, NewContainer};
use larimar_engine::{Act, Clock as _, Expect, Op, Rows as _, SpaceId, SpaceKind, SpaceName, Spaces as _, SystemClock};
use larimar_engine_local::{CommitFeed, CommitGroup, CommitPoint, ContainerRows, Durability, LocalEngine, Settings};
use larimar_model::Timestamp;
use larimar_model::blob::BlobName;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keeps what it passes on.
#[derive(Default)]
struct Recorder {
    mailbox: Arc<CommitMailbox>,
    commits: Mutex<Vec<Found>>,
}

/// A commit: its number, when it was published, and what it writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    sequence: u64,
    time: Timestamp,
    writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl CommitFeed for Recorder {
    fn begin(&self, point: CommitPoint) {
        self.mailbox.begin(point);
    }

    fn containers(&self, containers: ContainerRows) {
        self.mailbox.containers(containers);
    }

    fn commits(&self, group: CommitGroup) {
        for (sequence, writes) in (group.first()..).zip(&group.commits) {
            let writes = writes.iter().map(|(key, value)| (key.to_vec(), value.as_ref().map(|value| value.to_vec())));
            self.commits.lock().push(Found { sequence, time: group.published, writes: writes.collect() });
        }
        self.mailbox.commits(group);
    }

    fn lost(&self) {
        self.mailbox.lost();
    }
}

/// A server's parts.
struct Store {
    engine: Arc<LocalEngine>,
    bytes: Arc<MemoryBytes>,
    blobs: Blobs<LocalEngine, MemoryBytes>,
    recorder: Arc<Recorder>,
    archiver: Archiver,
    job: Arc<BackupJob<LocalEngine, MemoryBytes>>,
}

impl Store {
    fn open(folder: &Path, change: impl FnOnce(&mut ArchiveSettings)) -> Self {
        Self::open_with(folder, Arc::new(MemoryBytes::new(Duration::ZERO)), change)
    }

    fn open_with(folder: &Path, bytes: Arc<MemoryBytes>, change: impl FnOnce(&mut ArchiveSettings)) -> Self {
        let data = folder.join("data");
        let recorder = Arc::new(Recorder::default());
        let settings = Settings {
            folder: data.clone(),
            durability: Durability::Async,
            memory_bytes: Some(64 << 20),
            reserve_bytes: 0,
        };
        let feed = Arc::clone(&recorder);
        let engine = Arc::new(LocalEngine::open_fed(&settings, feed).expect("an engine"));
        let job = Arc::new(BackupJob::new(Arc::clone(&engine), Some(Arc::clone(&bytes)), Keep::default()));
        let mut settings = ArchiveSettings::new(place(folder), data.join("spool"));
        settings.segment_every = Duration::from_millis(30);
        settings.through_every = Duration::from_millis(100);
        change(&mut settings);
        let mailbox = Arc::clone(&recorder.mailbox);
        let archiver =
            Archiver::start(Arc::clone(&engine), Some(Arc::clone(&bytes)), Arc::clone(&job), mailbox, settings);
        let blobs = Blobs::new(Arc::clone(&engine), Arc::clone(&bytes));
        Self { engine, bytes, blobs, recorder, archiver, job }
    }

    async fn table(&self, name: &str) -> SpaceId {
        let name = SpaceName { account: "one", kind: SpaceKind::Table, name };
        self.engine.create_space(name, b"").await.expect("no fault").expect("a new space")
    }

    /// A transaction of so many rows.
    async fn put_rows(&self, space: SpaceId, start: usize, count: usize, body: &[u8]) {
        let rows: Vec<String> = (start..start + count).map(|row| format!("{row:05}")).collect();
        let ops: Vec<_> = rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Put(body) }).collect();
        self.engine.apply(space, "p", &ops, SystemClock.now()).await.expect("rows");
    }

    async fn container(&self, name: &str) -> SpaceId {
        let name = name.parse().expect("a name");
        let made = self.blobs.create_container("one", &name, &NewContainer::default(), SystemClock.now()).await;
        made.expect("a container").id
    }

    async fn put_blob(&self, container: SpaceId, name: &str, bytes: Vec<u8>) {
        let name: BlobName = name.parse().expect("a name");
        let at = BlobRef { container, name: &name };
        let mut writer = self.blobs.begin(at, None).await.expect("a payload");
        writer.write(Bytes::from(bytes)).await.expect("bytes");
        let extent = writer.finish().await.expect("a payload");
        let (new, access) = (NewBlob::default(), AccessConditions::default());
        self.blobs.put_block_blob(at, Some(extent), &new, &access, SystemClock.now()).await.expect("a blob");
    }

    /// Waits until everything that was committed is archived.
    async fn archived(&self) {
        let last = self.recorder.commits.lock().last().map_or(0, |commit| commit.sequence);
        self.wait(|status| status.line.is_some() && status.last_sequence >= last && status.spool_bytes == 0).await;
    }

    async fn wait(&self, is_so: impl Fn(&super::ArchiveStatus) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so(&self.archiver.status()) {
            assert!(Instant::now() < deadline, "{:?}", self.archiver.status());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// As a server ends.
    async fn stop(self) -> (Arc<MemoryBytes>, Vec<Found>) {
        self.engine.close().expect("closed");
        self.archiver.stop().await;
        (self.bytes, self.recorder.commits.lock().clone())
    }
}

fn place(folder: &Path) -> Place {
    Place::directory(folder.join("place"))
}

/// What a line has: its commits, and the payloads with their bytes. Every segment follows the one before.
async fn read(place: &Place, name: &str) -> (Vec<Found>, HashMap<Extent, Vec<u8>>) {
    let line = Line::read(place, name).await.expect("a line");
    let (mut commits, mut payloads) = (Vec::new(), HashMap::new());
    let (mut last, mut time) = (line.after, Timestamp::parse(&line.began).expect("a time"));
    for name in SegmentName::list(place, name).await.expect("segments") {
        let file = name.file(&line.name);
        let bytes = place.get(&file, SEGMENT_BYTES_MAX).await.expect("a segment");
        let segment = Segment::open(bytes, &file).expect("a whole segment");
        assert_eq!(
            (name.first, (segment.span.first, segment.span.last)),
            (last + 1, (name.first, name.last)),
            "{file}"
        );
        for record in segment.records() {
            match record.expect("a record") {
                SegmentRecord::Payload { extent, bytes } => drop(payloads.insert(extent, bytes.to_vec())),
                SegmentRecord::Pieces { extent, chunks } => {
                    let mut bytes = Vec::new();
                    for chunk in chunks {
                        bytes.extend_from_slice(&ChunkRef::read(chunk, place).await.expect("a chunk"));
                    }
                    payloads.insert(extent, bytes);
                }
                SegmentRecord::Commit(commit) => {
                    assert_eq!(commit.sequence, last + 1);
                    assert!(commit.time > time || commit.time == time && last > line.after, "times go on");
                    (last, time) = (commit.sequence, commit.time);
                    let writes = commit.writes.iter().map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
                    commits.push(Found { sequence: commit.sequence, time, writes: writes.collect() });
                }
            }
        }
        assert_eq!((segment.span.last, segment.span.through), (last, time));
    }
    (commits, payloads)
}

/// Waits for the full backup of the line that is open; returns both.
async fn backed_up(store: &Store, place: &Place) -> (String, Generation) {
    store.wait(|status| status.backup.is_some()).await;
    let status = store.archiver.status();
    let generation = Generation::find(place, status.backup.as_deref()).await.expect("a generation");
    (status.line.expect("a line"), generation)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_archive_has_every_commit_in_order_with_the_payloads_of_blobs() {
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let store = Store::open(folder.path(), |_| ());
    let table = store.table("t").await;
    for transaction in 0..20 {
        store.put_rows(table, transaction * 7, 1 + transaction * 5 % 40, &[transaction as u8; 300]).await;
    }
    let photos = store.container("photos").await;
    let (small, large): (Vec<u8>, Vec<u8>) = (vec![1; 1000], (0..5 << 20).map(|n: u32| (n % 251) as u8).collect());
    for round in 0..3 {
        // Each is replaced at once, so that its payload is discarded.
        store.put_blob(photos, "small", [&small[..], &[round]].concat()).await;
        store.put_blob(photos, "large", [&large[..], &[round]].concat()).await;
        store.put_blob(photos, "empty", Vec::new()).await;
    }
    for name in ["small", "large"] {
        let name: BlobName = name.parse().expect("a name");
        let at = BlobRef { container: photos, name: &name };
        let access = AccessConditions::default();
        store.blobs.delete_blob(at, None, &access, SystemClock.now()).await.expect("deleted");
    }
    store.archived().await;
    let (line, generation) = backed_up(&store, &place).await;
    assert_eq!(generation.line.as_ref(), Some(&line));
    // Nothing is written: the archive says so.
    let deadline = Instant::now() + Duration::from_secs(20);
    while Through::read(&place, &line).await.expect("no fault").is_none() {
        assert!(Instant::now() < deadline, "no time without commits");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (_, made) = store.stop().await;
    let (found, payloads) = read(&place, &line).await;
    assert_eq!(found, made);
    let mut lengths: Vec<(usize, Option<u8>)> =
        payloads.values().map(|bytes| (bytes.len(), bytes.last().copied())).collect();
    lengths.sort_unstable();
    let expected = [(1001, 0), (1001, 1), (1001, 2), ((5 << 20) + 1, 0), ((5 << 20) + 1, 1), ((5 << 20) + 1, 2)];
    assert_eq!(lengths, expected.map(|(length, round)| (length, Some(round))));
}

/// A segment is a file, or an object that has its price.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steady_writes_make_a_segment_for_each_interval() {
    const EVERY: Duration = Duration::from_millis(100);
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let started = Instant::now();
    let store = Store::open(folder.path(), |settings| settings.segment_every = EVERY);
    let table = store.table("t").await;
    store.wait(|status| status.line.is_some()).await;
    let line = store.archiver.status().line.expect("a line");
    let mut segments = 0;
    while segments < 5 {
        for row in 0..20 {
            store.put_rows(table, row, 1, b"steady").await;
        }
        segments = SegmentName::list(&place, &line).await.expect("segments").len();
    }
    let intervals = started.elapsed().as_millis() / EVERY.as_millis();
    assert!(segments as u128 <= intervals + 1, "{segments} segments in {intervals} intervals");
    let (_, made) = store.stop().await;
    assert_eq!(read(&place, &line).await.0, made);
}

/// The lines of a place, in order, with why each has ended.
async fn lines(place: &Place) -> Vec<(String, Option<Through>)> {
    let mut lines = Vec::new();
    for name in Line::list(place).await.expect("lines") {
        let end = Through::read_end(place, &name).await.expect("no fault");
        lines.push((name, end));
    }
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_continues_the_line_with_what_was_in_the_spool() {
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let store = Store::open(folder.path(), |_| ());
    let table = store.table("t").await;
    store.put_rows(table, 0, 10, b"one").await;
    store.archived().await;
    let (line, generation) = backed_up(&store, &place).await;
    // From now on the place cannot be written: what follows stays in the spool.
    let moved = folder.path().join("moved");
    std::fs::rename(folder.path().join("place"), &moved).expect("moved");
    std::fs::write(folder.path().join("place"), "a file").expect("a file");
    let photos = store.container("photos").await;
    for blob in 0..5 {
        store.put_blob(photos, "same", vec![blob; 400_000]).await;
    }
    store.wait(|status| status.failing.is_some() && status.spool_bytes > 0).await;
    let status = store.archiver.status();
    assert!(status.state().starts_with("waiting for its place, lag "), "{status:?}");
    // A stop does not wait for the place, which does not come back before it.
    let (bytes, mut made) = store.stop().await;
    std::fs::remove_file(folder.path().join("place")).expect("a file");
    std::fs::rename(&moved, folder.path().join("place")).expect("moved");
    let store = Store::open_with(folder.path(), bytes, |_| ());
    store.put_rows(table, 0, 10, b"two").await;
    store.archived().await;
    assert_eq!(backed_up(&store, &place).await, (line.clone(), generation), "one full backup is enough");
    made.extend(store.stop().await.1);
    assert_eq!(lines(&place).await, [(line.clone(), None)]);
    let (found, payloads) = read(&place, &line).await;
    assert_eq!(found, made);
    assert_eq!(payloads.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_that_the_spool_does_not_have_end_the_line_and_the_next_has_a_full_backup() {
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let store = Store::open(folder.path(), |_| ());
    let table = store.table("t").await;
    store.put_rows(table, 0, 10, b"one").await;
    store.archived().await;
    let (first, _) = backed_up(&store, &place).await;
    store.put_rows(table, 0, 10, b"two").await;
    let (_, made) = store.stop().await;
    // Commits without the archive.
    let settings = Settings {
        folder: folder.path().join("data"),
        durability: Durability::Sync,
        memory_bytes: Some(64 << 20),
        reserve_bytes: 0,
    };
    let engine = LocalEngine::open(&settings).expect("an engine");
    let op = Op { row: "r", expect: Expect::Any, act: Act::Put(b"not archived") };
    engine.apply(table, "p", &[op], SystemClock.now()).await.expect("a row");
    engine.close().expect("closed");
    drop(engine);
    let store = Store::open(folder.path(), |_| ());
    store.put_rows(table, 0, 10, b"three").await;
    store.archived().await;
    let (second, generation) = backed_up(&store, &place).await;
    assert_eq!(store.archiver.status().gaps, 1);
    let (_, after) = store.stop().await;
    let last = made.last().expect("commits").sequence;
    let found = lines(&place).await;
    assert_eq!(found.iter().map(|(name, _)| name).collect::<Vec<_>>(), [&first, &second]);
    let end = found[0].1.clone().expect("an end");
    assert_eq!(end.sequence, last);
    let (from, to) = (last + 1, after[0].sequence - 1);
    let reason = end.reason.expect("a reason");
    assert!(reason.contains(&format!("commits {from} to {to} ")), "{reason}");
    assert_eq!((read(&place, &first).await.0, read(&place, &second).await.0), (made, after));
    assert!(generation.sequence > last && generation.line == Some(second), "{generation:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spool_that_cannot_be_read_is_a_gap_and_one_that_was_just_begun_is_not() {
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let store = Store::open(folder.path(), |_| ());
    let table = store.table("t").await;
    store.put_rows(table, 0, 10, b"one").await;
    let (first, _) = backed_up(&store, &place).await;
    store.stop().await;
    let spool = folder.path().join("data/spool");
    std::fs::create_dir(spool.join("begun")).expect("a directory");
    let commits = |name: &str| {
        let files = spool.join(name).read_dir().expect("a spool").flatten().map(|entry| entry.path());
        files.filter(|file| file.file_name().is_some_and(|name| name != "line")).collect::<Vec<_>>()
    };
    let mut line = first;
    for damaged in [commits(&line)[0].clone(), "line".into()] {
        std::fs::write(spool.join(&line).join(damaged), b"damaged").expect("a file");
        let store = Store::open(folder.path(), |_| ());
        let (next, _) = backed_up(&store, &place).await;
        let status = store.archiver.status();
        assert!(next != line && status.gaps == 1, "{status:?}");
        assert!(status.last_gap.as_ref().is_some_and(|gap| gap.contains("cannot be read")), "{status:?}");
        store.stop().await;
        line = next;
    }
    let store = Store::open(folder.path(), |_| ());
    store.archived().await;
    assert_eq!((store.archiver.status().gaps, store.archiver.status().line), (0, Some(line)));
    assert!(!spool.join("begun").exists());
    store.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spool_beyond_its_bound_ends_the_line_and_archiving_recovers() {
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let store = Store::open(folder.path(), |settings| settings.spool_bytes_max = 200_000);
    let table = store.table("t").await;
    store.archived().await;
    let (first, _) = backed_up(&store, &place).await;
    let moved = folder.path().join("moved");
    std::fs::rename(folder.path().join("place"), &moved).expect("moved");
    std::fs::write(folder.path().join("place"), "a file").expect("a file");
    for row in 0..50 {
        store.put_rows(table, row, 1, &[1; 10_000]).await;
        assert!(store.archiver.status().spool_bytes <= 200_000);
    }
    store.wait(|status| status.gaps == 1 && status.line.is_none() && status.spool_bytes == 0).await;
    let spool = folder.path().join("data/spool");
    assert_eq!(std::fs::read_dir(&spool).expect("a directory").count(), 0, "the spool is gone");
    let status = store.archiver.status();
    assert_eq!(status.state(), "not archiving");
    assert!(status.last_gap.as_ref().is_some_and(|gap| gap.contains("the spool is full")), "{status:?}");
    std::fs::remove_file(folder.path().join("place")).expect("a file");
    std::fs::rename(&moved, folder.path().join("place")).expect("moved");
    store.wait(|status| status.line.as_ref().is_some_and(|line| *line != first)).await;
    let (second, generation) = backed_up(&store, &place).await;
    assert_eq!(generation.line, Some(second));
    store.stop().await;
    let (_, end) = lines(&place).await.swap_remove(0);
    let reason = end.expect("an end").reason.expect("a reason");
    assert!(reason.contains("the spool is full"), "{reason}");
}

#[tokio::test]
async fn a_place_is_for_one_archive() {
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let lock = place.prepare_archive().await.expect("a place");
    let _backup = place.prepare().await.expect("a backup runs beside it");
    let busy = place.prepare_archive().await.expect_err("another archive");
    assert!(busy.to_string().contains("another server archives"), "{busy}");
    drop(lock);
    place.prepare_archive().await.expect("free again");
}

/// The last commit of a restore of everything.
async fn latest(place: &Place) -> u64 {
    Plan::make(place, &Moment::Latest).await.expect("a plan").last().sequence
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_of_everything_goes_to_the_last_commit_also_if_the_latest_backup_has_no_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = place(folder.path());
    let store = Store::open(folder.path(), |_| ());
    let table = store.table("t").await;
    backed_up(&store, &place).await;
    store.put_rows(table, 0, 1, b"before").await;
    store.archived().await;
    // As of a server that does not archive, or does not yet.
    let plain = back_up(&*store.engine, Some(&*store.bytes), &place, Rate::Max, &|_| ()).await.expect("a backup");
    assert_eq!(plain.line, None);
    store.put_rows(table, 1, 1, b"after").await;
    store.archived().await;
    let (_, commits) = store.stop().await;
    let last = commits.last().expect("commits").sequence;
    assert!(last > plain.sequence);
    assert_eq!(latest(&place).await, last);
    // What is missing on the way to the last commit is named; an older moment does not stand in for it.
    let [line] = &Line::list(&place).await.expect("lines")[..] else { panic!("one line") };
    let segment = SegmentName::list(&place, line).await.expect("segments").pop().expect("a segment");
    place.remove(&segment.file(line)).await.expect("removed");
    let error = Plan::make(&place, &Moment::Latest).await.map(drop).expect_err("a segment is missing");
    assert!(error.to_string().contains(&segment.file(line)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_begins_with_the_server_belongs_to_the_line_under_every_name_of_the_place() {
    let folder = tempfile::tempdir().expect("a directory");
    for name in ["place", "place/", "./place", "data/../place"] {
        let store = Store::open(folder.path(), |_| ());
        store.job.start(Place::directory(folder.path().join(name)), Rate::Max).expect("no other backup runs");
        store.table(&format!("t{}", name.len())).await;
        while store.job.status().state == JobState::Running {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let status = store.job.status();
        assert_eq!(status.state, JobState::Done, "{status:?}");
        let taken = Generation::find(&place(folder.path()), status.generation.as_deref()).await.expect("a generation");
        store.archived().await;
        assert_eq!(taken.line, store.archiver.status().line, "{name}");
        store.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_another_server_ended_is_not_continued() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = place(folder.path());
    let store = Store::open(folder.path(), |_| ());
    let table = store.table("t").await;
    let (first, _) = backed_up(&store, &place).await;
    store.put_rows(table, 0, 1, b"here").await;
    store.archived().await;
    store.stop().await;
    // A copy of the store, elsewhere, archives into the same place for a while.
    let other_folder = folder.path().join("other");
    let other = Store::open(&other_folder, |settings| settings.place = place.clone());
    for name in ["a", "b", "c", "d", "e", "f"] {
        other.table(name).await;
    }
    let (second, _) = backed_up(&other, &place).await;
    other.archived().await;
    other.stop().await;
    assert_ne!(first, second);

    let store = Store::open(folder.path(), |_| ());
    store.put_rows(table, 1, 1, b"here again").await;
    let (third, _) = backed_up(&store, &place).await;
    assert!(third != first && store.archiver.status().gaps == 1, "{:?}", store.archiver.status());
    let reason = store.archiver.status().last_gap.unwrap_or_default();
    assert!(reason.contains("another server"), "{reason}");
    store.put_rows(table, 2, 1, b"and again").await;
    // Another one takes the place over while this one runs.
    let end = Through::new(store.archiver.status().last_sequence, SystemClock.now()).ended("a test");
    end.write(&place, &third).await.expect("written");
    store.wait(|status| status.gaps == 2 && status.line.is_some() && status.backup.is_some()).await;
    store.put_rows(table, 3, 1, b"and once more").await;
    let (last, _) = store.engine.commits_until_now();
    store.wait(|status| status.last_sequence == last.sequence).await;
    store.stop().await;
    assert_eq!(latest(&place).await, last.sequence);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_object_store_a_line_that_is_being_written_is_not_ended_by_another_server() {
    let folder = tempfile::tempdir().expect("a directory");
    let objects = Arc::new(object_store::memory::InMemory::new());
    let place = Place::objects(objects, "archive".into(), "s3://bucket/archive/".to_owned());
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    let store = Store::open(&one, |settings| settings.place = place.clone());
    let (line, _) = backed_up(&store, &place).await;
    let other = Store::open(&two, |settings| settings.place = place.clone());
    let waits =
        |status: &super::ArchiveStatus| status.failing.as_ref().is_some_and(|text| text.contains("another server"));
    other.wait(waits).await;
    let table = store.table("t").await;
    for row in 0..20 {
        store.put_rows(table, row, 1, b"here").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    store.archived().await;
    assert!(waits(&other.archiver.status()), "{:?}", other.archiver.status());
    assert_eq!(Through::read_end(&place, &line).await.expect("readable"), None);
    store.stop().await;
    let (next, _) = backed_up(&other, &place).await;
    assert_ne!(next, line);
    assert!(Through::read_end(&place, &line).await.expect("readable").is_some());
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_backup_does_not_hinder_a_restore_that_an_older_one_leads_to() {
    let folder = tempfile::tempdir().expect("a directory");
    let place = place(folder.path());
    let store = Store::open(folder.path(), |_| ());
    let table = store.table("t").await;
    backed_up(&store, &place).await;
    store.put_rows(table, 0, 1, b"before").await;
    store.archived().await;
    let before = SystemClock.now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let middle = back_up(&*store.engine, Some(&*store.bytes), &place, Rate::Max, &|_| ()).await.expect("a backup");
    store.put_rows(table, 1, 1, b"after").await;
    store.archived().await;
    let after = SystemClock.now();
    store.put_rows(table, 2, 1, b"later").await;
    store.archived().await;
    store.stop().await;
    let plan = async |moment| Plan::make(&place, &moment).await.map(|plan| plan.last().sequence);
    let moments = [Moment::Time(before), Moment::Time(after), Moment::Sequence(middle.sequence + 1)];
    let mut found = Vec::new();
    for moment in &moments {
        found.push(plan(moment.clone()).await.expect("a plan"));
    }
    assert_eq!(found, [middle.sequence, middle.sequence + 1, middle.sequence + 1]);
    // The latest backup has no line; the archive ends with that of the one before.
    let (end, last) = (plan(Moment::Time(Timestamp::MAX)).await, middle.sequence + 2);
    let end = end.expect_err("it is after the end").to_string();
    assert!(end.contains("the archive ends at") && end.contains(&format!("(commit {last})")), "{end}");
    let file = folder.path().join("place/generations").join(middle.name());
    std::fs::write(&file, b"damaged").expect("a file");
    for (moment, expected) in moments.into_iter().zip(found) {
        assert_eq!(plan(moment.clone()).await.expect("a plan"), expected, "{moment}");
    }
    // Without another that leads there, the damaged one is named.
    let error = plan(Moment::Sequence(u64::MAX)).await.expect_err("it is after the end");
    assert!(error.to_string().contains(&middle.name()), "{error}");
}
