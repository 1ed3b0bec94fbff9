//! What is known about the traffic of one account: its busiest tables, and how many requests went to others.

use super::codec::Reader;
use super::frequent::Frequent;
use super::hash_key::HashKey;
use super::peaks::{PEAKS_BYTES_MAX, Peak, Peaks};
use super::table::{PARTITIONS_MAX, TableFigures};
use larimar_model::varint::put;

/// The figures of one account: of a thread, of a slot of time, or of all slots and servers.
#[derive(Clone, Debug)]
pub(crate) struct AccountFigures {
    pub(crate) tables: Frequent<TableFigures>,
    /// Requests to tables that are not among the tracked ones.
    pub(crate) other_requests: u64,
    /// The place of the table whose name had this last byte, which saves most hashes of names.
    recent: [u8; RECENT],
    /// The busiest minutes of partitions, of what was stamped.
    pub(crate) peaks: Peaks,
}

impl AccountFigures {
    /// Tracks at most this many tables.
    pub(crate) const fn new(tables_max: usize) -> Self {
        let tables = Frequent::new(tables_max, TABLE_BYTES_MAX);
        Self { tables, other_requests: 0, recent: [0; RECENT], peaks: Peaks::new() }
    }

    /// The figures of a table, for one more request to it.
    pub(crate) fn table(&mut self, key: HashKey, name: &str) -> &mut TableFigures {
        let last_byte = name.as_bytes().last().copied().unwrap_or_default();
        let recent = &mut self.recent[usize::from(last_byte) % RECENT];
        if !self.tables.is_at(usize::from(*recent), name) {
            let other_requests = &mut self.other_requests;
            let place = self.tables.place(key.hash(name), name, |evicted| *other_requests += evicted.value.requests());
            *recent = place as u8;
        }
        self.tables.hit_place(usize::from(*recent))
    }

    /// Notes that everything happened in the minute that began at this time, in seconds since 1970.
    pub(crate) fn stamp(&mut self, minute: u64) {
        for (_, table) in self.tables.ranked() {
            for (_, partition) in table.value.partitions.0.ranked() {
                let entities = partition.value.reads + partition.value.writes;
                let [table, partition] = [&table.key, &partition.key].map(String::clone);
                self.peaks.add(Peak { table, partition, minute, entities });
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.peaks.merge(other.peaks);
        self.other_requests += other.other_requests;
        let other_requests = &mut self.other_requests;
        self.tables.merge(other.tables, |evicted| *other_requests += evicted.value.requests());
    }

    /// The figures of one table alone; names compare without case.
    pub(crate) fn only(self, name: &str) -> Option<Self> {
        let tables = self.tables.only(|table| table.eq_ignore_ascii_case(name))?;
        Some(Self { tables, peaks: self.peaks.only(name), ..Self::default() })
    }

    /// The stored form: at most `row_bytes_max` bytes. If there is not room for all, tables have fewer partitions; if that
    /// is not enough, tables count as others.
    pub(crate) fn encode(&self, row_bytes_max: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for partitions_max in STORED_PARTITIONS {
            let mut left_out = 0;
            out.clear();
            out.push(FORMAT);
            let bounds = (TABLES_MAX, row_bytes_max - HEAD_BYTES_MAX, partitions_max);
            self.tables.encode(bounds, &mut out, |table| left_out += table.requests());
            put(&mut out, self.other_requests + left_out);
            if left_out == 0 {
                break;
            }
        }
        self.peaks.encode(&mut out);
        out
    }

    /// Reads a stored form; `None` if it is damaged, or of a later release.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&(FORMAT_OF_64_PARTITIONS | FORMAT), rest) = bytes.split_first()? else { return None };
        let mut input = Reader::new(rest);
        let tables = Frequent::decode(TABLES_MAX, TABLE_BYTES_MAX, &mut input)?;
        let (other_requests, peaks) = (input.number()?, Peaks::decode(&mut input)?);
        let figures = Self { tables, other_requests, peaks, ..Self::default() };
        input.is_empty().then_some(figures)
    }
}

impl Default for AccountFigures {
    fn default() -> Self {
        Self::new(TABLES_MAX)
    }
}

/// Tables of an account that are tracked.
pub(crate) const TABLES_MAX: usize = 32;
/// What a row has besides its tables: the format, three numbers and the peaks.
const HEAD_BYTES_MAX: usize = 64 + PEAKS_BYTES_MAX;
/// Names of tables have at most 63 characters; those of storage analytics begin with a `$`.
const TABLE_BYTES_MAX: usize = 64;
const RECENT: usize = 16;
/// Partitions of a table that are stored: as many as there is room for.
const STORED_PARTITIONS: [usize; 4] = [PARTITIONS_MAX, 128, 64, 32];
const FORMAT: u8 = 2;
/// The same with at most 64 partitions of a table, and without packed registers (`distinct.rs`).
const FORMAT_OF_64_PARTITIONS: u8 = 1;

#[cfg(test)]
mod tests {
    use super::super::table::{OperationKind, Outcome, QueryFigures, WriteFigures};
    use super::*;
    use larimar_engine::table::QueryKind;
    use std::time::Duration;

