//! The most frequent keys of a stream, in bounded memory, with figures for each: the Space-Saving algorithm.
//!
//! A key that is not tracked takes the place of the tracked key with the least weight, and inherits that weight. So every
//! key that has more than `hits / keys_max` of the hits is tracked, whatever the other keys are. The figures of a key count
//! from its entry on; [`Tracked::missed_max`] bounds what was missed before.
//!
//! With a filter ([`Frequent::filtered`]) a key enters only if it may have more hits than the least tracked one. Cells that
//! keys share by their hash count the hits of keys that are not tracked: an upper bound for each of them, which is far
//! smaller than the least weight for most keys (Filtered Space-Saving; Homem and Carvalho, 2010).

use super::codec::{Reader, put_text};
use super::places::Places;
use larimar_model::varint::put;

/// Keys with figures of type `V`.
#[derive(Clone, Debug)]
pub(crate) struct Frequent<V> {
    keys_max: usize,
    /// Bytes of a key's text that are kept.
    key_bytes_max: usize,
    /// A key that was left out of a stored form had at most this weight.
    left_out: u64,
    /// Hits of each key, with those that it inherited. Apart from the rest, as they are all read to find the least.
    weights: Vec<u64>,
    /// Beside `weights`, to find keys by them.
    hashes: Vec<u64>,
    tracked: Vec<Tracked<V>>,
    /// The places of the keys in these lists.
    places: Places,
    /// No weight is less, and the places before this one have more.
    least: (u64, usize),
    filter: Filter,
}

/// One tracked key.
#[derive(Clone, Debug)]
pub(crate) struct Tracked<V> {
    /// The key, perhaps cut; keys are told apart by the keyed hash of the whole text (`hash_key.rs`).
    pub(crate) key: String,
    /// Hits at most that the key had before it was tracked.
    pub(crate) missed_max: u64,
    /// Its figures since then.
    pub(crate) value: V,
}

/// Figures of a key that can be added to those of the same key elsewhere, and stored.
pub(crate) trait Figures: Default {
    /// Adds the figures of another time or server.
    fn merge(&mut self, other: Self);
    /// Appends the figures in their stored form, with at most so many partitions of a table.
    fn encode(&self, partitions_max: usize, out: &mut Vec<u8>);
    /// Reads what `encode` has written.
    fn decode(input: &mut Reader<'_>) -> Option<Self>;
}

/// What keeps a key out until it may be more frequent than a tracked one.
#[derive(Clone, Debug)]
enum Filter {
    None,
    /// Hits of keys that are not tracked, by a part of their hash. Empty until a key finds no place.
    Cells(Vec<u32>),
}

impl<V: Figures> Frequent<V> {
    /// Tracks at most this many keys and keeps so many bytes of each. Every key that is hit is tracked, if only for a while.
    pub(crate) const fn new(keys_max: usize, key_bytes_max: usize) -> Self {
        assert!(keys_max > 0 && keys_max <= Places::KEYS_MAX, "each key has a place");
        Self {
            keys_max,
            key_bytes_max,
            left_out: 0,
            weights: Vec::new(),
            hashes: Vec::new(),
            tracked: Vec::new(),
            places: Places::new(),
            least: (0, 0),
            filter: Filter::None,
        }
    }

    /// The same with a filter, for [`Frequent::hit_filtered`].
    pub(crate) fn filtered(keys_max: usize, key_bytes_max: usize) -> Self {
        Self { filter: Filter::Cells(Vec::new()), ..Self::new(keys_max, key_bytes_max) }
    }

    /// Counts a hit of a key, and returns the key's figures. If another key had to make place, `evicted` gets its figures.
    pub(crate) fn hit(&mut self, hash: u64, key: &str, evicted: impl FnOnce(Tracked<V>)) -> &mut V {
        let place = self.place(hash, key, evicted);
        self.hit_place(place)
    }

    /// The place of a key that is about to be hit.
    pub(crate) fn place(&mut self, hash: u64, key: &str, evicted: impl FnOnce(Tracked<V>)) -> usize {
        match self.find(hash) {
            Some(place) => place,
            None if self.tracked.len() < self.keys_max => self.enter(hash, key),
            None => {
                let place = self.least();
                evicted(self.replace(place, hash, key));
                place
            }
        }
    }

    /// Counts a hit of a key, and returns the key's figures if it is tracked.
    pub(crate) fn hit_filtered(&mut self, hash: u64, key: &str) -> Option<&mut V> {
        let place = match self.find(hash) {
            Some(place) => place,
            None if self.tracked.len() < self.keys_max => self.enter(hash, key),
            None => self.admit(hash, key)?,
        };
        Some(self.hit_place(place))
    }

