//! The rows of a damaged store, read past fjall: from every table block and journal batch that is still readable.
//!
//! Tables and journals are merged in key order; of several versions of a row the one with the greatest number counts,
//! as in fjall. What cannot be read is counted and left out, so an older version of a row may appear in its place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use lsm_tree::{InternalValue, ValueType};

use crate::store::Bytes;
use crate::store::check::{Finding, ROWS_TREE};
use crate::store::journal::{self, Inspection};
use crate::store::manifest::{Manifest, TableFile};

/// Rows in key order, each once.
pub(super) struct RawRows {
    sources: Vec<Source>,
    heads: BinaryHeap<Head>,
    /// Blocks that could not be read.
    pub(super) blocks_lost: u64,
    /// Tables of which nothing could be read.
    pub(super) tables_lost: u64,
}

type Version = (Bytes, u64, Option<Bytes>);

/// What can be read of one table, or of all journals.
struct Source {
    rows: Box<dyn Iterator<Item = Result<Version, ()>>>,
    errors_left: u64,
}

/// The next version of a source; the greatest is that of the smallest key, of which the newest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: Reverse<Bytes>,
    seqno: u64,
    source: usize,
    value: Option<Bytes>,
}

impl RawRows {
    /// Reads a store's directory, whose journals were inspected.
    pub(super) fn open(store: &Path, journals: &Inspection) -> std::io::Result<Self> {
        let manifest = Manifest::salvage(&store.join(ROWS_TREE));
        let mut rows = Self { sources: Vec::new(), heads: BinaryHeap::new(), blocks_lost: 0, tables_lost: 0 };
        for table in &manifest.tables {
            match Source::of_table(table) {
                Ok(source) => rows.sources.push(source),
                Err(_) => rows.tables_lost += 1,
            }
        }
        rows.sources.push(Source::of_journals(journals)?);
        for source in 0..rows.sources.len() {
            rows.advance(source);
        }
        Ok(rows)
    }

    /// Puts the next readable version of a source among the heads.
    fn advance(&mut self, source: usize) {
        let Source { rows, errors_left } = &mut self.sources[source];
        loop {
            // The library asserts what damaged bytes may break.
            match catch_unwind(AssertUnwindSafe(|| rows.next())) {
                Ok(None) => return,
                Ok(Some(Ok((key, seqno, value)))) => {
                    self.heads.push(Head { key: Reverse(key), seqno, source, value });
                    return;
                }
                // One block is lost; the reader continues with the next.
                Ok(Some(Err(()))) if *errors_left > 0 => {
                    *errors_left -= 1;
                    self.blocks_lost += 1;
                }
                Ok(Some(Err(()))) | Err(_) => {
                    self.blocks_lost += 1;
                    return;
                }
            }
        }
    }

    fn pop(&mut self) -> Option<Head> {
        let head = self.heads.pop()?;
        self.advance(head.source);
        Some(head)
    }
}

impl Iterator for RawRows {
    type Item = (Bytes, Bytes);

    fn next(&mut self) -> Option<(Bytes, Bytes)> {
        loop {
            let Head { key: Reverse(key), value, .. } = self.pop()?;
            while self.heads.peek().is_some_and(|older| older.key.0 == key) {
                self.pop();
            }
            if let Some(value) = value {
                return Some((key, value));
            }
        }
    }
}

impl Source {
    fn of_table(file: &TableFile) -> Result<Self, Finding> {
        let table = file.open()?;
        let errors_left = table.metadata.data_block_count + table.metadata.index_block_count;
        let version = |row: InternalValue| {
            let value = (row.key.value_type == ValueType::Value).then_some(row.value);
            (row.key.user_key, row.key.seqno, value)
        };
        let rows = table.iter().map(move |row| row.map(version).map_err(|_| ()));
        Ok(Self { rows: Box::new(rows), errors_left })
    }

    fn of_journals(journals: &Inspection) -> std::io::Result<Self> {
        let mut newest: BTreeMap<Bytes, (u64, Option<Bytes>)> = BTreeMap::new();
        for journal in &journals.journals {
            journal::read_writes(journal, |seqno, keyspace, key, value| {
                if keyspace == ROWS_KEYSPACE {
                    newest.insert(key.into(), (seqno, value.map(Bytes::from)));
                }
            })?;
        }
        let rows = newest.into_iter().map(|(key, (seqno, value))| Ok((key, seqno, value)));
        Ok(Self { rows: Box::new(rows), errors_left: 0 })
    }
}

/// The number of the keyspace of rows, the only one that journals hold.
const ROWS_KEYSPACE: u64 = 1;
