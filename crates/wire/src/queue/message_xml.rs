//! Messages as XML: the text that a client puts, and the lists that it gets.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::signature::http_date;
use crate::xml::{self, Element, XmlError};
use larimar_model::{Guid, Timestamp, limits};

/// Bytes of a body with a message: the longest text, each character of it escaped.
pub const MESSAGE_BODY_BYTES_MAX: usize = limits::MESSAGE_BYTES_MAX * 10 + 1024;

/// A message as answers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageXml<'a> {
    /// The message's id.
    pub id: Guid,
    /// When it was put.
    pub inserted: Timestamp,
    /// When it expires, if ever.
    pub expires: Option<Timestamp>,
    /// The pop receipt and when the message is visible again; peeked messages have neither.
    pub receipt: Option<(&'a str, Timestamp)>,
    /// How often it was delivered, and its text; a message that was just put is answered without.
    pub content: Option<(u32, &'a str)>,
}

/// Reads the body of Put Message: the message's text.
///
/// # Errors
/// A body that is not a message, or a text that is too long.
pub fn parse_message(body: &[u8]) -> Result<String, ErrorReply> {
    let missing = || ErrorReply::new(ErrorCode::MissingRequiredXmlNode).with_detail("XmlNodeName", "MessageText");
    message_text(body)?.ok_or_else(missing)
}

/// Reads the body of Update Message: the message's new text, if it gets one.
///
/// # Errors
/// A body that is not a message, or a text that is too long.
pub fn parse_message_update(body: &[u8]) -> Result<Option<String>, ErrorReply> {
    if body.trim_ascii().is_empty() { Ok(None) } else { message_text(body) }
}

/// Appends the answer of Put, Get and Peek Messages.
pub fn write_messages<'a>(out: &mut Vec<u8>, messages: impl IntoIterator<Item = MessageXml<'a>>) {
    xml::write_start(out);
    xml::write_element(out, "QueueMessagesList", |out| {
        for message in messages {
            xml::write_element(out, "QueueMessage", |out| message.write(out));
        }
    });
}

impl MessageXml<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        xml::write_text(out, "MessageId", &self.id.to_string());
        xml::write_text(out, "InsertionTime", &http_date(self.inserted));
        match self.expires {
            Some(time) => xml::write_text(out, "ExpirationTime", &http_date(time)),
            None => xml::write_text(out, "ExpirationTime", NEVER),
        }
        if let Some((receipt, visible)) = self.receipt {
            xml::write_text(out, "PopReceipt", receipt);
            xml::write_text(out, "TimeNextVisible", &http_date(visible));
        }
        if let Some((count, text)) = self.content {
            xml::write_text(out, "DequeueCount", itoa::Buffer::new().format(count));
            xml::write_text(out, "MessageText", text);
        }
    }
}

fn message_text(body: &[u8]) -> Result<Option<String>, ErrorReply> {
    let invalid = |_: XmlError| ErrorReply::new(ErrorCode::InvalidXmlDocument);
    let mut root = Element::parse(body).map_err(invalid)?;
    if root.name != "QueueMessage" {
        return Err(invalid(XmlError::Element));
    }
    root.expect_only(&["MessageText"]).map_err(invalid)?;
    if root.children.len() > 1 {
        return Err(invalid(XmlError::Element));
    }
    let Some(text) = root.children.pop() else { return Ok(None) };
    text.expect_only(&[]).map_err(invalid)?;
    if text.text.len() > limits::MESSAGE_BYTES_MAX {
        let max = limits::MESSAGE_BYTES_MAX.to_string();
        return Err(ErrorReply::new(ErrorCode::RequestBodyTooLarge).with_detail("MaxLimit", &max));
    }
    Ok(Some(text.text))
}

