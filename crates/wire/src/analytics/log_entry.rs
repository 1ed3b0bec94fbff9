//! One request as a line of the log: its fields, in versions 1.0 and 2.0 of the form.

use super::status::{Authentication, Outcome};
use crate::error_code::ErrorCode;
use crate::operation::Kind;
use crate::sas::Service;
use crate::service_properties::LoggingVersion;
use crate::uri::query_pairs;
use larimar_model::Timestamp;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

/// What a log keeps of one request. Texts that there are not are empty.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// When it came.
    pub start: Timestamp,
    /// The operation.
    pub operation: &'static str,
    /// Which of the log's three switches the operation falls under.
    pub kind: Kind,
    /// How it said who sends it.
    pub authentication: Authentication,
    /// How it ended.
    pub outcome: Outcome,
    /// The code that it failed with.
    pub code: Option<ErrorCode>,
    /// The HTTP status that it was answered with.
    pub status: u16,
    /// From the first byte of the request to the last one of the answer.
    pub end_to_end: Duration,
    /// The same without waiting for the network.
    pub server: Duration,
    /// The URL, without the signature that may be in it: see [`mask_signature`].
    pub url: String,
    /// What was asked for, such as `/account/container/blob`.
    pub object_key: String,
    /// The identifier that the server gave it.
    pub request_id: String,
    /// Where it came from.
    pub peer: SocketAddr,
    /// The version of the protocol that it asked for.
    pub version: String,
    /// Bytes of its head.
    pub request_header_bytes: u64,
    /// Bytes of its body that were read.
    pub request_bytes: u64,
    /// Bytes of the answer's head.
    pub response_header_bytes: u64,
    /// Bytes of the answer's body.
    pub response_bytes: u64,
    /// Its `Content-Length`.
    pub content_length: u64,
    /// Its `Content-MD5`.
    pub request_md5: String,
    /// The answer's `Content-MD5`.
    pub server_md5: String,
    /// The answer's `ETag`.
    pub etag: String,
    /// The answer's `Last-Modified`.
    pub last_modified: String,
    /// The conditions that it came with: see [`write_condition`].
    pub conditions: String,
    /// Its `User-Agent`.
    pub user_agent: String,
    /// Its `Referer`.
    pub referrer: String,
    /// Its `x-ms-client-request-id`.
    pub client_request_id: String,
    /// The source of a copy.
    pub copy_source: String,
}

/// What all entries of a log have in common.
#[derive(Clone, Copy, Debug)]
pub struct LogOf<'a> {
    /// The form of the entries.
    pub version: LoggingVersion,
    /// The account.
    pub account: &'a str,
    /// The service.
    pub service: Service,
}

/// What differs between the lines of one request. Most requests have one line.
struct Part<'a> {
    operation: &'a str,
    object_key: &'a str,
    count: u32,
}

impl LogEntry {
    /// Appends the request's lines. A copy has three: of itself, of its source and of its destination.
    pub fn write(&self, of: &LogOf<'_>, out: &mut String) {
        let object_key = self.object_key.as_str();
        self.write_line(of, &Part { operation: self.operation, object_key, count: 0 }, out);
        if self.operation == "CopyBlob" {
            let source = self.copy_source.as_str();
            self.write_line(of, &Part { operation: "CopyBlobSource", object_key: source, count: 1 }, out);
            self.write_line(of, &Part { operation: "CopyBlobDestination", object_key, count: 2 }, out);
        }
    }

