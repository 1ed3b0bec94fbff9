//! Requests to a blob.

use super::headers::{
    self, CONTENT_HEADERS, access, body_checks, empty_body, filled_body, lease_and_if_tags, tags_access, wrong_length,
};
use super::operation::{
    AppendBlock, BlobOperation, BlobRead, CopyBlob, GetBlob, GetPageRanges, IncrementalCopyBlob, PageWrite, PutBlob,
    PutBlobContent, PutBlock, PutBlockList, PutPage, RangeChecksum, SetHeaders, Source,
};
use super::request::{count_max, not_implemented, unknown_component, unsupported_verb};
use crate::blob::block_list::BLOCK_LIST_BODY_BYTES_MAX;
use crate::blob::tags_xml::TAGS_BODY_BYTES_MAX;
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::marker;
use crate::request_head::{RequestHead, parameter_error};
use larimar_model::blob::{
    AccessConditions, AccessTier, AppendConditions, BlobType, BlockId, BlockIdError, BlockListKind, ContentHeaders,
    DeleteSnapshots, ETagCondition, NewBlob, PageRange, SequenceConditions, SequenceNumberAction,
};
use larimar_model::{Guid, limits};

pub(super) fn operation(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    match (head.parameter("comp").as_deref(), head.method) {
        (comp, "GET" | "HEAD") => read(head, comp),
        (comp, "PUT") => write(head, comp),
        (None, "DELETE") => delete(head),
        (Some("query"), "POST") => Err(not_implemented()),
        (Some("immutabilitypolicies"), "DELETE") => Err(not_implemented()),
        (None, _) => Err(unsupported_verb()),
        (Some(comp), _) if READS.contains(&comp) || WRITES.contains(&comp) => Err(unsupported_verb()),
        (comp, _) => Err(unknown_component(comp)),
    }
}

const READS: [&str; 4] = ["metadata", "blocklist", "pagelist", "tags"];
const WRITES: [&str; 14] = [
    "metadata",
    "properties",
    "snapshot",
    "lease",
    "copy",
    "tier",
    "tags",
    "block",
    "blocklist",
    "appendblock",
    "seal",
    "page",
    "incrementalcopy",
    "undelete",
];

fn read(head: &RequestHead<'_>, comp: Option<&str>) -> Result<BlobOperation, ErrorReply> {
    let snapshot = headers::snapshot(head, "snapshot")?;
    match comp {
        None if head.method == "HEAD" => Ok(BlobOperation::GetProperties(blob_read(head)?)),
        None => get(head),
        Some("metadata") => Ok(BlobOperation::GetMetadata(blob_read(head)?)),
        Some("blocklist") => {
            let kind = match head.parameter("blocklisttype").as_deref() {
                None => BlockListKind::Committed,
                Some(word) if word.eq_ignore_ascii_case("committed") => BlockListKind::Committed,
                Some(word) if word.eq_ignore_ascii_case("uncommitted") => BlockListKind::Uncommitted,
                Some(word) if word.eq_ignore_ascii_case("all") => BlockListKind::All,
                Some(other) => {
                    return Err(parameter_error("blocklisttype", other, "expected committed, uncommitted or all"));
                }
            };
            Ok(BlobOperation::GetBlockList { kind, snapshot, access: lease_and_if_tags(head)? })
        }
        Some("pagelist") => Ok(BlobOperation::GetPageRanges(GetPageRanges {
            read: blob_read(head)?,
            previous: headers::snapshot(head, "prevsnapshot")?,
            range: headers::range(head),
            from: head.parameter("marker").as_deref().map(marker::decode).transpose()?,
            count_max: count_max(head)?,
        })),
        Some("tags") => Ok(BlobOperation::GetTags { snapshot, access: tags_access(head)? }),
        Some(comp) if WRITES.contains(&comp) => Err(unsupported_verb()),
        comp => Err(unknown_component(comp)),
    }
}

