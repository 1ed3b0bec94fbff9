//! The index of tags: which blobs of a container may have a tag of a key and a value.
//!
//! Its rows are in a partition of the container that no blob has, and are written in the commit of the blob's row:
//!
//! ```text
//! i                           how far the index was built
//! t hash:16 value \x01 name   the blob of this name has a tag of this value; the hash is that of the tag's key
//! ```
//! The order of rows is that of values, then of names: no value has a character below the space. Keys are hashed because
//! a key, a value and a name of full length do not fit into an entry of PostgreSQL's index together. A search compares the
//! tags in the blob's own row (`find.rs`), so a row that is not removed, as after a write by an older release, is not seen.

use super::codec::damaged;
use super::row::BlobRow;
use crate::contract::Beside;
use crate::error::Fault;
use larimar_model::blob::{BlobName, TagOperator, TagQuery, Tags};
use larimar_model::utf16;
use sha2::{Digest as _, Sha256};

/// The partition of the index: no blob has an empty name.
pub(crate) const PARTITION: &str = "";
/// The row that says how far the index was built.
pub(crate) const PROGRESS: &str = "i";
/// Where the entries begin, and where they end.
pub(crate) const ENTRIES: (&str, &str) = ("t", "u");

/// Rows of the index that a change of a blob stores and removes.
#[derive(Debug, Default)]
pub(crate) struct TagRows {
    puts: Vec<String>,
    deletes: Vec<String>,
}

impl TagRows {
    /// What changes when the blob's row is replaced; `None` for no row.
    pub(crate) fn between(name: &BlobName, old: Option<&BlobRow>, new: Option<&BlobRow>) -> Self {
        Self::of_tags(name, found_tags(old), found_tags(new))
    }

    /// What changes when these tags are replaced by others.
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

/// The tags by which a blob is found: those of a blob that is there.
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

/// How a query uses the index: the entries of one key that are looked at. All other comparisons, and these once more, are
/// made on the tags of the blobs that the entries name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagPlan {
    /// The key of the entries.
    pub(crate) key: String,
    /// The first entry that may be of use.
    pub(crate) start: String,
    /// The first one behind those.
    pub(crate) end: String,
}

impl TagPlan {
    /// The plan of a query: an equality, if there is one, names the fewest entries.
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

/// Bounds of the entries whose values may compare as wanted.
fn bounds(prefix: &str, operator: TagOperator, value: &str) -> (Option<String>, Option<String>) {
    // No stored value has a character like that, so it ends what a value can have in common with this one.
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
/// Follows all entries of one value.
const AFTER_END: char = '\u{2}';
/// Follows all values: they are ASCII.
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
