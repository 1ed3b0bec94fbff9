//! Backups that are restored: the store at one commit, whatever is written, dropped and discarded meanwhile.

use larimar_backup::{
    BackupError, BackupJob, Generation, JobState, Keep, Place, Rate, Totals, back_up, remove_damaged, restore, verify,
};
use larimar_engine::blob::bytes::{ByteStore as _, ByteWriter as _, Bytes, Extent, MemoryBytes};
use larimar_engine::blob::relocate::{payloads_in, relocated};
use larimar_engine::blob::{AccessConditions, BlobRef, Blobs, NewBlob, NewContainer, Reclaimer};
use larimar_engine::queue::NewMessage;
use larimar_engine::{
    Act, Budget, Clock as _, Engine as _, Expect, Flow, KeyRange, Messages as _, Op, Rows as _, SpaceId, SpaceKind,
    SpaceName, Spaces as _, SystemClock,
};
use larimar_engine_local::{Durability, Loader, LocalEngine, Settings};
use larimar_model::blob::BlobName;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A store whose blobs' bytes are in memory.
pub(crate) struct Store {
    pub(crate) engine: Arc<LocalEngine>,
    pub(crate) bytes: Arc<MemoryBytes>,
    pub(crate) blobs: Blobs<LocalEngine, MemoryBytes>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self::on(LocalEngine::in_memory().expect("an engine"), Arc::new(MemoryBytes::new(Duration::ZERO)))
    }

    /// On files, so that compactions are real.
    pub(crate) fn in_folder(folder: PathBuf) -> Self {
        Self::in_folder_with(folder, Arc::new(MemoryBytes::new(Duration::ZERO)))
    }

    pub(crate) fn in_folder_with(folder: PathBuf, bytes: Arc<MemoryBytes>) -> Self {
        let settings =
            Settings { folder, durability: Durability::Async, memory_bytes: Some(64 << 20), reserve_bytes: 0 };
        Self::on(LocalEngine::open(&settings).expect("an engine"), bytes)
    }

    fn on(engine: LocalEngine, bytes: Arc<MemoryBytes>) -> Self {
        let engine = Arc::new(engine);
        let blobs = Blobs::new(Arc::clone(&engine), Arc::clone(&bytes));
        Self { engine, bytes, blobs }
    }

    pub(crate) async fn create(&self, kind: SpaceKind, name: &str) -> SpaceId {
        let name = SpaceName { account: "one", kind, name };
        self.engine.create_space(name, b"").await.expect("no fault").expect("a new space")
    }

    pub(crate) async fn put_row(&self, space: SpaceId, row: &str, body: &[u8]) {
        let op = Op { row, expect: Expect::Any, act: Act::Put(body) };
        self.engine.apply(space, "p", &[op], SystemClock.now()).await.expect("a row");
    }

    pub(crate) async fn delete_row(&self, space: SpaceId, row: &str) {
        let op = Op { row, expect: Expect::Any, act: Act::Delete };
        self.engine.apply(space, "p", &[op], SystemClock.now()).await.expect("no row");
    }

    pub(crate) async fn create_container(&self, name: &str) -> SpaceId {
        let name = name.parse().expect("a name");
        let made = self.blobs.create_container("one", &name, &NewContainer::default(), SystemClock.now()).await;
        made.expect("a container").id
    }

    pub(crate) async fn put_blob(&self, container: SpaceId, name: &str, bytes: Vec<u8>) {
        let name: BlobName = name.parse().expect("a name");
        let at = BlobRef { container, name: &name };
        let mut writer = self.blobs.begin(at, None).await.expect("a payload");
        writer.write(Bytes::from(bytes)).await.expect("bytes");
        let extent = writer.finish().await.expect("a payload");
        let (new, access) = (NewBlob::default(), AccessConditions::default());
        self.blobs.put_block_blob(at, Some(extent), &new, &access, SystemClock.now()).await.expect("a blob");
    }

    /// Everything in the store, with the contents of payloads in the place of their addresses.
    pub(crate) async fn state(&self) -> Vec<String> {
        let mut state = self.rows(None, SpaceId::SYSTEM).await;
        for account in self.engine.accounts().await.expect("accounts") {
            for kind in [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container] {
                let name = SpaceName { account: &account, kind, name: "" };
                for (name, space) in self.engine.list_spaces(name, 1000).await.expect("spaces") {
                    state.push(format!("{account} {kind:?} {name} {:?}", space.meta));
                    state.extend(self.rows(Some(kind), space.id).await);
                }
            }
        }
        state
    }

    async fn rows(&self, kind: Option<SpaceKind>, space: SpaceId) -> Vec<String> {
        let mut rows = Vec::new();
        let budget = Budget { rows_max: usize::MAX, deadline: Instant::now() + Duration::from_secs(60) };
        let range = KeyRange::all();
        let scanned = self.engine.scan(space, &range, budget, |row| {
            rows.push((row.partition.to_owned(), row.row.to_owned(), row.version, row.body.to_vec()));
            Flow::Continue
        });
        assert_eq!(scanned.await.expect("rows"), None);
        let mut shown = Vec::new();
        for (partition, row, version, mut body) in rows {
            if kind == Some(SpaceKind::Container) {
                let row = larimar_engine::RowRef { partition: &partition, row: &row, version, body: &body };
                let mut contents = HashMap::new();
                for extent in payloads_in(row).expect("a row") {
                    contents.insert(extent, self.content(&extent).await);
                }
                match relocated(row, |extent| contents[extent]).expect("a row") {
                    Some(relocated) => body = relocated,
                    None => continue,
                }
            }
            shown.push(format!("{partition} {row} {} {:x}", version.ticks(), Sha256::digest(&body)));
        }
        shown
    }

    /// A hash of a payload, as an address.
    async fn content(&self, extent: &Extent) -> Extent {
        let (mut place, mut hash) = (0, Sha256::new());
        while place < extent.length {
            let read = self.bytes.read(extent, place..extent.length).await.expect("bytes");
            place += read.len() as u64;
            hash.update(&read);
        }
        let hash: [u8; 32] = hash.finalize().into();
        Extent { file: *hash.first_chunk().expect("16 bytes"), offset: 0, length: extent.length }
    }

    pub(crate) async fn back_up(&self, place: &Place) -> Generation {
        back_up(&*self.engine, Some(&*self.bytes), place, Rate::Max, &|_| ()).await.expect("a backup")
    }

    pub(crate) async fn restored(place: &Place, name: Option<&str>) -> Result<(Self, Totals), BackupError> {
        let generation = Generation::find(place, name).await?;
        let (mut loader, bytes) = (Loader::in_memory(), Arc::new(MemoryBytes::new(Duration::ZERO)));
        let totals = restore(place, &generation, &mut loader, Some(&*bytes), &|_| ()).await?;
        let (version, last) = generation.point();
        Ok((Self::on(loader.finish_in_engine(version, last).await?, bytes), totals))
    }
}

