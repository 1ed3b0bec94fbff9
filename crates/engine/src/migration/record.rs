//! How far each part is: a row in the destination's own partition, written after each slice.
//!
//! The row `migration/source` says where the copy comes from, and `migration/settings/ACCOUNT` and
//! `migration/table/ACCOUNT/NAME` (or `queue`, `container`) how far a part is. All of them go when the copy is verified; `migration/verified`
//! comes before the first of them goes and goes last, so that a run that ends in between is known to be done.

use super::digest::{Checksum, budget};
use super::{Difference, Digest, MigrationError, MigrationOptions, Part};
use crate::contract::{Act, Engine, Expect, Flow, KeyRange, Op, Position, SpaceId, SpaceKind};
use crate::error::Fault;
use larimar_model::Timestamp;
use std::collections::BTreeMap;

/// How far a part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) part: Part,
    pub(super) state: State,
    /// The part's space in the destination; without meaning while it is planned.
    pub(super) space: SpaceId,
    /// What was copied so far.
    pub(super) digest: Digest,
    /// Where to go on; nothing for the start.
    pub(super) next: Option<Position>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The space is about to be created.
    Planned,
    /// Some of it is copied.
    Copying,
    /// All of it is copied.
    Copied,
    /// It was copied but is not like the source.
    Differing,
}

impl Record {
    /// The record of a part that is not begun.
    pub(super) fn new(part: Part) -> Self {
        let state = match part {
            // The space of settings is always there.
            Part::Settings { .. } => State::Copying,
            Part::Space { .. } => State::Planned,
        };
        Self { part, state, space: SpaceId::SYSTEM, digest: Digest::default(), next: None }
    }

    /// What is left to copy.
    pub(super) fn range(&self) -> KeyRange {
        let mut range = self.part.range();
        range.start = self.next.clone().unwrap_or(range.start);
        range
    }

    /// Notes where to go on, or without a position that all is copied.
    pub(super) fn go_on_at(&mut self, next: Option<Position>) {
        if next.is_none() {
            self.state = State::Copied;
        }
        self.next = next;
    }

    pub(super) fn damaged(&self) -> MigrationError {
        Fault::Damaged(format!("the record {} has an unknown format", self.row())).into()
    }

    fn row(&self) -> String {
        match &self.part {
            Part::Settings { account } => format!("{PREFIX}settings/{account}"),
            Part::Space { kind, account, name } => {
                let kind = match kind {
                    SpaceKind::Table => "table",
                    SpaceKind::Queue => "queue",
                    SpaceKind::Container => "container",
                };
                format!("{PREFIX}{kind}/{account}/{name}")
            }
        }
    }

    fn encode(&self) -> Vec<u8> {
        let (format, account, name) = match &self.part {
            Part::Settings { account } => (FORMAT, account, None),
            Part::Space { kind: SpaceKind::Table, account, name } => (FORMAT, account, Some(name)),
            Part::Space { kind: SpaceKind::Queue, account, name } => (FORMAT_OF_QUEUES, account, Some(name)),
            Part::Space { kind: SpaceKind::Container, account, name } => (FORMAT_OF_CONTAINERS, account, Some(name)),
        };
        let mut bytes = vec![format, self.state as u8];
        for number in [self.space.0, self.digest.items, self.digest.bytes] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.digest.checksum.0);
        let next = self.next.as_ref().map(|next| (&next.partition, &next.row)).unzip();
        for text in [Some(account), name, next.0, next.1] {
            bytes.push(u8::from(text.is_some()));
            let text = text.map_or("", String::as_str);
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[format, state], mut rest) = bytes.split_first_chunk()?;
        let states = [State::Planned, State::Copying, State::Copied, State::Differing];
        let state = states.into_iter().find(|known| *known as u8 == state)?;
        let [space, items, bytes] = [number(&mut rest)?, number(&mut rest)?, number(&mut rest)?];
        let (checksum, after) = rest.split_first_chunk()?;
        rest = after;
        let texts = [text(&mut rest)?, text(&mut rest)?, text(&mut rest)?, text(&mut rest)?];
        let [Some(account), name, partition, row] = texts else { return None };
        let part = match (format, name) {
            (FORMAT, None) => Part::Settings { account },
            (FORMAT, Some(name)) => Part::Space { kind: SpaceKind::Table, account, name },
            (FORMAT_OF_QUEUES, Some(name)) => Part::Space { kind: SpaceKind::Queue, account, name },
            (FORMAT_OF_CONTAINERS, Some(name)) => Part::Space { kind: SpaceKind::Container, account, name },
            _ => return None,
        };
        let next = partition.zip(row).map(|(partition, row)| Position { partition, row });
        let digest = Digest { items, bytes, checksum: Checksum(*checksum) };
        Some(Self { part, state, space: SpaceId(space), digest, next })
    }
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}

