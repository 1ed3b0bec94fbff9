//! The response of Get Page Ranges.

use crate::marker;
use crate::xml;
use larimar_model::blob::PageRange;

/// Pages in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedPages {
    /// Pages with content.
    Written(PageRange),
    /// Pages that were cleared since an earlier snapshot.
    Cleared(PageRange),
}

/// Appends the body of the response: ranges of both kinds in ascending order (recorded). `next` is for requests that page
/// through the listing: `Some(None)` on the last page.
pub fn write_page_list(out: &mut Vec<u8>, pages: &[ListedPages], next: Option<Option<&str>>) {
    xml::write_start(out);
    xml::write_element(out, "PageList", |out| {
        for range in pages {
            match range {
                ListedPages::Written(range) => write_range(out, "PageRange", *range),
                ListedPages::Cleared(range) => write_range(out, "ClearRange", *range),
            }
        }
        if let Some(next) = next {
            xml::write_text(out, "NextMarker", &next.map(marker::encode).unwrap_or_default());
        }
    });
}

fn write_range(out: &mut Vec<u8>, name: &str, range: PageRange) {
    xml::write_element(out, name, |out| {
        xml::write_text(out, "Start", itoa::Buffer::new().format(range.start()));
        xml::write_text(out, "End", itoa::Buffer::new().format(range.end() - 1));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_name_their_last_byte() {
        let range = |start, end| PageRange::new(start, end).expect("pages");
        let mut out = Vec::new();
        let pages = [
            ListedPages::Written(range(0, 512)),
            ListedPages::Cleared(range(512, 1024)),
            ListedPages::Written(range(1024, 2048)),
        ];
        write_page_list(&mut out, &pages, Some(Some("2048")));
        assert_eq!(
            String::from_utf8(out).expect("UTF-8"),
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><PageList><PageRange><Start>0</Start><End>511</End></PageRange><ClearRange><Start>512</Start><End>1023</End></ClearRange><PageRange><Start>1024</Start><End>2047</End></PageRange><NextMarker>1!MjA0OA</NextMarker></PageList>"
        );
        let mut empty = Vec::new();
        write_page_list(&mut empty, &[], None);
        assert!(empty.ends_with(b"<PageList />"));
        let mut last = Vec::new();
        write_page_list(&mut last, &[], Some(None));
        assert!(last.ends_with(b"<PageList><NextMarker /></PageList>"));
    }
}