    /// Whether the key at a place is this one. Only for keys that are not cut.
    pub(crate) fn is_at(&self, place: usize, key: &str) -> bool {
        self.tracked.get(place).is_some_and(|tracked| tracked.key == key)
    }

    /// Counts a hit of the key at a place.
    pub(crate) fn hit_place(&mut self, place: usize) -> &mut V {
        self.weights[place] += 1;
        &mut self.tracked[place].value
    }

    /// The place of a key with this hash.
    fn find(&self, hash: u64) -> Option<usize> {
        self.places.find(hash, &self.hashes)
    }

    /// Tracks a new key while there is room.
    fn enter(&mut self, hash: u64, key: &str) -> usize {
        self.reserve();
        let key = cut(key, self.key_bytes_max).to_owned();
        self.push(self.left_out, hash, Tracked { key, missed_max: self.left_out, value: V::default() })
    }

    /// Doubles the room of the lists, up to what they need at most.
    fn reserve(&mut self) {
        let length = self.tracked.len();
        if length == self.tracked.capacity() {
            let more = length.max(4).min(self.keys_max.saturating_sub(length)).max(1);
            self.weights.reserve_exact(more);
            self.hashes.reserve_exact(more);
            self.tracked.reserve_exact(more);
        }
    }

    fn push(&mut self, weight: u64, hash: u64, tracked: Tracked<V>) -> usize {
        self.weights.push(weight);
        self.hashes.push(hash);
        self.tracked.push(tracked);
        self.places.insert(self.hashes.len() - 1, &self.hashes);
        self.hashes.len() - 1
    }

    /// Counts a hit of a key that is not tracked, and tracks it if it may have more hits than the least tracked key.
    fn admit(&mut self, hash: u64, key: &str) -> Option<usize> {
        let Filter::Cells(cells) = &mut self.filter else { return None };
        if cells.is_empty() {
            cells.resize(CELLS, 0);
        }
        let cell = &mut cells[cell_of(hash)];
        let missed_max = u64::from(*cell);
        if missed_max < self.least.0 {
            *cell = cell.saturating_add(1);
            return None;
        }
        let place = self.least();
        let Filter::Cells(cells) = &mut self.filter else { return None };
        if missed_max < self.weights[place] {
            let cell = &mut cells[cell_of(hash)];
            *cell = cell.saturating_add(1);
            return None;
        }
        raise(cells, self.hashes[place], self.weights[place]);
        self.replace(place, hash, key);
        self.weights[place] = missed_max;
        self.tracked[place].missed_max = missed_max;
        Some(place)
    }

    /// Tracks a new key in the place of another one, whose weight it inherits.
    fn replace(&mut self, place: usize, hash: u64, key: &str) -> Tracked<V> {
        self.places.remove(place, &self.hashes);
        self.hashes[place] = hash;
        self.places.insert(place, &self.hashes);
        let key = cut(key, self.key_bytes_max).to_owned();
        let new = Tracked { key, missed_max: self.weights[place], value: V::default() };
        std::mem::replace(&mut self.tracked[place], new)
    }

    /// The place of a key with the least weight. Weights only grow, so that a search goes on where the last one ended.
    fn least(&mut self) -> usize {
        let (least, start) = self.least;
        let found = self.weights[start..].iter().position(|weight| *weight <= least).map(|place| start + place);
        let place = found.unwrap_or_else(|| {
            self.least.0 = self.weights.iter().copied().min().unwrap_or_default();
            self.weights.iter().position(|weight| *weight == self.least.0).unwrap_or_default()
        });
        self.least.1 = place;
        place
    }

    /// Hits at most of a key that is not tracked.
    fn missed_max(&self, hash: u64, floor: u64) -> u64 {
        match &self.filter {
            Filter::Cells(cells) => cells.get(cell_of(hash)).copied().map_or(0, u64::from),
            Filter::None => floor,
        }
    }

    /// Hits at most of any key that is not tracked.
    pub(crate) fn floor(&self) -> u64 {
        match &self.filter {
            Filter::Cells(cells) => cells.iter().copied().max().map_or(0, u64::from),
            Filter::None if self.tracked.len() < self.keys_max => self.left_out,
            Filter::None => self.weights.iter().copied().min().unwrap_or_default().max(self.left_out),
        }
    }