    /// About how many bytes the entry takes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = [
            &self.url,
            &self.object_key,
            &self.request_id,
            &self.version,
            &self.request_md5,
            &self.server_md5,
            &self.etag,
            &self.last_modified,
            &self.conditions,
            &self.user_agent,
            &self.referrer,
            &self.client_request_id,
            &self.copy_source,
        ];
        size_of::<Self>() + texts.iter().map(|text| text.capacity()).sum::<usize>()
    }

    /// The entry with its longest texts cut: a request may have a head of 64 KiB, and most of it would be logged.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        for (text, bytes_max) in [
            (&mut self.url, ADDRESS_BYTES_MAX),
            (&mut self.object_key, ADDRESS_BYTES_MAX),
            (&mut self.copy_source, ADDRESS_BYTES_MAX),
            (&mut self.referrer, TEXT_BYTES_MAX),
            (&mut self.client_request_id, TEXT_BYTES_MAX),
            (&mut self.conditions, TEXT_BYTES_MAX),
            (&mut self.user_agent, TEXT_BYTES_MAX),
            (&mut self.version, VALUE_BYTES_MAX),
            (&mut self.request_md5, VALUE_BYTES_MAX),
            (&mut self.server_md5, VALUE_BYTES_MAX),
            (&mut self.etag, VALUE_BYTES_MAX),
            (&mut self.last_modified, VALUE_BYTES_MAX),
        ] {
            cut(text, bytes_max);
        }
        self
    }

    fn write_line(&self, of: &LogOf<'_>, part: &Part<'_>, out: &mut String) {
        let requester = if self.authentication == Authentication::Key { of.account } else { "" };
        let head = write!(
            out,
            "{};{};{};{};{};{};{};{};{requester};{};{};",
            of.version.as_str(),
            self.start.to_seven_digits(),
            part.operation,
            self.status_text(),
            self.status,
            self.end_to_end.as_millis(),
            self.server.as_millis(),
            self.authentication.as_str(),
            of.account,
            of.service.name(),
        );
        head.expect("a string takes every write");
        push_quoted(out, &self.url);
        out.push(';');
        push_quoted(out, part.object_key);
        let sizes = write!(
            out,
            ";{};{};{};{};{};{};{};{};{};",
            self.request_id,
            part.count,
            self.peer,
            self.version,
            self.request_header_bytes,
            self.request_bytes,
            self.response_header_bytes,
            self.response_bytes,
            self.content_length,
        );
        sizes.expect("a string takes every write");
        // The further lines of a copy tell of no version of a blob.
        let (etag, last_modified) =
            if part.count == 0 { (self.etag.as_str(), rfc850(&self.last_modified)) } else { ("", None) };
        for text in [&self.request_md5, &self.server_md5, etag] {
            push_quoted(out, text);
            out.push(';');
        }
        out.push_str(&last_modified.unwrap_or_default());
        for text in [&self.conditions, &self.user_agent, &self.referrer, &self.client_request_id] {
            out.push(';');
            push_quoted(out, text);
        }
        if of.version == LoggingVersion::Two {
            // Who the caller is by OAuth; there is no such caller here.
            out.push_str(";;;;;;;;");
        }
        out.push('\n');
    }

    /// The outcome's name; instead of `ClientOtherError` the error's own code, for requests of a version that knows it.
    fn status_text(&self) -> &'static str {
        match (self.outcome, self.code) {
            (Outcome::ClientOtherError, Some(code)) if self.version.as_str() >= CODES_SINCE => code.as_str(),
            _ => self.outcome.name(self.authentication),
        }
    }
}

/// The version from which on client errors are logged by their codes (service: log format).
const CODES_SINCE: &str = "2017-04-17";

/// Bytes of an encoded URL or object key in a log: a blob's longest address fits.
const ADDRESS_BYTES_MAX: usize = 4096;
/// Bytes of an encoded text that a client is free to choose.
const TEXT_BYTES_MAX: usize = 1024;
/// Bytes of an encoded checksum, tag or date.
const VALUE_BYTES_MAX: usize = 128;
/// What a text that was cut ends with.
const CUT: &str = "...";

/// Cuts a text whose encoded form would be longer than this.
fn cut(text: &mut String, bytes_max: usize) {
    let mut encoded = 0;
    let mut end = 0;
    for (at, character) in text.char_indices() {
        encoded += encoding(character).map_or(character.len_utf8(), str::len);
        if encoded > bytes_max {
            text.truncate(end);
            text.push_str(CUT);
            break;
        }
        if encoded + CUT.len() <= bytes_max {
            end = at + character.len_utf8();
        }
    }
    text.shrink_to_fit();
}

