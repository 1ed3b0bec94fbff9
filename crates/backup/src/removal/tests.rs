//! Lines, segments and damage, in places that are filled by hand.

use super::*;
use crate::archive::segment::{SegmentWriter, Span};
use crate::chunk::ChunkRef;
use crate::generation::Totals;
use crate::index::Entry;
use bytes::Bytes;
use larimar_engine::blob::bytes::Extent;
use larimar_engine_local::CommitPoint;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};

/// A place that is filled by hand.
struct Filled {
    folder: tempfile::TempDir,
    place: Place,
}

impl Filled {
    async fn new() -> Self {
        let folder = larimar_testkit::memory_directory();
        let place = Place::directory(folder.path().join("place"));
        let _lock = place.prepare().await.expect("a place");
        Self { folder, place }
    }

    async fn chunk(&self, content: impl AsRef<[u8]>) -> ChunkRef {
        let chunk = ChunkRef::of(content.as_ref());
        self.place.put(&chunk.name(), Bytes::copy_from_slice(content.as_ref())).await.expect("a chunk");
        chunk
    }

    /// A backup of a day with one data chunk.
    async fn generation(&self, day: u64, line: Option<&Line>, content: &str) -> String {
        self.generation_of(&format!("2020-11-{day:02}T12:00:00Z"), day, line, content).await
    }

    async fn generation_of(&self, taken: &str, day: u64, line: Option<&Line>, content: &str) -> String {
        let taken = Timestamp::parse(taken).expect("a time");
        let mut index = Vec::new();
        Entry::Data(self.chunk(content).await).encode(&mut index);
        let index = self.chunk(index).await;
        let commit = CommitPoint { sequence: day * 10, time: taken };
        let mut generation = Generation::new(taken, (taken, commit), Totals::default(), &[index]);
        generation.line = line.map(|line| line.name.clone());
        generation.write(&self.place).await.expect("a generation");
        generation.name()
    }

    async fn line(&self, day: u64) -> Line {
        let began = Timestamp::parse(&format!("2020-11-{day:02}T00:00:00Z")).expect("a time");
        let line = Line::new(began, day * 10, [7; 4]);
        line.write(&self.place).await.expect("a line");
        line
    }

    /// A segment of ten commits from a day's first on, with a payload in a chunk.
    async fn segment(&self, line: &Line, day: u64, content: &str) {
        let mut writer = SegmentWriter::default();
        let chunk = self.chunk(content).await;
        writer.pieces(&Extent { file: [1; 16], offset: 0, length: chunk.length }, &[chunk]);
        let name = SegmentName { first: day * 10 + 1, last: day * 10 + 10 };
        let bytes = writer.finish(Span { first: name.first, last: name.last, through: Timestamp::EDM_MIN });
        self.place.put(&name.file(&line.name), bytes).await.expect("a segment");
    }

    async fn has(&self, content: &str) -> bool {
        self.place.size(&ChunkRef::of(content.as_bytes()).name()).await.expect("a size").is_some()
    }

    async fn keep(&self, count: usize) -> Result<Removed, BackupError> {
        let keep = Keep { time: None, count: Some(count) };
        remove(&self.place, &Removing::Surplus(keep), Writers::Others { is_idle: false }, false).await
    }
}

const fn own(lock: &Arc<RwLock<()>>) -> Writers<'_> {
    Writers::Own { lock, is_archiving: false }
}

#[tokio::test]
async fn a_kept_backup_keeps_what_its_line_has_after_it() {
    let filled = Filled::new().await;
    let (old, new) = (filled.line(1).await, filled.line(5).await);
    for day in 1..=4 {
        filled.generation(day, Some(&old), &format!("rows {day}")).await;
        filled.segment(&old, day, &format!("payload {day}")).await;
    }
    filled.generation(5, Some(&new), "rows 5").await;
    filled.segment(&new, 5, "payload 5").await;
    let removed = filled.keep(3).await.expect("a removal");
    // The backup of the third day is the first that is kept, and needs the commits after it.
    assert_eq!((removed.generations.len(), removed.segments), (2, 2));
    for (day, is_kept) in [(1, false), (2, false), (3, true), (4, true), (5, true)] {
        for content in ["rows", "payload"] {
            assert_eq!(filled.has(&format!("{content} {day}")).await, is_kept, "{content} {day}");
        }
    }
    // Without a backup of its line, a segment is of no use, except in the newest line.
    let removed = filled.keep(1).await.expect("a removal");
    assert_eq!((removed.generations.len(), removed.segments), (2, 2));
    assert_eq!(Line::list(&filled.place).await.expect("lines"), std::slice::from_ref(&new.name));
    assert!(filled.has("payload 5").await && !filled.has("payload 4").await);
    let newest = filled.line(6).await;
    filled.segment(&newest, 6, "payload 6").await;
    assert_eq!(filled.keep(1).await.expect("a removal"), Removed::default());
    assert!(filled.has("payload 6").await, "its first backup is still being taken");
}

