//! Tags as XML: the body of Set Blob Tags and the response of Get Blob Tags.

use super::headers::insert_tag;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::xml::{self, Element, XmlError};
use larimar_model::blob::Tags;

/// The maximum size of a body with tags.
pub const TAGS_BODY_BYTES_MAX: u64 = 64 * 1024;

/// Parses the body of Set Blob Tags.
///
/// # Errors
/// Invalid XML, and invalid tags.
pub fn parse_tags(body: &[u8]) -> Result<Tags, ErrorReply> {
    let invalid = |_: XmlError| ErrorReply::new(ErrorCode::InvalidXmlDocument);
    let root = Element::parse(body).map_err(invalid)?;
    if root.name != "Tags" {
        return Err(invalid(XmlError::Element));
    }
    root.expect_only(&["TagSet"]).map_err(invalid)?;
    let mut tags = Tags::new();
    let Some(set) = root.child("TagSet").map_err(invalid)? else { return Ok(tags) };
    set.expect_only(&["Tag"]).map_err(invalid)?;
    for tag in &set.children {
        tag.expect_only(&["Key", "Value"]).map_err(invalid)?;
        let text = |name| match tag.child(name)? {
            Some(child) if child.children.is_empty() => Ok(child.text.as_str()),
            Some(_) => Err(XmlError::Element),
            None => Ok(""),
        };
        insert_tag(&mut tags, text("Key").map_err(invalid)?, text("Value").map_err(invalid)?)?;
    }
    Ok(tags)
}

/// Appends the body of the response of Get Blob Tags.
pub fn write_tags(out: &mut Vec<u8>, tags: &Tags) {
    xml::write_start(out);
    write_tags_element(out, tags);
}

pub(super) fn write_tags_element(out: &mut Vec<u8>, tags: &Tags) {
    xml::write_element(out, "Tags", |out| {
        xml::write_element(out, "TagSet", |out| {
            for (key, value) in tags.iter() {
                xml::write_element(out, "Tag", |out| {
                    xml::write_text(out, "Key", key);
                    xml::write_text(out, "Value", value);
                });
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(body: &str) -> Result<Tags, ErrorCode> {
        parse_tags(body.as_bytes()).map_err(|error| error.code)
    }

    fn of(tags: &str) -> String {
        format!("<Tags><TagSet>{tags}</TagSet></Tags>")
    }

    #[test]
    fn x2_tags_come_back_as_the_reference_writes_them() {
        let body = of("<Tag><Key>tag-name-1</Key><Value>tag value</Value></Tag><Tag><Key>a</Key><Value/></Tag>");
        let mut out = Vec::new();
        write_tags(&mut out, &parse(&body).expect("tags"));
        assert_eq!(
            String::from_utf8(out).expect("UTF-8"),
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><Tags><TagSet><Tag><Key>a</Key><Value /></Tag><Tag><Key>tag-name-1</Key><Value>tag value</Value></Tag></TagSet></Tags>"
        );
        assert_eq!(parse("<Tags/>"), Ok(Tags::new()));
        assert_eq!(parse(&of("")), Ok(Tags::new()));
    }

    #[test]
    fn other_tags_are_refused() {
        let tag = |key: &str, value: &str| format!("<Tag><Key>{key}</Key><Value>{value}</Value></Tag>");
        let eleven: String = (0..11).map(|n| tag(&format!("k{n}"), "")).collect();
        for (body, expected) in [
            (String::new(), ErrorCode::InvalidXmlDocument),
            ("<Tag/>".to_owned(), ErrorCode::InvalidXmlDocument),
            ("<Tags><Tag/></Tags>".to_owned(), ErrorCode::InvalidXmlDocument),
            (of("<Tag><Other/></Tag>"), ErrorCode::InvalidXmlDocument),
            (of("<Tag><Key><a/></Key></Tag>"), ErrorCode::InvalidXmlDocument),
            (of("<Tag/>"), ErrorCode::EmptyTagName),
            (of(&tag("a&amp;b", "")), ErrorCode::InvalidTag),
            (of(&tag("a", "é")), ErrorCode::InvalidTag),
            (of(&tag("a", "1").repeat(2)), ErrorCode::DuplicateTagNames),
            (of(&eleven), ErrorCode::TagsTooLarge),
        ] {
            assert_eq!(parse(&body), Err(expected), "{body}");
        }
    }

    proptest! {
        #[test]
        fn tags_are_read_as_they_were_written(
            pairs in proptest::collection::btree_map("[A-Za-z0-9 +./:=_-]{1,20}", "[A-Za-z0-9 +./:=_-]{0,20}", 0..=10),
        ) {
            let mut tags = Tags::new();
            for (key, value) in &pairs {
                tags.insert(key, value).expect("a tag");
            }
            let mut out = Vec::new();
            write_tags(&mut out, &tags);
            prop_assert_eq!(parse_tags(&out), Ok(tags));
        }

        #[test]
        fn any_body_is_read_or_refused(body in "(<Tags>|<TagSet>|<Tag>|</Tag>|<Key>|</Key>|a|</TagSet>|</Tags>){0,10}") {
            let _ = parse(&body);
        }
    }
}
