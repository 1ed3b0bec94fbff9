//! The tag index: which blobs of a container may have a tag with a key and a value.
//!
//! Its rows are in a partition of the container that no blob uses, and are written in the commit of the blob's row:
//!
//! ```text
//! i                           how far the index was built
//! t hash:16 value \x01 name   the blob of this name has a tag of this value; the hash is that of the tag's key
//! ```
//! Rows are ordered by value, then by name: no value has a character below the space. Keys are hashed because a key, a
//! value and a name of full length do not fit together into an entry of PostgreSQL's index. A search compares the tags in
//! the blob's own row (`find.rs`), so a stale entry, as an older release may leave, has no effect.

use super::codec::damaged;
use super::row::BlobRow;
use crate::contract::Beside;
use crate::error::Fault;
use larimar_model::blob::{BlobName, TagOperator, TagQuery, Tags};
use larimar_model::utf16;
use sha2::{Digest as _, Sha256};

/// The partition of the index: no blob has an empty name.
pub(crate) const PARTITION: &str = "";
/// The row that stores how far the index is built.
pub(crate) const PROGRESS: &str = "i";
/// Bounds of the entries.
pub(crate) const ENTRIES: (&str, &str) = ("t", "u");

/// Entries that a change of a blob adds and removes.
#[derive(Debug, Default)]
pub(crate) struct TagRows {
    puts: Vec<String>,
    deletes: Vec<String>,
}

impl TagRows {
    /// The entries that change when the blob's row is replaced; `None` for no row.
    pub(crate) fn between(name: &BlobName, old: Option<&BlobRow>, new: Option<&BlobRow>) -> Self {
        Self::of_tags(name, found_tags(old), found_tags(new))
    }

    /// The entries that change when tags are replaced.
    pub(crate) fn of_tags(name: &BlobName, old: Option<&Tags>, new: Option<&Tags>) -> Self {
        if old == new {
            return Self::default();
        }
        let (old, new) = (entries(name.as_str(), old), entries(name.as_str(), new));
        Self {
            puts: new.iter().filter(|entry| !old.contains(entry)).cloned().collect(),
            deletes: old.into_iter().filter(|entry| !new.contains(entry)).collect(),
        }
    }

    /// Only entries to remove.
    pub(crate) const fn without(deletes: Vec<String>) -> Self {
        Self { puts: Vec::new(), deletes }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.deletes.is_empty()
    }

    /// The rows for the engine.
    pub(crate) fn beside(&self) -> Vec<Beside<'_>> {
        let row = |row, body| Beside { partition: PARTITION, row, body };
        let puts = self.puts.iter().map(|entry| row(entry.as_str(), Some(&[][..])));
        puts.chain(self.deletes.iter().map(|entry| row(entry.as_str(), None))).collect()
    }
}

/// The tags that a blob is found by: those of a committed blob, if it has any.
pub(crate) fn found_tags(row: Option<&BlobRow>) -> Option<&Tags> {
    row.filter(|row| row.is_committed && !row.tags.is_empty()).map(|row| &row.tags)
}

/// The names of the index rows of a blob.
pub(crate) fn entries(name: &str, tags: Option<&Tags>) -> Vec<String> {
    let entry = |(key, value): (&str, &str)| format!("{}{value}{END}{name}", prefix(key));
    tags.into_iter().flat_map(Tags::iter).map(entry).collect()
}

/// The value and the blob's name of an entry.
pub(crate) fn parse_entry(row: &str) -> Result<(&str, &str), Fault> {
    let rest = row.get(1 + HASH_DIGITS..).filter(|_| row.starts_with(ENTRIES.0));
    rest.and_then(|rest| rest.split_once(END)).ok_or_else(|| damaged("an entry of the index of tags"))
}

/// How a query uses the index: the range of entries of one key that it reads. All comparisons are then made on the tags
/// of the blobs that the entries name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagPlan {
    /// The key of the entries.
    pub(crate) key: String,
    /// The first entry of the range.
    pub(crate) start: String,
    /// The first entry after the range.
    pub(crate) end: String,
}

impl TagPlan {
    /// The plan of a query. An equality is preferred, since it has the fewest entries.
    pub(crate) fn of(query: &TagQuery) -> Self {
        let equality = query.comparisons.iter().find(|comparison| comparison.operator == TagOperator::Equal);
        let key = equality.or_else(|| query.comparisons.first()).map_or("", |comparison| comparison.key.as_str());
        let prefix = prefix(key);
        let mut plan = Self { key: key.to_owned(), start: prefix.clone(), end: format!("{prefix}{AFTER_VALUES}") };
        for comparison in query.comparisons.iter().filter(|comparison| comparison.key == key) {
            let (start, end) = bounds(&prefix, comparison.operator, &comparison.value);
            if let Some(start) = start.filter(|start| utf16::compare(start, &plan.start).is_gt()) {
                plan.start = start;
            }
            if let Some(end) = end.filter(|end| utf16::compare(end, &plan.end).is_lt()) {
                plan.end = end;
            }
        }
        plan
    }
}

