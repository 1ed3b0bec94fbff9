//! Heat over the key space: reads and writes by ranges of keys, which split where it is hot and are joined where it is cold.
//!
//! Each range keeps one of its keys, chosen at random. A range with a large share of the hits is split at that key; its
//! hits so far are divided evenly, so that the figures of a range are estimates while their sum is exact. If there are too
//! many ranges, the two neighbours with the fewest hits are joined.
//!
//! To find the range of a key is the most expensive part of observing a request, so that after the first hits only one of
//! [`SAMPLE_EVERY`], chosen at random, is looked up; it counts for those since the one before.

use super::codec::{Reader, put_text};
use super::frequent::{KEY_BYTES_MAX, cut};
use larimar_model::utf16;
use larimar_model::varint::put;
use std::cmp::Ordering;

/// The ranges of a table's keys, in order.
#[derive(Clone, Debug)]
pub(crate) struct KeyRanges {
    /// The first one begins at the beginning of the table.
    ranges: Vec<HeatRange>,
    hits: u64,
    /// Hits since the last one that was looked up.
    waiting: Heat,
    random: u32,
}

/// A range of keys, up to the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeatRange {
    pub(crate) start: Place,
    pub(crate) heat: Heat,
    /// One of the keys that were hit since the range was made, each with the same probability.
    sample: Place,
    /// Hits since the range was made that were looked up.
    sampled: u64,
    /// Not to be split before so many of them: twice as many as when it was not possible.
    split_at: u64,
}

/// Reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heat {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

/// A place in the order of keys; long keys are cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) partition: String,
    pub(crate) row: String,
}

impl Default for KeyRanges {
    fn default() -> Self {
        Self { ranges: Vec::new(), hits: 0, waiting: Heat::default(), random: 0x9E37_79B9 }
    }
}

impl KeyRanges {
    /// Counts a read or write of a key.
    pub(crate) fn hit(&mut self, partition: &str, row: &str, is_write: bool) {
        self.hits += 1;
        match is_write {
            true => self.waiting.writes += 1,
            false => self.waiting.reads += 1,
        }
        if self.hits <= UNSAMPLED_HITS || self.next_random() < u32::MAX / SAMPLE_EVERY {
            self.look_up(partition, row);
        }
    }

    /// Counts the hits that wait for the range of this key.
    #[inline(never)]
    fn look_up(&mut self, partition: &str, row: &str) {
        if self.ranges.is_empty() {
            self.ranges.reserve_exact(RANGES_MAX + 1);
            self.ranges.push(HeatRange::default());
        }
        let place = self.ranges.partition_point(|range| range.start.compare(partition, row) != Ordering::Greater) - 1;
        let random = self.next_random();
        let range = &mut self.ranges[place];
        range.heat.add(std::mem::take(&mut self.waiting));
        range.sampled += 1;
        if (u64::from(random) * range.sampled) >> 32 == 0 {
            range.sample.set(partition, row);
        }
        if range.sampled >= range.split_at.max(SPLIT_HITS_MIN) && range.heat.sum() >= self.hits / SPLIT_SHARE {
            self.split(place);
        }
    }

    /// Counts the hits that wait for the busiest range.
    fn settle(&mut self) {
        if let Some(busiest) = self.ranges.iter_mut().max_by_key(|range| range.heat.sum()) {
            busiest.heat.add(std::mem::take(&mut self.waiting));
        }
    }

    fn split(&mut self, place: usize) {
        let range = &mut self.ranges[place];
        // A single hot key, or one whose cut text is the start of the range.
        if range.sample.cmp(&range.start) != Ordering::Greater {
            range.split_at = range.sampled * 2;
            return;
        }
        let start = std::mem::take(&mut range.sample);
        let heat = range.heat.halved();
        (range.heat, range.sampled, range.split_at) = (range.heat.minus(heat), 0, 0);
        self.ranges.insert(place + 1, HeatRange { start, heat, ..HeatRange::default() });
        if self.ranges.len() > RANGES_MAX {
            self.join_coldest(Some(place));
        }
    }

    /// Joins the two neighbours with the fewest hits, but not the one at `except` with the next.
    fn join_coldest(&mut self, except: Option<usize>) {
        let pairs = self.ranges.windows(2).enumerate().filter(|(place, _)| Some(*place) != except);
        let coldest = pairs.min_by_key(|(_, pair)| pair[0].heat.sum() + pair[1].heat.sum());
        let Some((place, _)) = coldest else { return };
        let joined = self.ranges.remove(place + 1);
        let range = &mut self.ranges[place];
        range.heat.add(joined.heat);
        if joined.sampled > range.sampled {
            range.sample = joined.sample;
        }
        range.sampled += joined.sampled;
    }

    /// The ranges in key order.
    pub(crate) fn ranges(&self) -> &[HeatRange] {
        &self.ranges
    }

