//! Keys as the database stores them: UTF-16, big-endian, so that the order of bytes is the order of code units.
//!
//! ```text
//! pk = number of the space, eight bytes big-endian, then the partition
//! rk = the row
//! ```
//!
//! Two keys of 512 characters take 2,056 bytes together; an index entry of PostgreSQL may take 2,704.

use larimar_engine::{Fault, SpaceId};

/// The `pk` of a partition.
pub(crate) fn partition(space: SpaceId, partition: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(SPACE_BYTES + 2 * partition.len());
    key.extend_from_slice(&space.0.to_be_bytes());
    put_text(&mut key, partition);
    key
}

/// The `rk` of a row.
pub(crate) fn row(row: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(2 * row.len());
    put_text(&mut key, row);
    key
}

/// The number of a space as the database stores it; `None` for one that no database can have given.
pub(crate) fn number(space: SpaceId) -> Option<i64> {
    i64::try_from(space.0).ok()
}

/// The first `pk` after those of a space.
pub(crate) fn space_end(space: SpaceId) -> Vec<u8> {
    (space.0 + 1).to_be_bytes().to_vec()
}

/// Reads the partition of a `pk`.
pub(crate) fn read_partition(pk: &[u8], into: &mut String) -> Result<(), Fault> {
    let text = pk.get(SPACE_BYTES..).ok_or_else(|| Fault::Damaged("a key does not begin with a space".to_owned()))?;
    read_row(text, into)
}

/// Reads a `rk`.
pub(crate) fn read_row(rk: &[u8], into: &mut String) -> Result<(), Fault> {
    into.clear();
    let (units, rest) = rk.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_be_bytes(*unit));
    for char in char::decode_utf16(units) {
        let Ok(char) = char else { return Err(Fault::Damaged("a key is not UTF-16".to_owned())) };
        into.push(char);
    }
    if rest.is_empty() { Ok(()) } else { Err(Fault::Damaged("a key ends within a character".to_owned())) }
}

fn put_text(key: &mut Vec<u8>, text: &str) {
    for unit in text.encode_utf16() {
        key.extend_from_slice(&unit.to_be_bytes());
    }
}

const SPACE_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::utf16;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_come_back_and_sort_as_code_units_do(a in any::<String>(), b in any::<String>()) {
            let mut read = String::new();
            read_row(&row(&a), &mut read).expect("a key");
            prop_assert_eq!(&read, &a);
            read_partition(&partition(SpaceId(7), &b), &mut read).expect("a key");
            prop_assert_eq!(&read, &b);
            prop_assert_eq!(row(&a).cmp(&row(&b)), utf16::compare(&a, &b));
            prop_assert!(partition(SpaceId(7), &a) < space_end(SpaceId(7)));
            prop_assert!(partition(SpaceId(8), &a) >= space_end(SpaceId(7)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut read = String::new();
            if read_row(&bytes, &mut read).is_ok() {
                prop_assert_eq!(row(&read), bytes.clone());
            }
            let _ = read_partition(&bytes, &mut read);
        }
    }
}
