//! Small XML documents as trees: what the ACL and the service's properties are read from and written with.
//!
//! Depth and number of elements are bounded, document types and entities other than the five of XML are
//! refused, attributes and namespaces are passed over. The reader of the body bounds its size.

use larimar_model::Metadata;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// An element: its local name, its own text and its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The name without a prefix.
    pub name: String,
    /// The text directly inside.
    pub text: String,
    /// The elements directly inside.
    pub children: Vec<Self>,
}

/// Why a document cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// The document is not well-formed UTF-8 XML.
    #[error("expected one well-formed XML element in UTF-8")]
    Syntax,
    /// Elements nested deeper, or more of them, than any document of the service needs.
    #[error("expected fewer elements, nested at most {DEPTH_MAX} deep")]
    TooComplex,
    /// A document type or an entity of one.
    #[error("expected no document type and no entities but those of XML")]
    Entity,
    /// An element that does not belong there.
    #[error("expected only the elements of the service's reference, each once")]
    Element,
}

/// Elements of one document. The largest that the services know, but for lists of blocks, has about a hundred.
const ELEMENTS_MAX: usize = 1000;
const DEPTH_MAX: usize = 16;

impl Element {
    /// Reads a document.
    ///
    /// # Errors
    /// Anything but one well-formed element within the bounds.
    pub fn parse(document: &[u8]) -> Result<Self, XmlError> {
        Self::parse_up_to(document, ELEMENTS_MAX)
    }

    /// Reads a document of at most so many elements.
    ///
    /// # Errors
    /// Anything but one well-formed element within the bounds.
    pub fn parse_up_to(document: &[u8], elements_max: usize) -> Result<Self, XmlError> {
        let text = std::str::from_utf8(document).map_err(|_| XmlError::Syntax)?;
        let mut reader = Reader::from_str(text.trim_start_matches('\u{FEFF}').trim());
        let mut tree = Tree { open: Vec::new(), root: None, count: 0, elements_max };
        loop {
            match reader.read_event().map_err(|_| XmlError::Syntax)? {
                Event::Start(tag) => tree.open(&tag)?,
                Event::Empty(tag) => {
                    tree.open(&tag)?;
                    tree.close()?;
                }
                Event::End(_) => tree.close()?,
                // Line ends stay as they were sent, though XML would make one of CR LF: messages keep them.
                Event::Text(text) => tree.text(&text.decode().map_err(|_| XmlError::Syntax)?)?,
                Event::CData(text) => tree.text(&text.decode().map_err(|_| XmlError::Syntax)?)?,
                Event::GeneralRef(reference) => {
                    let name = reference.decode().map_err(|_| XmlError::Syntax)?;
                    match reference.resolve_char_ref().map_err(|_| XmlError::Syntax)? {
                        Some(character) => tree.text(character.encode_utf8(&mut [0; 4]))?,
                        None => {
                            tree.text(quick_xml::escape::resolve_predefined_entity(&name).ok_or(XmlError::Entity)?)?
                        }
                    }
                }
                Event::DocType(_) => return Err(XmlError::Entity),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof => return tree.finish(),
            }
        }
    }

    /// The only child of this name, if there is one.
    ///
    /// # Errors
    /// Several children of this name.
    pub fn child(&self, name: &str) -> Result<Option<&Self>, XmlError> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        let first = found.next();
        if found.next().is_some() { Err(XmlError::Element) } else { Ok(first) }
    }

    /// The text of the only child of this name without white space around it, if there is any.
    ///
    /// # Errors
    /// Several children of this name, or elements where there should be text.
    pub fn child_text(&self, name: &str) -> Result<Option<&str>, XmlError> {
        match self.child(name)? {
            Some(child) if !child.children.is_empty() => Err(XmlError::Element),
            child => Ok(child.map(|child| child.text.trim()).filter(|text| !text.is_empty())),
        }
    }

    /// Refuses children of other names than these.
    ///
    /// # Errors
    /// A child of another name.
    pub fn expect_only(&self, names: &[&str]) -> Result<(), XmlError> {
        if self.children.iter().all(|child| names.contains(&child.name.as_str())) {
            Ok(())
        } else {
            Err(XmlError::Element)
        }
    }
}

