//! Lists of blocks: the body of Put Block List, and the response of Get Block List.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::xml::{self, Element, XmlError};
use larimar_model::blob::{BlockId, BlockListEntry, BlockListKind};
use larimar_model::limits;

/// The maximum size of a block list: the maximum number of blocks with the longest ids, and some white space.
pub const BLOCK_LIST_BODY_BYTES_MAX: u64 = 160 * limits::BLOCKS_COMMITTED_MAX as u64;

/// A block in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedBlock<'a> {
    /// The block's id.
    pub id: &'a BlockId,
    /// Its size in bytes.
    pub size: u64,
}

/// Parses the body of Put Block List.
///
/// # Errors
/// Invalid XML, too many blocks, invalid block ids.
pub fn parse_block_list(body: &[u8]) -> Result<Vec<BlockListEntry>, ErrorReply> {
    let root = Element::parse_up_to(body, limits::BLOCKS_COMMITTED_MAX + 1).map_err(|error| match error {
        XmlError::TooComplex => ErrorReply::new(ErrorCode::BlockListTooLong),
        XmlError::Syntax | XmlError::Entity | XmlError::Element => invalid(),
    })?;
    if root.name != "BlockList" || !root.text.trim().is_empty() {
        return Err(invalid());
    }
    root.children.iter().map(entry).collect()
}

/// Appends the body of the response of Get Block List.
pub fn write_block_list<'a>(
    out: &mut Vec<u8>,
    kind: BlockListKind,
    committed: impl IntoIterator<Item = ListedBlock<'a>>,
    uncommitted: impl IntoIterator<Item = ListedBlock<'a>>,
) {
    xml::write_start(out);
    xml::write_element(out, "BlockList", |out| {
        if kind != BlockListKind::Uncommitted {
            xml::write_element(out, "CommittedBlocks", |out| committed.into_iter().for_each(|block| block.write(out)));
        }
        if kind != BlockListKind::Committed {
            xml::write_element(out, "UncommittedBlocks", |out| {
                uncommitted.into_iter().for_each(|block| block.write(out));
            });
        }
    });
}

impl ListedBlock<'_> {
    fn write(self, out: &mut Vec<u8>) {
        xml::write_element(out, "Block", |out| {
            xml::write_text(out, "Name", self.id.as_str());
            xml::write_text(out, "Size", itoa::Buffer::new().format(self.size));
        });
    }
}

fn entry(element: &Element) -> Result<BlockListEntry, ErrorReply> {
    if !element.children.is_empty() {
        return Err(invalid());
    }
    let text = element.text.trim();
    let id = BlockId::parse(text)
        .map_err(|_| ErrorReply::new(ErrorCode::InvalidBlockId).with_detail("XmlNodeValue", text))?;
    match element.name.as_str() {
        "Committed" => Ok(BlockListEntry::Committed(id)),
        "Uncommitted" => Ok(BlockListEntry::Uncommitted(id)),
        "Latest" => Ok(BlockListEntry::Latest(id)),
        _ => Err(invalid()),
    }
}

