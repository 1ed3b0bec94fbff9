//! The responses of List Containers and List Blobs.

use super::list_marker::ListMarker;
use super::operation::{ListBlobs, ListContainers};
use super::properties::{ContainerProperties, write_blob, write_lease};
use super::tags_xml::write_tags_element;
use crate::marker;
use crate::uri;
use crate::xml;
use larimar_model::blob::{AccessTier, BlobProperties, LeaseView, SnapshotTime};

/// A container in a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListedContainer<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its properties; metadata is included if the request asks for it.
    pub properties: ContainerProperties<'a>,
}

/// One entry of a listing of blobs.
#[derive(Clone, Copy, Debug)]
pub enum ListEntry<'a> {
    /// A blob or a snapshot.
    Blob(ListedBlob<'a>),
    /// A blob that has only uncommitted blocks.
    Uncommitted {
        /// Its name.
        name: &'a str,
        /// Its lease.
        lease: LeaseView,
    },
    /// A group of names: their common prefix up to and including the delimiter.
    Prefix(&'a str),
}

/// A blob or a snapshot in a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListedBlob<'a> {
    /// Its name.
    pub name: &'a str,
    /// The snapshot's time.
    pub snapshot: Option<SnapshotTime>,
    /// Its properties; metadata, tags and copy are included if the request asks for them.
    pub properties: &'a BlobProperties,
}

/// Appends the body of the response of List Containers; `next` is the start of the next page.
pub fn write_container_list<'a>(
    out: &mut Vec<u8>,
    endpoint: &str,
    request: &ListContainers,
    containers: impl IntoIterator<Item = ListedContainer<'a>>,
    next: Option<&str>,
) {
    xml::write_start(out);
    xml::write_element_with(out, "EnumerationResults", &[("ServiceEndpoint", endpoint)], |out| {
        write_given(out, "Prefix", request.prefix.as_deref());
        write_given(out, "Marker", request.marker.as_deref());
        write_count(out, request.count_max);
        xml::write_element(out, "Containers", |out| {
            for container in containers {
                xml::write_element(out, "Container", |out| {
                    xml::write_text(out, "Name", container.name);
                    container.properties.write(out);
                    if request.metadata {
                        xml::write_metadata(out, container.properties.metadata);
                    }
                });
            }
        });
        xml::write_text(out, "NextMarker", &next.map(marker::encode).unwrap_or_default());
    });
}

/// Appends the body of the response of List Blobs; `next` is the start of the next page.
pub fn write_blob_list<'a>(
    out: &mut Vec<u8>,
    endpoint: &str,
    container: &str,
    request: &ListBlobs,
    entries: impl IntoIterator<Item = ListEntry<'a>>,
    next: Option<&ListMarker>,
) {
    xml::write_start(out);
    let attributes = [("ServiceEndpoint", endpoint), ("ContainerName", container)];
    xml::write_element_with(out, "EnumerationResults", &attributes, |out| {
        write_given(out, "Prefix", request.prefix.as_deref());
        write_given(out, "Marker", request.marker.as_deref());
        write_count(out, request.count_max);
        write_given(out, "Delimiter", request.delimiter.as_deref());
        xml::write_element(out, "Blobs", |out| {
            for entry in entries {
                write_entry(out, request, &entry);
            }
        });
        xml::write_text(out, "NextMarker", &next.map(ListMarker::encode).unwrap_or_default());
    });
}

fn write_entry(out: &mut Vec<u8>, request: &ListBlobs, entry: &ListEntry<'_>) {
    match entry {
        ListEntry::Blob(blob) => xml::write_element(out, "Blob", |out| {
            write_name(out, "Name", blob.name);
            if let Some(snapshot) = blob.snapshot {
                xml::write_text(out, "Snapshot", &snapshot.to_string());
            }
            write_blob(out, blob.properties, blob.snapshot.is_some(), request.include.copy);
            if request.include.metadata {
                xml::write_metadata(out, &blob.properties.metadata);
            }
            if request.include.tags && !blob.properties.tags.is_empty() {
                write_tags_element(out, &blob.properties.tags);
            }
        }),
        ListEntry::Uncommitted { name, lease } => xml::write_element(out, "Blob", |out| {
            write_name(out, "Name", name);
            // The service sends neither times nor an etag (recorded).
            xml::write_element(out, "Properties", |out| {
                xml::write_text(out, "Content-Length", "0");
                xml::write_text(out, "BlobType", "BlockBlob");
                xml::write_text(out, "AccessTier", AccessTier::HOT.as_str());
                xml::write_text(out, "AccessTierInferred", "true");
                write_lease(out, *lease);
                xml::write_text(out, "ServerEncrypted", "false");
            });
        }),
        ListEntry::Prefix(prefix) => {
            xml::write_element(out, "BlobPrefix", |out| write_name(out, "Name", prefix));
        }
    }
}

/// Appends a name. A name with characters that XML does not allow is percent-encoded and marked as `Encoded`.
pub(super) fn write_name(out: &mut Vec<u8>, element: &str, name: &str) {
    if name.chars().all(xml::is_xml_char) {
        xml::write_text(out, element, name);
        return;
    }
    let mut escaped = String::new();
    uri::encode(&mut escaped, name, uri::is_unreserved);
    xml::write_element_with(out, element, &[("Encoded", "true")], |out| out.extend_from_slice(escaped.as_bytes()));
}

fn write_given(out: &mut Vec<u8>, element: &str, text: Option<&str>) {
    if let Some(text) = text {
        write_name(out, element, text);
    }
}

fn write_count(out: &mut Vec<u8>, count: Option<usize>) {
    if let Some(count) = count {
        xml::write_text(out, "MaxResults", itoa::Buffer::new().format(count));
    }
}

#[cfg(test)]
mod tests;
