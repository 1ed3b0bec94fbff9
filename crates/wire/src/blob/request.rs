//! A request's method, path, query and headers become a typed operation. Its body is read later.

use super::address::BlobAddress;
use super::find::find_blobs;
use super::operation::{BlobOperation, ContainerOperation, ListContainers, ServiceOperation};
use super::{blob_request, container_request, headers};
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::marker;
use crate::operation::{BodyLimit, Endpoint, Facts, Format, Kind, Operation, Public, Rate};
use crate::sas::Resource;
use crate::storage_head::{StorageHead, parameter_error};
use larimar_model::blob::{BlobName, ContainerName};
use larimar_model::limits;

/// A request to the Blob service: an operation on what it addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobRequest {
    /// To the service.
    Service(ServiceOperation),
    /// To a container.
    Container(ContainerName, ContainerOperation),
    /// To a blob or a snapshot of it.
    Blob(ContainerName, BlobName, BlobOperation),
}

impl BlobRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// What the protocol answers to a request that makes no sense, or that asks for a feature that is not there.
    pub fn parse(head: &StorageHead<'_>) -> Result<Self, ErrorReply> {
        head.number_parameter("timeout", 0..=i64::MAX)?;
        if head.parameter("versionid").is_some() {
            return Err(not_implemented());
        }
        headers::refuse_unsupported(head)?;
        match BlobAddress::of(head)? {
            BlobAddress::Service => {
                headers::refuse_if_tags(head)?;
                Ok(Self::Service(service(head)?))
            }
            BlobAddress::Container(container) => {
                headers::refuse_if_tags(head)?;
                Ok(Self::Container(container, container_request::operation(head)?))
            }
            BlobAddress::Blob(container, blob) => Ok(Self::Blob(container, blob, blob_request::operation(head)?)),
        }
    }

    /// The operation's name in metrics and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Service(operation) => operation.name(),
            Self::Container(_, operation) => operation.name(),
            Self::Blob(_, _, operation) => operation.name(),
        }
    }

    /// What a token in the request is for; `snapshot` is the parameter of that name.
    #[must_use]
    pub fn resource<'a>(&'a self, snapshot: Option<&'a str>) -> Resource<'a> {
        let (container, blob) = match self {
            Self::Service(_) => (None, None),
            Self::Container(container, _) => (Some(container.as_str()), None),
            Self::Blob(container, blob, _) => (Some(container.as_str()), Some(blob.as_str())),
        };
        Resource::Blob { container, blob, snapshot: snapshot.filter(|_| blob.is_some()) }
    }

    /// Whether it changes something, which the secondary does not allow.
    #[must_use]
    pub const fn is_write(&self) -> bool {
        match self {
            Self::Service(operation) => {
                matches!(operation, ServiceOperation::SetProperties | ServiceOperation::Batch)
            }
            Self::Container(_, operation) => !matches!(
                operation,
                ContainerOperation::GetProperties { .. }
                    | ContainerOperation::GetMetadata { .. }
                    | ContainerOperation::GetAcl { .. }
                    | ContainerOperation::ListBlobs(_)
                    | ContainerOperation::FindBlobs(_)
                    | ContainerOperation::GetAccountInfo
            ),
            Self::Blob(_, _, operation) => !matches!(
                operation,
                BlobOperation::Get(_)
                    | BlobOperation::GetProperties(_)
                    | BlobOperation::GetMetadata(_)
                    | BlobOperation::GetTags { .. }
                    | BlobOperation::GetBlockList { .. }
                    | BlobOperation::GetPageRanges(_)
                    | BlobOperation::GetAccountInfo
            ),
        }
    }
}

impl Operation for BlobRequest {
    fn facts(&self) -> Facts<'_> {
        let name = self.name();
        let kind = match self.is_write() {
            false => Kind::Read,
            true if name.starts_with("Delete") => Kind::Delete,
            true => Kind::Write,
        };
        let endpoint = match self {
            Self::Service(ServiceOperation::GetStats) => Endpoint::Secondary,
            _ if self.is_write() => Endpoint::Primary,
            _ => Endpoint::Both,
        };
        // Handlers check permissions and read bodies.
        Facts {
            name,
            kind: Some(kind),
            endpoint,
            needs: [None, None],
            public: Some(Public::List),
            is_reserved: false,
            body: BodyLimit::Streamed,
            format: Format::Stream,
            rate: Rate::Account,
        }
    }
}

fn service(head: &StorageHead<'_>) -> Result<ServiceOperation, ErrorReply> {
    match (head.parameter("restype"), head.parameter("comp"), head.method) {
        (Some("service"), Some("properties"), "GET") => Ok(ServiceOperation::GetProperties),
        (Some("service"), Some("properties"), "PUT") => Ok(ServiceOperation::SetProperties),
        (Some("service"), Some("stats"), "GET") => Ok(ServiceOperation::GetStats),
        (Some("account"), Some("properties"), "GET" | "HEAD") => Ok(ServiceOperation::GetAccountInfo),
        (None, Some("list"), "GET") => list_containers(head),
        // The JavaScript client takes an account that is named by the path for a container.
        (None | Some("container"), Some("batch"), "POST") => Ok(ServiceOperation::Batch),
        (None, Some("blobs"), "GET") => Ok(ServiceOperation::FindBlobs(find_blobs(head)?)),
        (Some("service"), Some("userdelegationkey"), "POST") => Err(not_implemented()),
        (Some("service" | "account"), Some("properties" | "stats"), _)
        | (None, Some("list" | "batch" | "blobs"), _) => Err(unsupported_verb()),
        (_, comp, _) => Err(unknown_component(comp)),
    }
}

fn list_containers(head: &StorageHead<'_>) -> Result<ServiceOperation, ErrorReply> {
    let (mut metadata, mut system) = (false, false);
    for word in words(head, "include") {
        match word.to_ascii_lowercase().as_str() {
            "metadata" => metadata = true,
            "system" => system = true,
            // Deleted containers are not kept, so there are none to tell.
            "deleted" => {}
            _ => return Err(parameter_error("include", word, "expected metadata, deleted or system")),
        }
    }
    Ok(ServiceOperation::ListContainers(ListContainers {
        prefix: head.parameter("prefix").map(str::to_owned),
        marker: head.parameter("marker").map(str::to_owned),
        from: head.parameter("marker").map(marker::decode).transpose()?,
        count_max: count_max(head)?,
        metadata,
        system,
    }))
}

/// The words of a list with commas between them.
pub(super) fn words<'h>(head: &'h StorageHead<'_>, name: &str) -> impl Iterator<Item = &'h str> {
    head.parameter(name).unwrap_or("").split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// `maxresults`: the service answers with what it has at most to whoever asks for more.
pub(super) fn count_max(head: &StorageHead<'_>) -> Result<Option<usize>, ErrorReply> {
    let count = head.number_parameter("maxresults", 1..=i64::from(i32::MAX))?;
    Ok(count.and_then(|count| usize::try_from(count).ok()).map(|count| count.min(limits::LIST_ITEMS_MAX)))
}

pub(super) fn unknown_component(comp: Option<&str>) -> ErrorReply {
    match comp {
        Some(comp) => ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, "comp", comp),
        None => ErrorReply::new(ErrorCode::MissingRequiredQueryParameter).with_detail("QueryParameterName", "comp"),
    }
}

pub(super) fn unsupported_verb() -> ErrorReply {
    ErrorReply::new(ErrorCode::UnsupportedHttpVerb)
}

pub(super) fn not_implemented() -> ErrorReply {
    ErrorReply::new(ErrorCode::NotImplemented)
}

#[cfg(test)]
mod tests;
