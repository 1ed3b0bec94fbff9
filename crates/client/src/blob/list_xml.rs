//! Reads the answer of List Blobs, whose names may be escaped where XML cannot say them.

use super::content::ContentHeaders;
use super::list::{BlobItem, BlobPage};
use super::properties::{self, BlobKind};
use crate::{ETag, Error, Result};
use larimar_wire::uri;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

/// The page that an answer holds. Its size is bounded by that of the answer.
pub(super) fn read(body: &[u8]) -> Result<BlobPage> {
    let text = std::str::from_utf8(body).map_err(not_understood)?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{FEFF}'));
    let mut list = List::default();
    loop {
        match reader.read_event().map_err(not_understood)? {
            Event::Start(tag) => list.open(&tag)?,
            Event::Empty(tag) => {
                list.open(&tag)?;
                list.close()?;
            }
            Event::End(_) => list.close()?,
            Event::Text(text) => list.text.push_str(&text.xml10_content().map_err(not_understood)?),
            Event::CData(text) => list.text.push_str(&text.xml10_content().map_err(not_understood)?),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(not_understood)? {
                Some(character) => list.text.push(character),
                None => {
                    let name = reference.decode().map_err(not_understood)?;
                    let known = quick_xml::escape::resolve_predefined_entity(&name);
                    list.text.push_str(known.ok_or_else(|| not_understood("an unknown entity"))?);
                }
            },
            Event::Eof if list.is_whole => return Ok(list.page),
            Event::Eof => return Err(not_understood("the list of blobs ends early")),
            Event::DocType(_) => return Err(not_understood("a document type")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

fn not_understood(error: impl ToString) -> Error {
    Error::Answer(error.to_string())
}

/// The list so far.
#[derive(Default)]
struct List {
    page: BlobPage,
    /// The names of the elements that are open, outermost first.
    open: Vec<String>,
    /// The text since the last element began.
    text: String,
    is_encoded: bool,
    blob: Fields,
    is_whole: bool,
}

/// What is known of the blob that is being read.
#[derive(Default)]
struct Fields {
    name: Option<String>,
    properties: BTreeMap<String, String>,
    metadata: BTreeMap<String, String>,
    tag_name: String,
    tags: BTreeMap<String, String>,
}

impl List {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<()> {
        let name = std::str::from_utf8(tag.local_name().into_inner()).map_err(not_understood)?;
        if self.open.is_empty() && (self.is_whole || name != "EnumerationResults") {
            return Err(not_understood(format!("expected a list of blobs, found <{name}>")));
        }
        if self.open.len() == DEPTH_MAX {
            return Err(not_understood("elements are nested too deep"));
        }
        self.open.push(name.to_owned());
        self.text.clear();
        self.is_encoded = match tag.try_get_attribute("Encoded").map_err(not_understood)? {
            Some(encoded) => encoded.value.eq_ignore_ascii_case(b"true"),
            None => false,
        };
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let path: Vec<&str> = self.open.iter().skip(1).map(String::as_str).collect();
        match path[..] {
            ["Blobs", "Blob", "Name"] => self.blob.name = Some(self.name()?),
            ["Blobs", "Blob", "Properties", name] => {
                let name = name.to_owned();
                self.blob.properties.insert(name, std::mem::take(&mut self.text));
            }
            ["Blobs", "Blob", "Metadata", name] => {
                let name = name.to_ascii_lowercase();
                self.blob.metadata.insert(name, std::mem::take(&mut self.text));
            }
            ["Blobs", "Blob", "Tags", "TagSet", "Tag", "Key"] => self.blob.tag_name = std::mem::take(&mut self.text),
            ["Blobs", "Blob", "Tags", "TagSet", "Tag", "Value"] => {
                let name = std::mem::take(&mut self.blob.tag_name);
                self.blob.tags.insert(name, std::mem::take(&mut self.text));
            }
            ["Blobs", "Blob"] => self.page.blobs.push(std::mem::take(&mut self.blob).item()?),
            ["Blobs", "BlobPrefix", "Name"] => {
                let prefix = self.name()?;
                self.page.prefixes.push(prefix);
            }
            ["NextMarker"] => self.page.marker = Some(std::mem::take(&mut self.text)).filter(|text| !text.is_empty()),
            [] => self.is_whole = true,
            _ => {}
        }
        self.open.pop();
        self.text.clear();
        Ok(())
    }

    fn name(&self) -> Result<String> {
        match self.is_encoded {
            true => uri::decode_path(&self.text).map(|name| name.into_owned()).map_err(not_understood),
            false => Ok(self.text.clone()),
        }
    }
}

impl Fields {
    fn item(mut self) -> Result<BlobItem> {
        let missing = |name: &str| not_understood(format!("expected a blob with {name}"));
        let etag = self.properties.remove("Etag").ok_or_else(|| missing("Etag"))?;
        let text = |name: &str| self.properties.get(name).map(String::as_str);
        let kind = text("BlobType").and_then(BlobKind::parse).ok_or_else(|| missing("BlobType"))?;
        Ok(BlobItem {
            size: text("Content-Length").and_then(|size| size.parse().ok()).ok_or_else(|| missing("Content-Length"))?,
            // Headers have quotes around it, and a condition needs them.
            etag: ETag::new(if etag.starts_with('"') { etag } else { format!("\"{etag}\"") }),
            last_modified: text("Last-Modified").and_then(properties::time).ok_or_else(|| missing("Last-Modified"))?,
            content_type: text("Content-Type").unwrap_or_default().to_owned(),
            content_headers: ContentHeaders::read_list(|name| text(name).map(str::to_owned)),
            kind,
            sequence_number: text("x-ms-blob-sequence-number").and_then(|number| number.parse().ok()).unwrap_or(0),
            is_sealed: text("Sealed").is_some_and(|word| word.eq_ignore_ascii_case("true")),
            name: self.name.ok_or_else(|| missing("Name"))?,
            metadata: self.metadata,
            tags: self.tags,
        })
    }
}

const DEPTH_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const BLOB: &str = "<Blob><Name>a &lt;b&gt;</Name><Properties><Last-Modified>Fri, 09 Oct 2009 21:04:30 GMT\
        </Last-Modified><Etag>0x8DC</Etag><Content-Length>7</Content-Length><Content-Type>text/plain</Content-Type>\
        <Content-Encoding>gzip</Content-Encoding><Cache-Control /><Sealed>true</Sealed>\
        <BlobType>AppendBlob</BlobType></Properties><Metadata><First>1 &amp; 2</First></Metadata><Tags><TagSet><Tag>\
        <Key>project</Key><Value>a+b</Value></Tag><Tag><Key>empty</Key><Value /></Tag></TagSet></Tags></Blob>";

    fn page(blobs: &str, marker: &str) -> Result<BlobPage> {
        let start = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"c\">";
        read(format!("{start}<Prefix>a</Prefix><Blobs>{blobs}</Blobs>{marker}</EnumerationResults>\n").as_bytes())
    }

    #[test]
    fn x2_lists_are_read_as_the_service_writes_them() {
        let prefixes =
            "<BlobPrefix><Name>c/</Name></BlobPrefix><BlobPrefix><Name Encoded=\"true\">%01%2F</Name></BlobPrefix>";
        let page = page(&format!("{BLOB}{prefixes}"), "<NextMarker>2!8 &amp;</NextMarker>").expect("a page");
        assert_eq!(page.prefixes, ["c/", "\u{1}/"]);
        assert_eq!(page.marker.as_deref(), Some("2!8 &"));
        let [blob] = &page.blobs[..] else { panic!("{page:?}") };
        assert_eq!((blob.name.as_str(), blob.size, blob.etag.as_str()), ("a <b>", 7, "\"0x8DC\""));
        assert_eq!((blob.kind, blob.content_type.as_str()), (BlobKind::Append, "text/plain"));
        assert_eq!(blob.metadata, BTreeMap::from([("first".to_owned(), "1 & 2".to_owned())]));
        assert_eq!(blob.last_modified.to_string(), "2009-10-09T21:04:30Z");
        assert_eq!(blob.content_headers.content_encoding.as_deref(), Some("gzip"));
        assert_eq!((&blob.content_headers.cache_control, blob.is_sealed, blob.sequence_number), (&None, true, 0));
        let tags = [("project", "a+b"), ("empty", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(blob.tags, BTreeMap::from(tags));
    }

    #[test]
    fn x2_an_empty_list_has_no_next_page() {
        for marker in ["", "<NextMarker/>", "<NextMarker></NextMarker>"] {
            assert_eq!(page("", marker).expect("a page"), BlobPage::default());
        }
    }

    #[test]
    fn x2_answers_that_lack_something_are_refused() {
        for name in ["Name", "Last-Modified", "Etag", "Content-Length", "BlobType"] {
            assert!(page(&BLOB.replace(name, "Other"), "").is_err(), "{name}");
        }
        let deep = format!("<EnumerationResults>{}", "<a>".repeat(1_000));
        for body in ["", "<html/>", "<EnumerationResults>", "<EnumerationResults><Blobs></EnumerationResults>", &deep] {
            assert!(matches!(read(body.as_bytes()), Err(Error::Answer(_))), "{body:.40}");
        }
    }
}
