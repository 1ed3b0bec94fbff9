//! The places of keys in a list, found by their hashes.
//!
//! A table of numbers with open addressing: less than half of it is used, so that most searches read one or two entries.

/// Places in a list of hashes. The list belongs to the caller, who passes it to each call.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// 0, or a place and 1. A power of two; empty as long as the list is.
    slots: Vec<u16>,
    used: usize,
}

impl Places {
    /// Keys in a list at most: while two lists are merged there are twice as many.
    pub(crate) const KEYS_MAX: usize = 1 << 14;

    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), used: 0 }
    }

    /// The place of a hash.
    #[inline]
    pub(crate) fn find(&self, hash: u64, hashes: &[u64]) -> Option<usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = hash as usize & mask;
        loop {
            let place = usize::from(*self.slots.get(slot)?).checked_sub(1)?;
            if hashes.get(place) == Some(&hash) {
                return Some(place);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds a place of the list whose hash is not known yet.
    pub(crate) fn insert(&mut self, place: usize, hashes: &[u64]) {
        self.used += 1;
        if self.used * 2 > self.slots.len() {
            let old = std::mem::replace(&mut self.slots, vec![0; (self.used * 4).next_power_of_two()]);
            old.into_iter().filter(|number| *number > 0).for_each(|number| self.put(number, hashes));
        }
        self.put(place as u16 + 1, hashes);
    }

    fn put(&mut self, number: u16, hashes: &[u64]) {
        let mask = self.slots.len() - 1;
        let mut slot = hashes[usize::from(number) - 1] as usize & mask;
        while self.slots[slot] > 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = number;
    }

    /// Removes a place, before its hash changes.
    pub(crate) fn remove(&mut self, place: usize, hashes: &[u64]) {
        let mask = self.slots.len() - 1;
        let mut slot = hashes[place] as usize & mask;
        while usize::from(self.slots[slot]) != place + 1 {
            slot = (slot + 1) & mask;
        }
        // What was put further on because this slot was taken moves up, so that searches need no marks of removed ones.
        let mut next = slot;
        loop {
            next = (next + 1) & mask;
            let number = self.slots[next];
            if number == 0 {
                break;
            }
            let home = hashes[usize::from(number) - 1] as usize & mask;
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(slot) & mask) {
                self.slots[slot] = number;
                slot = next;
            }
        }
        self.slots[slot] = 0;
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::HeapBytes;
    use super::*;
    use proptest::prelude::*;

    impl HeapBytes for Places {
        fn heap_bytes(&self) -> usize {
            self.slots.capacity() * size_of::<u16>()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Hashes that collide in their lowest bits, as in a list whose keys are replaced.
        #[test]
        fn every_hash_is_found_where_it_is(changes in prop::collection::vec((0..24_usize, 0..40_u64), 0..200)) {
            let (mut places, mut hashes) = (Places::new(), Vec::new());
            for (place, number) in changes {
                let hash = (number % 5) | number << 32;
                if hashes.contains(&hash) {
                    continue;
                }
                if place < hashes.len() {
                    places.remove(place, &hashes);
                    hashes[place] = hash;
                    places.insert(place, &hashes);
                } else {
                    hashes.push(hash);
                    places.insert(hashes.len() - 1, &hashes);
                }
                for number in 0..40_u64 {
                    let hash = (number % 5) | number << 32;
                    let expected = hashes.iter().position(|known| *known == hash);
                    prop_assert_eq!(places.find(hash, &hashes), expected);
                }
            }
        }
    }

    #[test]
    fn an_empty_list_has_no_places() {
        assert_eq!(Places::new().find(7, &[]), None);
    }
}
