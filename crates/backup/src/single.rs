//! Restores single tables, queues and containers into a store that is in use.
//!
//! The index says in which chunks a space is, so only those are read. Each space is filled under a hidden name
//! (`larimar_engine::HiddenSpace`); when all of them are whole, each gets its name in one commit. Rows keep their
//! versions; leases are left out, because nobody holds them on a copy.

use crate::chunk::ChunkRef;
use crate::error::BackupError;
use crate::generation::{Generation, Totals};
use crate::index::{DataChunk, IndexReader, SpaceKey};
use crate::pace::{Pace, Rate};
use crate::payloads::{Unreferenced, no_store, store_payloads};
use crate::place::Place;
use crate::record::{BackedSpace, Record, Records};
use crate::restore::{Known, ROOM_TO_WORK, ROWS_AT_ONCE, new_payloads};
use crate::tally::Tally;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::meta_without_lease;
use larimar_engine::blob::relocate::{relocated, without_lease};
use larimar_engine::queue::{Message, MessageRow};
use larimar_engine::table::meta_renamed;
use larimar_engine::{Clock, Engine, Fault, HiddenSpace, RowRef, SpaceKind, SpaceName, SystemClock};
use larimar_model::TableName;
use larimar_model::blob::ContainerName;
use larimar_model::queue::QueueName;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A table, queue or container to restore, and what it will be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it is.
    pub kind: SpaceKind,
    /// Its account in the backup.
    pub account: String,
    /// Its name in the backup; of a table the folded one.
    pub name: String,
    /// The account to restore it into.
    pub to_account: String,
    /// Its new name; of a table the folded one.
    pub to_name: String,
    /// The new name of a table as it is spelled; the spelling of the backup if there is none.
    pub table: Option<TableName>,
}

impl Wanted {
    /// Reads `NAME` or `NAME=NEW`.
    ///
    /// # Errors
    /// A new name that a table, queue or container cannot have.
    pub fn read(kind: SpaceKind, text: &str, account: &str, to_account: &str) -> Result<Self, String> {
        let (name, new) = text.split_once('=').map_or((text, None), |(name, new)| (name, Some(new)));
        let to = new.unwrap_or(name);
        let refused = |error: &dyn fmt::Display| format!("{} {to:?}: {error}", word(kind));
        let (name, to_name, table) = match kind {
            SpaceKind::Table => {
                let table: TableName = to.parse().map_err(|error| refused(&error))?;
                (name.to_ascii_lowercase(), table.to_folded().to_string(), new.is_some().then_some(table))
            }
            SpaceKind::Queue => {
                let queue: QueueName = to.parse().map_err(|error| refused(&error))?;
                (name.to_owned(), queue.as_str().to_owned(), None)
            }
            SpaceKind::Container => {
                let container: ContainerName = to.parse().map_err(|error| refused(&error))?;
                (name.to_owned(), container.as_str().to_owned(), None)
            }
        };
        let (account, to_account) = (account.to_owned(), to_account.to_owned());
        Ok(Self { kind, account, name, to_account, to_name, table })
    }

    fn target(&self) -> SpaceName<'_> {
        SpaceName { account: &self.to_account, kind: self.kind, name: &self.to_name }
    }

    fn is(&self, (kind, account, name): &(SpaceKind, String, String)) -> bool {
        (self.kind, &self.account, &self.name) == (*kind, account, name)
    }

    /// The meta bytes of the restored space.
    fn meta(&self, meta: &[u8]) -> Result<Vec<u8>, Fault> {
        match (self.kind, &self.table) {
            (SpaceKind::Table, Some(name)) => meta_renamed(meta, name),
            (SpaceKind::Container, _) => meta_without_lease(meta),
            _ => Ok(meta.to_vec()),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, to_account, to_name, table, .. } = self;
        let name = table.as_ref().map_or(to_name.as_str(), TableName::as_str);
        write!(f, "{} {to_account}/{name}", word(*kind))
    }
}

/// Fills hidden spaces from a backup. [`Self::discard`] has to follow, however the restore ended.
#[derive(Debug)]
pub(crate) struct SingleRestore<E, B> {
    pub(crate) engine: Arc<E>,
    pub(crate) bytes: Option<Arc<B>>,
    /// Whether payloads are on the disk of the engine.
    pub(crate) are_payloads_local: bool,
    /// Those without their names.
    hidden: Mutex<Vec<Arc<HiddenSpace>>>,
}

/// A space that was found in a backup.
struct Found<'a> {
    wanted: &'a Wanted,
    chunks: Vec<Arc<DataChunk>>,
}

