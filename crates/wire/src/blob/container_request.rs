//! Requests to a container.

use super::find::find_blobs;
use super::headers;
use super::list_marker::ListMarker;
use super::operation::{ContainerOperation, ListBlobs};
use super::request::{count_max, not_implemented, unknown_component, unsupported_verb, words};
use crate::error_body::ErrorReply;
use crate::request_head::{RequestHead, parameter_error};
use larimar_model::blob::{ListInclude, PublicAccess};
use std::borrow::Cow;

pub(super) fn operation(head: &RequestHead<'_>) -> Result<ContainerOperation, ErrorReply> {
    if head.parameter("restype").as_deref() == Some("account") {
        return Err(match head.parameter("comp").as_deref() {
            Some("properties") => unsupported_verb(),
            comp => unknown_component(comp),
        });
    }
    match (head.parameter("comp").as_deref(), head.method) {
        (None, "PUT") => {
            Ok(ContainerOperation::Create { metadata: head.metadata()?, public_access: public_access(head)? })
        }
        (None, "GET" | "HEAD") => Ok(ContainerOperation::GetProperties { lease: headers::lease(head)? }),
        (None, "DELETE") => Ok(ContainerOperation::Delete { access: headers::container_access(head)? }),
        (Some("metadata"), "GET" | "HEAD") => Ok(ContainerOperation::GetMetadata { lease: headers::lease(head)? }),
        (Some("metadata"), "PUT") => {
            Ok(ContainerOperation::SetMetadata { metadata: head.metadata()?, access: headers::container_access(head)? })
        }
        (Some("acl"), "GET" | "HEAD") => Ok(ContainerOperation::GetAcl { lease: headers::lease(head)? }),
        (Some("acl"), "PUT") => Ok(ContainerOperation::SetAcl {
            public_access: public_access(head)?,
            access: headers::container_access(head)?,
        }),
        (Some("lease"), "PUT") => Ok(ContainerOperation::Lease {
            action: headers::lease_action(head)?,
            conditions: headers::container_access(head)?.conditions,
        }),
        (Some("list"), "GET") => list_blobs(head),
        (Some("batch"), "POST") => Ok(ContainerOperation::Batch),
        (Some("blobs"), "GET") => Ok(ContainerOperation::FindBlobs(find_blobs(head)?)),
        (Some("undelete" | "rename"), "PUT") => Err(not_implemented()),
        (None | Some("metadata" | "acl" | "lease" | "list" | "batch" | "blobs"), _) => Err(unsupported_verb()),
        (comp, _) => Err(unknown_component(comp)),
    }
}

fn public_access(head: &RequestHead<'_>) -> Result<PublicAccess, ErrorReply> {
    head.header_as("x-ms-blob-public-access").map(Option::unwrap_or_default)
}

fn list_blobs(head: &RequestHead<'_>) -> Result<ContainerOperation, ErrorReply> {
    let delimiter = head.parameter("delimiter");
    let mut include = ListInclude::default();
    for word in words(head.parameter("include").as_deref()) {
        match word.to_ascii_lowercase().as_str() {
            "snapshots" if delimiter.is_some() => {
                return Err(parameter_error("include", word, "snapshots are not listed with a delimiter"));
            }
            "snapshots" => include.snapshots = true,
            "metadata" => include.metadata = true,
            "uncommittedblobs" => include.uncommitted = true,
            "copy" => include.copy = true,
            "tags" => include.tags = true,
            // These features are not implemented, so there is nothing to include.
            "deleted" | "versions" | "deletedwithversions" | "immutabilitypolicy" | "legalhold" | "permissions" => {}
            _ => return Err(parameter_error("include", word, "expected parts of a blob that can be listed")),
        }
    }
    if head.parameter("showonly").is_some() {
        return Err(not_implemented());
    }
    Ok(ContainerOperation::ListBlobs(ListBlobs {
        prefix: head.parameter("prefix").map(Cow::into_owned),
        delimiter: delimiter.map(Cow::into_owned),
        marker: head.parameter("marker").map(Cow::into_owned),
        from: head.parameter("marker").as_deref().map(ListMarker::decode).transpose()?,
        start: head.parameter("startFrom").map(Cow::into_owned),
        count_max: count_max(head)?,
        include,
    }))
}