/// Tables, a queue, and a container with blobs small and large.
pub(crate) async fn fill(store: &Store) -> (SpaceId, SpaceId) {
    let bulk = store.create(SpaceKind::Table, "bulk").await;
    for hundred in 0..6 {
        let rows: Vec<_> = (0..100).map(|n| hundred * 100 + n).map(|n| (format!("{n:05}"), noise(n, 2000))).collect();
        let ops: Vec<_> = rows.iter().map(|(row, body)| Op { row, expect: Expect::Any, act: Act::Put(body) }).collect();
        store.engine.apply(bulk, "p", &ops, SystemClock.now()).await.expect("rows");
    }
    let queue = store.create(SpaceKind::Queue, "jobs").await;
    for hidden_for in [0, 0, 0, 5, 500].map(Duration::from_secs) {
        let message = NewMessage { text: b"text", hidden_for, lives_for: None };
        store.engine.put_message(queue, message, SystemClock.now()).await.expect("a message");
    }
    let photos = store.create_container("photos").await;
    store.put_blob(photos, "empty", Vec::new()).await;
    store.put_blob(photos, "small", noise(1, 1000)).await;
    store.put_blob(photos, "large", noise(2, 5 << 20)).await;
    store.create(SpaceKind::Table, "empty").await;
    larimar_engine::settings::store_setting(&*store.engine, "one", "table", b"properties", SystemClock.now())
        .await
        .expect("a setting");
    (bulk, photos)
}

/// Bytes that do not repeat.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

fn place(folder: &Path) -> Place {
    Place::directory(folder.join("place"))
}