/// A space that is whole.
struct Whole<'a> {
    wanted: &'a Wanted,
    space: Arc<HiddenSpace>,
    meta: Vec<u8>,
}

impl<E: Engine, B: ByteStore> SingleRestore<E, B> {
    pub(crate) const fn new(engine: Arc<E>, bytes: Option<Arc<B>>, are_payloads_local: bool) -> Self {
        Self { engine, bytes, are_payloads_local, hidden: Mutex::new(Vec::new()) }
    }

    /// Restores spaces; all of them are whole before the first one gets its name.
    pub(crate) async fn run(
        &self,
        place: &Place,
        generation: &Generation,
        wanted: &[Wanted],
        rate: Rate,
        progress: &(dyn Fn(&Totals) + Send + Sync),
    ) -> Result<Totals, BackupError> {
        self.check_free(wanted).await?;
        let found = find(place, generation, wanted).await?;
        self.check_room(&found)?;
        let (pace, totals) = (Pace::new(rate), Totals::default());
        let mut filler = Filler { restore: self, place, generation, pace, totals, progress };
        let fill = async {
            let mut whole = Vec::with_capacity(found.len());
            for found in &found {
                whole.push(filler.fill(found).await?);
            }
            Ok::<_, BackupError>((whole, filler.totals))
        };
        let (whole, totals) = tokio::select! {
            filled = fill => filled?,
            fault = self.keep() => return Err(fault.into()),
        };
        self.publish(&whole).await?;
        Ok(totals)
    }

    /// Refuses names that are taken.
    async fn check_free(&self, wanted: &[Wanted]) -> Result<(), BackupError> {
        for wanted in wanted {
            if self.engine.space(wanted.target()).await?.is_some() {
                return Err(taken(wanted, &[]));
            }
        }
        Ok(())
    }