/// When messages expire that never do.
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(body: &str) -> Result<String, ErrorCode> {
        parse_message(body.as_bytes()).map_err(|error| error.code)
    }

    fn of(text: &str) -> String {
        format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
    }

    #[test]
    fn x1_the_text_is_kept_as_it_is_after_unescaping() {
        for (body, text) in [
            (of("hello"), "hello"),
            (of(""), ""),
            (of(" &lt;a b=&quot;c&quot;&gt; &#x65E5;&#13;\r\n "), " <a b=\"c\"> 日\r\r\n "),
            (of("aGVsbG8="), "aGVsbG8="),
            (of("<![CDATA[<x/>]]>&amp;"), "<x/>&"),
            (format!("\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n{}", of("x")), "x"),
            ("<QueueMessage><MessageText /></QueueMessage>".to_owned(), ""),
        ] {
            assert_eq!(code(&body).as_deref(), Ok(text), "{body}");
        }
    }

    #[test]
    fn other_bodies_are_refused() {
        for (body, expected) in [
            ("", ErrorCode::InvalidXmlDocument),
            ("hello", ErrorCode::InvalidXmlDocument),
            ("<MessageText>a</MessageText>", ErrorCode::InvalidXmlDocument),
            ("<QueueMessage/>", ErrorCode::MissingRequiredXmlNode),
            ("<QueueMessage><Other/></QueueMessage>", ErrorCode::InvalidXmlDocument),
            ("<QueueMessage><MessageText/><MessageText/></QueueMessage>", ErrorCode::InvalidXmlDocument),
            ("<QueueMessage><MessageText><a/></MessageText></QueueMessage>", ErrorCode::InvalidXmlDocument),
            (&of("\u{1}"), ErrorCode::InvalidXmlDocument),
            (&of("&#1;"), ErrorCode::InvalidXmlDocument),
            (&of("\u{FFFF}"), ErrorCode::InvalidXmlDocument),
        ] {
            assert_eq!(code(body), Err(expected), "{body}");
        }
        assert_eq!(
            parse_message(b"<QueueMessage><MessageText>\xff</MessageText></QueueMessage>").map_err(|error| error.code),
            Err(ErrorCode::InvalidXmlDocument)
        );
        for body in [&b""[..], b" \r\n", b"<QueueMessage />"] {
            assert_eq!(parse_message_update(body), Ok(None));
        }
        assert_eq!(parse_message_update(of("").as_bytes()), Ok(Some(String::new())));
    }

    #[test]
    fn a_text_of_64_kib_fits_and_a_byte_more_does_not() {
        for (text, expected) in [
            ("a".repeat(65_536), Ok(65_536)),
            ("a".repeat(65_537), Err(ErrorCode::RequestBodyTooLarge)),
            ("é".repeat(32_768), Ok(65_536)),
            (format!("{}a", "é".repeat(32_768)), Err(ErrorCode::RequestBodyTooLarge)),
            ("&amp;".repeat(65_536), Ok(65_536)),
        ] {
            let body = of(&text);
            assert!(body.len() <= MESSAGE_BODY_BYTES_MAX);
            assert_eq!(code(&body).map(|text| text.len()), expected);
        }
    }

    #[test]
    fn answers_are_those_of_the_reference() {
        let time = |text: &str| Timestamp::parse(text).expect("a time");
        let put = MessageXml {
            id: Guid::parse("5974b586-0df3-4e2d-ad0c-18e3892bfca2").expect("a Guid"),
            inserted: time("2016-10-09T21:04:30.5Z"),
            expires: Some(time("2016-10-16T21:04:30.5Z")),
            receipt: Some(("YzQ4Yzg1MDI", time("2016-10-09T23:29:20Z"))),
            content: None,
        };
        let got = MessageXml { content: Some((1, "a<b")), expires: None, ..put };
        let peeked = MessageXml { receipt: None, ..got };
        let write = |messages: &[MessageXml<'_>]| {
            let mut out = Vec::new();
            write_messages(&mut out, messages.iter().copied());
            String::from_utf8(out).expect("UTF-8")
        };
        let start = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?>";
        let id = "<MessageId>5974b586-0df3-4e2d-ad0c-18e3892bfca2</MessageId><InsertionTime>Sun, 09 Oct 2016 21:04:30 GMT</InsertionTime>";
        let receipt =
            "<PopReceipt>YzQ4Yzg1MDI</PopReceipt><TimeNextVisible>Sun, 09 Oct 2016 23:29:20 GMT</TimeNextVisible>";
        let never = "<ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>";
        let text = "<DequeueCount>1</DequeueCount><MessageText>a&lt;b</MessageText>";
        assert_eq!(write(&[]), format!("{start}<QueueMessagesList />"));
        assert_eq!(
            write(&[put]),
            format!(
                "{start}<QueueMessagesList><QueueMessage>{id}<ExpirationTime>Sun, 16 Oct 2016 21:04:30 GMT</ExpirationTime>{receipt}</QueueMessage></QueueMessagesList>"
            )
        );
        assert_eq!(
            write(&[got, peeked]),
            format!(
                "{start}<QueueMessagesList><QueueMessage>{id}{never}{receipt}{text}</QueueMessage><QueueMessage>{id}{never}{text}</QueueMessage></QueueMessagesList>"
            )
        );
    }

    proptest! {
        #[test]
        fn a_text_comes_back_as_it_was_put(text in "[^\u{0}-\u{8}\u{B}\u{C}\u{E}-\u{1F}\u{FFFE}\u{FFFF}]*") {
            let mut body = Vec::new();
            xml::write_element(&mut body, "QueueMessage", |out| xml::write_text(out, "MessageText", &text));
            prop_assert_eq!(parse_message(&body), Ok(text.clone()));
            let message = MessageXml {
                id: Guid::parse("5974b586-0df3-4e2d-ad0c-18e3892bfca2").expect("a Guid"),
                inserted: Timestamp::from_ticks(637_000_000_000_000_000), expires: None, receipt: None,
                content: Some((7, &text)),
            };
            let mut answer = Vec::new();
            write_messages(&mut answer, [message]);
            let list = Element::parse(&answer).expect("XML");
            let read = list.children[0].child("MessageText").expect("one").expect("a text");
            prop_assert_eq!(&read.text, &text);
        }
    }
}
