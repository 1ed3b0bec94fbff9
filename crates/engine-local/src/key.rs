//! How keys are written, so that the order of their bytes is the order of what they name.
//!
//! ```text
//! row key = space partition 00 row
//! space   = 40+n, then the n bytes of the number, big-endian, without leading zeros
//! ```
//!
//! Text is written so that bytes order as UTF-16 code units do, which is the order the service promises:
//! UTF-8, but characters beyond the basic plane as two surrogates of three bytes each (CESU-8). Within a
//! partition, 00 is written 01 01 and 01 is written 01 02, so that 00 can end it. The row comes last and
//! needs no end. First bytes below 40 are left to the engine's own records.

use std::cell::RefCell;

use larimar_engine::{Fault, SpaceId};

/// Appends the number of a space.
pub(crate) fn put_space(out: &mut Vec<u8>, space: SpaceId) {
    let bytes = space.0.to_be_bytes();
    let used = bytes.len() - space.0.leading_zeros() as usize / 8;
    out.push(SPACES + used as u8);
    out.extend_from_slice(&bytes[bytes.len() - used..]);
}

/// Reads the number of a space off the front of a key; `None` for the engine's own records.
pub(crate) fn split_space(key: &[u8]) -> Option<(SpaceId, &[u8])> {
    let (first, rest) = key.split_first()?;
    let used = usize::from(first.checked_sub(SPACES)?);
    let (number, rest) = rest.split_at_checked(used).filter(|_| used <= 8)?;
    let number = number.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Some((SpaceId(number), rest))
}

/// The first key after those of a space.
pub(crate) fn space_end(space: SpaceId) -> Vec<u8> {
    let mut end = Vec::with_capacity(9);
    match space.0.checked_add(1) {
        Some(next) => put_space(&mut end, SpaceId(next)),
        None => end.push(SPACES + 9),
    }
    end
}

/// Appends a space and a partition: what all keys of the partition begin with.
pub(crate) fn put_partition(out: &mut Vec<u8>, space: SpaceId, partition: &str) {
    put_space(out, space);
    if partition.bytes().all(|byte| byte > 1 && byte < FOUR_BYTES) {
        out.extend_from_slice(partition.as_bytes());
    } else {
        for char in partition.chars() {
            match char {
                '\0' => out.extend_from_slice(&[1, 1]),
                '\x01' => out.extend_from_slice(&[1, 2]),
                char => put_char(out, char),
            }
        }
    }
    out.push(0);
}

/// Appends a row.
pub(crate) fn put_row(out: &mut Vec<u8>, row: &str) {
    if row.bytes().all(|byte| byte < FOUR_BYTES) {
        out.extend_from_slice(row.as_bytes());
    } else {
        row.chars().for_each(|char| put_char(out, char));
    }
}

/// Reads keys back; keeps buffers between them, and the partition while it stays the same.
#[derive(Default)]
pub(crate) struct Decoder {
    encoded: Vec<u8>,
    partition: String,
    row: String,
}

impl Decoder {
    /// The partition and row of a key without its space.
    pub(crate) fn decode<'a>(&'a mut self, key: &'a [u8]) -> Result<(&'a str, &'a str), Fault> {
        let known = self.encoded.len();
        let same = known > 0 && key.len() >= known && key[..known] == self.encoded;
        if !same {
            self.decode_partition(key)?;
        }
        let row = &key[self.encoded.len()..];
        let row = match std::str::from_utf8(row) {
            Ok(row) => row,
            Err(_) => {
                decode_text(&mut self.row, row)?;
                &self.row
            }
        };
        Ok((&self.partition, row))
    }

    fn decode_partition(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.encoded.clear();
        let end = key.iter().position(|byte| *byte == 0).ok_or_else(damaged)?;
        let text = &key[..end];
        if text.contains(&1) {
            let mut plain = Vec::with_capacity(text.len());
            let mut bytes = text.iter();
            while let Some(byte) = bytes.next() {
                plain.push(match byte {
                    1 => bytes.next().and_then(|byte| byte.checked_sub(1)).ok_or_else(damaged)?,
                    byte => *byte,
                });
            }
            decode_text(&mut self.partition, &plain)?;
        } else {
            decode_text(&mut self.partition, text)?;
        }
        self.encoded.extend_from_slice(&key[..=end]);
        Ok(())
    }
}

