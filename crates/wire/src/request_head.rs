//! What the requests to the Queue and Blob services have in common: parameters, headers, metadata, versions,
//! and the errors of each.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::uri;
use larimar_model::{Metadata, MetadataError, ResourceNameError, Timestamp};
use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A request without its body, its query decoded.
#[derive(Clone, Debug)]
pub struct RequestHead<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The raw path below the account.
    pub path: &'a str,
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    headers: Vec<(&'a str, &'a str)>,
}

impl<'a> RequestHead<'a> {
    /// Takes a request apart. `path` is the raw path below the account, `query` comes without its question
    /// mark, names of headers are in any case.
    ///
    /// # Errors
    /// A query that cannot be decoded.
    pub fn new(
        method: &'a str,
        path: &'a str,
        query: &'a str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ErrorReply> {
        let mut parameters = Vec::new();
        for pair in uri::query_pairs(query) {
            let pair = pair.map_err(|_| ErrorReply::new(ErrorCode::InvalidQueryParameterValue))?;
            let value = pair.value().map_err(|_| {
                ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, &pair.name, pair.raw_value)
            })?;
            // The words that choose an operation have no case.
            let is_word = ["comp", "restype"].iter().any(|name| pair.name.eq_ignore_ascii_case(name));
            let value = match is_word && value.bytes().any(|byte| byte.is_ascii_uppercase()) {
                true => Cow::Owned(value.to_ascii_lowercase()),
                false => value,
            };
            parameters.push((pair.name, value));
        }
        Ok(Self { method, path, parameters, headers: headers.into_iter().collect() })
    }

    /// The value of a parameter, if it is there and not empty.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value).filter(|value| !value.is_empty())
    }

    /// The value of a header without the white space around it, if it is there and not empty.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// Whether a header is there, even if it is empty.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// The version that the request asks for: that of the header, else of the query, else of the token.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.header("x-ms-version").or_else(|| self.parameter("api-version")).or_else(|| self.parameter("sv"))
    }

    /// Whether the request follows the rules of this version or of a later one. Without a version it follows
    /// the latest.
    #[must_use]
    pub fn is_since(&self, version: &str) -> bool {
        // Versions are dates, so that they compare as texts.
        self.version().is_none_or(|own| own >= version)
    }

    /// The bytes of the body.
    ///
    /// # Errors
    /// 400 if the length is not a number, 411 if there is none.
    pub fn content_length(&self) -> Result<u64, ErrorReply> {
        self.number_header("content-length")?.ok_or(ErrorReply::new(ErrorCode::MissingContentLengthHeader))
    }

    /// What `x-ms-meta-*` says.
    ///
    /// # Errors
    /// Names, values and sizes that metadata may not have.
    pub fn metadata(&self) -> Result<Metadata, ErrorReply> {
        let mut metadata = Metadata::new();
        for (name, value) in &self.headers {
            let Some(start) = name.get(..METADATA_PREFIX.len()) else { continue };
            if start.eq_ignore_ascii_case(METADATA_PREFIX) {
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
        let invalid = || ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, name, text);
        let number: i64 = text.parse().map_err(|_| invalid())?;
        if !range.contains(&number) {
            let reply = ErrorReply::of_parameter(ErrorCode::OutOfRangeQueryParameterValue, name, text)
                .with_detail("MinimumAllowed", &range.start().to_string())
                .with_detail("MaximumAllowed", &range.end().to_string());
            return Err(reply);
        }
        Ok(Some(number))
    }

    /// A parameter that has to be there.
    ///
    /// # Errors
    /// A query without it.
    pub fn required_parameter(&self, name: &str) -> Result<&str, ErrorReply> {
        let missing =
            || ErrorReply::new(ErrorCode::MissingRequiredQueryParameter).with_detail("QueryParameterName", name);
        self.parameter(name).ok_or_else(missing)
    }

    /// A number that a header has.
    ///
    /// # Errors
    /// A value that is not a number.
    pub fn number_header(&self, name: &str) -> Result<Option<u64>, ErrorReply> {
        self.parsed_header(name, |text| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?)
    }

    /// A header as a type of ours.
    ///
    /// # Errors
    /// What is not of that type.
    pub fn header_as<T: FromStr>(&self, name: &str) -> Result<Option<T>, ErrorReply> {
        self.parsed_header(name, |text| text.parse().ok())
    }

    /// A header that has to be there.
    ///
    /// # Errors
    /// A request without it.
    pub fn required_header(&self, name: &str) -> Result<&'a str, ErrorReply> {
        let missing = || ErrorReply::new(ErrorCode::MissingRequiredHeader).with_detail("HeaderName", name);
        self.header(name).ok_or_else(missing)
    }

    /// A time of HTTP that a header has.
    ///
    /// # Errors
    /// A value that is not such a time.
    pub fn date_header(&self, name: &str) -> Result<Option<Timestamp>, ErrorReply> {
        self.parsed_header(name, |text| {
            let time = httpdate::parse_http_date(text).ok()?;
            Some(Timestamp::from_unix(time.duration_since(std::time::UNIX_EPOCH).ok()?))
        })
    }

    /// A header read by `parse`, which gives nothing for what it cannot read.
    ///
    /// # Errors
    /// What cannot be read.
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