fn write(head: &RequestHead<'_>, comp: Option<&str>) -> Result<BlobOperation, ErrorReply> {
    if let Some(snapshot) = head.parameter("snapshot")
        && comp != Some("tier")
    {
        return Err(parameter_error("snapshot", &snapshot, "snapshots are not written to"));
    }
    match comp {
        None => put(head),
        Some("metadata") => Ok(BlobOperation::SetMetadata { metadata: head.metadata()?, access: access(head)? }),
        Some("properties") => set_headers(head),
        Some("snapshot") => {
            let metadata = head.metadata()?;
            Ok(BlobOperation::Snapshot { metadata: (!metadata.is_empty()).then_some(metadata), access: access(head)? })
        }
        Some("lease") => {
            // The lease id belongs to the action.
            let access = AccessConditions {
                conditions: headers::conditions(head, "")?,
                if_tags: headers::if_tags(head, headers::IF_TAGS)?,
                ..AccessConditions::default()
            };
            Ok(BlobOperation::Lease { action: headers::lease_action(head)?, access })
        }
        Some("copy") => abort_copy(head),
        Some("tier") => {
            let name = head.required_header("x-ms-access-tier")?;
            let invalid = |_| ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-access-tier", name);
            Ok(BlobOperation::SetTier {
                tier: name.parse::<AccessTier>().map_err(invalid)?,
                priority: head.header_as(REHYDRATE_PRIORITY)?,
                snapshot: headers::snapshot(head, "snapshot")?,
                access: lease_and_if_tags(head)?,
            })
        }
        Some("tags") => {
            let checks = body_checks(head, TAGS_BODY_BYTES_MAX)?;
            Ok(BlobOperation::SetTags { access: tags_access(head)?, checks })
        }
        Some("block") => put_block(head),
        Some("blocklist") => put_block_list(head),
        Some("appendblock") => append_block(head),
        Some("seal") => {
            empty_body(head)?;
            let position = head.number_header(APPEND_POSITION)?;
            Ok(BlobOperation::Seal { position, access: access(head)? })
        }
        Some("page") => put_page(head),
        Some("incrementalcopy") => incremental_copy(head),
        Some("undelete" | "expiry" | "immutabilitypolicies" | "legalhold") => Err(not_implemented()),
        Some("pagelist") => Err(unsupported_verb()),
        comp => Err(unknown_component(comp)),
    }
}

fn blob_read(head: &RequestHead<'_>) -> Result<BlobRead, ErrorReply> {
    let access = access(head)?;
    // `If-None-Match: *` would read a blob only if there is none.
    if access.conditions.if_none_match == Some(ETagCondition::Any) {
        return Err(ErrorReply::new(ErrorCode::UnsatisfiableCondition));
    }
    Ok(BlobRead { snapshot: headers::snapshot(head, "snapshot")?, access })
}

fn get(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    let range = headers::range(head);
    let range_checksum = range_checksum(head)?;
    if let Some(sum) = range_checksum {
        // A checksum needs a range, and a short one.
        let length = range.map(|range| range.last.map(|last| last.saturating_sub(range.start).saturating_add(1)));
        match length {
            None => return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, sum.header(), "true")),
            Some(Some(length)) if length > limits::RANGE_SUM_BYTES_MAX => {
                return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, sum.header(), "true"));
            }
            Some(_) => {}
        }
    }
    Ok(BlobOperation::Get(GetBlob { read: blob_read(head)?, range, range_checksum }))
}

/// The checksum of the range to return; a request can ask for one only (service: get blob).
fn range_checksum(head: &RequestHead<'_>) -> Result<Option<RangeChecksum>, ErrorReply> {
    let is_asked = |sum: RangeChecksum| headers::flag(head, sum.header());
    match (is_asked(RangeChecksum::Md5)?, is_asked(RangeChecksum::Crc64)?) {
        (true, true) => {
            Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, RangeChecksum::Crc64.header(), "true"))
        }
        (true, false) => Ok(Some(RangeChecksum::Md5)),
        (false, true) => Ok(Some(RangeChecksum::Crc64)),
        (false, false) => Ok(None),
    }
}