    const KEY: HashKey = HashKey([7; HashKey::BYTES]);
    use super::super::rows::ROW_BYTES_MAX;

    /// Everything that can be made up is new with each request: table, partition, row and shape.
    fn attack(figures: &mut AccountFigures, requests: u32) {
        for number in 0..requests {
            let text = format!("{}{number}", "ü".repeat(400));
            let table = figures.table(KEY, &format!("table{}", number % 100));
            let (partition, row, outcome) = (&*text, &*text, Outcome::Done);
            let kind = OperationKind::Insert;
            table.operation(kind, outcome, Duration::from_micros(u64::from(number)));
            table.write(KEY, &WriteFigures { kind, partition, row, body: None, outcome }, true);
            table.get(KEY, partition, row, outcome);
            let (plan, shape, start) = (QueryKind::PartitionScan, &*text, Some((partition, row)));
            let elapsed = Duration::from_millis(u64::from(number % 1000));
            let (rows_read, rows_returned) = (100, 1);
            table.query(
                KEY,
                &QueryFigures { plan, shape, start, is_in_partition: true, rows_read, rows_returned, elapsed },
            );
        }
    }

    #[test]
    fn a_row_is_bounded_whatever_the_traffic_is() {
        let mut figures = AccountFigures::default();
        for _ in 0..20 {
            figures.table(KEY, "victim").operation(OperationKind::Get, Outcome::Done, Duration::from_millis(1));
        }
        attack(&mut figures, 4000);
        // The victim has a tenth of what each of the other tables has, and then as much as all of them.
        for _ in 0..4000 {
            figures.table(KEY, "victim").operation(OperationKind::Get, Outcome::Done, Duration::from_millis(1));
        }
        let bytes = figures.encode(ROW_BYTES_MAX);
        assert!(bytes.len() <= ROW_BYTES_MAX, "{}", bytes.len());
        let mut sum = AccountFigures::decode(&bytes).expect("as encoded");
        sum.merge(AccountFigures::decode(&bytes).expect("as encoded"));
        assert!(sum.encode(ROW_BYTES_MAX).len() <= ROW_BYTES_MAX);
        let ranked = sum.tables.ranked();
        assert_eq!((&*ranked[0].1.key, ranked[0].1.value.requests()), ("victim", 8000));
        let all: u64 = ranked.iter().map(|(_, tracked)| tracked.value.requests()).sum();
        assert_eq!(all + sum.other_requests, 2 * 8020, "no request is lost or counted twice");
    }

    #[test]
    fn damaged_rows_are_not_read() {
        let mut figures = AccountFigures::default();
        attack(&mut figures, 50);
        let bytes = figures.encode(ROW_BYTES_MAX);
        assert!(AccountFigures::decode(&bytes).is_some());
        for length in (0..bytes.len()).step_by(97) {
            assert!(AccountFigures::decode(&bytes[..length]).is_none(), "{length}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(AccountFigures::decode(&longer).is_none());
        let mut later = bytes;
        later[0] = FORMAT + 1;
        assert!(AccountFigures::decode(&later).is_none());
    }
}
