//! The tokens for queues and blobs: their fields, and what the request must address for them.

use super::{RawFields, SasError, SasKind, TableSas};
use larimar_model::Service;
use larimar_model::blob::ContainerName;
use std::borrow::Cow;

/// What the request that carries a token addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    /// Something of the Table service, whose tokens name their table.
    Table,
    /// A queue or one of its messages; none if the request is for the service.
    Queue(Option<&'a str>),
    /// Something of the Blob service; all empty if the request is for the service.
    Blob {
        /// The container.
        container: Option<&'a str>,
        /// The blob in it.
        blob: Option<&'a str>,
        /// The snapshot of that.
        snapshot: Option<&'a str>,
    },
}

impl<'a> Resource<'a> {
    /// The resource that a request addresses: `path` is the decoded path below the account, `restype` and `snapshot` are
    /// parameters of the query.
    #[must_use]
    pub fn of(service: Service, path: &'a str, restype: Option<&str>, snapshot: Option<&'a str>) -> Self {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let (name, blob) = (Some(first).filter(|name| !name.is_empty()), Some(rest).filter(|blob| !blob.is_empty()));
        match (service, name, blob) {
            (Service::Table, ..) => Self::Table,
            (Service::Queue, ..) => Self::Queue(name),
            // A single name is a blob in the root container, unless the query says that it is a container.
            (Service::Blob, Some(_), None) if !matches!(restype, Some("container" | "account")) => {
                Self::Blob { container: Some(ContainerName::ROOT), blob: name, snapshot }
            }
            (Service::Blob, ..) => Self::Blob { container: name, blob, snapshot },
        }
    }
}

/// The fields of a token for one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSas<'a> {
    /// The queue, which the request's path names.
    pub queue: Cow<'a, str>,
    /// `si`: the stored policy that completes the token.
    pub policy_id: Option<Cow<'a, str>>,
}

/// The fields of a token for a container, a blob or a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobSas<'a> {
    /// The container, which the request's path names.
    pub container: Cow<'a, str>,
    /// `sr`, with what the request names.
    pub scope: BlobSasScope<'a>,
    /// `si`: the stored policy that completes the token.
    pub policy_id: Option<Cow<'a, str>>,
    /// `ses`: an encryption scope.
    pub encryption_scope: Option<Cow<'a, str>>,
    /// `rscc`: the `Cache-Control` to answer with.
    pub cache_control: Option<Cow<'a, str>>,
    /// `rscd`: the `Content-Disposition` to answer with.
    pub content_disposition: Option<Cow<'a, str>>,
    /// `rsce`: the `Content-Encoding` to answer with.
    pub content_encoding: Option<Cow<'a, str>>,
    /// `rscl`: the `Content-Language` to answer with.
    pub content_language: Option<Cow<'a, str>>,
    /// `rsct`: the `Content-Type` to answer with.
    pub content_type: Option<Cow<'a, str>>,
}

/// How much of a container a token is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BlobSasScope<'a> {
    /// `sr=c`: the container and its blobs.
    #[default]
    Container,
    /// `sr=b`: one blob.
    Blob(Cow<'a, str>),
    /// `sr=bs`: one snapshot of a blob.
    Snapshot {
        /// The blob.
        blob: Cow<'a, str>,
        /// The snapshot's time as the request writes it.
        snapshot: Cow<'a, str>,
    },
}

impl BlobSasScope<'_> {
    pub(super) const fn letters(&self) -> &'static str {
        match self {
            Self::Container => "c",
            Self::Blob(_) => "b",
            Self::Snapshot { .. } => "bs",
        }
    }
}

/// The headers that reads with a token answer in the place of the blob's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseOverrides {
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Content-Type`.
    pub content_type: Option<String>,
}

impl BlobSas<'_> {
    pub(super) fn overrides(&self) -> Option<Box<ResponseOverrides>> {
        let owned = |field: &Option<Cow<'_, str>>| field.as_deref().map(str::to_owned);
        let overrides = ResponseOverrides {
            cache_control: owned(&self.cache_control),
            content_disposition: owned(&self.content_disposition),
            content_encoding: owned(&self.content_encoding),
            content_language: owned(&self.content_language),
            content_type: owned(&self.content_type),
        };
        (overrides != ResponseOverrides::default()).then(|| Box::new(overrides))
    }
}

/// The kind of a token that is not for the account.
pub(super) fn kind<'a>(raw: &RawFields<'a>, resource: Resource<'a>) -> Result<SasKind<'a>, SasError> {
    match resource {
        Resource::Table => Ok(SasKind::Table(TableSas {
            table: raw.get("tn").ok_or(SasError::Malformed("tn, or ss with srt"))?,
            policy_id: raw.get("si"),
            start_partition: raw.get("spk"),
            start_row: raw.get("srk"),
            end_partition: raw.get("epk"),
            end_row: raw.get("erk"),
        })),
        Resource::Queue(queue) => {
            let queue = one_line(queue.ok_or(SasError::Malformed("ss with srt"))?)?;
            Ok(SasKind::Queue(QueueSas { queue, policy_id: raw.get("si") }))
        }
        Resource::Blob { container, blob, snapshot } => {
            let scope = match (raw.get("sr").as_deref(), blob, snapshot) {
                (Some("c"), _, _) => BlobSasScope::Container,
                (Some("b"), Some(blob), _) => BlobSasScope::Blob(one_line(blob)?),
                (Some("bs"), Some(blob), Some(snapshot)) => {
                    BlobSasScope::Snapshot { blob: one_line(blob)?, snapshot: one_line(snapshot)? }
                }
                (Some("b" | "bs"), _, _) => return Err(SasError::ResourceLevel),
                _ => return Err(SasError::Malformed("sr")),
            };
            Ok(SasKind::Blob(Box::new(BlobSas {
                container: one_line(container.ok_or(SasError::ResourceLevel)?)?,
                scope,
                policy_id: raw.get("si"),
                encryption_scope: raw.get("ses"),
                cache_control: raw.get("rscc"),
                content_disposition: raw.get("rscd"),
                content_encoding: raw.get("rsce"),
                content_language: raw.get("rscl"),
                content_type: raw.get("rsct"),
            })))
        }
    }
}

/// Names are signed as lines like all fields: one with a line feed could pass for two.
fn one_line(name: &str) -> Result<Cow<'_, str>, SasError> {
    if name.contains('\n') { Err(SasError::Malformed("sr")) } else { Ok(Cow::Borrowed(name)) }
}

#[cfg(test)]
mod tests;
