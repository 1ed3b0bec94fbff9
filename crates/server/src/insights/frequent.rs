//! The most frequent keys of a stream, in bounded memory, with figures for each: the Space-Saving algorithm.
//!
//! A key that is not tracked takes the place of the tracked key with the least weight, and inherits that weight. So every
//! key that has more than `hits / keys_max` of the hits is tracked, whatever the other keys are. The figures of a key count
//! from its entry on; [`Tracked::missed_max`] bounds what was missed before.

use super::codec::{Reader, put_text};
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
    /// Beside `weights`, for the same reason.
    hashes: Vec<u64>,
    tracked: Vec<Tracked<V>>,
    /// The place of the key that had a hash with this last byte, which saves most searches.
    recent: [u8; 256],
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
    /// Appends the figures in their stored form.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads what `encode` has written.
    fn decode(input: &mut Reader<'_>) -> Option<Self>;
}

impl<V: Figures> Frequent<V> {
    /// Tracks at most this many keys, 1 to 255, and keeps so many bytes of each.
    pub(crate) const fn new(keys_max: usize, key_bytes_max: usize) -> Self {
        assert!(keys_max > 0 && keys_max < 256, "a place is stored in a byte");
        Self {
            keys_max,
            key_bytes_max,
            left_out: 0,
            weights: Vec::new(),
            hashes: Vec::new(),
            tracked: Vec::new(),
            recent: [0; 256],
        }
    }

    /// Counts a hit of a key, and returns the key's figures. If another key had to make place, `evicted` gets its figures.
    pub(crate) fn hit(&mut self, hash: u64, key: &str, evicted: impl FnOnce(Tracked<V>)) -> &mut V {
        let place = match self.place(hash) {
            Some(place) => place,
            None if self.tracked.len() < self.keys_max => {
                self.weights.push(0);
                self.hashes.push(hash);
                self.tracked.push(Tracked {
                    key: cut(key, self.key_bytes_max).to_owned(),
                    missed_max: 0,
                    value: V::default(),
                });
                self.tracked.len() - 1
            }
            None => {
                let place = self.least();
                self.hashes[place] = hash;
                let new = Tracked {
                    key: cut(key, self.key_bytes_max).to_owned(),
                    missed_max: self.weights[place],
                    value: V::default(),
                };
                evicted(std::mem::replace(&mut self.tracked[place], new));
                place
            }
        };
        self.recent[usize::from(hash as u8)] = place as u8;
        self.weights[place] += 1;
        &mut self.tracked[place].value
    }

    fn place(&self, hash: u64) -> Option<usize> {
        let recent = usize::from(self.recent[usize::from(hash as u8)]);
        match self.hashes.get(recent) == Some(&hash) {
            true => Some(recent),
            false => self.hashes.iter().position(|known| *known == hash),
        }
    }

    fn least(&self) -> usize {
        let least = self.weights.iter().copied().min().unwrap_or_default();
        self.weights.iter().position(|weight| *weight == least).unwrap_or_default()
    }