fn delete(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    let snapshot = headers::snapshot(head, "snapshot")?;
    let snapshots: Option<DeleteSnapshots> = head.header_as("x-ms-delete-snapshots")?;
    if let (Some(snapshot), Some(_)) = (head.parameter("snapshot"), snapshots) {
        return Err(parameter_error("snapshot", &snapshot, "snapshots have no snapshots"));
    }
    if head.parameter("deletetype").is_some() {
        return Err(not_implemented());
    }
    // Only conditions on times are supported (service: delete blob, 2026-04-06).
    let tier = headers::conditions(head, "x-ms-access-tier-")?;
    Ok(BlobOperation::Delete { snapshot, snapshots, access: AccessConditions { tier, ..access(head)? } })
}

fn put(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    let kind: Option<BlobType> = head.header_as("x-ms-blob-type")?;
    let source = headers::source(head, put_bytes_max(head))?;
    let (kind, content) = match (kind, source) {
        (None, Some(_)) => return copy(head),
        (None, None) => {
            head.required_header("x-ms-blob-type")?;
            return Err(ErrorReply::new(ErrorCode::MissingRequiredHeader));
        }
        (Some(BlobType::Block), Some(source)) => {
            empty_body(head)?;
            let copy_headers = !head.has_header("x-ms-copy-source-blob-properties")
                || headers::flag(head, "x-ms-copy-source-blob-properties")?;
            // Put Blob From URL has no range: it copies all.
            let source = Source { range: None, ..source };
            let copy_tags = headers::copies_tags(head)?;
            (BlobType::Block, PutBlobContent::BlockFrom { source, copy_headers, copy_tags })
        }
        (Some(_), Some(_)) => {
            return Err(ErrorReply::new(ErrorCode::UnsupportedHeader).with_detail("HeaderName", "x-ms-copy-source"));
        }
        (Some(kind @ BlobType::Block), None) => (kind, PutBlobContent::Block(body_checks(head, put_bytes_max(head))?)),
        (Some(kind @ BlobType::Append), None) => {
            head.content_length()?;
            empty_body(head)?;
            (kind, PutBlobContent::Append)
        }
        (Some(kind @ BlobType::Page), None) => {
            head.content_length()?;
            empty_body(head)?;
            head.required_header(PAGE_LENGTH)?;
            let length = page_blob_length(head)?.unwrap_or_default();
            let sequence_number = sequence_number(head)?.unwrap_or_default();
            (kind, PutBlobContent::Page { length, sequence_number })
        }
    };
    // `Content-Type` and others describe a body, which Put Blob From URL has not.
    let headers = match content {
        PutBlobContent::BlockFrom { .. } => headers::content_headers(head)?,
        PutBlobContent::Block(_) => {
            // The service checks this MD5 against the body, so here it must be an MD5.
            headers::md5(head, "x-ms-blob-content-md5")?;
            headers::put_content_headers(head)?
        }
        _ => headers::put_content_headers(head)?,
    };
    Ok(BlobOperation::Put(Box::new(PutBlob { content, blob: new_blob(head, headers, kind)?, access: access(head)? })))
}

fn new_blob(head: &RequestHead<'_>, content: ContentHeaders, kind: BlobType) -> Result<NewBlob, ErrorReply> {
    Ok(NewBlob {
        content,
        metadata: head.metadata()?,
        tags: headers::tags(head)?.unwrap_or_default(),
        tier: headers::tier(head, kind)?,
    })
}

fn copy(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    empty_body(head)?;
    let missing = || ErrorReply::new(ErrorCode::MissingRequiredHeader);
    let metadata = head.metadata()?;
    let copies_tags = headers::copies_tags(head)?;
    Ok(BlobOperation::Copy(Box::new(CopyBlob {
        source: headers::source(head, u64::MAX)?.ok_or_else(missing)?,
        source_lease: head
            .parsed_header("x-ms-source-lease-id", |text| larimar_model::blob::LeaseId::parse(text).ok())?,
        is_sync: headers::flag(head, "x-ms-requires-sync")?,
        metadata: (!metadata.is_empty()).then_some(metadata),
        tags: if copies_tags { None } else { Some(headers::tags(head)?.unwrap_or_default()) },
        tier: head.header_as("x-ms-access-tier")?,
        seal: head.has_header(SEAL).then(|| headers::flag(head, SEAL)).transpose()?,
        priority: head.header_as(REHYDRATE_PRIORITY)?,
        access: access(head)?,
    })))
}