/// A query string with `XXXXX` in the place of a signature, which would let readers of the log act as its holder.
#[must_use]
pub fn mask_signature(query: &str) -> String {
    let mut masked = String::with_capacity(query.len());
    for part in query.split('&') {
        if !masked.is_empty() {
            masked.push('&');
        }
        let is_signature = query_pairs(part).flatten().next().is_some_and(|pair| pair.name.eq_ignore_ascii_case("sig"));
        masked.push_str(if is_signature { "sig=XXXXX" } else { part });
    }
    masked
}

/// A text that may be a URL or hold one, with `XXXXX` in the place of every signature: in its query, and wherever else
/// `sig=` stands, also inside a URL that is a parameter of another.
#[must_use]
pub fn mask_signatures_in(text: &str) -> String {
    let masked = match text.split_once('?') {
        Some((path, query)) => format!("{path}?{}", mask_signature(query)),
        None => text.to_owned(),
    };
    let folded = masked.to_ascii_lowercase();
    let mut out = String::with_capacity(masked.len());
    let mut rest = 0;
    while let Some(found) = folded[rest..].find("sig") {
        let name_end = rest + found + "sig".len();
        let Some(equals) = equals_bytes(&folded[name_end..]) else {
            out.push_str(&masked[rest..name_end]);
            rest = name_end;
            continue;
        };
        out.push_str(&masked[rest..name_end + equals]);
        out.push_str("XXXXX");
        let value = &folded.as_bytes()[name_end + equals..];
        let ends = ["&", "#", " ", "\"", "<", ">", "%26", "%23"];
        // Place by place: a search for each end would read the whole text for every signature.
        let is_end = |at: &usize| ends.iter().any(|end| value[*at..].starts_with(end.as_bytes()));
        let length = (0..value.len()).find(is_end).unwrap_or(value.len());
        rest = name_end + equals + length;
    }
    out.push_str(&masked[rest..]);
    out
}

/// How many bytes an equals sign takes at the start of a text in lower case, percent-encoded any number of times or not
/// at all; nothing if there is none.
fn equals_bytes(text: &str) -> Option<usize> {
    if text.starts_with('=') {
        return Some(1);
    }
    let mut rest = text.strip_prefix('%')?;
    while let Some(inner) = rest.strip_prefix("25") {
        rest = inner;
    }
    rest.starts_with("3d").then(|| text.len() - rest.len() + 2)
}

/// Appends a condition that a request came with, dates in the form that logs have.
pub fn write_condition(conditions: &mut String, name: &str, value: &str) {
    if !conditions.is_empty() {
        conditions.push(';');
    }
    conditions.push_str(name);
    conditions.push('=');
    conditions.push_str(rfc850(value).as_deref().unwrap_or(value));
}

/// `Thu, 19 Jun 2014 22:58:10 GMT` in the form that logs have: `Thursday, 19-Jun-14 22:58:10 GMT`.
fn rfc850(date: &str) -> Option<String> {
    let (day, rest) = date.split_once(", ")?;
    let day = WEEKDAYS.iter().find(|name| name.starts_with(day) && day.len() == 3)?;
    let mut parts = rest.split(' ');
    let (date, month, year, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_plain = |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_time = time.len() == 8 && time.bytes().all(|b| b.is_ascii_digit() || b == b':');
    if parts.next() != Some("GMT") || parts.next().is_some() || !is_time {
        return None;
    }
    let is_date = is_plain(date, 2) && is_plain(month, 3) && is_plain(year, 4);
    is_date.then(|| format!("{day}, {date}-{month}-{} {time} GMT", &year[2..]))
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Appends a text in quotes, encoded as HTML has it; nothing for no text.
fn push_quoted(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    out.push('"');
    for character in text.chars() {
        match encoding(character) {
            Some(encoded) => out.push_str(encoded),
            None => out.push(character),
        }
    }
    out.push('"');
}

/// How a character is written, if not as it is.
const fn encoding(character: char) -> Option<&'static str> {
    match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        '\n' => Some("&#10;"),
        '\r' => Some("&#13;"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
