//! The file that marks a place: it says whether the place is encrypted, and with which key.

use crate::chunk::ChunkId;

/// What the mark of a place says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Plain,
    /// With the check value of the key.
    Encrypted(ChunkId),
}

impl Mark {
    /// Reads the text of a mark.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        if text == PLAIN {
            return Some(Self::Plain);
        }
        let check = text.strip_prefix(ENCRYPTED)?.strip_suffix('\n')?;
        Some(Self::Encrypted(check.parse().ok()?))
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Plain => PLAIN.to_owned(),
            Self::Encrypted(check) => format!("{ENCRYPTED}{check}\n"),
        }
    }
}

/// The name of the file.
pub(super) const MARK: &str = "larimar-backup";
const PLAIN: &str = "backups of Larimar, format 1; see docs/backup.md\n";
const ENCRYPTED: &str = "encrypted backups of Larimar, format 1; see docs/backup.md\nkey check ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_anything_else_is_refused() {
        for mark in [Mark::Plain, Mark::Encrypted(ChunkId([7; 32]))] {
            let text = mark.text();
            assert_eq!(Mark::parse(text.as_bytes()), Some(mark));
            for length in 0..text.len() {
                assert_eq!(Mark::parse(&text.as_bytes()[..length]), None, "cut to {length}");
            }
        }
    }
}