fn invalid() -> ErrorReply {
    ErrorReply::new(ErrorCode::InvalidXmlDocument)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> BlockId {
        BlockId::parse(text).expect("an id")
    }

    fn parse(body: &str) -> Result<Vec<BlockListEntry>, ErrorCode> {
        parse_block_list(body.as_bytes()).map_err(|error| error.code)
    }

    #[test]
    fn x2_lists_are_read_in_their_order() {
        let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>\n  <Latest>AAAAAA==</Latest>\n  <Committed>AQAAAA==</Committed>\n  <Uncommitted> AgAAAA== </Uncommitted>\n  <Latest>AAAAAA==</Latest></BlockList>";
        let expected = [
            BlockListEntry::Latest(id("AAAAAA==")),
            BlockListEntry::Committed(id("AQAAAA==")),
            BlockListEntry::Uncommitted(id("AgAAAA==")),
            BlockListEntry::Latest(id("AAAAAA==")),
        ];
        assert_eq!(parse(body).as_deref(), Ok(&expected[..]));
        assert_eq!(parse("<BlockList/>"), Ok(Vec::new()));
    }

    #[test]
    fn other_lists_are_refused() {
        for (body, expected) in [
            ("", ErrorCode::InvalidXmlDocument),
            ("<Blocks/>", ErrorCode::InvalidXmlDocument),
            ("<BlockList>text</BlockList>", ErrorCode::InvalidXmlDocument),
            ("<BlockList><Newest>AAAA</Newest></BlockList>", ErrorCode::InvalidXmlDocument),
            ("<BlockList><Latest><Latest>AAAA</Latest></Latest></BlockList>", ErrorCode::InvalidXmlDocument),
            ("<BlockList><Latest/></BlockList>", ErrorCode::InvalidBlockId),
            ("<BlockList><Latest>a</Latest></BlockList>", ErrorCode::InvalidBlockId),
        ] {
            assert_eq!(parse(body), Err(expected), "{body}");
        }
    }

    #[test]
    fn fifty_thousand_blocks_fit_and_one_more_does_not() {
        let longest = format!("<Uncommitted>{}==</Uncommitted>\r\n", "A".repeat(86));
        let list = |count: usize| format!("<BlockList>{}</BlockList>", longest.repeat(count));
        assert!(list(50_000).len() as u64 <= BLOCK_LIST_BODY_BYTES_MAX);
        assert_eq!(parse(&list(50_000)).map(|list| list.len()), Ok(50_000));
        assert_eq!(parse(&list(50_001)), Err(ErrorCode::BlockListTooLong));
    }

    #[test]
    fn answers_are_those_of_the_reference() {
        let (a, b) = (id("BAAAAA=="), id("AQAAAA=="));
        let text = |kind| {
            let mut out = Vec::new();
            write_block_list(
                &mut out,
                kind,
                [ListedBlock { id: &a, size: 4_194_304 }],
                [ListedBlock { id: &b, size: 1 }],
            );
            String::from_utf8(out).expect("UTF-8")
        };
        let start = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
        let committed = "<CommittedBlocks><Block><Name>BAAAAA==</Name><Size>4194304</Size></Block></CommittedBlocks>";
        let uncommitted = "<UncommittedBlocks><Block><Name>AQAAAA==</Name><Size>1</Size></Block></UncommittedBlocks>";
        for (kind, inside) in [
            (BlockListKind::Committed, committed.to_owned()),
            (BlockListKind::Uncommitted, uncommitted.to_owned()),
            (BlockListKind::All, format!("{committed}{uncommitted}")),
        ] {
            assert_eq!(text(kind), format!("{start}<BlockList>{inside}</BlockList>"));
        }
        let mut out = Vec::new();
        write_block_list(&mut out, BlockListKind::All, [], []);
        assert!(out.ends_with(b"<BlockList><CommittedBlocks /><UncommittedBlocks /></BlockList>"));
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(entries in proptest::collection::vec(("[A-Za-z0-9+/]{4}", 0..3u8), 0..20)) {
            let word = |kind| ["Committed", "Uncommitted", "Latest"][usize::from(kind)];
            let mut body = Vec::new();
            xml::write_element(&mut body, "BlockList", |out| {
                entries.iter().for_each(|(id, kind)| xml::write_text(out, word(*kind), id));
            });
            let read = parse_block_list(&body).expect("a list");
            prop_assert_eq!(read.len(), entries.len());
            for (entry, (text, kind)) in read.iter().zip(&entries) {
                prop_assert_eq!(entry.id().as_str(), text);
                let name = format!("{:?}", entry);
                prop_assert!(name.starts_with(word(*kind)));
            }
        }

        #[test]
        fn any_body_is_read_or_refused(body in "(<BlockList>|</BlockList>|<Latest>|</Latest>|AAAA|=|<|&amp;| ){0,10}") {
            let _ = parse(&body);
        }
    }
}