/// Bounds of the entries whose values may satisfy a comparison.
fn bounds(prefix: &str, operator: TagOperator, value: &str) -> (Option<String>, Option<String>) {
    // No stored value has a control character, so only the part before it can be a prefix of a stored value.
    let usable = &value[..value.find(|c| c < ' ').unwrap_or(value.len())];
    let (from, after) = (format!("{prefix}{usable}"), format!("{prefix}{usable}{AFTER_END}"));
    match operator {
        TagOperator::Equal => (Some(from), Some(after)),
        TagOperator::Greater if usable == value => (Some(after), None),
        TagOperator::Greater | TagOperator::GreaterOrEqual => (Some(from), None),
        TagOperator::Less if usable == value => (None, Some(from)),
        TagOperator::Less | TagOperator::LessOrEqual => (None, Some(after)),
        TagOperator::NotEqual => (None, None),
    }
}

fn prefix(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    let mut prefix = ENTRIES.0.to_owned();
    for byte in &digest[..HASH_DIGITS / 2] {
        prefix.push_str(&format!("{byte:02x}"));
    }
    prefix
}

const HASH_DIGITS: usize = 16;
/// Ends a value.
const END: char = '\u{1}';
/// Sorts after all entries of one value.
const AFTER_END: char = '\u{2}';
/// Sorts after all values, which are ASCII.
const AFTER_VALUES: char = '\u{80}';

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::blob::TagComparison;
    use proptest::prelude::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        let mut tags = Tags::new();
        pairs.iter().for_each(|(key, value)| tags.insert(key, value).expect("a tag"));
        tags
    }

    #[test]
    fn entries_are_read_back() {
        let rows = entries("a\u{1}b", Some(&tags(&[("k", "v"), ("empty", "")])));
        let read: Vec<_> = rows.iter().map(|row| parse_entry(row).expect("an entry")).collect();
        assert_eq!(read, [("", "a\u{1}b"), ("v", "a\u{1}b")]);
        for other in ["", "i", "t", "t0123456789abcdefvalue", "x0123456789abcdefv\u{1}n"] {
            assert!(parse_entry(other).is_err(), "{other}");
        }
    }

    #[test]
    fn an_entry_of_full_length_fits_into_an_index_of_postgresql() {
        let (key, value, name) = ("k".repeat(128), "v".repeat(256), "n".repeat(1024));
        let rows = entries(&name, Some(&tags(&[(&key, &value)])));
        // Eight bytes of the space, and two for each character; tuple and lengths take less than 32.
        assert!(8 + 2 * rows[0].len() + 32 <= 2704, "{}", rows[0].len());
    }

    #[test]
    fn a_change_writes_only_what_differs() {
        let name = "n".parse().expect("a name");
        let row = |pairs| BlobRow {
            is_committed: true,
            tags: tags(pairs),
            ..BlobRow::uncommitted(larimar_model::Timestamp::EDM_MIN)
        };
        let (old, new) = (row(&[("a", "1"), ("b", "1")]), row(&[("a", "1"), ("b", "2"), ("c", "3")]));
        let change = TagRows::between(&name, Some(&old), Some(&new));
        assert_eq!((change.puts.len(), change.deletes.len()), (2, 1));
        assert!(TagRows::between(&name, Some(&old), Some(&old)).is_empty());
        assert_eq!(TagRows::between(&name, Some(&old), None).deletes.len(), 2);
        let uncommitted = BlobRow { is_committed: false, ..new };
        assert!(TagRows::between(&name, None, Some(&uncommitted)).is_empty());
    }

    fn operator() -> impl Strategy<Value = TagOperator> {
        use TagOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        proptest::sample::select(vec![Equal, Greater, GreaterOrEqual, Less, LessOrEqual])
    }

    proptest! {
        #[test]
        fn a_plan_has_the_entries_of_all_blobs_that_are_wanted(
            stored in "[ ab/]{0,3}",
            comparisons in proptest::collection::vec(("[kq]", operator(), "[ ab/\u{0}\u{1}\u{2}é\u{10000}]{0,3}"), 1..4),
            name in "[ab\u{1}é]{1,3}",
        ) {
            let comparisons = comparisons.into_iter().map(|(key, operator, value)| TagComparison { key, operator, value });
            let query = TagQuery { container: None, comparisons: comparisons.collect() };
            let plan = TagPlan::of(&query);
            let tags = tags(&[("k", &stored), ("q", &stored)]);
            if query.admits(&tags) {
                let mut pair = Tags::new();
                pair.insert(&plan.key, &stored).expect("a tag");
                let entry = &entries(&name, Some(&pair))[0];
                prop_assert!(utf16::compare(&plan.start, entry).is_le() && utf16::compare(entry, &plan.end).is_lt());
            }
        }
    }
}
