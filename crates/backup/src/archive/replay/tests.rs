//! Restores to a moment, from segments that the tests write: the store is compared with the one that wrote the commits.

use super::*;
use crate::archive::line::{Line, Through};
use crate::archive::lines::archive_lines;
use crate::archive::mailbox::CommitMailbox;
use crate::archive::moment::Unreachable;
use crate::archive::segment::{SegmentWriter, Span, put_commit};
use crate::pace::Rate;
use crate::restore::restore_to;
use crate::take::back_up;
use bytes::Bytes;
use larimar_engine::blob::bytes::{ByteWriter as _, MemoryBytes, PayloadHold};
use larimar_engine::blob::{AccessConditions, BlobRef, Blobs, NewBlob, NewContainer};
use larimar_engine::queue::NewMessage;
use larimar_engine::{
    Act, Budget, Clock as _, Expect, Flow, KeyRange, Messages as _, Op, RowRef, Rows as _, SpaceKind, SpaceName,
    Spaces as _, SystemClock,
};
use larimar_engine_local::repair::{Action, repair};
use larimar_engine_local::restoring::Restoring;
use larimar_engine_local::store::memory::MemoryStore;
use larimar_engine_local::store::{self, Batch, Reopen, Snapshot, Store, StoreError, SyncTo};
use larimar_engine_local::{Durability, LocalEngine, Settings};
use larimar_model::Timestamp;
use larimar_model::blob::{BlobName, DeleteSnapshots, PageRange, SequenceConditions};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A commit as it reached the store.
#[derive(Clone, Debug)]
struct Seen {
    point: CommitPoint,
    writes: Vec<(store::Bytes, Option<store::Bytes>)>,
}

/// A store that remembers what is committed.
struct Watched {
    inner: MemoryStore,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Store for Watched {
    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.inner.snapshot()
    }

    fn commit(&self, batch: Batch, sync: SyncTo) -> Result<(), StoreError> {
        let last = batch.writes.iter().find(|(key, _)| key[..] == [1]).and_then(|(_, value)| value.clone());
        if let Some(last) = last {
            let number = |at: usize| u64::from_be_bytes(last[at..at + 8].try_into().expect("eight bytes"));
            let point = CommitPoint { sequence: number(8), time: Timestamp::from_ticks(number(16)) };
            let mut seen = self.seen.lock();
            let before = seen.last().map_or(0, |seen: &Seen| seen.point.sequence);
            // Of a group, the last commit has it all.
            let empty = (before + 1..point.sequence).map(|sequence| CommitPoint { sequence, ..point });
            seen.extend(empty.map(|point| Seen { point, writes: Vec::new() }));
            let writes = batch.writes.iter().filter(|(key, _)| key[..] != [1]).cloned().collect();
            seen.push(Seen { point, writes });
        }
        self.inner.commit(batch, sync)
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.inner.sync()
    }

    fn discard(&self, from: &[u8], to: &[u8]) -> Result<(), StoreError> {
        self.inner.discard(from, to)
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.inner.settle()
    }

    fn compact(&self, bytes: u64) -> Result<bool, StoreError> {
        self.inner.compact(bytes)
    }

    fn disk_bytes(&self) -> u64 {
        self.inner.disk_bytes()
    }

    fn probe(&self) -> Result<(), StoreError> {
        self.inner.probe()
    }

    fn stop(self: Box<Self>) -> Box<dyn Reopen> {
        Box::new(self.inner).stop()
    }

    fn finish(&self) -> Result<(), StoreError> {
        self.inner.finish()
    }
}

/// A store, its commits, and what it held after each step.
struct Site {
    folder: tempfile::TempDir,
    place: Place,
    engine: Arc<LocalEngine>,
    bytes: Arc<MemoryBytes>,
    blobs: Blobs<LocalEngine, MemoryBytes>,
    _hold: PayloadHold,
    seen: Arc<Mutex<Vec<Seen>>>,
    states: BTreeMap<u64, Vec<String>>,
    /// Payloads that the line has.
    sent: HashSet<Extent>,
    /// The last commit that is archived.
    archived: u64,
    line: String,
}