#[tokio::test]
async fn what_an_interrupted_removal_left_goes_with_the_next() {
    let filled = Filled::new().await;
    let line = filled.line(1).await;
    let first = filled.generation(1, Some(&line), "rows 1").await;
    filled.segment(&line, 1, "payload 1").await;
    filled.line(2).await;
    filled.generation(2, None, "rows 2").await;
    // Killed after the generations; then within the files of a line.
    filled.place.remove(&format!("{GENERATIONS}/{first}")).await.expect("removed");
    filled.place.remove(&format!("{ARCHIVE}/{}/line", line.name)).await.expect("removed");
    let removed = filled.keep(1).await.expect("a removal");
    assert_eq!((removed.generations.len(), removed.segments, removed.chunks), (0, 1, 3));
    assert!(!filled.has("rows 1").await && !filled.has("payload 1").await && filled.has("rows 2").await);
    assert!(!filled.folder.path().join("place/archive").join(&line.name).exists());
    assert_eq!(filled.keep(1).await.expect("a removal"), Removed::default());
}

#[tokio::test]
async fn nothing_is_removed_if_what_is_kept_is_damaged() {
    let filled = Filled::new().await;
    let line = filled.line(1).await;
    for day in 1..=3 {
        filled.generation(day, Some(&line), &format!("rows {day}")).await;
        filled.segment(&line, day, &format!("payload {day}")).await;
    }
    let files = |name: &str| filled.place.storage().show(name);
    let segment = files(&SegmentName { first: 31, last: 40 }.file(&line.name));
    let generation = files(&format!("{GENERATIONS}/20201103T120000.0000000Z-30"));
    for file in [files(&ChunkRef::of(b"rows 3").name()), files(&ChunkRef::of(b"payload 3").name()), segment, generation]
    {
        let whole = std::fs::read(&file).expect("a file");
        let is_chunk = file.contains("/chunks/");
        if is_chunk { std::fs::remove_file(&file) } else { std::fs::write(&file, &whole[1..]) }.expect("damage");
        let error = filled.keep(1).await.expect_err("a refusal").to_string();
        assert!(error.contains("nothing was removed") && error.contains(&file), "{file}: {error}");
        assert!(filled.has("rows 1").await && filled.has("payload 1").await);
        std::fs::write(&file, &whole).expect("a file");
    }
    assert_eq!(filled.keep(1).await.expect("a removal").generations.len(), 2);
}

#[tokio::test]
async fn a_directory_that_a_server_archives_to_is_refused() {
    let filled = Filled::new().await;
    filled.line(1).await;
    filled.generation(1, None, "rows 1").await;
    filled.generation(2, None, "rows 2").await;
    let lock = std::fs::File::create(filled.folder.path().join("place/archive/lock")).expect("a file");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    assert!(matches!(filled.keep(1).await, Err(BackupError::Archiving(_))));
    let (removing, alone) = (Removing::Surplus(Keep { time: None, count: Some(1) }), Arc::default());
    let other_server = remove(&filled.place, &removing, own(&alone), false).await;
    assert!(matches!(other_server, Err(BackupError::Archiving(_))));
    drop(lock);
    let other = filled.place.prepare().await.expect("a lock");
    assert!(matches!(filled.keep(1).await, Err(BackupError::Busy(_))));
    drop(other);
    assert_eq!(filled.keep(1).await.expect("a removal").generations.len(), 1);
}

#[tokio::test]
async fn the_removal_of_a_server_waits_for_its_writers_and_reads_what_they_wrote() {
    let filled = Filled::new().await;
    let line = filled.line(1).await;
    filled.generation(1, Some(&line), "rows 1").await;
    filled.chunk("garbage that a writer uses again").await;
    let lock = Arc::new(RwLock::new(()));
    let writing = lock.read().await;
    let removing = Removing::Surplus(Keep { time: None, count: Some(1) });
    let mut removal = Box::pin(remove(&filled.place, &removing, own(&lock), false));
    let beside = tokio::time::timeout(Duration::from_millis(200), &mut removal).await;
    assert!(beside.is_err(), "it waits");
    filled.segment(&line, 1, "garbage that a writer uses again").await;
    drop(writing);
    assert_eq!(removal.await.expect("a removal"), Removed::default());
    assert!(filled.has("garbage that a writer uses again").await);
}

#[tokio::test]
async fn a_removal_does_not_wait_for_a_long_restore() {
    let filled = Filled::new().await;
    filled.generation(1, None, "rows 1").await;
    filled.generation(2, None, "rows 2").await;
    let lock = Arc::new(RwLock::new(()));
    let restoring = lock.read().await;
    let removing = Removing::Surplus(Keep { time: None, count: Some(1) });
    let removal = remove(&filled.place, &removing, own(&lock), false).await;
    assert!(matches!(removal, Err(BackupError::InUse(_))));
    assert!(lock.try_read().is_ok() && filled.has("rows 1").await);
    drop(restoring);
    let removed = remove(&filled.place, &removing, own(&lock), false).await.expect("a removal");
    assert_eq!(removed.generations.len(), 1);
}