#[tokio::test]
async fn everything_is_restored_and_versions_go_on() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    let (bulk, _) = fill(&store).await;
    // A version that no row has any more.
    store.delete_row(bulk, "00007").await;
    let taken = store.back_up(&place).await;
    let (copy, totals) = Store::restored(&place, None).await.expect("a restore");
    assert_eq!(copy.state().await, store.state().await);
    assert_eq!((totals.spaces, totals.payloads), (4, 2));
    assert!(taken.sequence > 15, "{}", taken.sequence);
    assert!(copy.engine.statistics().last_version >= store.engine.statistics().last_version);
    let again = copy.back_up(&Place::directory(folder.path().join("other"))).await;
    assert_eq!((again.sequence, again.point()), (taken.sequence, taken.point()));
    copy.put_row(bulk, "new", b"body").await;
    let later = copy.back_up(&Place::directory(folder.path().join("other"))).await;
    assert_eq!(later.sequence, taken.sequence + 1, "the numbers of commits go on");
    // The messages can be claimed.
    let queue = SpaceName { account: "one", kind: SpaceKind::Queue, name: "jobs" };
    let queue = copy.engine.space(queue).await.expect("no fault").expect("a queue").id;
    assert_eq!(copy.engine.count_messages(queue, SystemClock.now()).await.expect("a count"), 5);
}

/// Each step of a writer that runs beside the backup leads to another state. The backup is exactly one of them, although
/// everything that it reads is overwritten, dropped, discarded, reclaimed and compacted meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_the_store_after_one_commit() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::in_folder(folder.path().join("data")), place(folder.path()));
    let (bulk, photos) = fill(&store).await;
    let mut states = vec![store.state().await];
    let (engine, bytes, to) = (Arc::clone(&store.engine), Arc::clone(&store.bytes), place.clone());
    // About 6 MiB at 4 MiB a second.
    let rate = Rate::Bytes(4 << 20);
    let backup = tokio::spawn(async move { back_up(&*engine, Some(&*bytes), &to, rate, &|_| ()).await });
    let mut steps_after_start = 0;
    for step in 0..30_u64 {
        store.put_row(bulk, &format!("{:05}", step * 20), &noise(step + 5000, 2000)).await;
        states.push(store.state().await);
        store.put_blob(photos, "large", noise(step + 9000, 600_000)).await;
        states.push(store.state().await);
        if folder.path().join("place/chunks").is_dir() {
            steps_after_start += 1;
        }
        if steps_after_start == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (kind, name) in [(SpaceKind::Table, "bulk"), (SpaceKind::Container, "photos")] {
        store.engine.drop_space(SpaceName { account: "one", kind, name }).await.expect("a drop");
        states.push(store.state().await);
    }
    let mut reclaimer = Reclaimer::new(Duration::ZERO);
    while reclaimer.step(&store.blobs).await.expect("no fault") {}
    store.blobs.compact(SystemClock.now()).await.expect("a compaction");
    assert!(!backup.is_finished(), "the backup was too fast for this test");
    backup.await.expect("no panic").expect("a backup");
    let (copy, _) = Store::restored(&place, None).await.expect("a restore");
    let restored = copy.state().await;
    let found = states.iter().position(|state| *state == restored);
    assert!(found.is_some(), "the backup is none of the {} states", states.len());
    // What was held back goes when the backup is over.
    store.blobs.compact(SystemClock.now()).await.expect("a compaction");
    assert_eq!(store.bytes.statistics().discarded, 0);
    assert_eq!(store.bytes.payloads(), 0, "payloads of the dropped container are gone");
    for _ in 0..200 {
        if store.engine.statistics().dropped_spaces == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} dropped spaces are left", store.engine.statistics().dropped_spaces);
}

#[tokio::test]
async fn what_the_place_has_is_not_sent_again() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    let (bulk, _) = fill(&store).await;
    let first = store.back_up(&place).await;
    assert!(first.totals.sent_bytes > 6 << 20);
    store.put_row(bulk, "00300", b"changed").await;
    let before = store.state().await;
    let second = store.back_up(&place).await;
    let Totals { sent_bytes, .. } = second.totals;
    assert!((1..4 << 20).contains(&sent_bytes), "{sent_bytes} bytes for one row");
    store.delete_row(bulk, "00301").await;
    store.back_up(&place).await;
    assert_eq!(Generation::list(&place).await.expect("a list").len(), 3);
    let (copy, _) = Store::restored(&place, Some(&second.name())).await.expect("a restore");
    assert_eq!(copy.state().await, before, "each generation is restored by itself");
}

