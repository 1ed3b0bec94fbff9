//! The headers that requests to the Blob service share: conditions, leases, content headers, checks, tags,
//! sources of copies.

use super::operation::{BodyChecks, Source};
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::request_head::RequestHead;
use crate::uri;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_model::blob::{
    AccessConditions, AccessTier, BlobType, BreakPeriod, ByteRange, Conditions, ContentHeaders, CopyInfo,
    ETagCondition, LeaseAction, LeaseDuration, LeaseId, SnapshotTime, TagCondition, Tags, TagsError,
};
use std::fmt;

/// Headers of features that are not implemented. A request with one is refused: without the feature it would do something
/// else than the client expects.
const UNSUPPORTED: [&str; 8] = [
    "x-ms-encryption-key",
    "x-ms-encryption-scope",
    "x-ms-immutability-policy-until-date",
    "x-ms-immutability-policy-mode",
    "x-ms-structured-body",
    "x-ms-copy-source-authorization",
    "x-ms-previous-snapshot-url",
    "x-ms-legal-hold",
];

/// Refuses requests with a header of a feature that is not implemented.
pub(super) fn refuse_unsupported(head: &RequestHead<'_>) -> Result<(), ErrorReply> {
    let asked = |name: &&&str| head.header(name).is_some_and(|value| !value.eq_ignore_ascii_case("false"));
    match UNSUPPORTED.iter().find(asked) {
        Some(name) => Err(ErrorReply::new(ErrorCode::UnsupportedHeader).with_detail("HeaderName", name)),
        None => Ok(()),
    }
}

/// The absolute URL of another blob. `Debug` leaves out its signature.
#[derive(Clone, PartialEq, Eq)]
pub struct CopySource {
    url: String,
    authority: usize,
    path: usize,
    query: usize,
}

impl CopySource {
    /// Parses an absolute HTTP URL. The fragment is dropped.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let url = text.split('#').next()?;
        let authority = ["http://", "https://"].into_iter().find_map(|scheme| {
            let start = url.get(..scheme.len())?;
            start.eq_ignore_ascii_case(scheme).then_some(scheme.len())
        })?;
        let is_plain = |byte: u8| byte > b' ' && byte != 0x7F;
        if url.len() > SOURCE_BYTES_MAX || !url.bytes().all(is_plain) {
            return None;
        }
        let end = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
        let query = url[end..].find('?').map_or(url.len(), |at| end + at);
        (end > authority).then(|| Self { url: url.to_owned(), authority, path: end, query })
    }

    /// The whole URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.url
    }

    /// Host and port.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.url[self.authority..self.path]
    }

    /// The raw path; empty, or with its slash.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.url[self.path..self.query]
    }

    /// The raw query without its question mark.
    #[must_use]
    pub fn query(&self) -> &str {
        self.url[self.query..].strip_prefix('?').unwrap_or("")
    }
}

impl fmt::Debug for CopySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CopySource").field(&CopyInfo::shown_source(&self.url)).finish()
    }
}

/// Bytes of a source's URL (service: copy blob).
const SOURCE_BYTES_MAX: usize = 2048;

pub(super) fn access(head: &RequestHead<'_>) -> Result<AccessConditions, ErrorReply> {
    Ok(AccessConditions { conditions: conditions(head, "")?, ..lease_and_if_tags(head)? })
}

/// The conditions of operations that support only the lease and the condition on tags.
pub(super) fn lease_and_if_tags(head: &RequestHead<'_>) -> Result<AccessConditions, ErrorReply> {
    Ok(AccessConditions { lease: lease(head)?, if_tags: if_tags(head, IF_TAGS)?, ..AccessConditions::default() })
}

/// Refuses a condition on tags where it is not supported, as the operation would run without it.
pub(super) fn refuse_if_tags(head: &RequestHead<'_>) -> Result<(), ErrorReply> {
    match [IF_TAGS, SOURCE_IF_TAGS].into_iter().find(|name| head.header(name).is_some()) {
        Some(name) => Err(ErrorReply::new(ErrorCode::UnsupportedHeader).with_detail("HeaderName", name)),
        None => Ok(()),
    }
}

/// Parses a header with a condition on tags.
pub(super) fn if_tags(head: &RequestHead<'_>, name: &str) -> Result<Option<TagCondition>, ErrorReply> {
    head.parsed_header(name, |text| TagCondition::parse(text).ok())
}

