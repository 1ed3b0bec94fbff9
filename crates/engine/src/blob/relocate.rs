//! Rows of a container in another store: the same rows, pointing to other payloads.

use super::bytes::Extent;
use super::codec::damaged;
use super::keys::RowName;
use super::layout::{Layout, relocate_chunk};
use super::lease::Lease;
use super::page_region::relocate_pages;
use super::reclaim::unreachable::payloads_of;
use super::released::Released;
use super::row::BlobRow;
use crate::contract::RowRef;
use crate::error::Fault;

/// The payloads that a row of a container points to, in order; one may occur several times.
///
/// # Errors
/// A row that cannot be read.
pub fn payloads_in(row: RowRef<'_>) -> Result<Vec<Extent>, Fault> {
    if row.partition.is_empty() { Ok(Vec::new()) } else { payloads_of(row) }
}

/// The bytes of a row of a container with other addresses of its payloads, which have the same lengths. `None` for a row
/// that only lists released payloads: it has no meaning in another store.
///
/// # Errors
/// A row that cannot be read.
pub fn relocated(row: RowRef<'_>, mut to: impl FnMut(&Extent) -> Extent) -> Result<Option<Vec<u8>>, Fault> {
    // The index of tags points to blobs by their names.
    if row.partition.is_empty() {
        return Ok(Some(row.body.to_vec()));
    }
    let body = match RowName::parse(row.row) {
        Some(RowName::Blob | RowName::Snapshot(_)) => {
            let mut blob = BlobRow::decode(row.body)?;
            if blob.is_vacant() {
                return Ok(None);
            }
            blob.released = Released::default();
            if let Layout::Blocks(blocks) = &mut blob.layout {
                blocks.tail.iter_mut().for_each(|block| block.piece.extent = to(&block.piece.extent));
            }
            Some(blob.encode())
        }
        Some(RowName::Chunk { .. }) => relocate_chunk(row.body, to),
        Some(RowName::Pages { delta, .. }) => relocate_pages(delta.is_none(), row.body, to),
        Some(RowName::Uncommitted { .. }) => {
            let extent = super::layout::decode_uncommitted(row.body);
            extent.map(|extent| super::layout::encode_uncommitted(&to(&extent)))
        }
        None => None,
    };
    body.map(Some).ok_or_else(|| damaged("a row of a blob"))
}

/// The bytes of a row of a container without its blob's lease, which is of no use to clients of a copy.
///
/// # Errors
/// A row that cannot be read.
pub fn without_lease(row: RowRef<'_>) -> Result<Option<Vec<u8>>, Fault> {
    if row.partition.is_empty() || RowName::parse(row.row) != Some(RowName::Blob) {
        return Ok(None);
    }
    let blob = BlobRow::decode(row.body)?;
    let is_leased = blob.lease != Lease::None;
    Ok(is_leased.then(|| BlobRow { lease: Lease::None, ..blob }.encode()))
}

/// Whether a row is a blob or a snapshot.
#[must_use]
pub fn is_blob(row: &RowRef<'_>) -> bool {
    let is_version = matches!(RowName::parse(row.row), Some(RowName::Blob | RowName::Snapshot(_)));
    is_version && !row.partition.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::keys;
    use larimar_model::Timestamp;

    #[test]
    fn rows_of_unknown_names_and_forms_are_refused() {
        let row = |row, body| RowRef { partition: "b", row, version: Timestamp::EDM_MIN, body };
        for (name, body) in
            [("x", &b""[..]), ("", b"\x07"), (&keys::chunk(1, 1), b"\x01"), (&keys::uncommitted(1, "A"), b"")]
        {
            assert!(relocated(row(name, body), |extent| *extent).is_err(), "{name}");
        }
    }

    #[test]
    fn entries_of_the_index_of_tags_stay_as_they_are() {
        let row = RowRef { partition: "", row: "t", version: Timestamp::EDM_MIN, body: b"any" };
        assert_eq!(payloads_in(row), Ok(Vec::new()));
        assert_eq!(relocated(row, |extent| *extent), Ok(Some(b"any".to_vec())));
        assert!(!is_blob(&RowRef { row: "", ..row }));
    }
}