#[tokio::test]
async fn an_object_store_keeps_backups_too() {
    let objects = Arc::new(object_store::memory::InMemory::new());
    let place = Place::objects(objects, "some/where".into(), "s3://b/some/where".to_owned());
    let store = Store::new();
    fill(&store).await;
    assert!(matches!(Store::restored(&place, None).await, Err(BackupError::NoBackup(_))));
    let name = store.back_up(&place).await.name();
    let (copy, _) = Store::restored(&place, None).await.expect("a restore");
    assert_eq!(copy.state().await, store.state().await);
    let (_, problems) = verify(&place, &name, &|_| ()).await.expect("a generation");
    assert!(problems.is_empty(), "{problems:?}");
}

/// Every file below a directory.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found
}

#[tokio::test]
async fn a_flipped_bit_and_a_missing_file_are_named_and_refused() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    fill(&store).await;
    let name = store.back_up(&place).await.name();
    let all = [files(&folder.path().join("place/chunks")), files(&folder.path().join("place/generations"))].concat();
    assert!(all.len() > 4, "{all:?}");
    for file in all {
        let whole = std::fs::read(&file).expect("a file");
        let shown = file.display().to_string();
        let damages = [None, Some(0), Some(whole.len() / 2), Some(whole.len() - 1)];
        for (damage, is_cut) in damages.iter().map(|damage| (*damage, false)).chain([(Some(0), true)]) {
            match damage {
                None => std::fs::remove_file(&file).expect("a file"),
                Some(_) if is_cut => std::fs::write(&file, &whole[1..]).expect("a file"),
                Some(at) => {
                    let mut flipped = whole.clone();
                    flipped[at] ^= 1;
                    std::fs::write(&file, flipped).expect("a file");
                }
            }
            let problems = match verify(&place, &name, &|_| ()).await {
                Ok((_, problems)) => problems,
                Err(problem) => vec![problem],
            };
            let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert!(said.iter().any(|problem| problem.contains(&shown)), "{damage:?} {shown}: {said:?}");
            let refused = Store::restored(&place, Some(&name)).await.err().expect("a refusal").to_string();
            // A generation whose file is gone is not there at all.
            assert!(refused.contains(&shown) || refused.contains("no backup"), "{damage:?} {shown}: {refused}");
        }
        std::fs::write(&file, &whole).expect("a file");
    }
    Store::restored(&place, None).await.expect("a restore");
}

#[tokio::test]
async fn a_cancelled_backup_leaves_no_generation_and_its_chunks_are_used() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    fill(&store).await;
    let job = BackupJob::new(Arc::clone(&store.engine), Some(Arc::clone(&store.bytes)), Keep::default());
    assert!(!job.cancel().await);
    job.start(place.clone(), Rate::Bytes(1 << 20)).expect("a start");
    let refused = job.start(place.clone(), Rate::Max).expect_err("one at a time");
    assert!(refused.to_string().contains("place"), "{refused}");
    let busy = back_up(&*store.engine, Some(&*store.bytes), &place, Rate::Max, &|_| ());
    while job.status().totals.sent_bytes == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(matches!(busy.await, Err(BackupError::Busy(_))));
    assert!(job.cancel().await);
    assert_eq!(job.status().state, JobState::Cancelled);
    assert!(matches!(Generation::list(&place).await, Err(BackupError::NoBackup(_))));
    std::fs::write(folder.path().join("place/unfinished/1-2-3"), "half").expect("a file");
    let sent = job.status().totals.sent_bytes;
    let taken = store.back_up(&place).await;
    assert!(taken.totals.sent_bytes + sent <= 7 << 20, "{sent} and {}", taken.totals.sent_bytes);
    assert_eq!(files(&folder.path().join("place/unfinished")), Vec::<PathBuf>::new());
    let (copy, _) = Store::restored(&place, None).await.expect("a restore");
    assert_eq!(copy.state().await, store.state().await);
    // A job that is done can start the next.
    job.start(place, Rate::Max).expect("a start");
    while job.status().state == JobState::Running {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(job.status().state, JobState::Done);
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_readable_by_their_owner_alone_and_other_directories_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    fill(&store).await;
    store.back_up(&place).await;
    let modes: HashSet<u32> = files(&folder.path().join("place"))
        .iter()
        .map(|file| file.metadata().expect("a file").permissions().mode() & 0o777)
        .collect();
    assert_eq!(modes, HashSet::from([0o600]));
    assert_eq!(folder.path().join("place").metadata().expect("a directory").permissions().mode() & 0o777, 0o700);
    let other = folder.path().join("other");
    std::fs::create_dir(&other).expect("a directory");
    std::fs::write(other.join("mine"), "text").expect("a file");
    let wrong = Place::directory(other.clone());
    let refused = back_up(&*store.engine, Some(&*store.bytes), &wrong, Rate::Max, &|_| ());
    assert!(matches!(refused.await, Err(BackupError::NotOurs(_))));
    assert_eq!(files(&other), [other.join("mine")]);
}

