//! Writes the rows of the inputs: a thread parses, the client groups rows into transactions by partition and runs them in
//! parallel, and what is done is remembered every second.

use super::Mode;
use super::input::{Input, Opened};
use super::refused::RefusedFile;
use super::state::State;
use super::tracker::Tracker;
use crate::format::json_lines::write_line;
use crate::format::{Position, Record, Shape};
use crate::output::counted;
use crate::progress::Progress;
use crate::{Error, Result};
use futures_util::stream::{self, StreamExt as _};
use larimar_client::{BulkGroup, BulkOperation, DynamicEntity, Table, Value, keys};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// An import.
pub(super) struct Run {
    pub(super) table: Table,
    pub(super) mode: Mode,
    pub(super) parallel: usize,
    pub(super) shape: Shape,
    /// Whether the first row that cannot be written ends the import. Progress is then logged, not shown.
    pub(super) is_all_or_nothing: bool,
}

/// What the import of one input shares between reading and writing.
struct Shared {
    name: String,
    tracker: Mutex<Tracker>,
    refused: Arc<Mutex<RefusedFile>>,
    /// Why the rest of the input cannot be read, or its refused rows not be kept.
    failed: Mutex<Option<Error>>,
}

impl Run {
    /// Imports the inputs one after the other, from the place of the state on.
    pub(super) async fn all(&self, inputs: &[Input], mut state: State, refused: PathBuf) -> Result<()> {
        let started = Instant::now();
        if state.is_resumed && self.is_table_missing().await {
            eprintln!("table {} is gone, so the import starts anew", self.table.name());
            state.restart();
            // Before the table is there again: rows that were written to the old one are missing in it.
            state.save()?;
        }
        let names: Vec<_> = inputs.iter().map(Input::name).collect();
        let keep =
            state.is_resumed.then(|| (&names[..state.file()], names[state.file()].as_str(), state.position().line));
        let refused = Arc::new(Mutex::new(RefusedFile::open(refused, keep)?));
        if state.is_resumed {
            eprintln!("resuming {} after row {}", names[state.file()], state.position().rows);
        }
        let before = state.written();
        for (number, input) in inputs.iter().enumerate().skip(state.file()) {
            self.one(number, input, &mut state, &refused).await?;
            state.advance(number + 1, Position::default(), state.written());
            if number + 1 < inputs.len() {
                state.save()?;
            }
        }
        let written = state.written();
        state.remove()?;
        let rate = (written - before) as f64 / started.elapsed().as_secs_f64().max(0.001);
        eprintln!("{}: {} written ({rate:.0} rows/s)", self.table.name(), counted(written, "row", "rows"));
        let refused = lock(&refused);
        match refused.rows() {
            0 => Ok(()),
            rows => Err(Error::Refused(format!("rows refused: {rows}; {} says why", refused.path()))),
        }
    }

    /// Imports all rows of one input, or fails. Returns how many there were.
    pub(super) async fn whole(&self, input: &Input) -> Result<u64> {
        let mut state = State::none();
        self.one(0, input, &mut state, &Arc::new(Mutex::new(RefusedFile::none()))).await?;
        Ok(state.written())
    }