pub(super) const IF_TAGS: &str = "x-ms-if-tags";
const SOURCE_IF_TAGS: &str = "x-ms-source-if-tags";

/// The conditions of operations on containers, which support only conditions on times.
pub(super) fn container_access(head: &RequestHead<'_>) -> Result<AccessConditions, ErrorReply> {
    let access = access(head)?;
    if access.conditions.if_match.is_some() || access.conditions.if_none_match.is_some() {
        return Err(ErrorReply::new(ErrorCode::ConditionHeadersNotSupported));
    }
    Ok(access)
}

/// The conditions of Get and Set Blob Tags on the blob have names of their own (service: 2026-02-06).
pub(super) fn tags_access(head: &RequestHead<'_>) -> Result<AccessConditions, ErrorReply> {
    Ok(AccessConditions { conditions: conditions(head, "x-ms-blob-")?, ..lease_and_if_tags(head)? })
}

/// The conditional headers. Those on the source of a copy have the prefix `x-ms-source-`.
pub(super) fn conditions(head: &RequestHead<'_>, prefix: &str) -> Result<Conditions, ErrorReply> {
    let name = |name: &str| format!("{prefix}{name}");
    Ok(Conditions {
        if_match: head.header(&name("if-match")).map(ETagCondition::parse),
        if_none_match: head.header(&name("if-none-match")).map(ETagCondition::parse),
        if_modified_since: head.date_header(&name("if-modified-since"))?,
        if_unmodified_since: head.date_header(&name("if-unmodified-since"))?,
    })
}

pub(super) fn lease(head: &RequestHead<'_>) -> Result<Option<LeaseId>, ErrorReply> {
    head.parsed_header("x-ms-lease-id", |text| LeaseId::parse(text).ok())
}

pub(super) fn lease_action(head: &RequestHead<'_>) -> Result<LeaseAction, ErrorReply> {
    let id = || {
        head.required_header("x-ms-lease-id")?;
        lease(head)?.ok_or(ErrorReply::new(ErrorCode::MissingRequiredHeader))
    };
    let proposed = || head.parsed_header("x-ms-proposed-lease-id", |text| LeaseId::parse(text).ok());
    let action = head.required_header("x-ms-lease-action")?;
    match action.to_ascii_lowercase().as_str() {
        "acquire" => {
            head.required_header("x-ms-lease-duration")?;
            let duration = seconds(head, "x-ms-lease-duration", |seconds| LeaseDuration::new(seconds).ok())?;
            let duration = duration.ok_or(ErrorReply::new(ErrorCode::MissingRequiredHeader))?;
            Ok(LeaseAction::Acquire { duration, proposed: proposed()? })
        }
        "renew" => Ok(LeaseAction::Renew { id: id()? }),
        "change" => {
            let id = id()?;
            head.required_header("x-ms-proposed-lease-id")?;
            let proposed = proposed()?.ok_or(ErrorReply::new(ErrorCode::MissingRequiredHeader))?;
            Ok(LeaseAction::Change { id, proposed })
        }
        "release" => Ok(LeaseAction::Release { id: id()? }),
        "break" => {
            let period = seconds(head, "x-ms-lease-break-period", |seconds| BreakPeriod::new(seconds).ok())?;
            Ok(LeaseAction::Break { period })
        }
        _ => Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-lease-action", action)),
    }
}

fn seconds<T>(head: &RequestHead<'_>, name: &str, read: impl Fn(i64) -> Option<T>) -> Result<Option<T>, ErrorReply> {
    head.parsed_header(name, |text| read(text.parse().ok()?))
}

/// The headers that set the content headers of a blob.
pub(super) const CONTENT_HEADERS: [&str; 6] = [
    "x-ms-blob-content-type",
    "x-ms-blob-content-encoding",
    "x-ms-blob-content-language",
    STORED_MD5,
    "x-ms-blob-content-disposition",
    "x-ms-blob-cache-control",
];

/// The content headers of a blob.
pub(super) fn content_headers(head: &RequestHead<'_>) -> Result<ContentHeaders, ErrorReply> {
    let text = |name: &str| head.header(name).map(str::to_owned);
    Ok(ContentHeaders {
        content_type: text("x-ms-blob-content-type"),
        encoding: text("x-ms-blob-content-encoding"),
        language: text("x-ms-blob-content-language"),
        md5: stored_md5(head)?,
        disposition: text("x-ms-blob-content-disposition"),
        cache_control: text("x-ms-blob-cache-control"),
    })
}

