//! Find Blobs by Tags: parameters, markers and the response.

use super::list_xml::write_name;
use super::operation::FindBlobs;
use super::request::{count_max, unknown_component};
use super::tags_xml::write_tags_element;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::request_head::{RequestHead, parameter_error};
use crate::{marker, xml};
use larimar_model::blob::{TagQuery, Tags};

/// The position at which a search continues: a container and a position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindMarker {
    /// The container's name.
    pub container: String,
    /// The position; its format is the engine's.
    pub entry: String,
}

/// A blob that was found.
#[derive(Clone, Copy, Debug)]
pub struct FoundBlob<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its container's name.
    pub container: &'a str,
    /// Those of its tags that occur in the expression.
    pub tags: &'a Tags,
}

impl FindMarker {
    /// The text for clients.
    #[must_use]
    pub fn encode(&self) -> String {
        marker::encode(&format!("{}\n{}", self.container, self.entry))
    }

    /// Parses a marker.
    ///
    /// # Errors
    /// A text that is not a marker of this server: 400.
    pub fn decode(text: &str) -> Result<Self, ErrorReply> {
        let decoded = marker::decode(text)?;
        let parts = decoded.split_once('\n').ok_or_else(|| ErrorReply::new(ErrorCode::OutOfRangeInput))?;
        Ok(Self { container: parts.0.to_owned(), entry: parts.1.to_owned() })
    }
}

/// Parses the parameters of Find Blobs by Tags, the same for the account and for a container.
pub(super) fn find_blobs(head: &RequestHead<'_>) -> Result<FindBlobs, ErrorReply> {
    if !head.is_since(FIRST_VERSION) {
        return Err(unknown_component(head.parameter("comp").as_deref()));
    }
    let expression = head.required_parameter("where")?;
    let query = TagQuery::parse(&expression).map_err(|error| parameter_error("where", &expression, error))?;
    Ok(FindBlobs {
        expression: expression.into_owned(),
        query,
        from: head.parameter("marker").as_deref().map(FindMarker::decode).transpose()?,
        count_max: count_max(head)?,
    })
}

/// Appends the body of the response; `next` is the start of the next page.
pub fn write_found_blobs<'a>(
    out: &mut Vec<u8>,
    endpoint: &str,
    expression: &str,
    blobs: impl IntoIterator<Item = FoundBlob<'a>>,
    next: Option<&FindMarker>,
) {
    xml::write_start(out);
    xml::write_element_with(out, "EnumerationResults", &[("ServiceEndpoint", endpoint)], |out| {
        write_name(out, "Where", expression);
        xml::write_element(out, "Blobs", |out| {
            for blob in blobs {
                xml::write_element(out, "Blob", |out| {
                    write_name(out, "Name", blob.name);
                    xml::write_text(out, "ContainerName", blob.container);
                    write_tags_element(out, blob.tags);
                });
            }
        });
        xml::write_text(out, "NextMarker", &next.map(FindMarker::encode).unwrap_or_default());
    });
}

/// The first version that has the operation (service reference).
const FIRST_VERSION: &str = "2019-12-12";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_found_is_written() {
        let mut tags = Tags::new();
        tags.insert("k", "v").expect("a tag");
        let mut xml = Vec::new();
        let blob = FoundBlob { name: "a&b", container: "box", tags: &tags };
        let next = FindMarker { container: "box".to_owned(), entry: "x".to_owned() };
        write_found_blobs(&mut xml, "http://h/", "\"k\"='v'", [blob], Some(&next));
        let text = String::from_utf8(xml).expect("text");
        let body = text.split_once("?>").expect("a declaration").1;
        assert_eq!(
            body.trim(),
            format!(
                "<EnumerationResults ServiceEndpoint=\"http://h/\"><Where>&quot;k&quot;='v'</Where><Blobs><Blob>\
                 <Name>a&amp;b</Name><ContainerName>box</ContainerName><Tags><TagSet><Tag><Key>k</Key>\
                 <Value>v</Value></Tag></TagSet></Tags></Blob></Blobs><NextMarker>{}</NextMarker>\
                 </EnumerationResults>",
                next.encode()
            )
        );
    }

    #[test]
    fn other_texts_are_no_markers() {
        for text in ["", "x", &marker::encode("abc")] {
            assert_eq!(FindMarker::decode(text).map_err(|error| error.code), Err(ErrorCode::OutOfRangeInput), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_marker_is_read_as_it_was_written(container in "[a-z0-9$-]{0,9}", entry: String) {
            let marker = FindMarker { container, entry };
            prop_assert_eq!(FindMarker::decode(&marker.encode()), Ok(marker));
        }
    }
}