/// The document so far: the elements that are still open, outermost first, and the finished root.
struct Tree {
    open: Vec<Element>,
    root: Option<Element>,
    count: usize,
    elements_max: usize,
}

impl Tree {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), XmlError> {
        self.count += 1;
        if self.count > self.elements_max || self.open.len() == DEPTH_MAX {
            return Err(XmlError::TooComplex);
        }
        // The check for duplicates would compare each attribute with all before it.
        if self.root.is_some() || tag.attributes().with_checks(false).any(|attribute| attribute.is_err()) {
            return Err(XmlError::Syntax);
        }
        let name = std::str::from_utf8(tag.local_name().into_inner()).map_err(|_| XmlError::Syntax)?.to_owned();
        if name.is_empty() {
            return Err(XmlError::Syntax);
        }
        self.open.push(Element { name, ..Element::default() });
        Ok(())
    }

    fn close(&mut self) -> Result<(), XmlError> {
        let element = self.open.pop().ok_or(XmlError::Syntax)?;
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), XmlError> {
        if !text.chars().all(is_xml_char) {
            return Err(XmlError::Syntax);
        }
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(XmlError::Syntax),
        }
        Ok(())
    }

    fn finish(self) -> Result<Element, XmlError> {
        if self.open.is_empty() { self.root.ok_or(XmlError::Syntax) } else { Err(XmlError::Syntax) }
    }
}

/// Appends what every XML answer of the service begins with.
pub fn write_start(out: &mut Vec<u8>) {
    out.extend_from_slice("\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>".as_bytes());
}

/// Appends an element of this text.
pub fn write_text(out: &mut Vec<u8>, name: &str, text: &str) {
    write_element(out, name, |out| write_escaped(out, text));
}

/// Appends an element of this text with a question mark in the place of what XML cannot say.
pub fn write_lossy_text(out: &mut Vec<u8>, name: &str, text: &str) {
    if text.chars().all(is_xml_char) {
        write_text(out, name, text);
    } else {
        let lossy: String = text.chars().map(|c| if is_xml_char(c) { c } else { '?' }).collect();
        write_text(out, name, &lossy);
    }
}

/// Appends an element with attributes, and with what `content` appends inside.
pub fn write_element_with(
    out: &mut Vec<u8>,
    name: &str,
    attributes: &[(&str, &str)],
    content: impl FnOnce(&mut Vec<u8>),
) {
    out.push(b'<');
    out.extend_from_slice(name.as_bytes());
    for (attribute, value) in attributes {
        out.push(b' ');
        out.extend_from_slice(attribute.as_bytes());
        out.extend_from_slice(b"=\"");
        write_escaped(out, value);
        out.push(b'"');
    }
    out.push(b'>');
    content(out);
    out.extend_from_slice(b"</");
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

/// Appends metadata: an element whose children are named like its pairs.
pub fn write_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    write_element(out, "Metadata", |out| {
        for (name, value) in metadata.iter() {
            write_text(out, name, value);
        }
    });
}

fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'&' => b"&amp;",
            b'"' => b"&quot;",
            // A reader would turn it into a line feed.
            b'\r' => b"&#xD;",
            _ => continue,
        };
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(escape);
        start = at + 1;
    }
    out.extend_from_slice(&bytes[start..]);
}

/// Appends an element with what `content` appends inside.
pub fn write_element(out: &mut Vec<u8>, name: &str, content: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'<');
    out.extend_from_slice(name.as_bytes());
    let end = out.len();
    out.push(b'>');
    content(out);
    if out.len() == end + 1 {
        out.truncate(end);
        out.extend_from_slice(b" />");
        return;
    }
    out.extend_from_slice(b"</");
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