impl Site {
    async fn new() -> Self {
        let folder = larimar_testkit::memory_directory();
        let place = Place::directory(folder.path().join("place"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let store = Watched { inner: MemoryStore::default(), seen: Arc::clone(&seen) };
        let engine = Arc::new(LocalEngine::on_store(Box::new(store)).expect("an engine"));
        let bytes = Arc::new(MemoryBytes::new(Duration::ZERO));
        let blobs = Blobs::new(Arc::clone(&engine), Arc::clone(&bytes));
        let (states, sent) = (BTreeMap::new(), HashSet::new());
        let hold = larimar_engine::blob::bytes::ByteStore::hold(&*bytes);
        drop(place.prepare().await.expect("a place"));
        let line = String::new();
        let mut site = Self { folder, place, engine, bytes, blobs, _hold: hold, seen, states, sent, archived: 0, line };
        site.begin_line().await;
        site
    }

    /// Begins another line after the last commit.
    async fn begin_line(&mut self) {
        self.archived = self.last().sequence;
        let line = Line::new(SystemClock.now(), self.archived, [1, 2, 3, self.archived as u8]);
        line.write(&self.place).await.expect("written");
        self.line = line.name;
        self.sent.clear();
    }

    fn last(&self) -> CommitPoint {
        self.seen.lock().last().map_or_else(CommitPoint::default, |seen| seen.point)
    }

    /// The last commit that is archived.
    fn archived(&self) -> CommitPoint {
        let seen = self.seen.lock();
        seen.iter()
            .find(|seen| seen.point.sequence == self.archived)
            .map_or_else(CommitPoint::default, |seen| seen.point)
    }

    /// What the store held after a commit. Commits of the reclaiming thread change nothing of that.
    fn state_after(&self, sequence: u64) -> &Vec<String> {
        self.states.range(..=sequence).next_back().expect("a state").1
    }

    /// Takes note of what the store holds now.
    async fn note(&mut self) {
        loop {
            let before = self.last();
            let state = state(&self.engine, &self.bytes).await;
            if self.last() == before {
                self.states.insert(before.sequence, state);
                return;
            }
        }
    }

    /// Backs up, as a part of the line.
    async fn back_up(&self) -> Generation {
        let mut generation =
            back_up(&*self.engine, Some(&*self.bytes), &self.place, Rate::Max, &|_| ()).await.expect("a backup");
        self.place.remove(&format!("generations/{}", generation.name())).await.expect("removed");
        generation.line = Some(self.line.clone());
        generation.write(&self.place).await.expect("written");
        generation
    }

    /// Archives what is not archived yet, up to so many commits in a segment.
    async fn archive(&mut self, commits_max: usize) {
        let seen: Vec<Seen> =
            self.seen.lock().iter().filter(|seen| seen.point.sequence > self.archived).cloned().collect();
        for group in seen.chunks(commits_max) {
            self.segment(group).await;
        }
        let Some(last) = seen.last() else { return };
        let through = Through::new(last.point.sequence, last.point.time);
        through.write(&self.place, &self.line).await.expect("written");
    }

    async fn segment(&mut self, group: &[Seen]) {
        let mut writer = SegmentWriter::default();
        for seen in group {
            for extent in self.payloads(seen).await {
                if self.sent.insert(extent) {
                    let content = content(&self.bytes, &extent).await;
                    if content.len() <= 1 << 10 {
                        writer.payload(&extent, &content);
                        continue;
                    }
                    let mut chunks = Vec::new();
                    for piece in content.chunks(1000) {
                        let chunk = ChunkRef::of(piece);
                        self.place.put(&chunk.name(), Bytes::copy_from_slice(piece)).await.expect("written");
                        chunks.push(chunk);
                    }
                    writer.pieces(&extent, &chunks);
                }
            }
            let writes = seen.writes.iter().map(|(key, value)| (&key[..], value.as_deref()));
            let mut commit = Vec::new();
            put_commit(&mut commit, seen.point.sequence, seen.point.time, writes);
            writer.commits(&commit);
        }
        let (first, last) = (group[0].point, group[group.len() - 1].point);
        let span = Span { first: first.sequence, last: last.sequence, through: last.time };
        let name = SegmentName { first: span.first, last: span.last };
        self.place.put(&name.file(&self.line), writer.finish(span)).await.expect("written");
        self.archived = last.sequence;
    }

    /// The payloads that a commit's rows point to, found without the code under test: by the rows of the engine's containers.
    async fn payloads(&self, seen: &Seen) -> Vec<Extent> {
        let mut extents = Vec::new();
        for (key, value) in &seen.writes {
            let (Some(value), [0x41, number, rest @ ..]) = (value, &key[..]) else { continue };
            let is_container = self.containers().await.contains(&u64::from(*number));
            let Some(end) = rest.iter().position(|byte| *byte == 0).filter(|_| is_container) else { continue };
            let (partition, row) = (str::from_utf8(&rest[..end]), str::from_utf8(&rest[end + 1..]));
            let (partition, row) = (partition.expect("plain names"), row.expect("plain names"));
            let row = RowRef { partition, row, version: Timestamp::EDM_MIN, body: &value[8..] };
            extents.extend(payloads_in(row).expect("a row"));
        }
        extents
    }

    /// The numbers of all containers that there ever were.
    async fn containers(&self) -> HashSet<u64> {
        let is_name =
            |key: &[u8]| key[0] == 2 && key.split(|byte| *byte == 0).nth(1).is_some_and(|rest| rest[0] == b'c');
        let seen = self.seen.lock();
        let names = seen.iter().flat_map(|seen| &seen.writes).filter(|(key, _)| is_name(key));
        names.filter_map(|(_, value)| value.as_ref().map(|value| u64::from(value[7]))).collect()
    }

    /// Restores to a moment; returns what the new directory holds, and its last commit.
    async fn restored(&self, moment: &Moment) -> Result<(Vec<String>, CommitPoint), BackupError> {
        let plan = Plan::make(&self.place, moment).await?;
        let folder = larimar_testkit::memory_directory();
        let settings = Settings {
            folder: folder.path().join("data"),
            durability: Durability::Async,
            memory_bytes: Some(64 << 20),
            reserve_bytes: 0,
        };
        let bytes = Arc::new(MemoryBytes::new(Duration::ZERO));
        let restoring = Restoring::begin(&settings.folder).expect("an empty directory");
        let open = || {
            // Bytes in memory have no directories, which the store would miss.
            let files = (0..256).map(|number| format!("files/{number:02x}"));
            for name in files.chain(["packs".to_owned()]) {
                std::fs::create_dir_all(settings.folder.join("blobs").join(name)).expect("a directory");
            }
            Ok(Arc::clone(&bytes))
        };
        restore_to(&self.place, &plan, &restoring, open, &|_| ()).await?;
        restoring.finish().expect("finished");
        let mut names: Vec<_> = settings.folder.read_dir().expect("a directory").flatten().collect();
        names.retain(|entry| entry.file_name().to_string_lossy().starts_with("restore"));
        assert!(names.is_empty(), "{names:?}");
        assert_eq!(repair(&settings.folder, false).expect("a store").action, Action::None);
        // The engine may commit at once, when it reclaims what was dropped.
        let mailbox = Arc::new(CommitMailbox::default());
        let engine = LocalEngine::open_fed(&settings, Arc::clone(&mailbox) as Arc<_>).expect("a data directory");
        let point = mailbox.started().expect("a start").0.point;
        assert_eq!(point, plan.last());
        Ok((state(&engine, &bytes).await, point))
    }

    async fn space(&self, kind: SpaceKind, name: &str) -> SpaceId {
        let name = SpaceName { account: "one", kind, name };
        match self.engine.create_space(name, b"").await.expect("no fault") {
            Some(id) => id,
            None => self.engine.space(name).await.expect("no fault").expect("a space").id,
        }
    }

    async fn payload(&self, at: BlobRef<'_>, content: &[u8]) -> Extent {
        let mut writer = self.blobs.begin(at, None).await.expect("a payload");
        writer.write(Bytes::copy_from_slice(content)).await.expect("bytes");
        writer.finish().await.expect("a payload")
    }

    /// One of many changes, chosen by a number.
    async fn step(&mut self, number: u64) {
        let now = SystemClock.now();
        let table = self.space(SpaceKind::Table, "tab").await;
        let queue = self.space(SpaceKind::Queue, "jobs").await;
        let container = "photos".parse().expect("a name");
        // It may be there.
        let _ = self.blobs.create_container("one", &container, &NewContainer::default(), now).await;
        let container = self.space(SpaceKind::Container, "photos").await;
        let body = vec![number as u8; 300 + number as usize * 37 % 4000];
        let (row, other) = (format!("{:03}", number % 7), format!("{:03}", (number + 3) % 7));
        match number % 11 {
            0 | 1 => {
                let put = |row| Op { row, expect: Expect::Any, act: Act::Put(&body) };
                self.engine.apply(table, "p", &[put(&row), put(&other)], now).await.expect("rows");
            }
            2 => {
                let delete = Op { row: &row, expect: Expect::Any, act: Act::Delete };
                self.engine.apply(table, "p", &[delete], now).await.expect("no row");
            }
            3 => {
                let message = NewMessage { text: &body, hidden_for: Duration::ZERO, lives_for: None };
                self.engine.put_message(queue, message, now).await.expect("a message");
            }
            10 => {
                let kind = [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container][number as usize / 11 % 3];
                let name = ["tab", "jobs", "photos"][number as usize / 11 % 3];
                self.engine.drop_space(SpaceName { account: "one", kind, name }).await.expect("a drop");
            }
            _ => self.step_blob(container, number, &body).await,
        }
        self.note().await;
    }

    async fn step_blob(&self, container: SpaceId, number: u64, body: &[u8]) {
        let (now, access, new) = (SystemClock.now(), AccessConditions::default(), NewBlob::default());
        let name = match number % 11 {
            6 => "pages".to_owned(),
            7 => "appended".to_owned(),
            9 => format!("block{}", number / 11 % 3),
            _ => format!("block{}", number % 3),
        };
        let name: BlobName = name.parse().expect("a name");
        let at = BlobRef { container, name: &name };
        match number % 11 {
            4 | 5 => {
                let extent = self.payload(at, body).await;
                self.blobs.put_block_blob(at, Some(extent), &new, &access, now).await.expect("a blob");
            }
            6 => {
                if self.blobs.snapshot_blob(at, None, &access, now).await.is_err() {
                    self.blobs.put_page_blob(at, (1 << 20, 0), &new, &access, now).await.expect("a blob");
                }
                let (start, page) = (number * 512 % (1 << 20), vec![number as u8; 1024]);
                let extent = self.payload(at, &page).await;
                let range = PageRange::new(start, start + 1024).expect("pages");
                let put = self.blobs.put_pages(at, (range, extent), SequenceConditions::default(), &access, now);
                put.await.expect("pages");
            }
            7 => {
                let extent = self.payload(at, body).await;
                let appended = self.blobs.append_block(at, extent, Default::default(), &access, now).await;
                if appended.is_err() {
                    self.blobs.put_append_blob(at, &new, &access, now).await.expect("a blob");
                }
            }
            // There may be no blob.
            8 => drop(self.blobs.snapshot_blob(at, None, &access, now).await),
            _ => drop(self.blobs.delete_blob(at, Some(DeleteSnapshots::Include), &access, now).await),
        }
    }
}

/// Everything in a store, with numbers of spaces, and the contents of payloads in the place of their addresses.
async fn state(engine: &LocalEngine, bytes: &MemoryBytes) -> Vec<String> {
    let mut state = Vec::new();
    let mut spaces = vec![(String::new(), SpaceKind::Table, SpaceId::SYSTEM)];
    for kind in [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container] {
        let from = SpaceName { account: "one", kind, name: "" };
        for (name, space) in engine.list_spaces(from, 100).await.expect("spaces") {
            state.push(format!("{kind:?} {name} {:?} {:?}", space.id, space.meta));
            spaces.push((name, kind, space.id));
        }
    }
    for (name, kind, space) in spaces {
        let mut rows = Vec::new();
        let budget = Budget { rows_max: usize::MAX, deadline: Instant::now() + Duration::from_secs(60) };
        let range = KeyRange::all();
        let scanned = engine.scan(space, &range, budget, |row| {
            rows.push((row.partition.to_owned(), row.row.to_owned(), row.version, row.body.to_vec()));
            Flow::Continue
        });
        assert_eq!(scanned.await.expect("rows"), None);
        for (partition, row, version, mut body) in rows {
            if kind == SpaceKind::Container {
                let row = RowRef { partition: &partition, row: &row, version, body: &body };
                let mut contents = HashMap::new();
                for extent in payloads_in(row).expect("a row") {
                    let hash: [u8; 32] = Sha256::digest(content(bytes, &extent).await).into();
                    let file = *hash.first_chunk().expect("16 bytes");
                    contents.insert(extent, Extent { file, offset: 0, length: extent.length });
                }
                let Some(relocated) = relocated(row, |extent| contents[extent]).expect("a row") else { continue };
                body = relocated;
            }
            state.push(format!("{name} {partition} {row} {} {:x}", version.ticks(), Sha256::digest(&body)));
        }
    }
    state
}

async fn content(bytes: &MemoryBytes, extent: &Extent) -> Vec<u8> {
    let mut content = Vec::new();
    while (content.len() as u64) < extent.length {
        let range = content.len() as u64..extent.length;
        content.extend_from_slice(
            &larimar_engine::blob::bytes::ByteStore::read(bytes, extent, range).await.expect("bytes"),
        );
    }
    content
}

#[tokio::test]
async fn a_store_is_restored_to_each_commit_and_time_after_a_backup() {
    let mut site = Site::new().await;
    for number in 0..40 {
        site.step(number).await;
    }
    site.archive(7).await;
    let first = site.back_up().await;
    for number in 40..90 {
        site.step(number).await;
    }
    site.archive(5).await;
    let second = site.back_up().await;
    for number in 90..140 {
        site.step(number).await;
    }
    site.archive(100).await;
    let (all, point) = site.restored(&Moment::Latest).await.expect("a restore");
    assert_eq!((&all, point), (site.state_after(site.archived), site.archived()));
    let (alone, point) = site.restored(&Moment::Generation(first.name())).await.expect("a restore");
    assert_eq!((&alone, point.sequence), (site.state_after(first.sequence), first.sequence));
    let seen = site.seen.lock().clone();
    let mut restored = 0;
    for (sequence, state) in site.states.range(first.sequence..).step_by(29) {
        let commit = seen.iter().find(|seen| seen.point.sequence == *sequence).expect("a commit");
        let next = seen.iter().find(|seen| seen.point.sequence == *sequence + 1);
        // At the very time of the commit, and just before the next one.
        let until = next.map_or(commit.point.time, |next| Timestamp::from_ticks(next.point.time.ticks() - 1));
        let is_between = commit.point.time <= until && second.taken_at().expect("a time") < commit.point.time;
        if !is_between {
            let (found, point) = site.restored(&Moment::Sequence(*sequence)).await.expect("a restore");
            assert_eq!((&found, point.sequence), (state, *sequence));
            continue;
        }
        for time in [commit.point.time, until] {
            let (found, point) = site.restored(&Moment::Time(time)).await.expect("a restore");
            assert_eq!((&found, point), (state, commit.point), "{time}");
            restored += 1;
        }
    }
    assert!(restored > 1, "{restored}");
}

#[tokio::test]
async fn moments_that_cannot_be_restored_are_refused_by_name() {
    let mut site = Site::new().await;
    for number in 0..12 {
        site.step(number).await;
    }
    let early = site.last();
    site.archive(4).await;
    let first = site.back_up().await;
    site.step(14).await;
    site.archive(4).await;
    let before_gap = site.archived();
    let lost = before_gap.time;
    tokio::time::sleep(Duration::from_millis(2)).await;
    site.step(15).await;
    let in_gap = site.last();
    site.step(17).await;
    let end = Through::new(before_gap.sequence, lost).ended("the spool was full");
    end.write(&site.place, &site.line).await.expect("written");
    site.begin_line().await;
    let second = site.back_up().await;
    site.step(16).await;
    site.archive(4).await;
    let refused = async |moment: Moment| match site.restored(&moment).await {
        Err(BackupError::Unreachable(refused)) => refused,
        other => panic!("{moment}: {:?}", other.err()),
    };
    for moment in [Moment::Time(early.time), Moment::Sequence(early.sequence - 1)] {
        assert!(
            matches!(refused(moment).await, Unreachable::BeforeFirst { first: taken, .. } if taken.contains(&first.taken))
        );
    }
    for moment in [Moment::Time(in_gap.time), Moment::Sequence(in_gap.sequence)] {
        let said = refused(moment).await.to_string();
        for part in [&format!("{} of {}", before_gap.sequence, before_gap.time), "the spool was full", &second.taken] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let lines = archive_lines(&site.place, Some(&|_| ())).await.expect("lines");
    assert!(lines.iter().all(|line| line.problems.is_empty()), "{lines:?}");
    assert_eq!(lines[0].end.as_deref(), Some("the spool was full"));
    let moments = lines[0].moments.expect("moments");
    assert_eq!((moments.first_sequence, moments.last), (first.sequence, lost));
    assert_eq!(moments.last_sequence, before_gap.sequence);
    let late = SystemClock.now().after(Duration::from_secs(60));
    for (moment, flag) in [(Moment::Time(late), "--to-time"), (Moment::Sequence(10_000), "--to-sequence")] {
        let said = refused(moment).await.to_string();
        assert!(said.contains(&format!("(commit {})", site.archived)) && said.contains(flag), "{said}");
    }
    // Up to the gap, and from the next backup on, everything is there.
    for (time, commit) in [(lost, before_gap), (site.archived().time, site.archived())] {
        let (found, point) = site.restored(&Moment::Time(time)).await.expect("a restore");
        assert_eq!((&found, point.sequence), (site.state_after(commit.sequence), commit.sequence), "{time}");
    }
    assert!(site.restored(&Moment::Time(second.taken_at().expect("a time"))).await.is_ok());
}

#[tokio::test]
async fn missing_and_damaged_files_of_the_archive_are_named_and_refused() {
    let mut site = Site::new().await;
    site.step(0).await;
    site.back_up().await;
    for number in 1..30 {
        site.step(number).await;
    }
    site.archive(9).await;
    let (line, place) = (site.folder.path().join("place/archive").join(&site.line), site.folder.path().join("place"));
    let mut files: Vec<_> = line.read_dir().expect("a line").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() > 5, "{files:?}");
    let chunk = place.join(ChunkRef::of(&[26; 300 + 26 * 37][..1000]).name());
    assert!(chunk.exists(), "{chunk:?}");
    for file in files.iter().chain([&chunk]).filter(|file| !file.ends_with("through")) {
        let (whole, shown) = (std::fs::read(file).expect("a file"), file.display().to_string());
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for damage in [None, Some(&flipped[..]), Some(&whole[1..])] {
            match damage {
                None => std::fs::remove_file(file).expect("a file"),
                Some(bytes) => std::fs::write(file, bytes).expect("a file"),
            }
            let refused = site.restored(&Moment::Latest).await.expect_err("a refusal").to_string();
            assert!(refused.contains(&shown), "{shown}: {refused}");
            let [line] = &archive_lines(&site.place, Some(&|_| ())).await.expect("lines")[..] else { panic!("a line") };
            let named = line.problems.iter().any(|problem| problem.to_string().contains(&shown));
            assert!(named, "{shown}: {:?}", line.problems);
        }
        std::fs::write(file, &whole).expect("a file");
    }
    // A segment under another name, and one that was written again with more commits.
    let copy = line.join(format!("{:020}-{:020}", 500, 508));
    std::fs::copy(&files[0], &copy).expect("a copy");
    let through = std::fs::read(line.join("through")).expect("a file");
    assert!(site.restored(&Moment::Latest).await.expect_err("a hole").to_string().contains("is missing"));
    std::fs::remove_file(copy).expect("a file");
    let seen: Vec<Seen> =
        site.seen.lock().iter().filter(|seen| (5..20).contains(&seen.point.sequence)).cloned().collect();
    site.sent.clear();
    let archived = site.archived;
    site.segment(&seen).await;
    site.archived = archived;
    assert_eq!(std::fs::read(line.join("through")).expect("a file"), through);
    let (found, point) = site.restored(&Moment::Latest).await.expect("a restore");
    assert_eq!((&found, point), (site.state_after(site.archived().sequence), site.archived()));
}
