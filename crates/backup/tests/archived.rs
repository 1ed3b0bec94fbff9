//! What the archiver of a running engine wrote is restored to moments that the test remembered by the clock.

use larimar_backup::{
    ArchiveSettings, Archiver, BackupJob, CommitMailbox, Keep, Moment, Place, Plan, archive_lines, restore_to,
};
use larimar_engine::blob::bytes::{ByteStore as _, ByteWriter as _, Bytes, MemoryBytes};
use larimar_engine::blob::relocate::payloads_in;
use larimar_engine::blob::{AccessConditions, BlobRef, Blobs, NewBlob, NewContainer};
use larimar_engine::{
    Act, Budget, Clock as _, Expect, Flow, KeyRange, Op, RowRef, Rows as _, SpaceKind, SpaceName, Spaces as _,
    SystemClock,
};
use larimar_engine_local::restoring::Restoring;
use larimar_engine_local::{Durability, LocalEngine, Settings};
use larimar_model::Timestamp;
use larimar_model::blob::{BlobName, ContainerName};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An engine that is archived.
struct Server {
    engine: Arc<LocalEngine>,
    bytes: Arc<MemoryBytes>,
    archiver: Archiver,
}

impl Server {
    fn start(folder: &Path, bytes: Arc<MemoryBytes>) -> Self {
        let settings = settings(&folder.join("data"));
        let mailbox = Arc::new(CommitMailbox::default());
        let engine = LocalEngine::open_fed(&settings, Arc::clone(&mailbox) as Arc<_>).expect("an engine");
        let engine = Arc::new(engine);
        let job = Arc::new(BackupJob::new(Arc::clone(&engine), Some(Arc::clone(&bytes)), Keep::default()));
        let mut archive = ArchiveSettings::new(place(folder), folder.join("data/spool"));
        archive.segment_every = Duration::from_millis(30);
        archive.through_every = Duration::from_millis(100);
        let archiver = Archiver::start(Arc::clone(&engine), Some(Arc::clone(&bytes)), job, mailbox, archive);
        Self { engine, bytes, archiver }
    }

    async fn stop(self) -> Arc<MemoryBytes> {
        self.engine.close().expect("closed");
        self.archiver.stop().await;
        self.bytes
    }

    /// Two rows in one transaction, and a blob, large or small, that replaces the one before.
    async fn step(&self, number: u8) {
        let name = SpaceName { account: "one", kind: SpaceKind::Table, name: "tab" };
        let table = match self.engine.create_space(name, b"").await.expect("no fault") {
            Some(table) => table,
            None => self.engine.space(name).await.expect("no fault").expect("a table").id,
        };
        let put = |row| Op { row, expect: Expect::Any, act: Act::Put(std::slice::from_ref(&number)) };
        self.engine.apply(table, "p", &[put("a"), put("b")], SystemClock.now()).await.expect("rows");
        let blobs = Blobs::new(Arc::clone(&self.engine), Arc::clone(&self.bytes));
        let name: ContainerName = "photos".parse().expect("a name");
        // It may be there.
        let _ = blobs.create_container("one", &name, &NewContainer::default(), SystemClock.now()).await;
        let name = SpaceName { account: "one", kind: SpaceKind::Container, name: "photos" };
        let container = self.engine.space(name).await.expect("no fault").expect("a container").id;
        let name: BlobName = format!("blob{}", number % 2).parse().expect("a name");
        let at = BlobRef { container, name: &name };
        let mut writer = blobs.begin(at, None).await.expect("a payload");
        let length = if number.is_multiple_of(3) { 700_000 } else { 700 };
        writer.write(Bytes::from(vec![number; length])).await.expect("bytes");
        let extent = writer.finish().await.expect("a payload");
        let (new, access) = (NewBlob::default(), AccessConditions::default());
        blobs.put_block_blob(at, Some(extent), &new, &access, SystemClock.now()).await.expect("a blob");
    }
}

fn place(folder: &Path) -> Place {
    Place::directory(folder.join("place"))
}

fn settings(folder: &Path) -> Settings {
    let folder = folder.to_owned();
    Settings { folder, durability: Durability::Async, memory_bytes: Some(64 << 20), reserve_bytes: 0 }
}

/// The rows with their versions, and the contents of blobs.
async fn state(engine: &LocalEngine, bytes: &MemoryBytes) -> Vec<(String, Timestamp, Vec<u8>)> {
    let mut state = Vec::new();
    for (kind, name) in [(SpaceKind::Table, "tab"), (SpaceKind::Container, "photos")] {
        let space =
            engine.space(SpaceName { account: "one", kind, name }).await.expect("no fault").expect("a space").id;
        let (mut rows, range) = (Vec::new(), KeyRange::all());
        let budget = Budget { rows_max: usize::MAX, deadline: Instant::now() + Duration::from_secs(60) };
        let scanned = engine.scan(space, &range, budget, |row| {
            rows.push((row.partition.to_owned(), row.row.to_owned(), row.version, row.body.to_vec()));
            Flow::Continue
        });
        assert_eq!(scanned.await.expect("rows"), None);
        for (partition, row, version, mut body) in rows {
            if kind == SpaceKind::Container {
                let found = payloads_in(RowRef { partition: &partition, row: &row, version, body: &body });
                body.clear();
                for extent in found.expect("a row") {
                    let mut read = 0;
                    while read < extent.length {
                        let part = bytes.read(&extent, read..extent.length).await.expect("bytes");
                        read += part.len() as u64;
                        body.extend_from_slice(&part);
                    }
                }
            }
            state.push((format!("{partition}/{row}"), version, body));
        }
    }
    state
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_restored_to_remembered_moments_over_a_restart() {
    let folder = larimar_testkit::memory_directory();
    let place = place(folder.path());
    let mut server = Server::start(folder.path(), Arc::new(MemoryBytes::new(Duration::ZERO)));
    server.step(0).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.archiver.status().backup.is_none() {
        assert!(Instant::now() < deadline, "{:?}", server.archiver.status());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut moments = Vec::new();
    for number in 1..20 {
        if number == 10 {
            server = Server::start(folder.path(), server.stop().await);
        }
        server.step(number).await;
        moments.push((SystemClock.now(), state(&server.engine, &server.bytes).await));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let last = moments.last().expect("a moment").0;
    while Plan::make(&place, &Moment::Time(last)).await.is_err() {
        assert!(Instant::now() < deadline, "{:?}", server.archiver.status());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.stop().await;
    let lines = archive_lines(&place, Some(&|_| ())).await.expect("lines");
    assert!(lines.len() == 1 && lines[0].problems.is_empty(), "{lines:?}");
    for index in [0, 8, 13, 18] {
        let (time, expected) = &moments[index];
        let settings = settings(&folder.path().join(format!("restored{index}")));
        let plan = Plan::make(&place, &Moment::Time(*time)).await.expect("a moment");
        let bytes = Arc::new(MemoryBytes::new(Duration::ZERO));
        let restoring = Restoring::begin(&settings.folder).expect("an empty directory");
        let open = || {
            // Bytes in memory have no directories, which the store would miss.
            for name in (0..256).map(|number| format!("files/{number:02x}")).chain(["packs".to_owned()]) {
                std::fs::create_dir_all(settings.folder.join("blobs").join(name)).expect("a directory");
            }
            Ok(Arc::clone(&bytes))
        };
        restore_to(&place, &plan, &restoring, open, &|_| ()).await.expect("a restore");
        restoring.finish().expect("finished");
        let engine = LocalEngine::open(&settings).expect("a data directory");
        assert!(state(&engine, &bytes).await == *expected, "the store at {time} differs");
    }
}
