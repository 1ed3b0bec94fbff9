//! What a blob says about its bytes, and where they came from.

use super::words::SnapshotTime;
use crate::{Guid, Timestamp};

/// The headers that a reader of a blob is given with its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentHeaders {
    /// `Content-Type`; reads return [`ContentHeaders::TYPE_DEFAULT`] if it was never set, and no header if it is empty.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub encoding: Option<String>,
    /// `Content-Language`.
    pub language: Option<String>,
    /// `Content-MD5`: of the whole blob as its writer said or, for Put Blob, as it was computed.
    /// Set Blob Properties stores any bytes here.
    pub md5: Option<Vec<u8>>,
    /// `Content-Disposition`.
    pub disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
}

impl ContentHeaders {
    /// What a blob without a `Content-Type` is said to be.
    pub const TYPE_DEFAULT: &'static str = "application/octet-stream";

    /// These headers, and those of another blob where these have none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            content_type: self.content_type.or(other.content_type),
            encoding: self.encoding.or(other.encoding),
            language: self.language.or(other.language),
            md5: self.md5.or(other.md5),
            disposition: self.disposition.or(other.disposition),
            cache_control: self.cache_control.or(other.cache_control),
        }
    }
}

/// The last copy that made a blob's content. Copies within the server end before they are answered, so each
/// of them succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyInfo {
    /// The copy's id.
    pub id: Guid,
    /// The address it was copied from.
    pub source: String,
    /// Bytes that were copied, which are all.
    pub length: u64,
    /// When it ended.
    pub completed: Timestamp,
    /// What is known of an incremental copy; nothing if it is an ordinary one.
    pub incremental: Option<IncrementalCopy>,
}

/// What makes a copy incremental: the snapshot that it was copied from, and the one that it made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncrementalCopy {
    /// The destination's snapshot that has the copied pages.
    pub snapshot: SnapshotTime,
    /// The source blob: its account, its container and its name, separated by slashes.
    pub source: String,
    /// The source's snapshot.
    pub source_snapshot: SnapshotTime,
}

impl CopyInfo {
    /// The status of a copy that is done.
    pub const STATUS: &'static str = "success";
    /// The status of a copy whose source is still being rehydrated.
    pub const PENDING: &'static str = "pending";

    /// The URL of a copy's source as it is kept and shown. Everybody who may read the copy sees it, so of its query only
    /// what addresses the source is left: a signature would let them act as its holder.
    #[must_use]
    pub fn shown_source(url: &str) -> String {
        let url = url.split('#').next().unwrap_or_default();
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let mut shown = without_user(address);
        let addresses = |part: &&str| {
            let name = part.split('=').next().unwrap_or_default();
            ["snapshot", "versionid"].iter().any(|known| name.eq_ignore_ascii_case(known))
        };
        for (number, part) in query.split('&').filter(addresses).enumerate() {
            shown.push(if number == 0 { '?' } else { '&' });
            shown.push_str(part);
        }
        shown
    }
}

/// An address without a user's name and password before its host.
fn without_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_of_a_copy_is_shown_without_secrets() {
        for (url, shown) in [
            ("http://h:1/a/c/b", "http://h:1/a/c/b"),
            ("http://h/c/b?sv=2020&sp=r&sig=abc%3D", "http://h/c/b"),
            (
                "http://h/c/b?snapshot=2020-01-01T00:00:00.0000000Z&sig=x",
                "http://h/c/b?snapshot=2020-01-01T00:00:00.0000000Z",
            ),
            ("http://h/c/b?sig=x&Snapshot=1&VersionId=2", "http://h/c/b?Snapshot=1&VersionId=2"),
            ("http://h/c/b?%73ig=x&SIG=y&sig&=sig", "http://h/c/b"),
            ("http://user:word@h/c/b@x?sig=x", "http://h/c/b@x"),
            ("http://h/c/b#?sig=x", "http://h/c/b"),
            ("", ""),
        ] {
            assert_eq!(CopyInfo::shown_source(url), shown, "{url}");
        }
    }
}
