//! The head of a request: method, URL and headers, collected once.
//!
//! Signatures, shared access signatures, CORS, routes, batches and storage analytics all read this type, and a request
//! inside a batch is the same type. The server collects it from a connection, `multipart.rs` from a part of a batch, and
//! the client from the request that it signs.

mod host;

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::uri;
use larimar_model::{Metadata, MetadataError, ResourceNameError, Timestamp};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A request without its body, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// Host and port of the URL, if that is absolute.
    pub authority: Option<&'a str>,
    /// The path of the URL, still escaped.
    pub path: &'a str,
    /// The query of the URL without its question mark, still escaped.
    pub query: &'a str,
    /// Names in any case, values of visible ASCII.
    headers: Vec<(&'a str, &'a str)>,
    /// The first header with a meaning to the services whose value is not visible ASCII.
    unreadable: Option<&'a str>,
    header_bytes: usize,
}

impl<'a> RequestHead<'a> {
    /// Collects a head. Names of headers are in any case.
    pub fn new<V: AsRef<[u8]> + ?Sized + 'a>(
        method: &'a str,
        path: &'a str,
        query: &'a str,
        headers: impl IntoIterator<Item = (&'a str, &'a V)>,
    ) -> Self {
        let headers = headers.into_iter();
        let list = Vec::with_capacity(headers.size_hint().0);
        let mut head = Self { method, authority: None, path, query, headers: list, unreadable: None, header_bytes: 0 };
        for (name, value) in headers {
            let value = value.as_ref();
            head.header_bytes += name.len() + value.len() + HEADER_LINE_BYTES;
            match visible_ascii(value) {
                Some(text) => head.headers.push((name, text)),
                None if has_meaning(name) => head.unreadable = head.unreadable.or(Some(name)),
                None => {}
            }
        }
        head
    }

    /// The same head with the host and port of an absolute URL.
    #[must_use]
    pub const fn with_authority(mut self, authority: Option<&'a str>) -> Self {
        self.authority = authority;
        self
    }

    /// Refuses headers that cannot be read or are sent twice, and a version that is not a date. To ignore an unreadable
    /// header would do something else than the client asked for: a write without its condition, a blob without its
    /// metadata.
    ///
    /// # Errors
    /// The first header that is refused.
    pub fn check(&self) -> Result<(), ErrorReply> {
        self.check_readable()?;
        match self.repeated() {
            None => {}
            Some(name) if name.eq_ignore_ascii_case("authorization") => {
                return Err(ErrorReply::new(ErrorCode::InvalidAuthenticationInfo));
            }
            Some(name) => return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, name, "")),
        }
        match self.raw_header("x-ms-version") {
            Some(version) if !is_version(version) => {
                Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-version", version))
            }
            _ => Ok(()),
        }
    }

    /// Refuses headers that have a meaning and cannot be read.
    ///
    /// # Errors
    /// The first such header.
    pub fn check_readable(&self) -> Result<(), ErrorReply> {
        match self.unreadable {
            None => Ok(()),
            Some(name) if starts_with(name, METADATA_PREFIX) => Err(ErrorReply::new(ErrorCode::InvalidMetadata)),
            Some(name) => Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, name, "")),
        }
    }

    /// A header that has one value only and is sent more than once. To use either value would be a guess, and a
    /// signature covers only one of them.
    fn repeated(&self) -> Option<&'a str> {
        let mut names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).filter(|name| is_single(name)).collect();
        names.sort_unstable_by(|one, other| compare_names(one, other));
        names.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(pair[1])).map(|pair| pair[0])
    }

    /// The value of a header as it was sent.
    #[must_use]
    pub fn raw_header(&self, name: &str) -> Option<&'a str> {
        self.raw_headers(name).next()
    }

    /// The values of a header as they were sent.
    pub fn raw_headers(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// The value of a header without the white space around it, if it is there and not empty.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.raw_header(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Whether a header is there, even if it is empty.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        self.raw_header(name).is_some()
    }

    /// All headers whose values are visible ASCII. The server keeps the client's spelling of the names of metadata.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.headers.iter().copied()
    }

    /// The bytes of all headers as they were sent.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// `x-ms-client-request-id`, unless it is too long.
    #[must_use]
    pub fn client_request_id(&self) -> Option<&'a str> {
        self.raw_header("x-ms-client-request-id").filter(|id| id.len() <= CLIENT_REQUEST_ID_BYTES_MAX)
    }

    /// The value of a parameter, decoded, if it is there and not empty. Names are in any case, and so are the values of
    /// `comp` and `restype`, which choose an operation: they are returned in lower case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut pairs = uri::query_pairs(self.query).flatten();
        let pair = pairs.find(|pair| pair.name.eq_ignore_ascii_case(name))?;
        let value = pair.value().ok().filter(|value| !value.is_empty())?;
        let is_word = matches!(name, "comp" | "restype") && value.bytes().any(|byte| byte.is_ascii_uppercase());
        Some(if is_word { Cow::Owned(value.to_ascii_lowercase()) } else { value })
    }

    /// The value of a parameter as it was sent; its name is in this case.
    #[must_use]
    pub fn raw_parameter(&self, name: &str) -> Option<&'a str> {
        uri::query_pairs(self.query).flatten().find(|pair| pair.name == name).map(|pair| pair.raw_value)
    }

    /// Refuses a query that cannot be decoded. [`RequestHead::parameter`] leaves such parameters out.
    ///
    /// # Errors
    /// The first parameter that cannot be decoded.
    pub fn check_query(&self) -> Result<(), ErrorReply> {
        for pair in uri::query_pairs(self.query) {
            let pair = pair.map_err(|_| ErrorReply::new(ErrorCode::InvalidQueryParameterValue))?;
            pair.value().map_err(|_| {
                ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, &pair.name, pair.raw_value)
            })?;
        }
        Ok(())
    }

    /// The version that the request asks for: that of the header, else of the query, else of the token.
    #[must_use]
    pub fn version(&self) -> Option<Cow<'a, str>> {
        let header = self.header("x-ms-version").map(Cow::Borrowed);
        header.or_else(|| self.parameter("api-version")).or_else(|| self.parameter("sv"))
    }

    /// Whether the request follows the rules of this version or of a later one. Without a version it follows
    /// the latest.
    #[must_use]
    pub fn is_since(&self, version: &str) -> bool {
        // Versions are dates, so that they compare as texts.
        self.version().is_none_or(|own| *own >= *version)
    }

    /// The bytes of the body.
    ///
    /// # Errors
    /// 400 if the length is not a number, 411 if there is none.
    pub fn content_length(&self) -> Result<u64, ErrorReply> {
        self.number_header("content-length")?.ok_or(ErrorReply::new(ErrorCode::MissingContentLengthHeader))
    }

    /// The metadata in `x-ms-meta-*`.
    ///
    /// # Errors
    /// Names, values and sizes that metadata may not have.
    pub fn metadata(&self) -> Result<Metadata, ErrorReply> {
        let mut metadata = Metadata::new();
        for (name, value) in self.headers() {
            if starts_with(name, METADATA_PREFIX) {
                metadata.insert(&name[METADATA_PREFIX.len()..], value.trim()).map_err(|error| match error {
                    MetadataError::EmptyName => ErrorReply::new(ErrorCode::EmptyMetadataKey),
                    MetadataError::Name | MetadataError::Value | MetadataError::Duplicate => {
                        ErrorReply::new(ErrorCode::InvalidMetadata)
                    }
                    MetadataError::TooLarge => ErrorReply::new(ErrorCode::MetadataTooLarge),
                })?;
            }
        }
        Ok(metadata)
    }

    /// A number of the query.
    ///
    /// # Errors
    /// A value that is not a number or is out of range.
    pub fn number_parameter(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, ErrorReply> {
        let Some(text) = self.parameter(name) else { return Ok(None) };
        let invalid = || ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, name, &text);
        let number: i64 = text.parse().map_err(|_| invalid())?;
        if !range.contains(&number) {
            let reply = ErrorReply::of_parameter(ErrorCode::OutOfRangeQueryParameterValue, name, &text)
                .with_detail("MinimumAllowed", &range.start().to_string())
                .with_detail("MaximumAllowed", &range.end().to_string());
            return Err(reply);
        }
        Ok(Some(number))
    }

    /// A parameter that the request must have.
    ///
    /// # Errors
    /// A query without it.
    pub fn required_parameter(&self, name: &str) -> Result<Cow<'a, str>, ErrorReply> {
        let missing =
            || ErrorReply::new(ErrorCode::MissingRequiredQueryParameter).with_detail("QueryParameterName", name);
        self.parameter(name).ok_or_else(missing)
    }

    /// A number in a header.
    ///
    /// # Errors
    /// A value that is not a number.
    pub fn number_header(&self, name: &str) -> Result<Option<u64>, ErrorReply> {
        self.parsed_header(name, |text| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?)
    }

    /// A header as a type of ours.
    ///
    /// # Errors
    /// A value that is not of that type.
    pub fn header_as<T: FromStr>(&self, name: &str) -> Result<Option<T>, ErrorReply> {
        self.parsed_header(name, |text| text.parse().ok())
    }

    /// A header that the request must have.
    ///
    /// # Errors
    /// A request without it.
    pub fn required_header(&self, name: &str) -> Result<&'a str, ErrorReply> {
        let missing = || ErrorReply::new(ErrorCode::MissingRequiredHeader).with_detail("HeaderName", name);
        self.header(name).ok_or_else(missing)
    }

    /// An HTTP date in a header.
    ///
    /// # Errors
    /// A value that is not such a date.
    pub fn date_header(&self, name: &str) -> Result<Option<Timestamp>, ErrorReply> {
        self.parsed_header(name, |text| {
            let time = httpdate::parse_http_date(text).ok()?;
            Some(Timestamp::from_unix(time.duration_since(std::time::UNIX_EPOCH).ok()?))
        })
    }

    /// A header parsed by `parse`, which returns `None` for a value that it refuses.
    ///
    /// # Errors
    /// A value that `parse` refuses.
    pub fn parsed_header<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, ErrorReply> {
        let Some(text) = self.header(name) else { return Ok(None) };
        match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, name, text)),
        }
    }
}