    /// The tracked keys with their weights, the most frequent first.
    pub(crate) fn ranked(&self) -> Vec<(u64, &Tracked<V>)> {
        let mut ranked: Vec<_> = self.weights.iter().copied().zip(&self.tracked).collect();
        ranked.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.key.cmp(&b.key)));
        ranked
    }

    /// The first key of this kind alone, with its figures.
    pub(crate) fn only(mut self, is_wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let place = self.tracked.iter().position(|tracked| is_wanted(&tracked.key))?;
        let mut only = Self { left_out: self.floor(), ..Self::new(self.keys_max, self.key_bytes_max) };
        only.push(self.weights[place], self.hashes[place], self.tracked.swap_remove(place));
        Some(only)
    }

    /// Adds the keys of another time or server. `evicted` gets the figures of keys for which there is no place.
    pub(crate) fn merge(&mut self, mut other: Self, mut evicted: impl FnMut(Tracked<V>)) {
        let (floor, other_floor) = (self.floor(), other.floor());
        // A key of one side may have been missed on the other.
        for place in 0..self.tracked.len() {
            if other.find(self.hashes[place]).is_none() {
                let missed_max = other.missed_max(self.hashes[place], other_floor);
                self.weights[place] += missed_max;
                self.tracked[place].missed_max += missed_max;
            }
        }
        let lists = other.weights.drain(..).zip(other.hashes.drain(..)).zip(other.tracked.drain(..));
        for ((weight, hash), tracked) in lists {
            match self.find(hash) {
                Some(place) => {
                    self.weights[place] += weight;
                    self.tracked[place].missed_max += tracked.missed_max;
                    self.tracked[place].value.merge(tracked.value);
                }
                None => {
                    let missed_max = self.missed_max(hash, floor);
                    let tracked = Tracked { missed_max: tracked.missed_max + missed_max, ..tracked };
                    self.push(weight + missed_max, hash, tracked);
                }
            }
        }
        self.left_out = floor + other_floor;
        self.filter = self.filter.merged(&other.filter);
        self.shrink(&mut evicted);
    }

    /// Gives up the least frequent keys for which there is no place.
    fn shrink(&mut self, evicted: &mut impl FnMut(Tracked<V>)) {
        self.least = (0, 0);
        if self.tracked.len() <= self.keys_max {
            return;
        }
        let mut order: Vec<usize> = (0..self.tracked.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(self.weights[*place]));
        let kept: std::collections::BTreeSet<usize> = order.into_iter().take(self.keys_max).collect();
        let (weights, hashes) = (std::mem::take(&mut self.weights), std::mem::take(&mut self.hashes));
        let tracked = std::mem::take(&mut self.tracked);
        self.places = Places::new();
        for (place, ((weight, hash), tracked)) in weights.into_iter().zip(hashes).zip(tracked).enumerate() {
            if kept.contains(&place) {
                self.reserve();
                self.push(weight, hash, tracked);
            } else {
                self.left_out = self.left_out.max(weight);
                if let Filter::Cells(cells) = &mut self.filter {
                    raise(cells, hash, weight);
                }
                evicted(tracked);
            }
        }
    }

    /// Appends the stored form of the most frequent keys: at most so many, in about so many bytes, each with at most
    /// `partitions_max` partitions. `left_out` gets the figures of the others.
    pub(crate) fn encode(
        &self,
        (keys_max, bytes_max, partitions_max): (usize, usize, usize),
        out: &mut Vec<u8>,
        mut left_out: impl FnMut(&V),
    ) {
        let mut places: Vec<usize> = (0..self.tracked.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(self.weights[*place]));
        let (mut keys, mut count, mut floor) = (Vec::new(), 0, self.floor());
        for place in places {
            let (tracked, end) = (&self.tracked[place], keys.len());
            if count < keys_max {
                put(&mut keys, self.weights[place]);
                keys.extend(self.hashes[place].to_le_bytes());
                put(&mut keys, tracked.missed_max);
                put_text(&mut keys, &tracked.key);
                tracked.value.encode(partitions_max, &mut keys);
            }
            if count == keys_max || keys.len() > bytes_max {
                keys.truncate(end);
                floor = floor.max(self.weights[place]);
                left_out(&tracked.value);
            } else {
                count += 1;
            }
        }
        put(out, floor);
        put(out, count as u64);
        out.extend(keys);
    }

    /// Reads what `encode` has written.
    pub(crate) fn decode(keys_max: usize, key_bytes_max: usize, input: &mut Reader<'_>) -> Option<Self> {
        let mut all = Self { left_out: input.number()?, ..Self::new(keys_max, key_bytes_max) };
        for _ in 0..input.count(keys_max)? {
            let (weight, hash, missed_max) = (input.number()?, input.hash()?, input.number()?);
            let key = input.text()?.to_owned();
            // Nothing that we store has a key twice.
            if all.find(hash).is_some() {
                return None;
            }
            all.reserve();
            all.push(weight, hash, Tracked { key, missed_max, value: V::decode(input)? });
        }
        Some(all)
    }
}