const METADATA_PREFIX: &str = "x-ms-meta-";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head<'a>(query: &'a str, headers: &[(&'a str, &'a str)]) -> RequestHead<'a> {
        RequestHead::new("GET", "/", query, headers.iter().copied()).expect("a query")
    }

    #[test]
    fn parameters_and_headers_have_no_case_and_no_empty_values() {
        let head = head("Comp=LIST&prefix=&a=%20b", &[("X-Ms-Version", " 2019-02-02 "), ("range", "")]);
        assert_eq!(
            (head.parameter("comp"), head.parameter("prefix"), head.parameter("a")),
            (Some("list"), None, Some(" b"))
        );
        assert_eq!((head.header("x-ms-version"), head.header("Range")), (Some("2019-02-02"), None));
        assert!(head.has_header("Range") && !head.has_header("date"));
        assert!(head.is_since("2019-02-02") && !head.is_since("2019-02-03"));
        assert!(self::head("", &[]).is_since("2026-01-01"));
        assert!(!self::head("sv=2018-11-09", &[]).is_since("2019-02-02"));
    }

    #[test]
    fn numbers_and_dates_are_read_or_refused_with_their_details() {
        let head = head(
            "n=7&big=33&bad=x",
            &[("content-length", "12"), ("x", "-1"), ("d", "Fri, 06 May 2022 00:31:05 GMT"), ("e", "soon")],
        );
        assert_eq!(head.number_parameter("n", 1..=32), Ok(Some(7)));
        assert_eq!(head.number_parameter("other", 1..=32), Ok(None));
        let out_of_range = head.number_parameter("big", 1..=32).expect_err("too much");
        assert_eq!(out_of_range.code, ErrorCode::OutOfRangeQueryParameterValue);
        assert_eq!(out_of_range.details[3], ("MaximumAllowed", "32".to_owned()));
        assert_eq!(
            head.number_parameter("bad", 1..=32).expect_err("no number").code,
            ErrorCode::InvalidQueryParameterValue
        );
        assert_eq!(head.content_length(), Ok(12));
        assert_eq!(head.number_header("x").expect_err("no number").code, ErrorCode::InvalidHeaderValue);
        assert_eq!(head.date_header("d"), Ok(Timestamp::parse("2022-05-06T00:31:05Z").ok()));
        assert_eq!(head.date_header("e").expect_err("no date").details[0].1, "e");
        assert_eq!(head.required_header("f").expect_err("none").code, ErrorCode::MissingRequiredHeader);
        assert_eq!(head.required_parameter("f").expect_err("none").code, ErrorCode::MissingRequiredQueryParameter);
        assert_eq!(self::head("", &[]).content_length().expect_err("none").status, 411);
        assert!(RequestHead::new("GET", "/", "a=%zz", []).is_err());
    }

    #[test]
    fn metadata_is_what_headers_of_its_prefix_say() {
        let two =
            head("", &[("X-Ms-Meta-Color", " red "), ("x-ms-meta-empty", ""), ("x-ms-date", "x"), ("x-ms-meta", "y")]);
        let metadata = two.metadata().expect("metadata");
        assert_eq!(metadata.iter().collect::<Vec<_>>(), [("Color", "red"), ("empty", "")]);
        let large = "v".repeat(8192);
        for (name, value, code) in [
            ("x-ms-meta-", "v", ErrorCode::EmptyMetadataKey),
            ("x-ms-meta-a-b", "v", ErrorCode::InvalidMetadata),
            ("x-ms-meta-a", "é", ErrorCode::InvalidMetadata),
            ("x-ms-meta-a", &*large, ErrorCode::MetadataTooLarge),
        ] {
            assert_eq!(head("", &[(name, value)]).metadata().map_err(|error| error.code), Err(code), "{name}");
        }
        let twice = head("", &[("x-ms-meta-a", "1"), ("x-ms-meta-A", "1")]);
        assert_eq!(twice.metadata().map_err(|error| error.code), Err(ErrorCode::InvalidMetadata));
    }

    proptest! {
        #[test]
        fn any_metadata_is_read_or_refused(name in "\\PC{0,12}", value in "\\PC{0,12}") {
            let name = format!("x-ms-meta-{name}");
            if let Ok(metadata) = head("", &[(&name, &value)]).metadata() {
                prop_assert_eq!(metadata.iter().len(), 1);
            }
        }
    }
}