fn put_char(out: &mut Vec<u8>, char: char) {
    if char <= '\u{FFFF}' {
        let mut buffer = [0; 4];
        out.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes());
    } else {
        let mut units = [0; 2];
        for unit in char.encode_utf16(&mut units) {
            out.extend_from_slice(&[0xED, 0x80 | (*unit >> 6 & 0x3F) as u8, 0x80 | (*unit & 0x3F) as u8]);
        }
    }
}

fn decode_text(out: &mut String, mut bytes: &[u8]) -> Result<(), Fault> {
    out.clear();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.push_str(text);
                return Ok(());
            }
            Err(error) => {
                let (text, rest) = bytes.split_at(error.valid_up_to());
                out.push_str(std::str::from_utf8(text).map_err(|_| damaged())?);
                let (pair, rest) = rest.split_at_checked(6).ok_or_else(damaged)?;
                out.push(decode_pair(pair).ok_or_else(damaged)?);
                bytes = rest;
            }
        }
    }
}

/// The character of two surrogates of three bytes each.
fn decode_pair(pair: &[u8]) -> Option<char> {
    let unit = |bytes: &[u8]| match bytes {
        [0xED, high, low] => Some(0xD000 | u16::from(high & 0x3F) << 6 | u16::from(low & 0x3F)),
        _ => None,
    };
    let units = [unit(&pair[..3])?, unit(&pair[3..])?];
    char::decode_utf16(units).next()?.ok()
}

fn damaged() -> Fault {
    Fault::Damaged("a key cannot be read".to_owned())
}

thread_local! {
    /// Where keys are encoded, so that a read or write allocates none.
    pub(crate) static KEY_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keys of rows begin with this plus the length of the space's number.
const SPACES: u8 = 0x40;
/// The lowest first byte of a character of four bytes.
const FOUR_BYTES: u8 = 0xF0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(space: u64, partition: &str, row: &str) -> Vec<u8> {
        let mut key = Vec::new();
        put_partition(&mut key, SpaceId(space), partition);
        put_row(&mut key, row);
        key
    }

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    /// Text with many of the characters where orders differ.
    fn text() -> impl Strategy<Value = String> {
        let char = prop_oneof![
            Just('\0'),
            Just('\x01'),
            Just('\x02'),
            Just('a'),
            Just('\u{7F}'),
            Just('\u{80}'),
            Just('\u{D7FF}'),
            Just('\u{E000}'),
            Just('\u{FFFF}'),
            Just('\u{10000}'),
            Just('\u{10FFFF}'),
            any::<char>(),
        ];
        proptest::collection::vec(char, 0..6).prop_map(String::from_iter)
    }

    fn space() -> impl Strategy<Value = u64> {
        prop_oneof![0..4_u64, 250..260_u64, 65_530..65_540_u64, Just(u64::MAX), any::<u64>()]
    }

    proptest! {
        #[test]
        fn bytes_order_as_spaces_and_utf16_do(
            a in (space(), text(), text()),
            b in (space(), text(), text()),
            same_space: bool,
            same_partition: bool,
        ) {
            let space = if same_space { a.0 } else { b.0 };
            let partition = if same_partition { a.1.clone() } else { b.1 };
            let bytes = encode(a.0, &a.1, &a.2).cmp(&encode(space, &partition, &b.2));
            let meant = (a.0, units(&a.1), units(&a.2)).cmp(&(space, units(&partition), units(&b.2)));
            prop_assert_eq!(bytes, meant);
        }

        #[test]
        fn decoding_undoes_encoding(keys in proptest::collection::vec((space(), text(), text()), 1..4)) {
            let mut decoder = Decoder::default();
            for (space, partition, row) in keys {
                let key = encode(space, &partition, &row);
                let (found, rest) = split_space(&key).expect("a space");
                prop_assert_eq!(found, SpaceId(space));
                prop_assert_eq!(decoder.decode(rest).expect("a key"), (partition.as_str(), row.as_str()));
                prop_assert!(key < space_end(found));
            }
        }
    }

    #[test]
    fn short_numbers_and_plain_text_are_short() {
        assert_eq!(encode(7, "p", "r"), [0x41, 7, b'p', 0, b'r']);
        assert_eq!(encode(0, "", ""), [0x40, 0]);
    }

    #[test]
    fn damaged_keys_are_refused() {
        for key in [&b"no end"[..], b"\x01\0", b"\xED\xA0\x80\0", b"\xFF\0", b"p\0\xED\xA0\x80"] {
            assert!(Decoder::default().decode(key).is_err(), "{key:?}");
        }
        assert_eq!(split_space(b"\x03next"), None);
        assert_eq!(split_space(b"\x42\x01"), None);
    }
}