    /// Refuses what the engine's disk has no room for.
    fn check_room(&self, found: &[Found<'_>]) -> Result<(), BackupError> {
        let Some(disk) = self.engine.statistics().disk else { return Ok(()) };
        let pieces = |chunk: &DataChunk| if self.are_payloads_local { chunk.pieces.len() } else { 0 };
        let chunks = found.iter().flat_map(|found| &found.chunks);
        let stored = chunks.flat_map(|chunk| chunk.pieces[..pieces(chunk)].iter().chain([&chunk.data]));
        let bytes = stored.map(|chunk| chunk.length).fold(0, u64::saturating_add);
        let needed = bytes.saturating_add(bytes / 10).saturating_add(ROOM_TO_WORK);
        let free = disk.free.saturating_sub(disk.needed);
        match free >= needed {
            true => Ok(()),
            false => Err(Fault::Unavailable(format!(
                "the restore may need {needed} bytes on the server's disk, and {free} can be used; nothing was changed"
            ))
            .into()),
        }
    }

    /// Marks the hidden spaces as being filled, until that fails.
    async fn keep(&self) -> Fault {
        loop {
            tokio::time::sleep(KEEP_EVERY).await;
            let spaces = self.hidden.lock().clone();
            for space in spaces {
                if let Err(fault) = space.keep(&*self.engine, SystemClock.now()).await {
                    return fault;
                }
            }
        }
    }

    /// Gives the spaces their names.
    async fn publish(&self, whole: &[Whole<'_>]) -> Result<(), BackupError> {
        self.check_free(&whole.iter().map(|whole| whole.wanted.clone()).collect::<Vec<_>>()).await?;
        for (place, Whole { wanted, space, meta }) in whole.iter().enumerate() {
            if !space.publish(&*self.engine, wanted.target(), meta).await? {
                return Err(taken(wanted, &whole[..place]));
            }
            self.hidden.lock().retain(|hidden| hidden.id != space.id);
        }
        Ok(())
    }

    /// Drops the spaces that did not get their names.
    pub(crate) async fn discard(&self) {
        let spaces = std::mem::take(&mut *self.hidden.lock());
        for space in spaces {
            if let Err(fault) = space.discard(&*self.engine).await {
                tracing::warn!(%fault, "an unfinished restore was not removed; that is tried again in some minutes");
            }
        }
    }
}

/// Fills one space after another.
struct Filler<'a, E, B> {
    restore: &'a SingleRestore<E, B>,
    place: &'a Place,
    generation: &'a Generation,
    pace: Pace,
    totals: Totals,
    progress: &'a (dyn Fn(&Totals) + Send + Sync),
}

impl<E: Engine, B: ByteStore> Filler<'_, E, B> {
    async fn fill<'w>(&mut self, found: &Found<'w>) -> Result<Whole<'w>, BackupError> {
        let (engine, kind) = (&*self.restore.engine, found.wanted.kind);
        let space = Arc::new(HiddenSpace::create(engine, kind, SystemClock.now()).await?);
        self.restore.hidden.lock().push(Arc::clone(&space));
        self.totals.spaces += 1;
        let meta = match kind {
            SpaceKind::Queue => self.queue(found, &space).await?,
            SpaceKind::Table | SpaceKind::Container => self.rows(found, &space).await?,
        };
        let meta = meta.ok_or_else(|| BackupError::damaged("the index", "a space is not where it says"))?;
        Ok(Whole { wanted: found.wanted, space, meta: found.wanted.meta(&meta)? })
    }

    /// Stores the rows of a table or container, and their payloads; returns the meta bytes.
    async fn rows(&mut self, found: &Found<'_>, space: &HiddenSpace) -> Result<Option<Vec<u8>>, BackupError> {
        let (mut meta, mut known, mut tally) = (None, Known::default(), Tally::new(self.generation));
        for chunk in &found.chunks {
            let what = self.place.show(&chunk.data.name());
            let bytes = chunk.data.read(self.place).await?;
            let mut parts = Parts { rest: &bytes, pieces: &chunk.pieces, wanted: found.wanted, what: &what };
            while let Some(part) = parts.next()? {
                tally.part(&part.first, part.records.clone())?;
                meta = meta.or(part.meta());
                self.part(&part, space, &mut known, &what).await?;
            }
            self.done(chunk.data.length).await;
        }
        Ok(meta)
    }

    async fn part(
        &mut self,
        part: &Part<'_>,
        space: &HiddenSpace,
        known: &mut Known,
        what: &str,
    ) -> Result<(), BackupError> {
        let mut pieces = part.pieces;
        let payloads = new_payloads(space.id, part.records.clone(), &mut pieces, what)?;
        let (stored, mut unreferenced) = match self.restore.bytes.as_deref() {
            Some(store) => {
                let (stored, unreferenced) = store_payloads(self.place, store, &payloads).await?;
                (stored, Some(unreferenced))
            }
            None if payloads.is_empty() => (Vec::new(), None),
            None => return Err(no_store().into()),
        };
        self.totals.payloads += stored.len() as u64;
        self.totals.payload_bytes += stored.iter().map(|extent| extent.length).sum::<u64>();
        let mut stored = stored.into_iter();
        let (mut partition, mut rows) = (None, Vec::new());
        for record in part.records.clone() {
            let blob = || partition.ok_or_else(|| BackupError::damaged(what, "a row has no partition"));
            match record {
                Record::Partition(text) => partition = Some(text),
                Record::Payload { extent, .. } | Record::Pieces { extent, .. } => {
                    known.insert(blob()?, extent, stored.next().expect("each payload was stored"));
                }
                Record::Row { row, version, body } => {
                    let row = RowRef { partition: blob()?, row, version, body };
                    let body = if part.is_container { container_row(row, known, what)? } else { Some(body.to_vec()) };
                    rows.extend(body.map(|body| (row, body)));
                    if rows.len() >= ROWS_AT_ONCE {
                        self.store(space, &mut rows).await?;
                        // Some are referenced now; the space goes with its rows if the restore fails.
                        unreferenced.take().into_iter().for_each(Unreferenced::keep);
                    }
                }
                Record::Space { .. } | Record::Within(_) => unreachable!("a part ends before the next space"),
            }
        }
        self.store(space, &mut rows).await?;
        unreferenced.into_iter().for_each(Unreferenced::keep);
        Ok(())
    }

    /// Stores rows with their new bodies.
    async fn store(&mut self, space: &HiddenSpace, rows: &mut Vec<(RowRef<'_>, Vec<u8>)>) -> Result<(), BackupError> {
        let stored: Vec<RowRef<'_>> = rows.iter().map(|(row, body)| RowRef { body, ..*row }).collect();
        self.count(&stored);
        if !stored.is_empty() {
            self.restore.engine.restore(space.id, &stored).await?;
        }
        rows.clear();
        Ok(())
    }

    /// Stores the messages of a queue, which a backup has in two rows each; returns the meta bytes. Some deliveries at a
    /// time are kept in memory, and the backup is read again for those that follow.
    async fn queue(&mut self, found: &Found<'_>, space: &HiddenSpace) -> Result<Option<Vec<u8>>, BackupError> {
        let (mut meta, mut first) = (None, 0);
        loop {
            let (mut deliveries, mut place, mut tally) = (HashMap::new(), 0, Tally::new(self.generation));
            for chunk in &found.chunks {
                let found_meta = self.queue_rows(chunk, found.wanted, &mut tally, |row| {
                    if let MessageRow::Delivery(message) = row {
                        if (first..first + DELIVERIES_MAX).contains(&place) {
                            deliveries.insert(message.id, message);
                        }
                        place += 1;
                    }
                });
                meta = meta.or(found_meta.await?);
            }
            let mut tally = Tally::new(self.generation);
            for chunk in &found.chunks {
                let mut messages: Vec<Message> = Vec::new();
                let read = self.queue_rows(chunk, found.wanted, &mut tally, |row| {
                    if let MessageRow::Content { id, inserted, text } = row
                        && let Some(message) = deliveries.remove(&id)
                    {
                        messages.push(Message { inserted, text, ..message });
                    }
                });
                read.await?;
                self.messages(space, &messages).await?;
                self.done(chunk.data.length).await;
            }
            first += DELIVERIES_MAX;
            if first >= place {
                return Ok(meta);
            }
        }
    }

    /// Visits the rows of a queue in a chunk; returns its meta bytes if it begins there.
    async fn queue_rows(
        &self,
        chunk: &DataChunk,
        wanted: &Wanted,
        tally: &mut Tally<'_>,
        mut visit: impl FnMut(MessageRow) + Send,
    ) -> Result<Option<Vec<u8>>, BackupError> {
        let what = self.place.show(&chunk.data.name());
        let bytes = chunk.data.read(self.place).await?;
        let (mut meta, mut parts) = (None, Parts { rest: &bytes, pieces: &chunk.pieces, wanted, what: &what });
        while let Some(part) = parts.next()? {
            tally.part(&part.first, part.records.clone())?;
            meta = meta.or(part.meta());
            for record in part.records {
                if let Record::Row { row, version, body } = record {
                    visit(MessageRow::parse(RowRef { partition: "", row, version, body })?);
                }
            }
        }
        Ok(meta)
    }

    async fn messages(&mut self, space: &HiddenSpace, messages: &[Message]) -> Result<(), BackupError> {
        for some in messages.chunks(MESSAGES_AT_ONCE) {
            let engine = &*self.restore.engine;
            engine.restore_messages(space.id, some, SystemClock.now()).await?;
            self.totals.rows += some.len() as u64;
            self.totals.row_bytes += some.iter().map(|message| message.text.len() as u64).sum::<u64>();
        }
        Ok(())
    }

    fn count(&mut self, rows: &[RowRef<'_>]) {
        self.totals.rows += rows.len() as u64;
        let bytes = |row: &RowRef<'_>| row.partition.len() + row.row.len() + size_of::<u64>() + row.body.len();
        self.totals.row_bytes += rows.iter().map(|row| bytes(row) as u64).sum::<u64>();
    }

    /// After each chunk.
    async fn done(&mut self, bytes: u64) {
        self.totals.chunks += 1;
        (self.progress)(&self.totals);
        self.pace.wait(bytes).await;
    }
}

/// The records of one space in a chunk.
struct Part<'a> {
    /// The one with which it begins.
    first: Record<'a>,
    is_container: bool,
    records: Records<'a>,
    pieces: &'a [ChunkRef],
}