    /// Adds the ranges of another time or server. A range that is divided by the bounds of the other side counts evenly for
    /// its pieces.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.settle();
        other.settle();
        self.hits += other.hits;
        self.ranges = united(&self.ranges, &other.ranges);
        while self.ranges.len() > RANGES_MAX {
            self.join_coldest(None);
        }
    }

    /// The heat of the ranges that begin at these places.
    pub(crate) fn heat_of(&self, starts: &[HeatRange]) -> Vec<Heat> {
        let bounds: Vec<_> =
            starts.iter().map(|range| HeatRange { start: range.start.clone(), ..HeatRange::default() }).collect();
        let mut heats = vec![Heat::default(); starts.len()];
        for piece in united(&self.ranges, &bounds) {
            let place = starts.partition_point(|range| range.start.cmp(&piece.start) != Ordering::Greater);
            if let Some(heat) = heats.get_mut(place.saturating_sub(1)) {
                heat.add(piece.heat);
            }
        }
        heats
    }

    fn next_random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut few = self.clone();
        few.settle();
        while few.ranges.len() > STORED_RANGES_MAX {
            few.join_coldest(None);
        }
        put(out, few.hits);
        put(out, few.ranges.len() as u64);
        for HeatRange { start, heat, .. } in &few.ranges {
            put_text(out, &start.partition);
            put_text(out, &start.row);
            put(out, heat.reads);
            put(out, heat.writes);
        }
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let mut all = Self { hits: input.number()?, ..Self::default() };
        for _ in 0..input.count(RANGES_MAX)? {
            let start = Place { partition: input.text()?.to_owned(), row: input.text()?.to_owned() };
            let heat = Heat { reads: input.number()?, writes: input.number()? };
            all.ranges.push(HeatRange { start, heat, ..HeatRange::default() });
        }
        let is_in_order = all.ranges.is_sorted_by(|a, b| a.start.cmp(&b.start) == Ordering::Less);
        let begins = all.ranges.first().is_none_or(|range| range.start == Place::default());
        (is_in_order && begins).then_some(all)
    }
}

/// Ranges with the bounds and the hits of both.
fn united(one: &[HeatRange], other: &[HeatRange]) -> Vec<HeatRange> {
    let mut starts: Vec<&Place> = one.iter().chain(other).map(|range| &range.start).collect();
    starts.sort_by(|a, b| a.cmp(b));
    starts.dedup();
    let mut all: Vec<_> =
        starts.into_iter().map(|start| HeatRange { start: start.clone(), ..HeatRange::default() }).collect();
    for side in [one, other] {
        let mut place = 0;
        for (number, range) in side.iter().enumerate() {
            let end = side.get(number + 1).map(|next| &next.start);
            let is_inside = |piece: &&mut HeatRange| end.is_none_or(|end| piece.start.cmp(end) == Ordering::Less);
            let pieces: Vec<_> = all[place..].iter_mut().take_while(is_inside).collect();
            place += pieces.len();
            range.heat.divide(pieces);
        }
    }
    all
}

impl Heat {
    pub(crate) const fn sum(self) -> u64 {
        self.reads + self.writes
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
    }

    const fn halved(self) -> Self {
        Self { reads: self.reads / 2, writes: self.writes / 2 }
    }

    const fn minus(self, other: Self) -> Self {
        Self { reads: self.reads - other.reads, writes: self.writes - other.writes }
    }

    /// Adds an equal part to each piece; what is left over to the first ones.
    fn divide(self, pieces: Vec<&mut HeatRange>) {
        let count = pieces.len() as u64;
        for (number, piece) in pieces.into_iter().enumerate() {
            let part = |hits: u64| hits / count + u64::from((number as u64) < hits % count);
            piece.heat.add(Self { reads: part(self.reads), writes: part(self.writes) });
        }
    }
}

impl Place {
    fn compare(&self, partition: &str, row: &str) -> Ordering {
        utf16::compare(&self.partition, partition).then_with(|| utf16::compare(&self.row, row))
    }

    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(&other.partition, &other.row)
    }

    /// Takes a key, into the memory that there is.
    fn set(&mut self, partition: &str, row: &str) {
        self.partition.clear();
        self.partition.push_str(cut(partition, KEY_BYTES_MAX));
        self.row.clear();
        self.row.push_str(cut(row, KEY_BYTES_MAX));
    }
}

/// Ranges of a table at most.
const RANGES_MAX: usize = 64;
/// Ranges of a table that are stored.
const STORED_RANGES_MAX: usize = 32;
/// A range is split when it has more than one of so many hits, and at least so many.
const SPLIT_SHARE: u64 = 32;
const SPLIT_HITS_MIN: u64 = 8;
/// Of the hits after the first ones, the range of one in so many is looked up.
const SAMPLE_EVERY: u32 = 8;
const UNSAMPLED_HITS: u64 = 256;