#[tokio::test]
async fn a_cancelled_removal_ends_what_it_began_before_writers_go_on() {
    let slow = ThrottleConfig { wait_delete_per_call: Duration::from_millis(300), ..ThrottleConfig::default() };
    let objects = Arc::new(ThrottledStore::new(InMemory::new(), slow));
    let place = Place::objects(objects, "here".into(), "s3://bucket/here".to_owned());
    let filled = Filled { folder: larimar_testkit::memory_directory(), place };
    drop(filled.place.prepare().await.expect("a place"));
    filled.generation(1, None, "rows 1").await;
    filled.chunk("garbage").await;
    let (lock, place) = (Arc::new(RwLock::new(())), filled.place.clone());
    let shared = Arc::clone(&lock);
    let removal = tokio::spawn(async move {
        let removing = Removing::Surplus(Keep { time: None, count: Some(1) });
        remove(&place, &removing, own(&shared), false).await
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    removal.abort();
    assert!(removal.await.is_err() && filled.has("garbage").await, "it was cancelled while the chunk was removed");
    drop(lock.read().await);
    assert!(!filled.has("garbage").await, "a writer would count on it");
}

#[tokio::test]
async fn what_symbolic_links_lead_to_is_not_touched() {
    let filled = Filled::new().await;
    let (old, _) = (filled.line(1).await, filled.line(2).await);
    filled.generation(1, Some(&old), "rows 1").await;
    filled.generation(2, None, "rows 2").await;
    let victim = filled.folder.path().join("victim");
    std::fs::create_dir(&victim).expect("a directory");
    let chunk = ChunkRef::of(b"nothing refers to this").name();
    let names = ["line", "through", "1-2-3", &chunk[10..], "00000000000000000011-00000000000000000020"];
    for name in names {
        std::fs::write(victim.join(name), "of another program").expect("a file");
    }
    let line = format!("archive/{}", old.name);
    for directory in ["unfinished", &line, "archive", "generations", &chunk[..9], "chunks"] {
        let (path, aside) = (filled.folder.path().join("place").join(directory), filled.folder.path().join("aside"));
        let is_there = path.exists();
        if is_there {
            std::fs::rename(&path, &aside).expect("a name");
        }
        std::os::unix::fs::symlink(&victim, &path).expect("a link");
        let error = filled.keep(1).await.expect_err(directory).to_string();
        assert!(error.contains(&format!("place/{directory}")) && error.contains("symbolic link"), "{error}");
        let put = filled.place.put(&format!("{directory}/new"), "x".into()).await;
        assert!(put.is_err() && std::fs::read_dir(&victim).expect("a directory").count() == names.len());
        std::fs::remove_file(&path).expect("a link");
        if is_there {
            std::fs::rename(&aside, &path).expect("a name");
        }
    }
    assert_eq!(filled.keep(1).await.expect("a removal").generations.len(), 1);
}

#[tokio::test]
async fn files_and_directories_that_are_not_ours_stay_and_hinder_nothing() {
    let filled = Filled::new().await;
    let (old, _) = (filled.line(1).await, filled.line(2).await);
    filled.generation(1, Some(&old), "rows 1").await;
    filled.segment(&old, 1, "payload 1").await;
    filled.generation(2, None, "rows 2").await;
    let place = filled.folder.path().join("place");
    let line = place.join("archive").join(&old.name);
    for directory in [place.join("unfinished/sub"), place.join("unfinished/7-7-7"), line.join("sub"), line.join("end")]
    {
        std::fs::create_dir(directory).expect("a directory");
    }
    for name in ["left", "1-2-3"] {
        std::fs::write(place.join("unfinished").join(name), "").expect("a file");
    }
    std::fs::write(line.join("notes"), "").expect("a file");
    let removed = filled.keep(1).await.expect("a removal");
    assert_eq!((removed.generations.len(), removed.segments), (1, 1));
    assert!(place.join("unfinished/left").exists() && !place.join("unfinished/1-2-3").exists());
    assert!(line.join("notes").exists() && !line.join("line").exists());
    assert_eq!(filled.keep(1).await.expect("a removal"), Removed::default());
}

#[tokio::test]
async fn backups_and_lines_from_a_clock_that_was_ahead_displace_no_new_ones() {
    let filled = Filled::new().await;
    let ahead = Line::new(Timestamp::parse("3000-01-01T00:00:00Z").expect("a time"), 5, [7; 4]);
    ahead.write(&filled.place).await.expect("a line");
    for day in 1..=2 {
        filled.generation_of(&format!("3000-01-0{day}T00:00:00Z"), day, Some(&ahead), "rows ahead").await;
    }
    let open = filled.line(3).await;
    filled.segment(&open, 3, "payload 3").await;
    for day in 3..=4 {
        filled.generation(day, None, &format!("rows {day}")).await;
        assert_eq!(filled.keep(2).await.expect("a removal"), Removed::default(), "{day}");
    }
    assert!(filled.has("payload 3").await, "the open line waits for its first backup");
    filled.generation(5, None, "rows 5").await;
    assert_eq!(filled.keep(2).await.expect("a removal").generations.len(), 1);
    assert!(!filled.has("rows 3").await && filled.has("rows 4").await && filled.has("rows 5").await);
}
