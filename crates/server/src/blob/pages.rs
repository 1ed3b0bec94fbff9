//! Page blobs: write, clear and list pages. Set Blob Properties, which also changes their length and sequence number.

use super::BlobCall;
use super::source::{SourceErrors, target_error};
use super::upload::Received;
use crate::body::RequestBody;
use crate::error::Result;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{BlobRef, PageBlobChange, PagesWritten, Written};
use larimar_model::blob::{ByteRange, PageRange};
use larimar_model::limits;
use larimar_wire::blob::{GetPageRanges, ListedPages, PageWrite, PutPage, SetHeaders, write_page_list};
use larimar_wire::error_code::ErrorCode;
use std::ops::Range;

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn put_page(&self, at: BlobRef<'_>, put: &PutPage, body: &mut RequestBody) -> Result<Reply> {
        let access = &put.access;
        let (received, is_checked_by_md5) = match &put.write {
            PageWrite::Clear => {
                let cleared = self.blobs.clear_pages(at, put.range, put.sequence, access, self.now()).await;
                return Ok(written(201, cleared?));
            }
            PageWrite::Update(checks) => (self.receive(at, body, checks, false).await?, checks.md5.is_some()),
            PageWrite::UpdateFrom(source) => {
                (self.receive_from(at, source, SourceErrors::Status).await?, source.md5.is_some())
            }
        };
        let Received { extent, sums, hold: _hold } = received;
        let extent = extent.ok_or(ErrorCode::InvalidPageRange)?;
        let is_from_url = matches!(put.write, PageWrite::UpdateFrom(_));
        let put = self.blobs.put_pages(at, (put.range, extent), put.sequence, access, self.now()).await;
        let put = put.map_err(|error| target_error(error, is_from_url && access.conditions.if_match.is_some()))?;
        let checksums = self.reply_checksum(is_checked_by_md5);
        Ok(written(201, put).with_checksums(&sums, checksums).with("x-ms-request-server-encrypted", "true"))
    }

    pub(super) async fn get_page_ranges(&self, at: BlobRef<'_>, get: &GetPageRanges) -> Result<Reply> {
        let versions = (get.read.snapshot, get.previous);
        let access = &get.read.access;
        let range = get.range.map(whole_pages);
        let list = self.blobs.page_ranges(at, versions, range, access, self.now()).await?;
        let from = match get.from.as_deref().map(str::parse::<u64>) {
            None => 0,
            Some(Ok(from)) => from,
            Some(Err(_)) => return Err(ErrorCode::InvalidMarker.into()),
        };
        let (pages, next) = page_of(&list.written, &list.cleared, from, get.count_max);
        let mut xml = Vec::with_capacity(128 + 64 * pages.len());
        let next = next.map(|next| next.to_string());
        let is_paged = get.count_max.is_some() || get.from.is_some();
        write_page_list(&mut xml, &pages, is_paged.then_some(next.as_deref()));
        Ok(Reply::xml(200, xml)
            .with_written(Written { last_modified: list.properties.last_modified })
            .with("x-ms-blob-content-length", list.properties.length))
    }

    pub(super) async fn set_headers(&self, at: BlobRef<'_>, set: &SetHeaders) -> Result<Reply> {
        let access = &set.access;
        if set.length.is_none() && set.sequence_number.is_none() {
            let content = set.headers.clone().unwrap_or_default();
            let changed = self.blobs.set_content(at, &content, access, self.now()).await;
            return Ok(Reply::empty(200).with_written(changed?));
        }
        let change =
            PageBlobChange { content: set.headers.clone(), length: set.length, sequence_number: set.sequence_number };
        let changed = self.blobs.change_page_blob(at, &change, access, self.now()).await;
        Ok(written(200, changed?))
    }
}

fn written(status: u16, pages: PagesWritten) -> Reply {
    Reply::empty(status).with_written(pages.written).with("x-ms-blob-sequence-number", pages.sequence_number)
}

/// One page of the listing: at most `count_max` ranges of both kinds in ascending order, and the start of the next page.
fn page_of(
    written: &[Range<u64>],
    cleared: &[Range<u64>],
    from: u64,
    count_max: Option<usize>,
) -> (Vec<ListedPages>, Option<u64>) {
    let pages = |range: &Range<u64>| PageRange::new(range.start, range.end).ok();
    let written = written.iter().filter_map(|range| pages(range).map(ListedPages::Written));
    let cleared = cleared.iter().filter_map(|range| pages(range).map(ListedPages::Cleared));
    let mut all: Vec<_> = written.chain(cleared).filter(|pages| start(pages) >= from).collect();
    all.sort_by_key(start);
    let max = count_max.unwrap_or(usize::MAX);
    let next = all.get(max).map(start);
    all.truncate(max);
    (all, next)
}

const fn start(pages: &ListedPages) -> u64 {
    match pages {
        ListedPages::Written(range) | ListedPages::Cleared(range) => range.start(),
    }
}

/// A range of bytes extended to whole pages.
const fn whole_pages(range: ByteRange) -> ByteRange {
    let last = match range.last {
        Some(last) => Some(last | (limits::PAGE_BYTES - 1)),
        None => None,
    };
    ByteRange { start: range.start - range.start % limits::PAGE_BYTES, last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_ranges_of_both_kinds_come_in_order_and_in_pages() {
        let range = |n: u64| n * 512..(n + 1) * 512;
        let page = |n: u64| PageRange::new(n * 512, (n + 1) * 512).expect("a page");
        let (w, c) = (|n| ListedPages::Written(page(n)), |n| ListedPages::Cleared(page(n)));
        let (written, cleared) = ([range(0), range(4), range(6)], [range(2), range(8)]);
        let of = |from, max| page_of(&written, &cleared, from, max);
        assert_eq!(of(0, None), (vec![w(0), c(2), w(4), w(6), c(8)], None));
        assert_eq!(of(0, Some(2)), (vec![w(0), c(2)], Some(4 * 512)));
        assert_eq!(of(4 * 512, Some(2)), (vec![w(4), w(6)], Some(8 * 512)));
        assert_eq!(of(8 * 512, Some(2)), (vec![c(8)], None));
    }

    #[test]
    fn a_range_is_widened_to_whole_pages() {
        for (start, last, whole) in [(0, 0, (0, 511)), (511, 512, (0, 1023)), (512, 1023, (512, 1023))] {
            let range = whole_pages(ByteRange { start, last: Some(last) });
            assert_eq!((range.start, range.last), (whole.0, Some(whole.1)));
        }
        assert_eq!(whole_pages(ByteRange { start: 700, last: None }), ByteRange { start: 512, last: None });
        assert_eq!(whole_pages(ByteRange { start: 0, last: Some(u64::MAX) }).last, Some(u64::MAX));
    }
}
