//! The busiest minutes of partitions, so that a peak of a minute is still known when only sums of hours are left.
//!
//! A peak names its minute: what servers counted in the same minute is added, and of two minutes the busier one stays.

use super::codec::{Reader, put_text};
use super::frequent::{KEY_BYTES_MAX, cut};
use larimar_model::varint::put;

/// The busiest minutes of the partitions of an account: at most [`PEAKS_MAX`] partitions, one minute each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peaks(Vec<Peak>);

/// A minute of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) table: String,
    /// The PartitionKey, perhaps cut.
    pub(crate) partition: String,
    /// When it began, in seconds since 1970.
    pub(crate) minute: u64,
    /// Entities that were read by key or written, and pages of queries.
    pub(crate) entities: u64,
}

impl Peaks {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Takes a minute of a partition into account; a quiet one is not kept.
    pub(crate) fn add(&mut self, peak: Peak) {
        if peak.entities < ENTITIES_MIN {
            return;
        }
        let is_of_partition = |known: &&mut Peak| known.table == peak.table && known.partition == peak.partition;
        match self.0.iter_mut().find(is_of_partition) {
            // Keys that were cut may be of two partitions, which would together look like one that is twice as busy.
            Some(known) if known.minute == peak.minute && !is_cut(&peak.partition) => {
                known.entities = known.entities.saturating_add(peak.entities);
            }
            Some(known) if known.entities < peak.entities => *known = peak,
            Some(_) => {}
            None => self.0.push(peak),
        }
        if self.0.len() > PEAKS_MAX {
            let least = (0..self.0.len()).min_by_key(|place| self.0[*place].entities);
            least.map(|place| self.0.swap_remove(place));
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other.0.into_iter().for_each(|peak| self.add(peak));
    }

    /// Those of one table; names compare without case.
    pub(crate) fn only(mut self, table: &str) -> Self {
        self.0.retain(|peak| peak.table.eq_ignore_ascii_case(table));
        self
    }

    /// The peaks of a table, the busiest first.
    pub(crate) fn of(&self, table: &str) -> Vec<&Peak> {
        let mut peaks: Vec<&Peak> = self.0.iter().filter(|peak| peak.table == table).collect();
        peaks.sort_by(|one, other| other.entities.cmp(&one.entities).then_with(|| one.partition.cmp(&other.partition)));
        peaks
    }

    /// Appends the stored form: at most [`PEAKS_BYTES_MAX`] bytes, nothing if there are none.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if self.0.is_empty() {
            return;
        }
        put(out, self.0.len() as u64);
        for peak in &self.0 {
            put_text(out, cut(&peak.table, TABLE_BYTES_MAX));
            put_text(out, cut(&peak.partition, KEY_BYTES_MAX));
            put(out, peak.minute);
            put(out, peak.entities);
        }
    }

    /// Reads what `encode` has written, to the end.
    pub(crate) fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let mut peaks = Self::new();
        if input.is_empty() {
            return Some(peaks);
        }
        for _ in 0..input.count(PEAKS_MAX).filter(|count| *count > 0)? {
            let [table, partition] = [input.text()?.to_owned(), input.text()?.to_owned()];
            peaks.0.push(Peak { table, partition, minute: input.number()?, entities: input.number()? });
        }
        Some(peaks)
    }
}

/// Whether there may be more of a key than its text shows.
const fn is_cut(key: &str) -> bool {
    key.len() + 3 >= KEY_BYTES_MAX
}

/// Partitions whose peaks are kept.
const PEAKS_MAX: usize = 16;
/// Bytes of the stored form at most: two texts with their lengths and two numbers for each.
pub(crate) const PEAKS_BYTES_MAX: usize = 10 + PEAKS_MAX * (TABLE_BYTES_MAX + KEY_BYTES_MAX + 2 * 2 + 2 * 10);
/// As much as a table's name has.
const TABLE_BYTES_MAX: usize = 64;
/// Entities of a minute that is kept: a hundredth of the service's target for a partition.
const ENTITIES_MIN: u64 = 1200;

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest that is stored.
    const NUMBER_MAX: u64 = (1 << 48) - 1;

    fn peak(partition: &str, minute: u64, entities: u64) -> Peak {
        Peak { table: "t".to_owned(), partition: partition.to_owned(), minute, entities }
    }

    fn peaks(all: impl IntoIterator<Item = Peak>) -> Peaks {
        let mut peaks = Peaks::new();
        all.into_iter().for_each(|peak| peaks.add(peak));
        peaks
    }

    #[test]
    fn the_busiest_minute_stays_and_servers_are_added() {
        let mut sum = peaks([peak("a", 60, 5000), peak("b", 60, 1199)]);
        sum.merge(peaks([peak("a", 60, 3000)]));
        sum.merge(peaks([peak("a", 120, 7000), peak("c", 120, 1200)]));
        assert_eq!(sum.of("t"), [&peak("a", 60, 8000), &peak("c", 120, 1200)]);
        sum.merge(peaks([peak("a", 180, 9000)]));
        assert_eq!(sum.of("t")[0], &peak("a", 180, 9000));
        assert_eq!((sum.of("other").len(), sum.clone().only("T").0.len(), sum.only("other").0.len()), (0, 2, 0));
    }

    #[test]
    fn partitions_that_a_cut_key_may_be_of_are_not_added() {
        let long = "ü".repeat(KEY_BYTES_MAX / 2);
        let sum = peaks([peak(&long, 60, 5000), peak(&long, 60, 6000)]);
        assert_eq!(sum.of("t"), [&peak(&long, 60, 6000)]);
    }

    #[test]
    fn the_stored_form_is_bounded_and_read_back() {
        let long = |number: u64| format!("{number:04}{}", "x".repeat(KEY_BYTES_MAX - 4));
        let name = "n".repeat(TABLE_BYTES_MAX);
        let large = |number: u64| Peak { table: name.clone(), ..peak(&long(number), NUMBER_MAX, NUMBER_MAX - number) };
        let many = peaks((0..1000).map(large));
        let mut bytes = Vec::new();
        many.encode(&mut bytes);
        assert!(bytes.len() <= PEAKS_BYTES_MAX, "{}", bytes.len());
        assert_eq!(Peaks::decode(&mut Reader::new(&bytes)), Some(many.clone()));
        assert_eq!(many.of(&name).last().map(|peak| peak.entities), Some(NUMBER_MAX - 15), "the busiest stay");
        assert_eq!(Peaks::decode(&mut Reader::new(&[])), Some(Peaks::new()));
        for length in 1..bytes.len() {
            assert_eq!(Peaks::decode(&mut Reader::new(&bytes[..length])), None, "{length}");
        }
    }
}