/// The content headers of Set Blob Properties: those that the request does not set are cleared, also the type.
pub(super) fn replaced_headers(head: &RequestHead<'_>) -> Result<ContentHeaders, ErrorReply> {
    let given = content_headers(head)?;
    Ok(ContentHeaders { content_type: given.content_type.or(Some(String::new())), ..given })
}

/// The content headers of a blob that is put with its bytes: `x-ms-blob-content-type` takes precedence over
/// `Content-Type`, and so on.
pub(super) fn put_content_headers(head: &RequestHead<'_>) -> Result<ContentHeaders, ErrorReply> {
    let text = |name: &str| head.header(name).map(str::to_owned);
    let given = content_headers(head)?;
    Ok(ContentHeaders {
        content_type: given.content_type.or_else(|| text("content-type")),
        encoding: given.encoding.or_else(|| text("content-encoding")),
        language: given.language.or_else(|| text("content-language")),
        cache_control: given.cache_control.or_else(|| text("cache-control")),
        ..given
    })
}

/// The length and the checksums of a body. `Content-Length` is required and at most `bytes_max`.
pub(super) fn body_checks(head: &RequestHead<'_>, bytes_max: u64) -> Result<BodyChecks, ErrorReply> {
    let length = head.content_length()?;
    if length > bytes_max {
        let max = bytes_max.to_string();
        return Err(ErrorReply::new(ErrorCode::RequestBodyTooLarge).with_detail("MaxLimit", &max));
    }
    let crc64 = crc64(head, "x-ms-content-crc64")?;
    let md5 = md5(head, "content-md5")?;
    if md5.is_some() && crc64.is_some() {
        return Err(ErrorReply::new(ErrorCode::BothCrc64AndMd5HeaderPresent));
    }
    Ok(BodyChecks { length, md5, crc64 })
}

/// As [`body_checks`], for a body that must not be empty.
pub(super) fn filled_body(head: &RequestHead<'_>, bytes_max: u64) -> Result<BodyChecks, ErrorReply> {
    let checks = body_checks(head, bytes_max)?;
    if checks.length == 0 { Err(wrong_length("0")) } else { Ok(checks) }
}

/// Refuses a body that is not empty, and one in chunks, which is sent to be not empty.
pub(super) fn empty_body(head: &RequestHead<'_>) -> Result<BodyChecks, ErrorReply> {
    if let Some(encoding) = head.header("transfer-encoding") {
        return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "Transfer-Encoding", encoding));
    }
    match head.number_header("content-length")? {
        None | Some(0) => Ok(BodyChecks::default()),
        Some(length) => Err(wrong_length(&length.to_string())),
    }
}

pub(super) fn wrong_length(length: &str) -> ErrorReply {
    ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "Content-Length", length)
}

/// The base64 form of an MD5.
#[must_use]
pub fn format_md5(md5: &[u8]) -> String {
    STANDARD.encode(md5)
}

pub(super) fn md5(head: &RequestHead<'_>, name: &str) -> Result<Option<[u8; 16]>, ErrorReply> {
    let Some(text) = head.header(name) else { return Ok(None) };
    let md5 = STANDARD.decode(text).ok().and_then(|md5| md5.try_into().ok());
    md5.map(Some).ok_or_else(|| ErrorReply::of_header(ErrorCode::InvalidMd5, name, text))
}

/// `x-ms-blob-content-md5`. The service stores any bytes of any length (Microsoft's own tests).
fn stored_md5(head: &RequestHead<'_>) -> Result<Option<Vec<u8>>, ErrorReply> {
    let Some(text) = head.header(STORED_MD5) else { return Ok(None) };
    let md5 = STANDARD.decode(text).ok().filter(|md5| md5.len() <= STORED_MD5_BYTES_MAX);
    md5.map(Some).ok_or_else(|| ErrorReply::of_header(ErrorCode::InvalidMd5, STORED_MD5, text))
}

const STORED_MD5: &str = "x-ms-blob-content-md5";
/// The maximum length of a stored MD5: it is part of the blob's row.
const STORED_MD5_BYTES_MAX: usize = 1024;

