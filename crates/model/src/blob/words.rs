//! The closed sets of words that the Blob service knows.

use crate::Timestamp;
use std::fmt;
use std::str::FromStr;

/// A word that is not one of the expected ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected another word than '{0}'")]
pub struct UnknownWord(pub String);

/// What a blob is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlobType {
    /// Blocks that were committed as a list.
    Block,
    /// Blocks that were appended one after the other.
    Append,
    /// Pages that are written in place.
    Page,
}

impl BlobType {
    /// The protocol's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "BlockBlob",
            Self::Append => "AppendBlob",
            Self::Page => "PageBlob",
        }
    }
}

impl FromStr for BlobType {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::Block, Self::Append, Self::Page]
            .into_iter()
            .find(|kind| kind.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

/// What anonymous callers may do in a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublicAccess {
    /// Nothing.
    #[default]
    None,
    /// Read blobs.
    Blob,
    /// Read and list blobs, and read the container's properties.
    Container,
}

impl PublicAccess {
    /// The protocol's word; without access there is none.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Blob => Some("blob"),
            Self::Container => Some("container"),
        }
    }
}

impl FromStr for PublicAccess {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::Blob, Self::Container]
            .into_iter()
            .find(|access| access.as_str().is_some_and(|word| word.eq_ignore_ascii_case(text)))
            .ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

/// What Delete Blob does with the blob's snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteSnapshots {
    /// Deletes them with the blob.
    Include,
    /// Deletes them and keeps the blob.
    Only,
}

impl FromStr for DeleteSnapshots {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text.to_ascii_lowercase().as_str() {
            "include" => Ok(Self::Include),
            "only" => Ok(Self::Only),
            _ => Err(UnknownWord(text.to_owned())),
        }
    }
}

/// What happens to a page blob's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceNumberAction {
    /// It becomes this number if that is greater.
    Max(u64),
    /// It becomes this number.
    Update(u64),
    /// It grows by one.
    Increment,
}

/// The time that names a snapshot. Displays with seven digits of fraction, as the protocol has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotTime(pub Timestamp);

impl FromStr for SnapshotTime {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Timestamp::parse(text).map(Self).map_err(|_| UnknownWord(text.to_owned()))
    }
}

impl fmt::Display for SnapshotTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_seven_digits())
    }
}

/// A blob's access tier. Only the archive has a meaning: its blobs are not read before they are rehydrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTier(&'static str);

impl AccessTier {
    /// What block blobs have that were given no tier; then the tier is said to be inferred.
    pub const HOT: Self = Self("Hot");

    /// The tier of blobs that are not read before they are rehydrated.
    pub const ARCHIVE: Self = Self("Archive");

    /// The protocol's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether a blob of this type may have it.
    #[must_use]
    pub fn is_of(self, kind: BlobType) -> bool {
        match kind {
            BlobType::Block => BLOCK_TIERS.contains(&self.0),
            BlobType::Page => PAGE_TIERS.contains(&self.0),
            BlobType::Append => false,
        }
    }
}

impl FromStr for AccessTier {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let tier = BLOCK_TIERS.into_iter().chain(PAGE_TIERS).find(|tier| tier.eq_ignore_ascii_case(text));
        tier.map(Self).ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

/// The priority of rehydrating a blob from the archive tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RehydratePriority {
    /// It may take its time.
    #[default]
    Standard,
    /// Soon.
    High,
}

impl RehydratePriority {
    /// The protocol's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "Standard",
            Self::High => "High",
        }
    }
}

impl FromStr for RehydratePriority {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::Standard, Self::High]
            .into_iter()
            .find(|priority| priority.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

/// What List Blobs returns besides names and properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListInclude {
    /// Snapshots, each before its blob.
    pub snapshots: bool,
    /// Metadata.
    pub metadata: bool,
    /// Blobs that have only uncommitted blocks.
    pub uncommitted: bool,
    /// The last copy.
    pub copy: bool,
    /// Tags.
    pub tags: bool,
}

const BLOCK_TIERS: [&str; 4] = ["Hot", "Cool", "Cold", "Archive"];
const PAGE_TIERS: [&str; 11] = ["P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for kind in [BlobType::Block, BlobType::Append, BlobType::Page] {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        for access in [PublicAccess::Blob, PublicAccess::Container] {
            assert_eq!(access.as_str().map(str::parse), Some(Ok(access)));
        }
        assert_eq!("include".parse(), Ok(DeleteSnapshots::Include));
        assert_eq!("only".parse(), Ok(DeleteSnapshots::Only));
        assert_eq!("other".parse::<BlobType>(), Err(UnknownWord("other".to_owned())));
        assert_eq!("true".parse::<PublicAccess>(), Err(UnknownWord("true".to_owned())));
        assert_eq!("none".parse::<DeleteSnapshots>(), Err(UnknownWord("none".to_owned())));
    }

    #[test]
    fn tiers_belong_to_types() {
        let tier = |text: &str| text.parse::<AccessTier>().expect("a tier");
        assert_eq!(tier("cool").as_str(), "Cool");
        assert!(tier("Archive").is_of(BlobType::Block) && !tier("Archive").is_of(BlobType::Page));
        assert!(tier("P10").is_of(BlobType::Page) && !tier("P10").is_of(BlobType::Append));
        assert!("P11".parse::<AccessTier>().is_err());
    }

    #[test]
    fn a_snapshots_time_has_seven_digits() {
        let time: SnapshotTime = "2011-03-09T01:42:34.936Z".parse().expect("a time");
        assert_eq!(time.to_string(), "2011-03-09T01:42:34.9360000Z");
        assert!("yesterday".parse::<SnapshotTime>().is_err());
    }
}
