//! List Containers, List Blobs, Find Blobs by Tags.

use super::BlobCall;
use super::answer::container_properties;
use crate::error::Result;
use crate::reply::Reply;
use crate::yielding;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{FindFrom, FindIn, ListFrom, ListItem, ListQuery};
use larimar_model::blob::ContainerName;
use larimar_model::limits;
use larimar_wire::blob::{
    FindBlobs, FindMarker, FoundBlob, ListBlobs, ListContainers, ListEntry, ListMarker, ListedBlob, ListedContainer,
    write_blob_list, write_container_list, write_found_blobs,
};

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    pub(super) async fn list_containers(&self, options: &ListContainers) -> Result<Reply> {
        let prefix = options.prefix.as_deref().unwrap_or("");
        let from = options.from.as_deref().unwrap_or("");
        let (account, max) = (self.call.account(), options.page());
        let held = self.call.hold(max as u64 * ITEM_BYTES).await?;
        let page = self.blobs.list_containers(account, (prefix, from), max, options.system, self.now()).await?;
        let (endpoint, options) = (self.endpoint(), options.clone());
        let xml = yielding::run(limits::LIST_ITEM_BYTES * page.containers.len(), move || {
            let containers = page.containers.iter();
            let containers = containers.map(|container| ListedContainer {
                name: &container.name,
                properties: container_properties(container),
            });
            let mut xml = Vec::with_capacity(256 + 512 * page.containers.len());
            write_container_list(&mut xml, &endpoint, &options, containers, page.next.as_deref());
            Ok(xml)
        });
        Ok(Reply { held, ..Reply::xml(200, xml.await?) })
    }

    pub(super) async fn list_blobs(&self, name: &ContainerName, options: &ListBlobs) -> Result<Reply> {
        let container = self.find(name).await?;
        let query = ListQuery {
            prefix: options.prefix.clone().unwrap_or_default(),
            delimiter: options.delimiter.clone().unwrap_or_default(),
            from: from(options),
            items_max: options.page(),
            include: options.include,
        };
        let held = self.call.hold(query.items_max as u64 * ITEM_BYTES).await?;
        let page = self.blobs.list_blobs(container.id, &query, self.now()).await?;
        let next = page.next.map(|ListFrom { name, snapshot }| ListMarker { name, snapshot });
        let (endpoint, name, options) = (self.endpoint(), name.clone(), options.clone());
        let xml = yielding::run(limits::LIST_ITEM_BYTES * page.items.len(), move || {
            let mut xml = Vec::with_capacity(256 + 768 * page.items.len());
            let entries = page.items.iter().map(entry);
            write_blob_list(&mut xml, &endpoint, name.as_str(), &options, entries, next.as_ref());
            Ok(xml)
        });
        Ok(Reply { held, ..Reply::xml(200, xml.await?) })
    }

    /// Finds blobs by their tags in one container or in the account.
    pub(super) async fn find_blobs(&self, container: Option<&ContainerName>, options: &FindBlobs) -> Result<Reply> {
        let within = match container {
            Some(name) => FindIn::Container { name: name.as_str(), id: self.find(name).await?.id },
            None => FindIn::Account(self.call.account()),
        };
        let from = options.from.clone().map(|FindMarker { container, entry }| FindFrom { container, entry });
        let held = self.call.hold(options.page() as u64 * ITEM_BYTES).await?;
        let page = self.blobs.find_blobs(within, &options.query, from.as_ref(), options.page(), self.now()).await?;
        let next = page.next.map(|FindFrom { container, entry }| FindMarker { container, entry });
        let (endpoint, expression) = (self.endpoint(), options.expression.clone());
        let xml = yielding::run(limits::LIST_ITEM_BYTES * page.blobs.len(), move || {
            let mut xml = Vec::with_capacity(256 + 384 * page.blobs.len());
            let blobs = page.blobs.iter();
            let blobs = blobs.map(|blob| FoundBlob { name: &blob.name, container: &blob.container, tags: &blob.tags });
            write_found_blobs(&mut xml, &endpoint, &expression, blobs, next.as_ref());
            Ok(xml)
        });
        Ok(Reply { held, ..Reply::xml(200, xml.await?) })
    }

    fn endpoint(&self) -> String {
        format!("{}/", self.call.base)
    }
}

fn entry(item: &ListItem) -> ListEntry<'_> {
    match item {
        ListItem::Prefix(prefix) => ListEntry::Prefix(prefix),
        ListItem::Blob(blob) if blob.properties.is_uncommitted => {
            ListEntry::Uncommitted { name: &blob.name, lease: blob.properties.lease }
        }
        ListItem::Blob(blob) => {
            ListEntry::Blob(ListedBlob { name: &blob.name, snapshot: blob.snapshot, properties: &blob.properties })
        }
    }
}

/// The position at which a listing starts.
fn from(options: &ListBlobs) -> Option<ListFrom> {
    let start = || options.start.clone().map(|name| ListFrom { name, snapshot: None });
    options.from.clone().map(|ListMarker { name, snapshot }| ListFrom { name, snapshot }).or_else(start)
}

/// The approximate size of an item of a listing in memory.
const ITEM_BYTES: u64 = 512;
