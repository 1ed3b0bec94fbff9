//! The Blob service: what it makes of a request, and its handlers.

mod answer;
mod batch;
mod blocks;
mod containers;
mod list;
mod pages;
mod permit;
mod properties;
mod put;
mod read;
mod source;
mod upload;

use crate::address::Address;
use crate::body::RequestBody;
use crate::call::Call;
use crate::error;
use crate::handler::{Handler, Peer};
use crate::head::Head;
use crate::http::{self, Authorized, Protocol, RequestTrace};
use crate::properties as service_properties;
use crate::reply::{Reply, ResponseBody};
use crate::storage::Storage;
use hyper::body::Incoming;
use hyper::{Request, Response};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{Access, BlobRef, Blobs, Container};
use larimar_model::Timestamp;
use larimar_model::blob::{BlobName, ContainerName};
use larimar_wire::blob::{BlobOperation, BlobRequest, ContainerOperation, PutBlobContent, ServiceOperation};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::operation::SETTINGS_BODY_BYTES_MAX;
use larimar_wire::sas::{Need, Service};
use larimar_wire::storage_head::StorageHead;
use std::fmt;
use std::sync::Arc;

/// Answers requests of the Blob protocol.
pub struct BlobService<E, B> {
    storage: Arc<Storage<E>>,
    blobs: Arc<Blobs<E, B>>,
}

/// One request on its way through a handler, with the blobs.
pub(crate) struct BlobCall<'a, E, B> {
    call: &'a Call<'a, E>,
    blobs: &'a Blobs<E, B>,
}

impl<E: Engine, B: ByteStore> BlobService<E, B> {
    /// The blobs of these accounts.
    #[must_use]
    pub const fn new(storage: Arc<Storage<E>>, blobs: Arc<Blobs<E, B>>) -> Self {
        Self { storage, blobs }
    }
}

impl<E: Engine, B: ByteStore> Handler for BlobService<E, B> {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        http::serve(self, request, peer).await
    }
}

impl<E: Engine, B: ByteStore> Protocol for BlobService<E, B> {
    type Engine = E;
    type Request = BlobRequest;
    const SERVICE: Service = Service::Blob;
    const SERVER: &'static str = "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0";
    const PREFLIGHT: &'static str = "BlobPreflightRequest";

    fn storage(&self) -> &Storage<E> {
        &self.storage
    }

    fn parse(head: &Head<'_>, address: &Address<'_>) -> Result<BlobRequest, ErrorReply> {
        BlobRequest::parse(&StorageHead::new(head.method, address.path, head.query, head.texts())?)
    }

    async fn run(
        &self,
        call: &Call<'_, E>,
        request: Authorized<'_, BlobRequest>,
        body: &mut RequestBody,
    ) -> Result<Reply, ErrorReply> {
        let blob_call = BlobCall { call, blobs: &self.blobs };
        match blob_call.run(request.operation(), body).await {
            Err(error) if call.lookups.is_outdated(&error) && !body.is_repeatable() => {
                Err(blob_call.without_body(request.operation(), error).await)
            }
            done => done,
        }
    }