impl Filter {
    /// The filter of a sum: none, if one of the sides has none.
    fn merged(&self, other: &Self) -> Self {
        let (Self::Cells(one), Self::Cells(other)) = (self, other) else { return Self::None };
        let (mut sum, other) = if one.is_empty() { (other.clone(), one) } else { (one.clone(), other) };
        for (sum, count) in sum.iter_mut().zip(other) {
            *sum = sum.saturating_add(*count);
        }
        Self::Cells(sum)
    }
}

/// Notes that a key with this hash, which is not tracked any more, may have had so many hits.
fn raise(cells: &mut Vec<u32>, hash: u64, hits_max: u64) {
    if cells.is_empty() {
        cells.resize(CELLS, 0);
    }
    let cell = &mut cells[cell_of(hash)];
    *cell = (*cell).max(u32::try_from(hits_max).unwrap_or(u32::MAX));
}

/// The cell of a key; `places.rs` and `distinct.rs` use the lowest bits.
const fn cell_of(hash: u64) -> usize {
    (hash >> 16) as usize % CELLS
}

/// Cells of a filter, a power of two: 8 KiB.
const CELLS: usize = 2048;

/// A text's first bytes: at most so many.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Bytes that are kept of a PartitionKey or RowKey.
pub(crate) const KEY_BYTES_MAX: usize = 96;

#[cfg(test)]
mod tests {
    use super::super::hash_key::HashKey;
    use super::super::tests::HeapBytes;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn hash(text: &str) -> u64 {
        HashKey([7; HashKey::BYTES]).hash(text)
    }

    impl Figures for u64 {
        fn merge(&mut self, other: Self) {
            *self += other;
        }

        fn encode(&self, _: usize, out: &mut Vec<u8>) {
            put(out, *self);
        }

        fn decode(input: &mut Reader<'_>) -> Option<Self> {
            input.number()
        }
    }

    impl<V: HeapBytes> HeapBytes for Frequent<V> {
        fn heap_bytes(&self) -> usize {
            let lists = (self.weights.capacity() + self.hashes.capacity()) * size_of::<u64>();
            let tracked = self.tracked.iter().map(|tracked| tracked.key.capacity() + tracked.value.heap_bytes());
            let cells = match &self.filter {
                Filter::None => 0,
                Filter::Cells(cells) => cells.capacity() * size_of::<u32>(),
            };
            let tracked_bytes = self.tracked.capacity() * size_of::<Tracked<V>>() + tracked.sum::<usize>();
            lists + self.places.heap_bytes() + cells + tracked_bytes
        }
    }

    fn count(keys_max: usize, stream: &[u16]) -> Frequent<u64> {
        let mut frequent = Frequent::new(keys_max, KEY_BYTES_MAX);
        for key in stream {
            let key = key.to_string();
            *frequent.hit(hash(&key), &key, drop) += 1;
        }
        frequent
    }

    fn count_filtered(keys_max: usize, stream: &[u16]) -> Frequent<u64> {
        let mut frequent = Frequent::filtered(keys_max, KEY_BYTES_MAX);
        for key in stream {
            let key = key.to_string();
            if let Some(count) = frequent.hit_filtered(hash(&key), &key) {
                *count += 1;
            }
        }
        frequent
    }

    fn exact(stream: &[u16]) -> HashMap<String, u64> {
        let mut counts = HashMap::new();
        for key in stream {
            *counts.entry(key.to_string()).or_default() += 1;
        }
        counts
    }

    /// Every figure is within its error of the exact count, and every key that is not tracked has few hits.
    fn check_errors(frequent: &Frequent<u64>, stream: &[u16]) {
        let mut counts = exact(stream);
        let ranked = frequent.ranked();
        assert!(ranked.len() <= frequent.keys_max);
        for (_, tracked) in &ranked {
            let count = counts.remove(&tracked.key).expect("it was hit");
            assert!(tracked.value <= count && count <= tracked.value + tracked.missed_max, "{tracked:?} {count}");
        }
        for (key, count) in counts {
            let missed_max = frequent.missed_max(hash(&key), frequent.floor());
            assert!(count <= missed_max && missed_max <= frequent.floor(), "{key} has {count} hits, not {missed_max}");
        }
    }