impl Part<'_> {
    /// The meta bytes, if the space begins here.
    fn meta(&self) -> Option<Vec<u8>> {
        if let Record::Space { meta, .. } = self.first { Some(meta.to_vec()) } else { None }
    }
}

/// The parts of a chunk that belong to a space.
struct Parts<'a> {
    rest: &'a [u8],
    pieces: &'a [ChunkRef],
    wanted: &'a Wanted,
    what: &'a str,
}

impl<'a> Parts<'a> {
    fn next(&mut self) -> Result<Option<Part<'a>>, BackupError> {
        let wrong = |reason: &str| BackupError::damaged(self.what, reason);
        while !self.rest.is_empty() {
            let (first, records) = Record::take_part(&mut self.rest).map_err(wrong)?;
            let count = |record: Record<'_>| if let Record::Pieces { count, .. } = record { count } else { 0 };
            let own = records.clone().map(count).fold(0, u64::saturating_add);
            let own = usize::try_from(own).ok().and_then(|own| self.pieces.split_at_checked(own));
            let (pieces, others) =
                own.ok_or_else(|| wrong("a payload does not have the pieces that the index lists"))?;
            self.pieces = others;
            let (Record::Space { name, .. } | Record::Within(name)) = first else { continue };
            if is_wanted(name, self.wanted) {
                let is_container = self.wanted.kind == SpaceKind::Container;
                return Ok(Some(Part { first, is_container, records, pieces }));
            }
        }
        Ok(None)
    }
}