    fn error_reply(
        error: &ErrorReply,
        _head: &Head<'_>,
        _trace: &RequestTrace,
        request_id: &str,
        now: Timestamp,
    ) -> Reply {
        match error.status {
            304 => Reply { reason: Some(error.reason()), ..Reply::empty(304) },
            _ => http::storage_error_reply(error, request_id, now),
        }
    }
}

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    /// Runs a request. The states of handlers are large and moved about by value, so they are boxed.
    async fn run(&self, request: &BlobRequest, body: &mut RequestBody) -> Result<Reply, ErrorReply> {
        self.permit_condition_on_tags(request)?;
        match request {
            BlobRequest::Service(operation) => Box::pin(self.service(operation, body)).await,
            BlobRequest::Container(name, operation) => Box::pin(self.container(name, operation, body)).await,
            BlobRequest::Blob(container, name, operation) => match operation {
                BlobOperation::Get(get) => Box::pin(self.get_blob(container, name, get)).await,
                BlobOperation::Put(put) => match &put.content {
                    PutBlobContent::Block(checks) => {
                        Box::pin(self.put_block_blob(container, name, put, checks, body)).await
                    }
                    _ => Box::pin(self.put_other(container, name, put)).await,
                },
                BlobOperation::PutBlock(put) => Box::pin(self.put_block(container, name, put, body)).await,
                BlobOperation::AppendBlock(append) => Box::pin(self.append_block(container, name, append, body)).await,
                BlobOperation::PutPage(put) => Box::pin(self.put_page(container, name, put, body)).await,
                _ => Box::pin(self.small(container, name, operation, body)).await,
            },
        }
    }

    async fn service(&self, operation: &ServiceOperation, body: &mut RequestBody) -> Result<Reply, ErrorReply> {
        match operation {
            ServiceOperation::ListContainers(options) => self.list_containers(options).await,
            ServiceOperation::FindBlobs(options) => self.find_blobs(None, options).await,
            ServiceOperation::GetProperties => {
                self.permit(&Need::READ_SERVICE)?;
                service_properties::get(self.call).await
            }
            ServiceOperation::SetProperties => {
                let body = body.read(SETTINGS_BODY_BYTES_MAX).await?;
                self.permit(&Need::WRITE_SERVICE)?;
                service_properties::set(self.call, &body).await
            }
            ServiceOperation::GetStats => {
                self.permit(&Need::READ_SERVICE)?;
                Ok(service_properties::stats(self.call))
            }
            ServiceOperation::GetAccountInfo => self.account_info(larimar_wire::sas::Target::Account),
            ServiceOperation::Batch => self.batch(None, body).await,
        }
    }

    async fn container(
        &self,
        name: &ContainerName,
        operation: &ContainerOperation,
        body: &mut RequestBody,
    ) -> Result<Reply, ErrorReply> {
        match operation {
            ContainerOperation::Create { metadata, public_access } => {
                self.create_container(name, metadata, *public_access).await
            }
            ContainerOperation::GetProperties { lease } => self.container_properties(name, *lease, true).await,
            ContainerOperation::GetMetadata { lease } => self.container_properties(name, *lease, false).await,
            ContainerOperation::SetMetadata { metadata, access } => {
                self.set_container_metadata(name, metadata, access).await
            }
            ContainerOperation::GetAcl { lease } => self.get_container_acl(name, *lease).await,
            ContainerOperation::SetAcl { public_access, access } => {
                let body = body.read(SETTINGS_BODY_BYTES_MAX).await?;
                self.set_container_acl(name, *public_access, access, &body).await
            }
            ContainerOperation::Delete { access } => self.delete_container(name, access).await,
            ContainerOperation::Lease { action, conditions } => self.lease_container(name, *action, conditions).await,
            ContainerOperation::ListBlobs(options) => self.list_blobs(name, options).await,
            ContainerOperation::FindBlobs(options) => self.find_blobs(Some(name), options).await,
            ContainerOperation::GetAccountInfo => {
                self.account_info(larimar_wire::sas::Target::Container(name.as_str()))
            }
            ContainerOperation::Batch => self.batch(Some(name), body).await,
        }
    }

    /// Operations on blobs whose bodies are small or none.
    async fn small(
        &self,
        container: &ContainerName,
        name: &BlobName,
        operation: &BlobOperation,
        body: &mut RequestBody,
    ) -> Result<Reply, ErrorReply> {
        match operation {
            BlobOperation::GetProperties(read) => self.blob_properties(container, name, read).await,
            BlobOperation::GetMetadata(read) => self.blob_metadata(container, name, read).await,
            BlobOperation::SetMetadata { metadata, access } => {
                self.set_blob_metadata(container, name, metadata, access).await
            }
            BlobOperation::SetHeaders(set) => self.set_headers(container, name, set).await,
            BlobOperation::Delete { snapshot, snapshots, access } => {
                self.delete_blob(container, name, *snapshot, *snapshots, access).await
            }
            BlobOperation::Snapshot { metadata, access } => {
                self.snapshot_blob(container, name, metadata.as_ref(), access).await
            }
            BlobOperation::Lease { action, conditions, if_tags } => {
                let access = Access { conditions: *conditions, if_tags: if_tags.clone(), ..Access::default() };
                self.lease_blob(container, name, *action, &access).await
            }
            BlobOperation::Copy(copy) => self.copy_blob(container, name, copy).await,
            BlobOperation::IncrementalCopy(copy) => self.copy_incremental(container, name, copy).await,
            BlobOperation::AbortCopy { .. } => self.abort_copy(container, name).await,
            BlobOperation::SetTier { tier, priority, snapshot, access } => {
                self.set_tier(container, name, (*tier, *priority), *snapshot, access).await
            }
            BlobOperation::GetTags { snapshot, access } => self.get_tags(container, name, *snapshot, access).await,
            BlobOperation::SetTags { access, checks } => self.set_tags(container, name, access, checks, body).await,
            BlobOperation::Seal { position, access } => self.seal_blob(container, name, *position, access).await,
            BlobOperation::PutBlockList(put) => self.put_block_list(container, name, put, body).await,
            BlobOperation::GetBlockList { kind, snapshot, access } => {
                self.get_block_list(container, name, *kind, *snapshot, access).await
            }
            BlobOperation::GetPageRanges(get) => self.get_page_ranges(container, name, get).await,
            BlobOperation::GetAccountInfo => self.account_info(larimar_wire::sas::Target::Blob {
                container: container.as_str(),
                blob: name.as_str(),
                snapshot: None,
            }),
            BlobOperation::Get(_)
            | BlobOperation::Put(_)
            | BlobOperation::PutBlock(_)
            | BlobOperation::AppendBlock(_)
            | BlobOperation::PutPage(_) => unreachable!("run by `run`"),
        }
    }

    /// The error of a request whose container was not found after its body was read. If there is a new container by now,
    /// clients are to send the request again.
    async fn without_body(&self, request: &BlobRequest, error: ErrorReply) -> ErrorReply {
        let BlobRequest::Blob(container, ..) = request else { return error };
        match self.blobs.read_container(self.call.account(), container, None, self.now()).await {
            Ok(_) => ErrorReply::new(ErrorCode::ServerBusy),
            Err(_) => error,
        }
    }

    /// Finds a container of the account.
    async fn find(&self, name: &ContainerName) -> Result<Container, ErrorReply> {
        let found = self.blobs.find_container(self.call.account(), name, self.call.now).await;
        found.map(|container| self.call.lookups.found(container)).map_err(|error| error::engine_error(&error))
    }

    const fn now(&self) -> Timestamp {
        self.call.now
    }
}

/// A blob of a container that was found.
const fn blob_ref<'a>(container: &Container, name: &'a BlobName) -> BlobRef<'a> {
    BlobRef { container: container.id, name }
}

impl<E, B> fmt::Debug for BlobService<E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobService").field("storage", &self.storage).finish_non_exhaustive()
    }
}
