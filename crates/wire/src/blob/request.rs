//! Parses method, path, query and headers of a request into a typed operation. The body is read later.

use super::address::BlobAddress;
use super::find::find_blobs;
use super::operation::{BlobOperation, ContainerOperation, ListContainers, ServiceOperation};
use super::{blob_request, container_request, headers};
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::marker;
use crate::request_head::{RequestHead, parameter_error};
use larimar_model::blob::{BlobName, ContainerName};
use larimar_model::limits;
use std::borrow::Cow;

/// A request to the Blob service: what it addresses, and the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobRequest {
    /// To the service.
    Service(ServiceOperation),
    /// To a container.
    Container(ContainerName, ContainerOperation),
    /// To a blob or a snapshot of it.
    Blob(ContainerName, BlobName, BlobOperation),
    /// Get Account Information, which answers the same for every address.
    AccountInfo(BlobAddress),
}

impl BlobRequest {
    /// Parses a request; `path` is the raw path below the account.
    ///
    /// # Errors
    /// The protocol's error for an invalid request, or for a feature that is not implemented.
    pub fn parse(head: &RequestHead<'_>, path: &str) -> Result<Self, ErrorReply> {
        head.check_query()?;
        head.number_parameter("timeout", 0..=i64::MAX)?;
        if head.parameter("versionid").is_some() {
            return Err(not_implemented());
        }
        headers::refuse_unsupported(head)?;
        let address = BlobAddress::of(head, path)?;
        if !matches!(address, BlobAddress::Blob(..)) {
            headers::refuse_if_tags(head)?;
        }
        match address {
            address if is_account_info(head) => Ok(Self::AccountInfo(address)),
            BlobAddress::Service => Ok(Self::Service(service(head)?)),
            BlobAddress::Container(container) => Ok(Self::Container(container, container_request::operation(head)?)),
            BlobAddress::Blob(container, blob) => Ok(Self::Blob(container, blob, blob_request::operation(head)?)),
        }
    }
}

fn is_account_info(head: &RequestHead<'_>) -> bool {
    let is = |name, word| head.parameter(name).is_some_and(|value| value == word);
    is("restype", "account") && is("comp", "properties") && matches!(head.method, "GET" | "HEAD")
}

fn service(head: &RequestHead<'_>) -> Result<ServiceOperation, ErrorReply> {
    match (head.parameter("restype").as_deref(), head.parameter("comp").as_deref(), head.method) {
        (Some("service"), Some("properties"), "GET") => Ok(ServiceOperation::GetProperties),
        (Some("service"), Some("properties"), "PUT") => Ok(ServiceOperation::SetProperties),
        (Some("service"), Some("stats"), "GET") => Ok(ServiceOperation::GetStats),
        (None, Some("list"), "GET") => list_containers(head),
        // The JavaScript client sends `restype=container` if the path names the account.
        (None | Some("container"), Some("batch"), "POST") => Ok(ServiceOperation::Batch),
        (None, Some("blobs"), "GET") => Ok(ServiceOperation::FindBlobs(find_blobs(head)?)),
        (Some("service"), Some("userdelegationkey"), "POST") => Err(not_implemented()),
        (Some("service" | "account"), Some("properties" | "stats"), _)
        | (None, Some("list" | "batch" | "blobs"), _) => Err(unsupported_verb()),
        (_, comp, _) => Err(unknown_component(comp)),
    }
}

fn list_containers(head: &RequestHead<'_>) -> Result<ServiceOperation, ErrorReply> {
    let (mut metadata, mut system) = (false, false);
    for word in words(head.parameter("include").as_deref()) {
        match word.to_ascii_lowercase().as_str() {
            "metadata" => metadata = true,
            "system" => system = true,
            // Deleted containers are not kept, so there are none to list.
            "deleted" => {}
            _ => return Err(parameter_error("include", word, "expected metadata, deleted or system")),
        }
    }
    Ok(ServiceOperation::ListContainers(ListContainers {
        prefix: head.parameter("prefix").map(Cow::into_owned),
        marker: head.parameter("marker").map(Cow::into_owned),
        from: head.parameter("marker").as_deref().map(marker::decode).transpose()?,
        count_max: count_max(head)?,
        metadata,
        system,
    }))
}

/// The words of a parameter that is a comma-separated list.
pub(super) fn words(parameter: Option<&str>) -> impl Iterator<Item = &str> {
    parameter.unwrap_or("").split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// `maxresults`, capped at the service's maximum.
pub(super) fn count_max(head: &RequestHead<'_>) -> Result<Option<usize>, ErrorReply> {
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
