//! Content negotiation: how much metadata an answer carries, and whether it carries anything at all.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;

/// How much OData metadata a JSON answer carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataLevel {
    /// `odata=nometadata`.
    None,
    /// `odata=minimalmetadata`.
    Minimal,
    /// `odata=fullmetadata`.
    Full,
}

/// What the client wants to get back from an insert or a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefer {
    /// `return-no-content`.
    NoContent,
    /// `return-content`.
    Content,
}

impl MetadataLevel {
    /// The `Content-Type` of an answer at this level.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }

    /// The level that `$format`, or else `Accept`, asks for.
    ///
    /// # Errors
    /// 415 when the client takes only Atom, and when its version has no JSON.
    pub(super) fn negotiate(
        format: Option<&str>,
        accept: Option<&str>,
        version: Option<&str>,
    ) -> Result<Self, ErrorReply> {
        let wanted = format.or(accept).unwrap_or("");
        let mut is_atom = false;
        for range in wanted.split(',') {
            let mut parts = range.split(';').map(str::trim);
            match parts.next().unwrap_or("") {
                media if media.eq_ignore_ascii_case("application/json") || media.eq_ignore_ascii_case("json") => {
                    return Self::of_json(parts, version);
                }
                "" | "*/*" | "application/*" => return Self::of_json(parts, version),
                media if media.eq_ignore_ascii_case("application/atom+xml") || media.eq_ignore_ascii_case("atom") => {
                    is_atom = true;
                }
                _ => {}
            }
        }
        // Other types are those of error bodies and XML operations; only Atom alone cannot be served.
        if is_atom {
            Err(ErrorReply::new(ErrorCode::AtomFormatNotSupported))
        } else {
            Self::of_json(std::iter::empty(), version)
        }
    }

    fn of_json<'a>(parameters: impl Iterator<Item = &'a str>, version: Option<&str>) -> Result<Self, ErrorReply> {
        if version.is_some_and(|version| version < FIRST_JSON_VERSION) {
            return Err(ErrorReply::new(ErrorCode::JsonFormatNotSupported));
        }
        for parameter in parameters {
            let Some((name, value)) = parameter.split_once('=') else { continue };
            if !name.trim().eq_ignore_ascii_case("odata") {
                continue;
            }
            return match value.trim().to_ascii_lowercase().as_str() {
                "nometadata" => Ok(Self::None),
                "fullmetadata" => Ok(Self::Full),
                "verbose" => Err(ErrorReply::new(ErrorCode::JsonVerboseFormatNotSupported)),
                _ => Ok(Self::Minimal),
            };
        }
        Ok(Self::Minimal)
    }
}

impl Prefer {
    pub(super) fn parse(header: &str) -> Option<Self> {
        let preference = header.trim();
        [Self::NoContent, Self::Content].into_iter().find(|known| preference.eq_ignore_ascii_case(known.name()))
    }

    /// The value of `Preference-Applied`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoContent => "return-no-content",
            Self::Content => "return-content",
        }
    }
}

/// Refuses a body whose `Content-Type` is not JSON.
pub(super) fn check_json_body(content_type: Option<&str>) -> Result<(), ErrorReply> {
    let media = content_type.unwrap_or("").split(';').next().unwrap_or("").trim();
    if media.eq_ignore_ascii_case("application/atom+xml") || media.eq_ignore_ascii_case("application/xml") {
        return Err(ErrorReply::new(ErrorCode::AtomFormatNotSupported));
    }
    Ok(())
}

const FIRST_JSON_VERSION: &str = "2013-08-15";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_wins_over_accept_and_json_is_the_default() {
        for (format, accept, level) in [
            (None, None, MetadataLevel::Minimal),
            (None, Some("*/*"), MetadataLevel::Minimal),
            (None, Some("application/json"), MetadataLevel::Minimal),
            (None, Some("application/json; odata=nometadata"), MetadataLevel::None),
            (None, Some("application/json;odata=fullmetadata;q=0.9"), MetadataLevel::Full),
            (
                Some("application/json;odata=fullmetadata"),
                Some("application/json;odata=nometadata"),
                MetadataLevel::Full,
            ),
            (None, Some("application/atom+xml,application/json;odata=nometadata"), MetadataLevel::None),
            (None, Some("application/xml"), MetadataLevel::Minimal),
        ] {
            assert_eq!(
                MetadataLevel::negotiate(format, accept, Some("2019-02-02")),
                Ok(level),
                "{format:?} {accept:?}"
            );
        }
    }

    #[test]
    fn atom_alone_and_json_before_its_time_are_refused() {
        let code =
            |accept, version| MetadataLevel::negotiate(None, Some(accept), version).map_err(|e| (e.code, e.status));
        assert_eq!(code("application/atom+xml", None), Err((ErrorCode::AtomFormatNotSupported, 415)));
        assert_eq!(code("application/json", Some("2012-02-12")), Err((ErrorCode::JsonFormatNotSupported, 415)));
        assert_eq!(code("application/json;odata=verbose", None), Err((ErrorCode::JsonVerboseFormatNotSupported, 415)));
    }
}