/// Whether XML 1.0 has this character.
#[must_use]
pub const fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaf(name: &str, text: &str) -> Element {
        Element { name: name.to_owned(), text: text.to_owned(), children: Vec::new() }
    }

    #[test]
    fn documents_become_trees() {
        let root = Element { name: "r".to_owned(), text: String::new(), children: vec![leaf("a", "1"), leaf("b", "")] };
        for document in [
            "<r><a>1</a><b/></r>",
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><r><a>1</a><b></b></r>\n",
            "<x:r xmlns:x='u' y=\"z\"><a><!-- c -->1</a><?p i?><x:b /></x:r>",
            "<r><a><![CDATA[1]]></a><b/></r>",
            "<r><a>&#49;</a><b/></r><!-- end -->",
        ] {
            assert_eq!(Element::parse(document.as_bytes()).as_ref(), Ok(&root), "{document}");
        }
        assert_eq!(Element::parse(b"<a>&lt;&amp;&#x65E5;\r\n</a>"), Ok(leaf("a", "<&日\r\n")));
    }

    #[test]
    fn other_documents_are_refused() {
        let deep = "<a>".repeat(100_000);
        let many = format!("<a>{}</a>", "<b/>".repeat(1000));
        for (document, error) in [
            ("", XmlError::Syntax),
            ("text", XmlError::Syntax),
            ("<a>", XmlError::Syntax),
            ("<a></b>", XmlError::Syntax),
            ("</a>", XmlError::Syntax),
            ("<a/><b/>", XmlError::Syntax),
            ("<a/>b", XmlError::Syntax),
            ("<a b=c/>", XmlError::Syntax),
            ("<a>&#1;</a>", XmlError::Syntax),
            ("<a>\u{1}</a>", XmlError::Syntax),
            ("<a>&#xD800;</a>", XmlError::Syntax),
            ("<a>& b</a>", XmlError::Syntax),
            ("<a>&b;</a>", XmlError::Entity),
            ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", XmlError::Entity),
            (&deep, XmlError::TooComplex),
            (&many, XmlError::TooComplex),
        ] {
            assert_eq!(Element::parse(document.as_bytes()), Err(error), "{document:.60}");
        }
        assert_eq!(Element::parse(b"<a>\xFF</a>"), Err(XmlError::Syntax));
    }

    #[test]
    fn children_are_found_by_name() {
        let root = Element::parse(b"<r><a> 1 </a><b/><c><d/></c><e/><e/></r>").expect("a tree");
        assert_eq!(root.child_text("a"), Ok(Some("1")));
        assert_eq!(root.child_text("b"), Ok(None));
        assert_eq!(root.child_text("z"), Ok(None));
        assert_eq!(root.child_text("c"), Err(XmlError::Element));
        assert_eq!(root.child_text("e"), Err(XmlError::Element));
        assert_eq!(root.expect_only(&["a", "b", "c", "e"]), Ok(()));
        assert_eq!(root.expect_only(&["a", "b", "c"]), Err(XmlError::Element));
    }

    proptest! {
        #[test]
        fn texts_are_read_as_they_were_written(text in "[^\u{0}-\u{8}\u{B}\u{C}\u{E}-\u{1F}\u{FFFE}\u{FFFF}]*") {
            let mut out = Vec::new();
            write_start(&mut out);
            write_text(&mut out, "a", &text);
            prop_assert_eq!(Element::parse(&out), Ok(leaf("a", &text)));
        }

        #[test]
        fn any_document_is_read_or_refused(document in "(<|>|/|a|b|&|;|#|x|!|\\[|\\]|CDATA|--|\\?|=|'|\"| |é){0,40}") {
            let _ = Element::parse(document.as_bytes());
        }

        #[test]
        fn any_bytes_are_read_or_refused(document: Vec<u8>) {
            let _ = Element::parse(&document);
        }
    }
}
