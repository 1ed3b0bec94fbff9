//! Markers of List Blobs: a blob's name and, if a page ends between its snapshots, one of them.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::marker;
use larimar_model::blob::SnapshotTime;

/// The position at which a listing of blobs continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListMarker {
    /// The first name of the page.
    pub name: String,
    /// The first snapshot to list of the blob with this name; `None` lists all.
    pub snapshot: Option<SnapshotTime>,
}

impl ListMarker {
    /// The text for clients.
    #[must_use]
    pub fn encode(&self) -> String {
        let snapshot = self.snapshot.map(|snapshot| snapshot.to_string()).unwrap_or_default();
        marker::encode(&format!("{snapshot}\n{}", self.name))
    }

    /// Parses a marker.
    ///
    /// # Errors
    /// A text that is not a marker of this server: 400.
    pub fn decode(text: &str) -> Result<Self, ErrorReply> {
        let invalid = || ErrorReply::new(ErrorCode::OutOfRangeInput);
        let decoded = marker::decode(text)?;
        let (snapshot, name) = decoded.split_once('\n').ok_or_else(invalid)?;
        let snapshot = match snapshot {
            "" => None,
            time => Some(time.parse().map_err(|_| invalid())?),
        };
        Ok(Self { name: name.to_owned(), snapshot })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn other_texts_are_no_markers() {
        for text in ["", "x", &marker::encode("abc"), &marker::encode("yesterday\nabc")] {
            assert_eq!(ListMarker::decode(text).map_err(|error| error.code), Err(ErrorCode::OutOfRangeInput), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_marker_is_read_as_it_was_written(
            name: String, ticks in proptest::option::of(504_911_232_000_000_000..=3_155_378_975_999_999_999u64),
        ) {
            let snapshot = ticks.map(|ticks| SnapshotTime(Timestamp::from_ticks(ticks)));
            let marker = ListMarker { name, snapshot };
            prop_assert_eq!(ListMarker::decode(&marker.encode()), Ok(marker));
        }
    }
}