    async fn one(
        &self,
        number: usize,
        input: &Input,
        state: &mut State,
        refused: &Arc<Mutex<RefusedFile>>,
    ) -> Result<()> {
        let opened = input.open(&self.shape, state.position())?;
        self.create_table().await?;
        // Before the first row is written: a run after this one knows that some may be.
        state.save()?;
        let rows = opened.rows.map(|rows| rows.saturating_sub(state.position().rows));
        let progress = match self.is_all_or_nothing {
            true => Progress::logged(format!("filling table {}", self.table.name()), rows),
            false => Progress::new("rows", rows),
        };
        let shared = Arc::new(Shared {
            name: input.name(),
            tracker: Mutex::default(),
            refused: Arc::clone(refused),
            failed: Mutex::default(),
        });
        let operations = self.operations(opened, Arc::clone(&shared));
        let bulk = self.table.bulk().concurrency(self.parallel).held_max(HELD_MAX);
        let mut groups = bulk.run(operations);
        let before = state.written();
        // The first time as soon as there is something to remember.
        let mut saved: Option<Instant> = None;
        while let Some(group) = groups.next().await {
            progress.add(group.operations.len() as u64);
            self.finish(group, &shared, state.is_resumed).await?;
            if self.is_all_or_nothing && lock(&shared.failed).is_some() {
                break;
            }
            if saved.is_none_or(|at| at.elapsed() >= SAVE_EVERY) && save(number, &shared, before, state)? {
                saved = Some(Instant::now());
            }
        }
        save(number, &shared, before, state)?;
        lock(&shared.refused).flush()?;
        match lock(&shared.failed).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Whether the table was deleted. A caller that may not read finds out soon enough.
    async fn is_table_missing(&self) -> bool {
        let first = self.table.query::<DynamicEntity>().select(["RowKey"]).first().await;
        first.is_err_and(|error| error.code() == Some("TableNotFound"))
    }

    /// Creates the table, if it is missing and the caller may. Whether it can be written to is seen soon enough.
    async fn create_table(&self) -> Result<()> {
        match self.table.create_if_missing().await {
            Ok(true) if !self.is_all_or_nothing => eprintln!("created table {}", self.table.name()),
            Ok(_) => {}
            Err(error) if error.status() == Some(403) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The rows as operations, parsed by a thread.
    fn operations(
        &self,
        mut opened: Opened,
        shared: Arc<Shared>,
    ) -> impl stream::Stream<Item = BulkOperation> + Send + 'static {
        let (sender, receiver) = mpsc::channel::<Vec<Record>>(4);
        let reading = Arc::clone(&shared);
        std::thread::spawn(move || {
            loop {
                // A damaged file must not look like one that has ended.
                let panicked = |_| (Vec::new(), Some("it is damaged".to_owned()));
                let (records, error) = catch_unwind(AssertUnwindSafe(|| batch(&mut opened))).unwrap_or_else(panicked);
                let is_last = records.is_empty() || error.is_some();
                if let Some(error) = error {
                    *lock(&reading.failed) = Some(Error::Failed(format!("{}: {error}", reading.name)));
                }
                if sender.blocking_send(records).is_err() || is_last {
                    return;
                }
            }
        });
        let mode = self.mode;
        let batches = stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
        batches.flat_map(move |records| {
            let shared = Arc::clone(&shared);
            let operations = records.into_iter().filter_map(move |record| operation(mode, record, &shared));
            stream::iter(operations.collect::<Vec<_>>())
        })
    }

    /// Marks the rows of a group as done. A row that the service refuses is taken out, and the others are sent again.
    async fn finish(&self, group: BulkGroup, shared: &Shared, is_resumed: bool) -> Result<()> {
        let mut left = vec![(group.operations.clone(), group)];
        while let Some((rows, group)) = left.pop() {
            let Err(error) = &group.outcome else {
                let mut tracker = lock(&shared.tracker);
                rows.iter().for_each(|row| tracker.finish(*row, true));
                continue;
            };
            let at = error.operation().filter(|at| *at < rows.len());
            let (Some(at), true) = (at.or_else(|| (rows.len() == 1).then_some(0)), is_of_row(error)) else {
                return Err(match group.outcome {
                    Err(error) => error.into(),
                    Ok(_) => Error::Failed("a group without an outcome".to_owned()),
                });
            };
            let stored = match is_resumed && self.mode == Mode::Insert && error.is_conflict() {
                true => self.stored(&rows, shared).await?,
                false => Vec::new(),
            };
            if stored.is_empty() {
                let (line, text) = line_and_text(rows[at], shared);
                shared.refuse(line, reason(error), text)?;
                lock(&shared.tracker).finish(rows[at], false);
            }
            stored.iter().for_each(|row| lock(&shared.tracker).finish(*row, true));
            let is_left = |row: &usize| !stored.contains(row) && (!stored.is_empty() || *row != rows[at]);
            let rest: Vec<usize> = rows.iter().copied().filter(is_left).collect();
            let operations: Vec<BulkOperation> = {
                let tracker = lock(&shared.tracker);
                let entities = rest.iter().filter_map(|row| tracker.row(*row)?.entity.as_ref());
                entities.filter_map(|entity| to_operation(self.mode, entity).ok()).collect()
            };
            let report = self.table.bulk().concurrency(1).submit(operations).await;
            left.extend(
                report
                    .into_groups()
                    .into_iter()
                    .map(|group| (group.operations.iter().map(|operation| rest[*operation]).collect(), group)),
            );
        }
        Ok(())
    }

    /// The rows that the table has already, equal in all properties: an earlier run wrote them, mostly all of a group.
    async fn stored(&self, rows: &[usize], shared: &Shared) -> Result<Vec<usize>> {
        let entities: Vec<(usize, DynamicEntity)> = {
            let tracker = lock(&shared.tracker);
            rows.iter().filter_map(|row| Some((*row, tracker.row(*row)?.entity.clone()?))).collect()
        };
        let row_keys = || entities.iter().map(|(_, entity)| entity.row_key.as_str());
        let (Some(first), Some(last), Some((_, any))) = (row_keys().min(), row_keys().max(), entities.first()) else {
            return Ok(Vec::new());
        };
        let between = keys::row_key().ge(first).and(keys::row_key().le(last));
        let query = self.table.query::<DynamicEntity>().partition(&any.partition_key).filter(between);
        let found = query.limit(STORED_ROWS_MAX).all().await?;
        let found: HashMap<&str, &DynamicEntity> =
            found.iter().map(|entity| (entity.row_key.as_str(), entity)).collect();
        let mut stored = Vec::new();
        for (row, entity) in &entities {
            let is_stored = match found.get(entity.row_key.as_str()) {
                Some(known) => is_same(known, entity),
                // There may be more rows between the first and the last than one page has.
                None if found.len() >= STORED_ROWS_MAX => {
                    let known: Option<DynamicEntity> = self.table.get(&entity.partition_key, &entity.row_key).await?;
                    known.is_some_and(|known| is_same(&known, entity))
                }
                None => false,
            };
            if is_stored {
                stored.push(*row);
            }
        }
        Ok(stored)
    }
}

/// Whether the refusal is about one row and not about the whole import.
fn is_of_row(error: &larimar_client::Error) -> bool {
    match error {
        larimar_client::Error::Transaction(_) | larimar_client::Error::Entity(_) => true,
        other => {
            let is_of_table = matches!(other.code(), Some("TableNotFound" | "TableBeingDeleted") | None);
            matches!(other.status(), Some(400 | 404 | 409 | 412 | 413)) && !is_of_table && !other.is_ambiguous()
        }
    }
}

/// Why a row was refused, without its number within a transaction, which says nothing to the user.
fn reason(error: &larimar_client::Error) -> String {
    match error {
        larimar_client::Error::Transaction(error) => error.reason.to_string(),
        other => match other.service() {
            Some(error) => {
                format!("{} {}: {}", error.status, error.code, error.message.lines().next().unwrap_or_default())
            }
            None => other.to_string(),
        },
    }
}

fn is_same(stored: &DynamicEntity, entity: &DynamicEntity) -> bool {
    let is_same_value = |left: &Value, right: &Value| match (left, right) {
        (Value::Double(left), Value::Double(right)) => left == right || left.is_nan() && right.is_nan(),
        _ => left == right,
    };
    stored.properties().len() == entity.properties().len()
        && entity.properties().all(|(name, value)| stored.value(name).is_some_and(|found| is_same_value(found, value)))
}

/// Reads some rows, of a bounded size.
fn batch(opened: &mut Opened) -> (Vec<Record>, Option<String>) {
    let (mut records, mut bytes) = (Vec::new(), 0);
    while records.len() < BATCH_ROWS && bytes < BATCH_BYTES {
        match opened.reader.next_record() {
            Ok(Some(record)) => {
                bytes += record.entity.as_ref().map_or(4096, DynamicEntity::size);
                records.push(record);
            }
            Ok(None) => break,
            Err(error) => return (records, Some(error.to_string())),
        }
    }
    (records, None)
}

fn operation(mode: Mode, record: Record, shared: &Shared) -> Option<BulkOperation> {
    let (reason, row) = match record.entity {
        Ok(entity) => match to_operation(mode, &entity) {
            Ok(operation) => {
                lock(&shared.tracker).push(record.line, record.end, entity);
                return Some(operation);
            }
            Err(error) => (error.to_string(), text(&entity)),
        },
        Err(refused) => (refused.reason, refused.text),
    };
    if let Err(error) = shared.refuse(record.line, reason, row) {
        lock(&shared.failed).get_or_insert(error);
    }
    None
}

fn to_operation(mode: Mode, entity: &DynamicEntity) -> larimar_client::Result<BulkOperation> {
    match mode {
        Mode::Insert => BulkOperation::insert(entity),
        Mode::Replace => BulkOperation::insert_or_replace(entity),
        Mode::Merge => BulkOperation::insert_or_merge(entity),
    }
}

fn line_and_text(row: usize, shared: &Shared) -> (u64, String) {
    let tracker = lock(&shared.tracker);
    let found = tracker.row(row).map(|row| (row.line, row.entity.as_ref().map(text).unwrap_or_default()));
    found.unwrap_or_default()
}

fn text(entity: &DynamicEntity) -> String {
    let mut line = Vec::new();
    write_line(&mut line, entity);
    String::from_utf8_lossy(&line).trim_end().chars().take(4096).collect()
}

/// Remembers how far it is, if it is anywhere yet; refused rows first, so that none is lost.
fn save(number: usize, shared: &Shared, before: u64, state: &mut State) -> Result<bool> {
    let (done, written) = {
        let tracker = lock(&shared.tracker);
        (tracker.done(), tracker.written())
    };
    let Some(done) = done else { return Ok(false) };
    lock(&shared.refused).flush()?;
    state.advance(number, done, before + written);
    state.save()?;
    Ok(true)
}

impl Shared {
    fn refuse(&self, line: u64, reason: String, row: String) -> Result<()> {
        lock(&self.refused).push(&self.name, line, reason, row)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page of the rows around those of a group.
const STORED_ROWS_MAX: usize = 1000;
/// Rows that wait for others of their partition.
const HELD_MAX: usize = 100_000;
const BATCH_ROWS: usize = 256;
const BATCH_BYTES: usize = 1024 * 1024;
const SAVE_EVERY: Duration = Duration::from_secs(1);