fn incremental_copy(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    empty_body(head)?;
    head.required_header("x-ms-copy-source")?;
    let missing = || ErrorReply::new(ErrorCode::MissingRequiredHeader);
    Ok(BlobOperation::IncrementalCopy(Box::new(IncrementalCopyBlob {
        source: headers::source(head, u64::MAX)?.ok_or_else(missing)?,
        access: access(head)?,
    })))
}

fn abort_copy(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    let action = head.required_header("x-ms-copy-action")?;
    if !action.eq_ignore_ascii_case("abort") {
        return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-copy-action", action));
    }
    headers::refuse_if_tags(head)?;
    let id = head.required_parameter("copyid")?;
    let id = Guid::parse(&id).ok_or_else(|| parameter_error("copyid", &id, "expected the id of a copy"))?;
    Ok(BlobOperation::AbortCopy { id, lease: headers::lease(head)? })
}

fn set_headers(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    let length = page_blob_length(head)?;
    let action = head.header("x-ms-sequence-number-action");
    let number = sequence_number(head)?;
    let missing = || ErrorReply::new(ErrorCode::MissingRequiredHeader).with_detail("HeaderName", SEQUENCE_NUMBER);
    let sequence_number = match action.map(str::to_ascii_lowercase).as_deref() {
        None if number.is_some() => {
            head.required_header("x-ms-sequence-number-action")?;
            None
        }
        None => None,
        Some("max") => Some(SequenceNumberAction::Max(number.ok_or_else(missing)?)),
        Some("update") => Some(SequenceNumberAction::Update(number.ok_or_else(missing)?)),
        Some("increment") if number.is_none() => Some(SequenceNumberAction::Increment),
        Some(word) => {
            return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-sequence-number-action", word));
        }
    };
    // Headers that the request does not set are cleared, unless it only changes the length or the sequence number.
    let names_headers = CONTENT_HEADERS.iter().any(|name| head.has_header(name));
    let keeps_headers = !names_headers && (length.is_some() || sequence_number.is_some());
    Ok(BlobOperation::SetHeaders(Box::new(SetHeaders {
        headers: if keeps_headers { None } else { Some(headers::replaced_headers(head)?) },
        length,
        sequence_number,
        access: access(head)?,
    })))
}

fn put_block(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    // An unescaped plus was decoded to a space, which base64 does not have.
    let id = head.required_parameter("blockid")?.replace(' ', "+");
    let id = BlockId::parse(&id).map_err(|error| match error {
        BlockIdError::Base64 => parameter_error("blockid", &id, "Not a valid base64 string."),
        error => parameter_error("blockid", &id, error),
    })?;
    let bytes_max = block_bytes_max(head);
    headers::refuse_if_tags(head)?;
    let source = headers::source(head, bytes_max)?;
    let checks = if source.is_some() { empty_body(head)? } else { filled_body(head, bytes_max)? };
    Ok(BlobOperation::PutBlock(Box::new(PutBlock { id, checks, source, lease: headers::lease(head)? })))
}

fn put_block_list(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    Ok(BlobOperation::PutBlockList(Box::new(PutBlockList {
        checks: body_checks(head, BLOCK_LIST_BODY_BYTES_MAX)?,
        blob: new_blob(head, headers::content_headers(head)?, BlobType::Block)?,
        access: access(head)?,
    })))
}

fn append_block(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    let bytes_max = if head.is_since("2022-11-02") { limits::APPEND_BYTES_MAX } else { limits::APPEND_BYTES_MAX_2015 };
    let source = headers::source(head, bytes_max)?;
    let checks = if source.is_some() { empty_body(head)? } else { filled_body(head, bytes_max)? };
    let append = AppendConditions {
        position: head.number_header(APPEND_POSITION)?,
        size_max: head.number_header("x-ms-blob-condition-maxsize")?,
    };
    Ok(BlobOperation::AppendBlock(Box::new(AppendBlock { checks, source, append, access: access(head)? })))
}