    /// The weight below which a key may be untracked.
    fn floor(&self) -> u64 {
        match self.tracked.len() < self.keys_max {
            true => self.left_out,
            false => self.weights.iter().copied().min().unwrap_or_default().max(self.left_out),
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
        only.weights.push(self.weights[place]);
        only.hashes.push(self.hashes[place]);
        only.tracked.push(self.tracked.swap_remove(place));
        Some(only)
    }

    /// Adds the keys of another time or server. `evicted` gets the figures of keys for which there is no place.
    pub(crate) fn merge(&mut self, other: Self, mut evicted: impl FnMut(Tracked<V>)) {
        let (floor, other_floor) = (self.floor(), other.floor());
        // A key of one side may have been missed on the other, at most as often as the least weight there.
        let mut is_of_both = vec![false; self.tracked.len()];
        for ((weight, hash), tracked) in other.weights.into_iter().zip(other.hashes).zip(other.tracked) {
            match self.place(hash).filter(|place| *place < is_of_both.len()) {
                Some(place) => {
                    is_of_both[place] = true;
                    self.weights[place] += weight;
                    self.tracked[place].missed_max += tracked.missed_max;
                    self.tracked[place].value.merge(tracked.value);
                }
                None => {
                    self.weights.push(weight + floor);
                    self.hashes.push(hash);
                    self.tracked.push(Tracked { missed_max: tracked.missed_max + floor, ..tracked });
                }
            }
        }
        for (place, is_of_both) in is_of_both.into_iter().enumerate() {
            if !is_of_both {
                self.weights[place] += other_floor;
                self.tracked[place].missed_max += other_floor;
            }
        }
        self.left_out = floor + other_floor;
        while self.tracked.len() > self.keys_max {
            let place = self.least();
            self.left_out = self.left_out.max(self.weights.swap_remove(place));
            self.hashes.swap_remove(place);
            evicted(self.tracked.swap_remove(place));
        }
        self.recent = [0; 256];
    }

    /// Appends the stored form of the most frequent keys: at most so many, in about so many bytes. `left_out` gets the
    /// figures of the others.
    pub(crate) fn encode(&self, keys_max: usize, bytes_max: usize, out: &mut Vec<u8>, mut left_out: impl FnMut(&V)) {
        let mut places: Vec<usize> = (0..self.tracked.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(self.weights[*place]));
        let (mut keys, mut count, mut floor) = (Vec::new(), 0, self.floor());
        for place in places {
            let (tracked, end) = (&self.tracked[place], keys.len());
            put(&mut keys, self.weights[place]);
            keys.extend(self.hashes[place].to_le_bytes());
            put(&mut keys, tracked.missed_max);
            put_text(&mut keys, &tracked.key);
            tracked.value.encode(&mut keys);
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
            all.weights.push(input.number()?);
            all.hashes.push(input.hash()?);
            let missed_max = input.number()?;
            let key = input.text()?.to_owned();
            all.tracked.push(Tracked { key, missed_max, value: V::decode(input)? });
        }
        Some(all)
    }
}

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

        fn encode(&self, out: &mut Vec<u8>) {
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
            lists + self.tracked.capacity() * size_of::<Tracked<V>>() + tracked.sum::<usize>()
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

    fn exact(stream: &[u16]) -> HashMap<String, u64> {
        let mut counts = HashMap::new();
        for key in stream {
            *counts.entry(key.to_string()).or_default() += 1;
        }
        counts
    }

    /// Every figure is within its error of the exact count.
    fn check_errors(frequent: &Frequent<u64>, stream: &[u16]) {
        let counts = exact(stream);
        let ranked = frequent.ranked();
        assert!(ranked.len() <= frequent.keys_max);
        for (_, tracked) in &ranked {
            let count = counts[&tracked.key];
            assert!(tracked.value <= count && count <= tracked.value + tracked.missed_max, "{tracked:?} {count}");
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn frequent_keys_are_tracked_and_errors_are_bounded(stream in streams(), keys_max in 1..40_usize) {
            let frequent = count(keys_max, &stream);
            check_errors(&frequent, &stream);
            check_presence(&frequent, &stream);
        }

        #[test]
        fn merged_and_stored_keys_keep_the_promises(
            parts in prop::collection::vec(streams(), 1..4),
            stored in prop_oneof![Just(4_usize), Just(16_usize)],
        ) {
            let mut all = Frequent::new(16, KEY_BYTES_MAX);
            for part in &parts {
                let mut bytes = Vec::new();
                count(16, part).encode(stored, usize::MAX, &mut bytes, |_| ());
                let stored = Frequent::decode(16, KEY_BYTES_MAX, &mut Reader::new(&bytes)).expect("as encoded");
                all.merge(stored, drop);
            }
            check_errors(&all, &parts.concat());
            if stored == 16 {
                check_presence(&all, &parts.concat());
            }
        }
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
