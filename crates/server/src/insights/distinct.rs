//! An estimate of how many different keys were seen, in a few bytes: HyperLogLog.

use super::codec::Reader;

/// Counts different keys with `N` registers, a power of two: the standard error is `1.04 / sqrt(N)`, 13 % for 64 and 6.5 %
/// for 256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Distinct<const N: usize>([u8; N]);

impl<const N: usize> Default for Distinct<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Distinct<N> {
    /// Sees a key with this hash.
    pub(crate) fn see(&mut self, hash: u64) {
        let register = &mut self.0[hash as usize % N];
        *register = (*register).max(hash.leading_zeros() as u8 + 1);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (register, seen) in self.0.iter_mut().zip(&other.0) {
            *register = (*register).max(*seen);
        }
    }

    /// How many different keys were seen, about.
    pub(crate) fn estimate(&self) -> u64 {
        let registers = N as f64;
        let sum: f64 = self.0.iter().map(|zeros| f64::from(*zeros)).map(|zeros| (-zeros).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let empty = self.0.iter().filter(|register| **register == 0).count();
        // Few keys leave registers empty, which says more than the registers that are not.
        let estimate = match empty {
            1.. if raw <= 2.5 * registers => registers * (registers / empty as f64).ln(),
            _ => raw,
        };
        estimate.round() as u64
    }

    /// Registers as runs of equal ones, so that few keys take few bytes; or four bits for each, above the least of them.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode_runs(out);
        let (least, most) = self.0.iter().fold((u8::MAX, 0), |(least, most), it| (least.min(*it), most.max(*it)));
        if out.len() - start > 2 + N / 2 && most - least < 16 {
            out.truncate(start);
            out.extend([PACKED, least]);
            out.extend(self.0.chunks_exact(2).map(|pair| (pair[0] - least) << 4 | (pair[1] - least)));
        }
    }

    fn encode_runs(&self, out: &mut Vec<u8>) {
        let mut rest = &self.0[..];
        while let Some((&register, _)) = rest.split_first() {
            let run = rest.iter().take(usize::from(u8::MAX)).take_while(|other| **other == register).count();
            out.extend([register, run as u8]);
            rest = &rest[run..];
        }
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let (mut all, mut place) = (Self::default(), 0);
        while place < N {
            let &[register, run] = input.bytes(2)? else { return None };
            if register == PACKED && place == 0 {
                return Self::decode_packed(run, input.bytes(N / 2)?);
            }
            let end = place + usize::from(run);
            if run == 0 || end > N || register > 64 {
                return None;
            }
            all.0[place..end].fill(register);
            place = end;
        }
        Some(all)
    }

    fn decode_packed(least: u8, pairs: &[u8]) -> Option<Self> {
        let mut all = Self::default();
        for (registers, pair) in all.0.chunks_exact_mut(2).zip(pairs) {
            registers.copy_from_slice(&[(pair >> 4).saturating_add(least), (pair & 15).saturating_add(least)]);
        }
        all.0.iter().all(|register| *register <= 64).then_some(all)
    }
}

/// Stands for the first register of a run, which is 64 at most.
const PACKED: u8 = u8::MAX;

#[cfg(test)]
mod tests {
    use super::super::hash_key::HashKey;
    use super::*;

    fn seen<const N: usize>(keys: std::ops::Range<u64>) -> Distinct<N> {
        let mut distinct = Distinct::default();
        for key in keys {
            let key = HashKey([7; HashKey::BYTES]).hash(&format!("key-{key:08}"));
            distinct.see(key);
            distinct.see(key);
        }
        distinct
    }

    #[test]
    fn estimates_are_near_the_exact_count() {
        for count in [0, 1, 2, 10, 50, 200, 1000, 20_000] {
            let (small, large) = (seen::<64>(0..count).estimate(), seen::<256>(0..count).estimate());
            assert!(small.abs_diff(count) <= count * 35 / 100 + 1, "{small} for {count}");
            assert!(large.abs_diff(count) <= count * 18 / 100 + 1, "{large} for {count}");
        }
    }

    #[test]
    fn merged_and_stored_counts_are_those_of_all_keys() {
        let mut one = seen::<64>(0..3000);
        let mut bytes = Vec::new();
        seen::<64>(2000..5000).encode(&mut bytes);
        one.merge(&Distinct::decode(&mut Reader::new(&bytes)).expect("as encoded"));
        assert_eq!(one, seen(0..5000));
        for (keys, bytes_max) in [(0, 2), (3, 16), (5000, 34)] {
            let (mut bytes, distinct) = (Vec::new(), seen::<64>(0..keys));
            distinct.encode(&mut bytes);
            assert!(bytes.len() <= bytes_max, "{keys} keys take {} bytes", bytes.len());
            assert_eq!(Distinct::decode(&mut Reader::new(&bytes)), Some(distinct));
        }
    }
}