#[cfg(test)]
mod tests {
    use super::super::tests::HeapBytes;
    use super::*;
    use proptest::prelude::*;

    impl HeapBytes for KeyRanges {
        fn heap_bytes(&self) -> usize {
            let place_bytes = |place: &Place| place.partition.capacity() + place.row.capacity();
            let ranges = self.ranges.iter().map(|range| place_bytes(&range.start) + place_bytes(&range.sample));
            self.ranges.capacity() * size_of::<HeatRange>() + ranges.sum::<usize>()
        }
    }

    fn hits(keys: impl IntoIterator<Item = u32>) -> KeyRanges {
        let mut ranges = KeyRanges::default();
        for key in keys {
            ranges.hit(&format!("p{:03}", key / 1000), &format!("{:03}", key % 1000), key % 3 == 0);
        }
        ranges
    }

    fn sum(ranges: &KeyRanges) -> Heat {
        let mut sum = Heat::default();
        ranges.ranges.iter().for_each(|range| sum.add(range.heat));
        sum
    }

    fn exact(keys: &[u32]) -> Heat {
        let writes = keys.iter().filter(|key| **key % 3 == 0).count() as u64;
        Heat { reads: keys.len() as u64 - writes, writes }
    }

    fn check_order(ranges: &KeyRanges) {
        assert!(ranges.ranges.len() <= RANGES_MAX);
        assert!(ranges.ranges.first().is_none_or(|range| range.start == Place::default()));
        assert!(ranges.ranges.is_sorted_by(|a, b| a.start.cmp(&b.start) == Ordering::Less));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_hit_is_lost_or_counted_twice(parts in prop::collection::vec(prop::collection::vec(0..200_000_u32, 0..600), 1..4)) {
            let mut all = KeyRanges::default();
            for part in &parts {
                let ranges = hits(part.iter().copied());
                check_order(&ranges);
                let mut bytes = Vec::new();
                ranges.encode(&mut bytes);
                let stored = KeyRanges::decode(&mut Reader::new(&bytes)).expect("as encoded");
                prop_assert!(stored.ranges.len() <= STORED_RANGES_MAX);
                all.merge(stored);
                check_order(&all);
            }
            let keys = parts.concat();
            prop_assert_eq!(sum(&all), exact(&keys));
            let again: Heat = all.heat_of(all.ranges()).into_iter().fold(Heat::default(), |mut sum, heat| {
                sum.add(heat);
                sum
            });
            prop_assert_eq!(again, exact(&keys));
        }

    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]

        /// The hits of some ranges of keys, estimated, against the exact count.
        #[test]
        fn estimates_follow_the_heat(seed in 0..1000_u32) {
            // Half of the hits are in a hundredth of the keys.
            let keys: Vec<u32> = (0..20_000_u32)
                .map(|number| number.wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(97)))
                .map(|random| if random % 2 == 0 { 50_000 + random / 2 % 1000 } else { random / 2 % 100_000 })
                .collect();
            let ranges = hits(keys.iter().copied());
            let bounds: Vec<_> = [0, 25_000, 50_000, 51_000, 75_000]
                .map(|key| HeatRange {
                    start: match key {
                        0 => Place::default(),
                        _ => Place { partition: format!("p{:03}", key / 1000), row: String::new() },
                    },
                    ..HeatRange::default()
                })
                .into();
            let shown: Vec<u64> = ranges.heat_of(&bounds).into_iter().map(Heat::sum).collect();
            let ends = [25_000, 50_000, 51_000, 75_000, 100_000];
            for (number, end) in ends.into_iter().enumerate() {
                let start = [0, 25_000, 50_000, 51_000, 75_000][number];
                let exact = keys.iter().filter(|key| (start..end).contains(*key)).count() as u64;
                // Two ranges that cross a bound, each with a share of a 32nd, and the halving of earlier hits.
                prop_assert!(shown[number].abs_diff(exact) <= 20_000 / 10, "{start}: {} for {exact}", shown[number]);
            }
            let hot = ranges.ranges.iter().filter(|range| range.start.partition == "p050").count();
            prop_assert!(hot >= 8, "{hot} ranges in the hot partition");
        }
    }

    #[test]
    fn one_hot_key_stays_one_range_of_its_own() {
        let mut ranges = KeyRanges::default();
        for number in 0..10_000 {
            ranges.hit("hot", "row", false);
            if number % 10 == 0 {
                ranges.hit(&format!("{number:05}"), "", true);
            }
        }
        check_order(&ranges);
        let hot = ranges.ranges.iter().find(|range| range.start.partition == "hot").expect("a range");
        assert!(hot.heat.reads > 9_000, "{hot:?}");
    }
}
