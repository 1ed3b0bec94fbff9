//! The address of a payload, and its stored form in the rows that point to it.

use larimar_model::varint;

/// The address of a payload: the file or object, and where in it the bytes begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// The file's name: random, never used twice.
    pub file: [u8; 16],
    /// Where the payload begins in the file, as the store counts.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
}

impl Extent {
    /// Appends the extent's bytes: the file, then offset and length as varints.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.file);
        varint::put(out, self.offset);
        varint::put(out, self.length);
    }

    /// Takes an extent off the front of encoded bytes; `None` if they do not begin with one.
    #[must_use]
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        let (file, rest) = input.split_first_chunk()?;
        let mut rest = rest;
        let extent = Self { file: *file, offset: varint::take(&mut rest)?, length: varint::take(&mut rest)? };
        *input = rest;
        Some(extent)
    }

    /// The file's name in hexadecimal digits.
    #[must_use]
    pub fn file_name(&self) -> String {
        self.file.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::fmt::Debug for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}+{}", self.file_name(), self.offset, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_decoded_as_it_was_encoded_and_leaves_the_rest() {
        for number in [0, 1, 127, 128, 1 << 32, u64::MAX] {
            let extent = Extent { file: [7; 16], offset: number, length: u64::MAX - number };
            let mut bytes = Vec::new();
            extent.encode(&mut bytes);
            bytes.push(9);
            let mut input = &bytes[..];
            assert_eq!(Extent::decode(&mut input), Some(extent));
            assert_eq!(input, [9]);
        }
    }

    #[test]
    fn what_is_cut_or_too_long_is_no_extent() {
        let mut bytes = Vec::new();
        Extent { file: [1; 16], offset: 300, length: 70_000 }.encode(&mut bytes);
        for length in 0..bytes.len() {
            assert_eq!(Extent::decode(&mut &bytes[..length]), None, "{length} bytes");
        }
        let endless = [0xFF; 40];
        assert_eq!(Extent::decode(&mut &endless[..]), None);
    }
}