fn crc64(head: &RequestHead<'_>, name: &str) -> Result<Option<[u8; 8]>, ErrorReply> {
    head.parsed_header(name, |text| STANDARD.decode(text).ok()?.try_into().ok())
}

pub(super) fn tier(head: &RequestHead<'_>, kind: BlobType) -> Result<Option<AccessTier>, ErrorReply> {
    let tier: Option<AccessTier> = head.header_as("x-ms-access-tier")?;
    match tier {
        Some(tier) if !tier.is_of(kind) => Err(wrong_tier(tier)),
        tier => Ok(tier),
    }
}

/// The error for a tier that the blob's type does not have.
#[must_use]
pub fn wrong_tier(tier: AccessTier) -> ErrorReply {
    ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-access-tier", tier.as_str())
}

/// `x-ms-tags`: tags in the form of a query string.
pub(super) fn tags(head: &RequestHead<'_>) -> Result<Option<Tags>, ErrorReply> {
    let Some(text) = head.header("x-ms-tags") else { return Ok(None) };
    let invalid = |_| ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-tags", text);
    let mut tags = Tags::new();
    for pair in uri::query_pairs(text) {
        let pair = pair.map_err(invalid)?;
        insert_tag(&mut tags, &pair.name, &pair.value().map_err(invalid)?)?;
    }
    Ok(Some(tags))
}

pub(super) fn insert_tag(tags: &mut Tags, key: &str, value: &str) -> Result<(), ErrorReply> {
    tags.insert(key, value).map_err(|error| {
        ErrorReply::new(match error {
            TagsError::Key if key.is_empty() => ErrorCode::EmptyTagName,
            TagsError::Key | TagsError::Value => ErrorCode::InvalidTag,
            TagsError::Count => ErrorCode::TagsTooLarge,
            TagsError::Duplicate => ErrorCode::DuplicateTagNames,
        })
    })
}

/// A parameter of the query that names a snapshot.
pub(super) fn snapshot(head: &RequestHead<'_>, name: &str) -> Result<Option<SnapshotTime>, ErrorReply> {
    let Some(text) = head.parameter(name) else { return Ok(None) };
    let invalid = |_| ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, name, &text);
    text.parse().map(Some).map_err(invalid)
}

/// `x-ms-range`, or `Range` without it. A value that cannot be parsed is ignored.
pub(super) fn range(head: &RequestHead<'_>) -> Option<ByteRange> {
    ByteRange::parse(head.header("x-ms-range").or_else(|| head.header("range"))?)
}

/// `x-ms-copy-source` with its conditions and checksums; at most `bytes_max` bytes are copied.
pub(super) fn source(head: &RequestHead<'_>, bytes_max: u64) -> Result<Option<Source>, ErrorReply> {
    let Some(url) = head.parsed_header("x-ms-copy-source", CopySource::parse)? else { return Ok(None) };
    let (md5, crc64) = (md5(head, "x-ms-source-content-md5")?, crc64(head, "x-ms-source-content-crc64")?);
    if md5.is_some() && crc64.is_some() {
        return Err(ErrorReply::new(ErrorCode::BothCrc64AndMd5HeaderPresent));
    }
    Ok(Some(Source {
        url,
        range: head.parsed_header("x-ms-source-range", ByteRange::parse)?,
        bytes_max,
        md5,
        crc64,
        conditions: conditions(head, "x-ms-source-")?,
        if_tags: if_tags(head, SOURCE_IF_TAGS)?,
    }))
}

/// Whether a copy gets the tags of its source. The request cannot set tags then (service: copy blob from URL).
pub(super) fn copies_tags(head: &RequestHead<'_>) -> Result<bool, ErrorReply> {
    match head.header(COPY_TAGS) {
        None => Ok(false),
        Some(word) if word.eq_ignore_ascii_case("replace") => Ok(false),
        Some(word) if word.eq_ignore_ascii_case("copy") && !head.has_header("x-ms-tags") => Ok(true),
        Some(word) => Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, COPY_TAGS, word)),
    }
}

const COPY_TAGS: &str = "x-ms-copy-source-tag-option";

/// A header that is `true` or `false`; `false` without it.
pub(super) fn flag(head: &RequestHead<'_>, name: &str) -> Result<bool, ErrorReply> {
    let read = |text: &str| match text {
        _ if text.eq_ignore_ascii_case("true") => Some(true),
        _ if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    head.parsed_header(name, read).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests;