/// The body of a row of a container in its new place, without a lease.
fn container_row(row: RowRef<'_>, known: &mut Known, what: &str) -> Result<Option<Vec<u8>>, BackupError> {
    known.is_row_over = true;
    let mut is_missing = false;
    let body = relocated(row, |extent| {
        let address = known.address(row.partition, extent);
        is_missing |= address.is_none();
        address.unwrap_or(*extent)
    })?;
    if is_missing {
        return Err(BackupError::damaged(what, "a payload does not come before the row that points to it"));
    }
    let Some(body) = body else { return Ok(None) };
    Ok(Some(without_lease(RowRef { body: &body, ..row })?.unwrap_or(body)))
}

/// Finds the chunks of spaces, and refuses one that the backup does not have.
async fn find<'w>(place: &Place, generation: &Generation, wanted: &'w [Wanted]) -> Result<Vec<Found<'w>>, BackupError> {
    let mut found: Vec<Found<'w>> = wanted.iter().map(|wanted| Found { wanted, chunks: Vec::new() }).collect();
    let mut index = IndexReader::new(place, generation)?;
    let (mut last, mut near): (SpaceKey, _) = (None, vec![Near::default(); wanted.len()]);
    while let Some(chunk) = index.next().await? {
        let chunk = Arc::new(chunk);
        for (found, near) in found.iter_mut().zip(&mut near) {
            // A chunk in which other spaces begin may also have the end of the one before.
            let is_within = chunk.begins.iter().chain([&last]).flatten().any(|space| found.wanted.is(space));
            if is_within {
                found.chunks.push(Arc::clone(&chunk));
            }
            chunk.begins.iter().flatten().for_each(|space| near.add(found.wanted, space));
        }
        if let Some(begins) = chunk.begins.last() {
            last.clone_from(begins);
        }
    }
    match found.iter().position(|found| found.chunks.is_empty()) {
        Some(missing) => Err(near[missing].error(&wanted[missing], &generation.name())),
        None => Ok(found),
    }
}

/// The names in a backup that are most like one that is not there.
#[derive(Clone, Default)]
struct Near {
    names: Vec<(usize, String)>,
    count: usize,
}

impl Near {
    fn add(&mut self, wanted: &Wanted, (kind, account, name): &(SpaceKind, String, String)) {
        if (*kind, account) != (wanted.kind, &wanted.account) {
            return;
        }
        self.count += 1;
        let alike = |(one, other): &(char, char)| one.eq_ignore_ascii_case(other);
        self.names.push((name.chars().zip(wanted.name.chars()).take_while(alike).count(), name.clone()));
        self.names.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        self.names.truncate(NEAR_MAX);
    }

    fn error(&self, wanted: &Wanted, generation: &str) -> BackupError {
        let Wanted { kind, account, name, .. } = wanted;
        let kind = word(*kind);
        let names: Vec<_> = self.names.iter().map(|(_, name)| name.as_str()).collect();
        let there = match (names.is_empty(), self.count - names.len()) {
            (true, _) => format!("it has no {kind} of that account"),
            (false, 0) => format!("it has {}", names.join(", ")),
            (false, more) => format!("it has {} and {more} more", names.join(", ")),
        };
        BackupError::Refused(format!("{generation} has no {kind} {account}/{name}: {there}; nothing was changed"))
    }
}

fn is_wanted(name: BackedSpace<'_>, wanted: &Wanted) -> bool {
    let Wanted { kind, account, name: own, .. } = wanted;
    name == Some(SpaceName { account, kind: *kind, name: own })
}

fn taken(wanted: &Wanted, restored: &[Whole<'_>]) -> BackupError {
    let restored: Vec<_> = restored.iter().map(|whole| whole.wanted.to_string()).collect();
    let restored = match restored.is_empty() {
        true => "nothing was restored".to_owned(),
        false => format!("restored before it: {}", restored.join(", ")),
    };
    BackupError::Refused(format!("{wanted} exists: delete it, or give another name (NAME=NEW); {restored}"))
}

const fn word(kind: SpaceKind) -> &'static str {
    match kind {
        SpaceKind::Table => "table",
        SpaceKind::Queue => "queue",
        SpaceKind::Container => "container",
    }
}

/// How often hidden spaces are marked as being filled; others drop them after minutes.
const KEEP_EVERY: Duration = Duration::from_secs(20);
/// Messages whose deliveries are in memory, of about 150 bytes each.
const DELIVERIES_MAX: usize = 200_000;
const MESSAGES_AT_ONCE: usize = 100;
/// Names that are shown instead of one that is not there.
const NEAR_MAX: usize = 8;