fn text(bytes: &mut &[u8]) -> Option<Option<String>> {
    let (is_there, rest) = bytes.split_first()?;
    *bytes = rest;
    let length = usize::try_from(number(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let text = String::from_utf8(text.to_vec()).ok()?;
    Some((*is_there == 1).then_some(text))
}

/// The records of a destination.
pub(super) struct Log<'a, E> {
    pub(super) to: &'a E,
    options: MigrationOptions<'a>,
    pub(super) records: BTreeMap<Part, Record>,
    /// Whether everything was verified, and only the records had to go.
    pub(super) is_verified: bool,
}

impl<'a, E: Engine> Log<'a, E> {
    /// Reads the records.
    pub(super) async fn load(to: &'a E, options: MigrationOptions<'a>) -> Result<Self, MigrationError> {
        let mut log = Self { to, options, records: BTreeMap::new(), is_verified: false };
        let rows = log.rows().await?;
        if let Some((_, source)) = rows.iter().find(|(row, _)| row == VERIFIED) {
            log.is_verified = source == options.source.as_bytes();
            if !log.is_verified {
                log.clear().await?;
            }
            return Ok(log);
        }
        for (row, body) in rows {
            if row == SOURCE {
                let source = String::from_utf8_lossy(&body).into_owned();
                if source != options.source && !options.restarts {
                    return Err(MigrationError::OtherSource(source));
                }
                continue;
            }
            let unknown = || Fault::Damaged(format!("the record {row} has an unknown format"));
            let mut record = Record::decode(&body).ok_or_else(unknown)?;
            if options.restarts && record.state != State::Planned {
                record.state = State::Differing;
            }
            log.records.insert(record.part.clone(), record);
        }
        Ok(log)
    }

    /// The time of the migration's clock.
    pub(super) fn now(&self) -> Timestamp {
        self.options.clock.now()
    }

    /// The record of a part that was planned.
    pub(super) fn record(&self, part: &Part) -> Record {
        self.records.get(part).cloned().unwrap_or_else(|| Record::new(part.clone()))
    }

    /// Keeps a record in mind; it is stored already.
    pub(super) fn remember(&mut self, record: Record) {
        self.records.insert(record.part.clone(), record);
    }

    /// Stores a record.
    pub(super) async fn put(&self, record: &Record) -> Result<(), MigrationError> {
        self.apply(&[(record.row(), Some(record.encode()))]).await
    }

    /// Stores where the copy comes from, and some records.
    pub(super) async fn put_all<'r>(&self, records: impl Iterator<Item = &'r Record>) -> Result<(), MigrationError> {
        let source = (SOURCE.to_owned(), Some(self.options.source.as_bytes().to_vec()));
        let records = records.map(|record| (record.row(), Some(record.encode())));
        self.apply(&std::iter::once(source).chain(records).collect::<Vec<_>>()).await
    }

    /// Removes the record of a part.
    pub(super) async fn remove(&mut self, part: &Part) -> Result<(), MigrationError> {
        match self.records.remove(part) {
            Some(record) => self.apply(&[(record.row(), None)]).await,
            None => Ok(()),
        }
    }

    /// Notes that everything is verified.
    pub(super) async fn finish(&self) -> Result<(), MigrationError> {
        self.apply(&[(VERIFIED.to_owned(), Some(self.options.source.as_bytes().to_vec()))]).await?;
        self.clear().await
    }

    /// Removes every record; the note that everything is verified goes last.
    async fn clear(&self) -> Result<(), MigrationError> {
        let rows = self.rows().await?.into_iter().map(|(row, _)| row).filter(|row| row != VERIFIED);
        let rows: Vec<_> = rows.chain([VERIFIED.to_owned()]).map(|row| (row, None)).collect();
        self.apply(&rows).await
    }

    /// Notes which parts differ, so that the next run copies them again, and returns what is known of the reason.
    pub(super) async fn mark(&mut self, mut differences: Vec<Difference>) -> Result<MigrationError, MigrationError> {
        for difference in &mut differences {
            let mut record = self.record(&difference.part);
            difference.has_source_changed =
                difference.source != record.digest && difference.destination == Some(record.digest);
            record.state = State::Differing;
            self.put(&record).await?;
        }
        // What an earlier run verified is not true any more.
        self.apply(&[(VERIFIED.to_owned(), None)]).await?;
        Ok(MigrationError::Differs(differences))
    }

    async fn rows(&self) -> Result<Vec<(String, Vec<u8>)>, MigrationError> {
        let mut rows = Vec::new();
        let (mut next, end) = (Some(Position::new("", PREFIX)), Position::new("", AFTER_PREFIX));
        while let Some(start) = next {
            let range = KeyRange { start, end: Some(end.clone()) };
            let scanned = self.to.scan(SpaceId::SYSTEM, &range, budget(), |row| {
                rows.push((row.row.to_owned(), row.body.to_vec()));
                Flow::Continue
            });
            next = scanned.await.map_err(|error| MigrationError::Read { what: WHAT.to_owned(), error })?;
        }
        Ok(rows)
    }

    async fn apply(&self, rows: &[(String, Option<Vec<u8>>)]) -> Result<(), MigrationError> {
        for chunk in rows.chunks(OPS_MAX) {
            let acts = chunk.iter().map(|(row, body)| (row, body.as_deref().map_or(Act::Delete, Act::Put)));
            let ops: Vec<Op<'_>> = acts.map(|(row, act)| Op { row, expect: Expect::Any, act }).collect();
            let applied = self.to.apply(SpaceId::SYSTEM, "", &ops, self.options.clock.now()).await;
            applied.map_err(|error| MigrationError::Write { what: WHAT.to_owned(), error })?;
        }
        Ok(())
    }

    /// Removes the rows of an account's settings from the destination.
    pub(super) async fn remove_settings(&self, account: &str) -> Result<(), MigrationError> {
        let part = Part::Settings { account: account.to_owned() };
        let mut names = Vec::new();
        let mut next = Some(Position::new(account, ""));
        while let Some(start) = next {
            let range = KeyRange { start, ..part.range() };
            let scanned = self.to.scan(SpaceId::SYSTEM, &range, budget(), |row| {
                names.push(row.row.to_owned());
                Flow::Continue
            });
            next = scanned.await.map_err(|error| part.cannot_read(error))?;
        }
        for chunk in names.chunks(OPS_MAX) {
            let op = |row| Op { row, expect: Expect::Any, act: Act::Delete };
            let ops: Vec<Op<'_>> = chunk.iter().map(|row| op(row.as_str())).collect();
            let applied = self.to.apply(SpaceId::SYSTEM, account, &ops, self.options.clock.now()).await;
            applied.map_err(|error| part.cannot_write(error))?;
        }
        Ok(())
    }
}

