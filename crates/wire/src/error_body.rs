//! An error as the client gets it: a code with its text and its details, written as JSON or XML.
//!
//! `server/src/error.rs` makes an [`ErrorReply`] of any error; this file knows the bytes.

use crate::error_code::ErrorCode;
use crate::xml;
use larimar_model::Timestamp;
use std::borrow::Cow;

/// An error to answer with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// The code.
    pub code: ErrorCode,
    /// The HTTP status: the code's own, but for the few codes that the service sends with two.
    pub status: u16,
    /// The text, without the lines of request id and time.
    pub message: Cow<'static, str>,
    /// What the XML of the Blob and Queue services adds: names of elements and their texts.
    pub details: Vec<(&'static str, String)>,
}

impl ErrorReply {
    /// The code with its own status and text.
    #[must_use]
    pub const fn new(code: ErrorCode) -> Self {
        Self { code, status: code.status(), message: Cow::Borrowed(code.message()), details: Vec::new() }
    }

    /// The code with another text.
    #[must_use]
    pub fn with_message(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, status: code.status(), message: message.into(), details: Vec::new() }
    }

    /// This error with another status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The code for a header, with its name and its value.
    #[must_use]
    pub fn of_header(code: ErrorCode, name: &str, value: &str) -> Self {
        Self::new(code).with_detail("HeaderName", name).with_detail("HeaderValue", value)
    }

    /// The code for a parameter of the query, with its name and its value.
    #[must_use]
    pub fn of_parameter(code: ErrorCode, name: &str, value: &str) -> Self {
        Self::new(code).with_detail("QueryParameterName", name).with_detail("QueryParameterValue", value)
    }

    /// This error with one more detail for the XML of the Blob and Queue services. Long texts are cut.
    #[must_use]
    pub fn with_detail(mut self, element: &'static str, text: &str) -> Self {
        self.details.push((element, text.chars().take(DETAIL_CHARS_MAX).collect()));
        self
    }

    /// This error without the details.
    #[must_use]
    pub fn without_details(mut self) -> Self {
        self.details.clear();
        self
    }

    /// This error with the text that the server has signed, control characters escaped and secrets of the caller left
    /// out, in the place of another detail.
    #[must_use]
    pub fn with_string_to_sign(mut self, introduction: &str, text: &str) -> Self {
        let mut detail = format!("{introduction}'");
        let bytes_max = detail.len() + STRING_TO_SIGN_BYTES_MAX;
        for c in without_secrets(text).chars() {
            let is_plain = !c.is_control() && xml::is_xml_char(c);
            let before = detail.len();
            if is_plain {
                detail.push(c)
            } else {
                detail.extend(c.escape_default())
            }
            if detail.len() > bytes_max {
                detail.truncate(before);
                break;
            }
        }
        detail.push_str("'.");
        self.details.retain(|(element, _)| *element != AUTHENTICATION_DETAIL);
        self.details.push((AUTHENTICATION_DETAIL, detail));
        self
    }

    /// Why credentials were refused.
    fn authentication_detail(&self) -> Option<String> {
        let detail = self.details.iter().find(|(element, _)| *element == AUTHENTICATION_DETAIL);
        detail.map(|(_, text)| without_controls(text))
    }

    /// The message as the reason phrase of a status line, as the Blob and Queue services send it: one short line of
    /// printable ASCII, whatever the message has.
    #[must_use]
    pub fn reason(&self) -> String {
        let printable = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
        let line = self.message.split(['\r', '\n']).next().unwrap_or_default();
        line.chars().take(REASON_CHARS_MAX).map(printable).collect()
    }

    /// This error as that of the operation at `index` of a transaction.
    #[must_use]
    pub fn at_index(mut self, index: usize) -> Self {
        self.message = Cow::Owned(format!("{index}:{}", self.message));
        self
    }

    /// Appends the JSON body. Clients look for texts in it, so there is no space after a colon.
    pub fn write_json(&self, out: &mut Vec<u8>, request_id: &str, time: Timestamp) {
        let value = self.value(request_id, time);
        out.extend_from_slice(br#"{"odata.error":{"code":""#);
        out.extend_from_slice(self.code.as_str().as_bytes());
        out.extend_from_slice(br#"","message":{"lang":"en-US","value":"#);
        serde_json::to_writer(&mut *out, &value).expect("a string is JSON, and a vector takes all bytes");
        out.push(b'}');
        if let Some(detail) = self.authentication_detail() {
            out.extend_from_slice(br#","innererror":{"message":"#);
            serde_json::to_writer(&mut *out, &detail).expect("a string is JSON, and a vector takes all bytes");
            out.push(b'}');
        }
        out.extend_from_slice(b"}}");
    }

    /// Appends the XML body of the Table service.
    pub fn write_xml(&self, out: &mut Vec<u8>, request_id: &str, time: Timestamp) {
        let value = self.value(request_id, time);
        out.extend_from_slice(XML_START.as_bytes());
        out.extend_from_slice(self.code.as_str().as_bytes());
        out.extend_from_slice(br#"</m:code><m:message xml:lang="en-US">"#);
        out.extend_from_slice(quick_xml::escape::minimal_escape(&value).as_bytes());
        out.extend_from_slice(b"</m:message>");
        if let Some(detail) = self.authentication_detail() {
            out.extend_from_slice(b"<m:innererror><m:message>");
            out.extend_from_slice(quick_xml::escape::minimal_escape(&detail).as_bytes());
            out.extend_from_slice(b"</m:message></m:innererror>");
        }
        out.extend_from_slice(b"</m:error>");
    }

    /// Appends the XML body of the Blob and Queue services.
    pub fn write_storage_xml(&self, out: &mut Vec<u8>, request_id: &str, time: Timestamp) {
        xml::write_start(out);
        xml::write_element(out, "Error", |out| {
            xml::write_text(out, "Code", self.code.as_str());
            xml::write_text(out, "Message", &self.value(request_id, time));
            for (element, text) in &self.details {
                xml::write_text(out, element, &without_controls(text));
            }
        });
    }

    fn value(&self, request_id: &str, time: Timestamp) -> String {
        let text = without_controls(&self.message);
        format!("{text}\nRequestId:{request_id}\nTime:{}", time.to_seven_digits())
    }
}

impl From<ErrorCode> for ErrorReply {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

/// XML has no spelling for most control characters and for some others, and none belongs into a message.
fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || !xml::is_xml_char(c) { ' ' } else { c }).collect()
}

/// A text to sign without the secrets that its lines may hold: signatures in the URL of a source, the token that a source
/// is read with, keys of encryption. Answers are logged; the shape of the text is enough to compare it.
fn without_secrets(text: &str) -> String {
    let lines = text.split('\n').map(|line| match line.split_once(':') {
        Some((name, _)) if SECRET_LINES.contains(&name) => format!("{name}:{HIDDEN}"),
        _ => without_signatures(line),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line with the values of all parameters `sig` left out.
fn without_signatures(line: &str) -> String {
    let pieces = line.split_inclusive(['?', '&']).map(|piece| {
        let is_signature = piece.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("sig="));
        let end = piece.find(['#', '?', '&']).unwrap_or(piece.len());
        if is_signature { format!("{}{HIDDEN}{}", &piece[..4], &piece[end..]) } else { piece.to_owned() }
    });
    pieces.collect()
}

/// Lines of a text to sign whose whole value is a secret: headers, and a parameter of the request.
const SECRET_LINES: [&str; 4] =
    ["x-ms-copy-source-authorization", "x-ms-encryption-key", "x-ms-source-encryption-key", "sig"];
const HIDDEN: &str = "(hidden)";

/// The element with the reason for refused credentials.
pub(crate) const AUTHENTICATION_DETAIL: &str = "AuthenticationErrorDetail";

/// Bytes of the text that the server has signed: most are below 1 KiB.
const STRING_TO_SIGN_BYTES_MAX: usize = 4096;

/// Characters of a reason phrase: more than any message of the service has.
const REASON_CHARS_MAX: usize = 256;

/// Characters of a detail: enough for any value that a header or a parameter should have.
const DETAIL_CHARS_MAX: usize = 1024;

const XML_START: &str = concat!(
    r#"<?xml version="1.0" encoding="utf-8"?>"#,
    r#"<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><m:code>"#
);

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "679755cf-3002-006f-55e1-6049ff000000";

    fn time() -> Timestamp {
        Timestamp::parse("2022-05-06T00:37:28.43474Z").expect("a time")
    }

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn json_is_as_recorded() {
        assert_eq!(
            text(|out| ErrorReply::new(ErrorCode::ResourceNotFound).write_json(out, ID, time())),
            r#"{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist.\nRequestId:679755cf-3002-006f-55e1-6049ff000000\nTime:2022-05-06T00:37:28.4347400Z"}}}"#
        );
    }

    #[test]
    fn m8_the_index_comes_first() {
        let body = text(|out| ErrorReply::new(ErrorCode::EntityAlreadyExists).at_index(2).write_json(out, ID, time()));
        assert!(body.contains(r#""value":"2:The specified entity already exists.\nRequestId:"#), "{body}");
    }

    #[test]
    fn xml_is_as_recorded_and_escaped() {
        assert_eq!(
            text(|out| ErrorReply::with_message(ErrorCode::InvalidInput, "a<b&\u{1}c").write_xml(out, ID, time())),
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>InvalidInput</m:code><m:message xml:lang=\"en-US\">a&lt;b&amp; c\nRequestId:679755cf-3002-006f-55e1-6049ff000000\nTime:2022-05-06T00:37:28.4347400Z</m:message></m:error>"
        );
    }

    #[test]
    fn storage_xml_has_the_details() {
        let reply =
            ErrorReply::of_parameter(ErrorCode::OutOfRangeQueryParameterValue, "numofmessages", "3<\u{1}\u{FFFF}")
                .with_detail("MinimumAllowed", "1");
        assert_eq!(
            text(|out| reply.write_storage_xml(out, ID, time())),
            "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>OutOfRangeQueryParameterValue</Code><Message>One of the query parameters specified in the request URI is outside the permissible range.\nRequestId:679755cf-3002-006f-55e1-6049ff000000\nTime:2022-05-06T00:37:28.4347400Z</Message><QueryParameterName>numofmessages</QueryParameterName><QueryParameterValue>3&lt;  </QueryParameterValue><MinimumAllowed>1</MinimumAllowed></Error>"
        );
        let long = ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-range", &"é".repeat(5000));
        assert_eq!(long.details[1].1.chars().count(), DETAIL_CHARS_MAX);
    }

    #[test]
    fn s1_what_was_signed_is_told_on_one_line_and_bounded() {
        let refused =
            ErrorReply::new(ErrorCode::AuthenticationFailed).with_detail("AuthenticationErrorDetail", "other");
        let short = refused.clone().with_string_to_sign("Signed: ", "GET\n\u{1}é'</a>");
        assert_eq!(short.details, [("AuthenticationErrorDetail", "Signed: 'GET\\n\\u{1}é'</a>'.".to_owned())]);
        let body = text(|out| short.write_json(out, ID, time()));
        let parsed: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(parsed["odata.error"]["innererror"]["message"], "Signed: 'GET\\n\\u{1}é'</a>'.");
        assert!(text(|out| short.write_xml(out, ID, time())).contains("GET\\n\\u{1}é'&lt;/a>"));
        for filler in ["é", "\n", "a"] {
            let long = refused.clone().with_string_to_sign("", &filler.repeat(100_000));
            assert!((4090..=4100).contains(&long.details[0].1.len()), "{filler}: {}", long.details[0].1.len());
        }
    }

    #[test]
    fn secrets_of_the_caller_are_hidden_in_what_was_signed() {
        for (line, shown) in [
            (
                "x-ms-copy-source:http://h/c/b?sv=1&sig=a%2Bb%3D&sr=b",
                "x-ms-copy-source:http://h/c/b?sv=1&sig=(hidden)&sr=b",
            ),
            ("x-ms-copy-source:http://h/c/b?SIG=abc", "x-ms-copy-source:http://h/c/b?SIG=(hidden)"),
            ("x-ms-copy-source:http://h/c/b?sig=a&sig=b", "x-ms-copy-source:http://h/c/b?sig=(hidden)&sig=(hidden)"),
            ("x-ms-copy-source:http://h/c/nosig=here", "x-ms-copy-source:http://h/c/nosig=here"),
            ("x-ms-copy-source-authorization:Bearer abc", "x-ms-copy-source-authorization:(hidden)"),
            ("x-ms-encryption-key:abc", "x-ms-encryption-key:(hidden)"),
            ("GET\nsig:abc\nx-ms-version:1", "GET\nsig:(hidden)\nx-ms-version:1"),
            ("é?sig=ü", "é?sig=(hidden)"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(line), shown);
        }
    }

    #[test]
    fn a_reason_is_one_line_of_printable_ascii() {
        assert_eq!(ErrorReply::new(ErrorCode::BlobNotFound).reason(), "The specified blob does not exist.");
        let hostile = ErrorReply::with_message(ErrorCode::InvalidInput, "a\u{7f}\u{1}é\r\nSet-Cookie: x");
        assert_eq!(hostile.reason(), "a???");
        let long = ErrorReply::with_message(ErrorCode::InvalidInput, "é".repeat(5000));
        assert_eq!(long.reason().len(), REASON_CHARS_MAX);
        assert_eq!(ErrorReply::with_message(ErrorCode::InvalidInput, "").reason(), "");
    }

    #[test]
    fn texts_survive_json() {
        let reply = ErrorReply::with_message(ErrorCode::InvalidInput, "Syntax error at position 7 in 'a\"\\ü'.");
        let body = text(|out| reply.write_json(out, ID, time()));
        let parsed: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        let value = parsed["odata.error"]["message"]["value"].as_str().expect("a string");
        assert!(value.starts_with("Syntax error at position 7 in 'a\"\\ü'.\nRequestId:"), "{value}");
    }
}