fn put_page(head: &RequestHead<'_>) -> Result<BlobOperation, ErrorReply> {
    if head.header("x-ms-range").is_none() {
        head.required_header("range")?;
    }
    let range = headers::range(head).and_then(|range| PageRange::of(range).ok());
    let range = range.ok_or(ErrorReply::new(ErrorCode::InvalidPageRange))?;
    let action = head.required_header("x-ms-page-write")?;
    let write = match (action.to_ascii_lowercase().as_str(), headers::source(head, range.len())?) {
        ("clear", None) => {
            empty_body(head)?;
            PageWrite::Clear
        }
        ("update", Some(source)) => {
            empty_body(head)?;
            head.required_header("x-ms-source-range")?;
            let taken = source.range.and_then(|taken| taken.last.map(|last| last.saturating_sub(taken.start)));
            if taken.and_then(|taken| taken.checked_add(1)) != Some(range.len()) {
                return Err(ErrorReply::new(ErrorCode::InvalidPageRange));
            }
            PageWrite::UpdateFrom(source)
        }
        ("update", None) => {
            let checks = body_checks(head, limits::PUT_PAGE_BYTES_MAX)?;
            if checks.length != range.len() {
                return Err(wrong_length(&checks.length.to_string()));
            }
            PageWrite::Update(checks)
        }
        _ => return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-page-write", action)),
    };
    if !matches!(write, PageWrite::Clear) && range.len() > limits::PUT_PAGE_BYTES_MAX {
        return Err(ErrorReply::new(ErrorCode::InvalidPageRange));
    }
    let is_from_url = matches!(write, PageWrite::UpdateFrom(_));
    // Negative numbers have an error code of their own, but not for Put Page From URL (recorded).
    let number = |name: &str| match head.header(name) {
        Some(text) if !is_from_url && text.parse::<i64>().is_ok_and(|number| number < 0) => {
            Err(ErrorReply::new(ErrorCode::InvalidInput))
        }
        _ => head.number_header(name),
    };
    let sequence = SequenceConditions {
        less_or_equal: number("x-ms-if-sequence-number-le")?,
        less: number("x-ms-if-sequence-number-lt")?,
        equal: number("x-ms-if-sequence-number-eq")?,
    };
    Ok(BlobOperation::PutPage(Box::new(PutPage { range, write, sequence, access: access(head)? })))
}

fn page_blob_length(head: &RequestHead<'_>) -> Result<Option<u64>, ErrorReply> {
    match head.number_header(PAGE_LENGTH)? {
        Some(length) if !length.is_multiple_of(limits::PAGE_BYTES) || length > limits::PAGE_BLOB_BYTES_MAX => {
            Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, PAGE_LENGTH, &length.to_string()))
        }
        length => Ok(length),
    }
}

fn sequence_number(head: &RequestHead<'_>) -> Result<Option<u64>, ErrorReply> {
    match head.number_header(SEQUENCE_NUMBER)? {
        Some(number) if number > i64::MAX.unsigned_abs() => {
            Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, SEQUENCE_NUMBER, &number.to_string()))
        }
        number => Ok(number),
    }
}

fn put_bytes_max(head: &RequestHead<'_>) -> u64 {
    match () {
        () if head.is_since("2019-12-12") => limits::PUT_BLOB_BYTES_MAX,
        () if head.is_since("2016-05-31") => limits::PUT_BLOB_BYTES_MAX_2016,
        () => limits::PUT_BLOB_BYTES_MAX_2011,
    }
}

fn block_bytes_max(head: &RequestHead<'_>) -> u64 {
    match () {
        () if head.is_since("2019-12-12") => limits::BLOCK_BYTES_MAX,
        () if head.is_since("2016-05-31") => limits::BLOCK_BYTES_MAX_2016,
        () => limits::BLOCK_BYTES_MAX_2011,
    }
}

const APPEND_POSITION: &str = "x-ms-blob-condition-appendpos";
const SEAL: &str = "x-ms-seal-blob";
const REHYDRATE_PRIORITY: &str = "x-ms-rehydrate-priority";
const PAGE_LENGTH: &str = "x-ms-blob-content-length";
const SEQUENCE_NUMBER: &str = "x-ms-blob-sequence-number";

#[cfg(test)]
mod tests;