#[tokio::test]
async fn a_chunk_that_is_damaged_is_stored_again_once_it_is_removed() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    fill(&store).await;
    let first = store.back_up(&place).await.name();
    let mut damaged = Vec::new();
    for file in files(&folder.path().join("place/chunks")).iter().take(3) {
        let mut bytes = std::fs::read(file).expect("a chunk");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).expect("a chunk");
        damaged.push(file.display().to_string());
    }
    // One of the same length is not read, and so not replaced.
    let second = store.back_up(&place).await.name();
    let (_, problems) = verify(&place, &second, &|_| ()).await.expect("a generation");
    assert!(!problems.is_empty() && problems.len() <= damaged.len(), "{problems:?}");
    let mut removed = 0;
    // An index that is damaged hides the chunks that it lists.
    while !verify(&place, &second, &|_| ()).await.expect("a generation").1.is_empty() {
        let (_, problems) = remove_damaged(&place, &first, &|_| ()).await.expect("a generation");
        for problem in problems.iter().map(ToString::to_string) {
            assert!(problem.contains("it was removed"), "{problem}");
            assert!(damaged.iter().any(|file| problem.starts_with(file) && !Path::new(file).exists()), "{problem}");
            removed += 1;
        }
        store.back_up(&place).await;
    }
    assert_eq!(removed, damaged.len());
    for name in [first, second] {
        assert!(verify(&place, &name, &|_| ()).await.expect("a generation").1.is_empty());
        assert_eq!(Store::restored(&place, Some(&name)).await.expect("a restore").0.state().await, store.state().await);
    }
}

#[tokio::test]
async fn pipes_and_directories_in_a_place_are_named_and_hang_nothing() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    fill(&store).await;
    let name = store.back_up(&place).await.name();
    let path = folder.path().join("place");
    // A directory with the name of an unfinished file is not ours.
    std::fs::create_dir(path.join("unfinished/1-2-3")).expect("a directory");
    store.back_up(&place).await;
    assert!(path.join("unfinished/1-2-3").is_dir());
    let chunk = files(&path.join("chunks")).remove(0);
    std::fs::remove_file(&chunk).expect("a chunk");
    let made = std::process::Command::new("mkfifo").arg(&chunk).status().expect("mkfifo");
    assert!(made.success());
    let (_, problems) = verify(&place, &name, &|_| ()).await.expect("a generation");
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let expected = format!("{}: it is not a regular file", chunk.display());
    assert!(problems.contains(&expected), "{problems:?}");
}

#[tokio::test]
async fn a_place_that_has_lost_its_mark_says_so() {
    let folder = larimar_testkit::memory_directory();
    let (store, place) = (Store::new(), place(folder.path()));
    fill(&store).await;
    store.back_up(&place).await;
    let mark = folder.path().join("place/larimar-backup");
    std::fs::remove_file(&mark).expect("a mark");
    let expected = format!("{} is missing, though backups are beside it", mark.display());
    let error = Store::restored(&place, None).await.err().expect("a refusal").to_string();
    assert!(error.starts_with(&expected), "{error}");
    let taken = back_up(&*store.engine, Some(&*store.bytes), &place, Rate::Max, &|_| ()).await;
    let error = taken.expect_err("a refusal").to_string();
    assert!(error.starts_with(&expected), "{error}");
}
