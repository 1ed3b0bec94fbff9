//! The JSON of tables: the body of a create, and the answers that name tables.

use super::content::MetadataLevel;
use super::json_text::push_string;
use super::request;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use larimar_model::TableName;
use serde::Deserialize;
use std::borrow::Cow;

/// Reads the body of Create Table.
///
/// # Errors
/// JSON without a string `TableName`, and names that break a rule.
pub fn parse_table_name(json: &[u8]) -> Result<TableName, ErrorReply> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(rename = "TableName", borrow)]
        name: Option<Cow<'a, str>>,
    }
    let malformed =
        |_| ErrorReply::with_message(ErrorCode::InvalidInput, "An error occurred while processing this request.");
    let body: Body<'_> = serde_json::from_slice(json).map_err(malformed)?;
    let name = body.name.ok_or_else(|| ErrorReply::new(ErrorCode::PropertiesNeedValue))?;
    request::parse_table_name(&name)
}

/// Writes tables for one request.
#[derive(Clone, Copy, Debug)]
pub struct TableWriter<'a> {
    /// The URL of the account, without a slash at its end.
    pub base: &'a str,
    /// The account's name.
    pub account: &'a str,
    /// How much metadata is written.
    pub level: MetadataLevel,
}

impl TableWriter<'_> {
    /// Appends one table by itself.
    pub fn write_single(&self, out: &mut Vec<u8>, name: &str) {
        out.push(b'{');
        self.write_context(out, "/@Element");
        self.write_members(out, name);
        out.push(b'}');
    }

    /// Appends what comes before the first table of a page.
    pub fn write_page_start(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.write_context(out, "");
        out.extend_from_slice(b"\"value\":[");
    }

    /// Appends one table of a page.
    pub fn write_item(&self, out: &mut Vec<u8>, name: &str) {
        out.extend_from_slice(if out.last() == Some(&b'}') { b",{" } else { b"{" });
        self.write_members(out, name);
        out.push(b'}');
    }

    /// Appends what comes after the last table of a page.
    pub fn write_page_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    fn write_context(&self, out: &mut Vec<u8>, element: &str) {
        if self.level != MetadataLevel::None {
            out.extend_from_slice(b"\"odata.metadata\":");
            push_string(out, &format!("{}/$metadata#Tables{element}", self.base));
            out.push(b',');
        }
    }

    fn write_members(&self, out: &mut Vec<u8>, name: &str) {
        if self.level == MetadataLevel::Full {
            for (member, value) in [
                ("odata.type", format!("{}.Tables", self.account)),
                ("odata.id", format!("{}/Tables('{name}')", self.base)),
                ("odata.editLink", format!("Tables('{name}')")),
            ] {
                push_string(out, member);
                out.push(b':');
                push_string(out, &value);
                out.push(b',');
            }
        }
        out.extend_from_slice(b"\"TableName\":");
        push_string(out, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(level: MetadataLevel, write: impl Fn(&TableWriter<'_>, &mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&TableWriter { base: "http://h/a", account: "a", level }, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn tables_are_written_at_each_level() {
        for (level, single, page) in [
            (MetadataLevel::None, r#"{"TableName":"T"}"#, r#"{"value":[{"TableName":"T"},{"TableName":"U"}]}"#),
            (
                MetadataLevel::Minimal,
                r#"{"odata.metadata":"http://h/a/$metadata#Tables/@Element","TableName":"T"}"#,
                r#"{"odata.metadata":"http://h/a/$metadata#Tables","value":[{"TableName":"T"},{"TableName":"U"}]}"#,
            ),
        ] {
            assert_eq!(written(level, |w, out| w.write_single(out, "T")), single);
            let write_page = |w: &TableWriter<'_>, out: &mut Vec<u8>| {
                w.write_page_start(out);
                ["T", "U"].into_iter().for_each(|name| w.write_item(out, name));
                w.write_page_end(out);
            };
            assert_eq!(written(level, write_page), page);
        }
        assert_eq!(
            written(MetadataLevel::Full, |w, out| w.write_single(out, "T")),
            r#"{"odata.metadata":"http://h/a/$metadata#Tables/@Element","odata.type":"a.Tables","odata.id":"http://h/a/Tables('T')","odata.editLink":"Tables('T')","TableName":"T"}"#
        );
    }

    #[test]
    fn a_create_needs_a_name() {
        assert_eq!(
            parse_table_name(br#"{"TableName":"People","x":1}"#).map(|n| n.to_string()).as_deref(),
            Ok("People")
        );
        for (json, code) in [
            (r#"{}"#, ErrorCode::PropertiesNeedValue),
            (r#"{"TableName":null}"#, ErrorCode::PropertiesNeedValue),
            (r#"{"TableName":5}"#, ErrorCode::InvalidInput),
            ("x", ErrorCode::InvalidInput),
            (r#"{"TableName":"a"}"#, ErrorCode::OutOfRangeInput),
            (r#"{"TableName":"a-b-c"}"#, ErrorCode::InvalidResourceName),
            (r#"{"TableName":"tables"}"#, ErrorCode::InvalidResourceName),
        ] {
            assert_eq!(parse_table_name(json.as_bytes()).map_err(|e| e.code), Err(code), "{json}");
        }
    }
}