/// Whether a version has the form of one: a date.
#[must_use]
pub fn is_version(version: &str) -> bool {
    version.len() == 10
        && version.bytes().enumerate().all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() })
}

/// The error for a parameter with a reason that the client can read.
pub(crate) fn parameter_error(name: &str, value: &str, reason: impl Display) -> ErrorReply {
    ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, name, value)
        .with_detail("Reason", &reason.to_string())
}

/// The error for a name of a queue or a container.
pub(crate) fn name_error(error: ResourceNameError) -> ErrorReply {
    match error {
        ResourceNameError::Length => {
            let message = "The specified resource name length is not within the permissible limits.";
            ErrorReply::with_message(ErrorCode::OutOfRangeInput, message)
        }
        ResourceNameError::Characters => ErrorReply::new(ErrorCode::InvalidResourceName),
    }
}

/// The text of a header's value, if it is visible ASCII with spaces and tabs.
fn visible_ascii(value: &[u8]) -> Option<&str> {
    // Without a branch for each byte, so that the compiler can check many at once.
    let is_visible = value.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~' | b'\t'));
    if is_visible { std::str::from_utf8(value).ok() } else { None }
}

fn starts_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Whether the services give a header a meaning.
fn has_meaning(name: &str) -> bool {
    ["x-ms-", "if-", "content-", "range", "cache-control"].iter().any(|start| starts_with(name, start))
}

/// Whether a header may be sent once only. Metadata has its own error for names that are sent twice.
fn is_single(name: &str) -> bool {
    match starts_with(name, "x-ms-") {
        true => !starts_with(name, METADATA_PREFIX),
        false => SINGLE.iter().any(|single| name.eq_ignore_ascii_case(single)),
    }
}

/// An order in which equal names are neighbours. Most names differ in their length.
fn compare_names(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| lower_bytes(one).cmp(lower_bytes(other)))
}

fn lower_bytes(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| byte.to_ascii_lowercase())
}

const METADATA_PREFIX: &str = "x-ms-meta-";

/// A colon and a space between name and value, and the end of the line.
const HEADER_LINE_BYTES: usize = 4;

/// The service's reference, "x-ms-client-request-id".
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// Headers of HTTP that have one value.
const SINGLE: [&str; 12] = [
    "authorization",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-unmodified-since",
    "origin",
    "range",
];

#[cfg(test)]
mod tests;