const PREFIX: &str = "migration/";
/// The first text after all that begin with the prefix.
const AFTER_PREFIX: &str = "migration0";
const SOURCE: &str = "migration/source";
const VERIFIED: &str = "migration/verified";
const WHAT: &str = "the records of the migration";
/// The format of settings and tables; earlier releases know no other.
const FORMAT: u8 = 1;
const FORMAT_OF_QUEUES: u8 = 2;
const FORMAT_OF_CONTAINERS: u8 = 3;
/// Operations in one go, as many as a transaction of the service has.
const OPS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_only_whole() {
        let part = |kind| Part::Space { kind, account: "a".into(), name: "t".into() };
        let table = part(SpaceKind::Table);
        let next = Some(Position::new("\u{0}p/", "\u{1F600}"));
        let digest = Digest { items: 7, bytes: 8, checksum: Checksum([9; 32]) };
        for record in [
            Record::new(table.clone()),
            Record::new(part(SpaceKind::Queue)),
            Record::new(part(SpaceKind::Container)),
            Record::new(Part::Settings { account: "a".into() }),
            Record { part: table, state: State::Differing, space: SpaceId(5), digest, next },
        ] {
            let bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some(record));
            for length in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..length]), None, "{length}");
            }
        }
    }

    /// A run continues what an earlier release began.
    #[test]
    fn records_of_settings_and_tables_are_those_of_earlier_releases() {
        let number = |number: u64| number.to_be_bytes().to_vec();
        let text = |text: &str| [&[1], number(text.len() as u64).as_slice(), text.as_bytes()].concat();
        let head = [&[1, 1], number(5).as_slice(), &number(7), &number(8), &[9; 32]].concat();
        let digest = Digest { items: 7, bytes: 8, checksum: Checksum([9; 32]) };
        let table = Part::Space { kind: SpaceKind::Table, account: "a".into(), name: "t".into() };
        let next = Some(Position::new("p", "r"));
        let record = Record { part: table, state: State::Copying, space: SpaceId(5), digest, next };
        assert_eq!(record.encode(), [head.clone(), text("a"), text("t"), text("p"), text("r")].concat());
        let none = [&[0], number(0).as_slice()].concat();
        let record = Record { part: Part::Settings { account: "a".into() }, next: None, ..record };
        assert_eq!(record.encode(), [head, text("a"), none.clone(), none.clone(), none].concat());
    }

    #[test]
    fn names_of_records_lie_between_the_bounds_of_their_scan() {
        let range = KeyRange { start: Position::new("", PREFIX), end: Some(Position::new("", AFTER_PREFIX)) };
        let part = Part::Space { kind: SpaceKind::Table, account: "\u{1F600}".into(), name: "\u{ffff}".into() };
        for row in [SOURCE.to_owned(), Record::new(part).row()] {
            assert!(range.contains(&Position::new("", row)));
        }
    }
}
