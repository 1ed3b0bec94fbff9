//! The answer of Get Page Ranges.

use crate::marker;
use crate::xml;
use larimar_model::blob::PageRange;

/// Appends the answer: the pages with content and, compared with an earlier snapshot, those that were cleared.
/// `next` tells where the next page of the listing begins, for requests that ask for pages of it.
pub fn write_page_list(
    out: &mut Vec<u8>,
    pages: impl IntoIterator<Item = PageRange>,
    cleared: impl IntoIterator<Item = PageRange>,
    next: Option<&str>,
) {
    xml::write_start(out);
    xml::write_element(out, "PageList", |out| {
        pages.into_iter().for_each(|range| write_range(out, "PageRange", range));
        cleared.into_iter().for_each(|range| write_range(out, "ClearRange", range));
        if let Some(next) = next {
            xml::write_text(out, "NextMarker", &marker::encode(next));
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
        write_page_list(&mut out, [range(0, 512), range(1024, 2048)], [range(512, 1024)], Some("2048"));
        assert_eq!(
            String::from_utf8(out).expect("UTF-8"),
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><PageList><PageRange><Start>0</Start><End>511</End></PageRange><PageRange><Start>1024</Start><End>2047</End></PageRange><ClearRange><Start>512</Start><End>1023</End></ClearRange><NextMarker>1!MjA0OA</NextMarker></PageList>"
        );
        let mut empty = Vec::new();
        write_page_list(&mut empty, [], [], None);
        assert!(empty.ends_with(b"<PageList />"));
    }
}