    /// Every frequent key is tracked.
    fn check_presence(frequent: &Frequent<u64>, stream: &[u16]) {
        let ranked = frequent.ranked();
        let bound = (stream.len() / frequent.keys_max) as u64;
        for (key, count) in exact(stream).into_iter().filter(|(_, count)| *count > bound) {
            assert!(ranked.iter().any(|(_, tracked)| tracked.key == key), "{key} has {count} hits");
        }
    }

    /// A stream in which some keys are far more frequent than others.
    fn streams() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(prop_oneof![0..4_u16, 0..4_u16, 0..30_u16, 0..2000_u16], 0..1500)
    }

    fn stored(frequent: &Frequent<u64>, keys_max: usize) -> Frequent<u64> {
        let mut bytes = Vec::new();
        frequent.encode((keys_max, usize::MAX, 0), &mut bytes, |_| ());
        Frequent::decode(16, KEY_BYTES_MAX, &mut Reader::new(&bytes)).expect("as encoded")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn frequent_keys_are_tracked_and_errors_are_bounded(stream in streams(), keys_max in 1..40_usize) {
            for frequent in [count(keys_max, &stream), count_filtered(keys_max, &stream)] {
                check_errors(&frequent, &stream);
                check_presence(&frequent, &stream);
            }
        }

        #[test]
        fn merged_and_stored_keys_keep_the_promises(
            parts in prop::collection::vec(streams(), 1..4),
            keys_max in prop_oneof![Just(4_usize), Just(16_usize)],
        ) {
            let (mut all, mut all_filtered) = (Frequent::new(16, KEY_BYTES_MAX), Frequent::filtered(16, KEY_BYTES_MAX));
            let mut never_stored = Frequent::filtered(16, KEY_BYTES_MAX);
            for part in &parts {
                all.merge(stored(&count(16, part), keys_max), drop);
                all_filtered.merge(stored(&count_filtered(16, part), keys_max), drop);
                never_stored.merge(count_filtered(16, part), drop);
            }
            for frequent in [&all, &all_filtered, &never_stored] {
                check_errors(frequent, &parts.concat());
            }
            if keys_max == 16 {
                check_presence(&all, &parts.concat());
            }
        }
    }

    /// A filter keeps rare keys out, so that a key that comes late was missed less often.
    #[test]
    fn a_filter_makes_errors_smaller() {
        let rare = (0..4000_u16).map(|number| 100 + number % 1000);
        let stream: Vec<u16> = rare.chain((0..1000).map(|number| number % 8)).collect();
        let [plain, filtered] = [count(16, &stream), count_filtered(16, &stream)].map(|frequent| {
            let late: Vec<_> = frequent.ranked().into_iter().filter(|(_, tracked)| tracked.key.len() == 1).collect();
            assert_eq!(late.len(), 8);
            late.into_iter().map(|(_, tracked)| tracked.missed_max).sum::<u64>()
        });
        assert!(filtered * 10 < plain, "{filtered} for {plain}");
    }

    #[test]
    fn a_hit_of_a_new_key_evicts_the_least_frequent() {
        let mut evicted = Vec::new();
        let mut frequent = Frequent::<u64>::new(2, KEY_BYTES_MAX);
        for key in ["a", "a", "b", "c"] {
            *frequent.hit(hash(key), key, |tracked| evicted.push((tracked.key, tracked.value))) += 1;
        }
        assert_eq!(evicted, [("b".to_owned(), 1)]);
        let shown: Vec<_> = frequent.ranked().into_iter().map(|(_, it)| (&*it.key, it.value, it.missed_max)).collect();
        assert_eq!(shown, [("a", 2, 0), ("c", 1, 1)]);
    }

    #[test]
    fn long_keys_are_cut_and_still_told_apart() {
        let mut frequent = Frequent::<u64>::new(4, KEY_BYTES_MAX);
        for end in ["a", "b", "b"] {
            let key = format!("{}{end}", "ü".repeat(500));
            *frequent.hit(hash(&key), &key, drop) += 1;
        }
        let counts: Vec<_> = frequent.ranked().iter().map(|(_, tracked)| (tracked.key.len(), tracked.value)).collect();
        assert_eq!(counts, [(96, 2), (96, 1)]);
    }
}
