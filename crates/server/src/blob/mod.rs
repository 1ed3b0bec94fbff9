//! The Blob service: runs an authorised request by the handler of its operation.

mod answer;
mod batch;
mod blocks;
mod containers;
mod list;
mod lookup;
mod pages;
mod properties;
mod put;
mod read;
mod source;
mod upload;

use crate::address::Address;
use crate::body::RequestBody;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::handler::{Handler, Peer};
use crate::http::{self, Authorized, Protocol, RequestTrace};
use crate::properties as service_properties;
use crate::reply::{Reply, ResponseBody};
use crate::storage::Storage;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::{Request, Response};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{BlobRef, Blobs};
use larimar_model::Timestamp;
use larimar_model::blob::ContainerName;
use larimar_wire::blob::{BlobOperation, BlobRequest, ContainerOperation, ServiceOperation};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use std::fmt;
use std::sync::Arc;

/// Answers requests of the Blob protocol.
pub struct BlobService<E, B> {
    storage: Arc<Storage<E>>,
    blobs: Arc<Blobs<E, B>>,
}

/// A request that the caller may run, or a part of a batch. All handlers are its methods, so none runs without the
/// permission that the operation needs.
pub(crate) struct BlobCall<'a, E, B> {
    call: &'a Call<'a, E>,
    blobs: &'a Blobs<E, B>,
    request: Authorized<'a, BlobRequest>,
}

impl<E: Engine, B: ByteStore> BlobService<E, B> {
    /// The blobs of these accounts.
    #[must_use]
    pub fn new(storage: Arc<Storage<E>>, blobs: Arc<Blobs<E, B>>) -> Self {
        let shown = Arc::clone(&blobs);
        storage.metrics.show_bytes(Box::new(move || shown.bytes().statistics()));
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

    fn parse(head: &RequestHead<'_>, address: &Address<'_>) -> std::result::Result<BlobRequest, ErrorReply> {
        BlobRequest::parse(head, address.path)
    }

    async fn run(
        &self,
        call: &Call<'_, E>,
        request: Authorized<'_, BlobRequest>,
        body: &mut RequestBody,
    ) -> Result<Reply> {
        let blob_call = BlobCall { call, blobs: &self.blobs, request };
        match blob_call.run(body).await {
            Err(error) if call.lookups.is_outdated(error.code(Service::Blob)) && !body.is_repeatable() => {
                Err(blob_call.container_gone(error).await)
            }
            done => done,
        }
    }

    fn error_reply(
        error: &ErrorReply,
        _head: &RequestHead<'_>,
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
    /// Runs the operation of the request.
    async fn run(&self, body: &mut RequestBody) -> Result<Reply> {
        match self.request.operation() {
            BlobRequest::Service(operation) => Box::pin(self.run_on_service(operation, body)).await,
            BlobRequest::Container(name, operation) => Box::pin(self.run_on_container(name, operation, body)).await,
            BlobRequest::Blob(container, name, operation) => {
                if let BlobOperation::SetTags { checks, .. } = operation {
                    // Tags that cannot be read are refused before the container is looked up.
                    self.read_tags(checks, body).await?;
                }
                let found = self.find(container).await?;
                self.run_on_blob(BlobRef { container: found.id, name }, operation, body).await
            }
            BlobRequest::AccountInfo(_) => self.account_info(),
        }
    }

    async fn run_on_service(&self, operation: &ServiceOperation, body: &RequestBody) -> Result<Reply> {
        match operation {
            ServiceOperation::ListContainers(options) => self.list_containers(options).await,
            ServiceOperation::FindBlobs(options) => self.find_blobs(None, options).await,
            ServiceOperation::GetProperties => service_properties::get(self.call).await,
            ServiceOperation::SetProperties => service_properties::set(self.call, &body.whole()).await,
            ServiceOperation::GetStats => Ok(service_properties::stats(self.call)),
            ServiceOperation::Batch => self.batch(None, body).await,
        }
    }

    async fn run_on_container(
        &self,
        name: &ContainerName,
        operation: &ContainerOperation,
        body: &RequestBody,
    ) -> Result<Reply> {
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
                self.set_container_acl(name, *public_access, access, &body.whole()).await
            }
            ContainerOperation::Delete { access } => self.delete_container(name, access).await,
            ContainerOperation::Lease { action, conditions } => self.lease_container(name, *action, conditions).await,
            ContainerOperation::ListBlobs(options) => self.list_blobs(name, options).await,
            ContainerOperation::FindBlobs(options) => self.find_blobs(Some(name), options).await,
            ContainerOperation::Batch => self.batch(Some(name), body).await,
        }
    }

    /// The handler of an operation on a blob. The futures of handlers are large, so each is boxed.
    fn run_on_blob<'a>(
        &'a self,
        at: BlobRef<'a>,
        operation: &'a BlobOperation,
        body: &'a mut RequestBody,
    ) -> BoxFuture<'a, Result<Reply>> {
        match operation {
            BlobOperation::Put(put) => Box::pin(self.put_blob(at, put, body)),
            BlobOperation::Get(get) => Box::pin(self.get_blob(at, get)),
            BlobOperation::GetProperties(read) => Box::pin(self.blob_properties(at, read)),
            BlobOperation::GetMetadata(read) => Box::pin(self.blob_metadata(at, read)),
            BlobOperation::SetMetadata { metadata, access } => Box::pin(self.set_blob_metadata(at, metadata, access)),
            BlobOperation::SetHeaders(set) => Box::pin(self.set_headers(at, set)),
            BlobOperation::Delete { snapshot, snapshots, access } => {
                Box::pin(self.delete_blob(at, *snapshot, *snapshots, access))
            }
            BlobOperation::Snapshot { metadata, access } => Box::pin(self.snapshot_blob(at, metadata.as_ref(), access)),
            BlobOperation::Lease { action, access } => Box::pin(self.lease_blob(at, *action, access)),
            BlobOperation::Copy(copy) => Box::pin(self.copy_blob(at, copy)),
            BlobOperation::IncrementalCopy(copy) => Box::pin(self.copy_incremental(at, copy)),
            BlobOperation::AbortCopy { .. } => Box::pin(self.abort_copy(at)),
            BlobOperation::SetTier { tier, priority, snapshot, access } => {
                Box::pin(self.set_tier(at, (*tier, *priority), *snapshot, access))
            }
            BlobOperation::GetTags { snapshot, access } => Box::pin(self.get_tags(at, *snapshot, access)),
            BlobOperation::SetTags { access, checks } => Box::pin(self.set_tags(at, access, checks, body)),
            BlobOperation::PutBlock(put) => Box::pin(self.put_block(at, put, body)),
            BlobOperation::PutBlockList(put) => Box::pin(self.put_block_list(at, put, body)),
            BlobOperation::GetBlockList { kind, snapshot, access } => {
                Box::pin(self.get_block_list(at, *kind, *snapshot, access))
            }
            BlobOperation::AppendBlock(append) => Box::pin(self.append_block(at, append, body)),
            BlobOperation::Seal { position, access } => Box::pin(self.seal_blob(at, *position, access)),
            BlobOperation::PutPage(put) => Box::pin(self.put_page(at, put, body)),
            BlobOperation::GetPageRanges(get) => Box::pin(self.get_page_ranges(at, get)),
        }
    }

    /// The error of a request whose container was deleted while its body was streamed. If there is a new container of
    /// that name, the client is to send the request again.
    async fn container_gone(&self, error: Failure) -> Failure {
        let BlobRequest::Blob(container, ..) = self.request.operation() else { return error };
        match self.blobs.read_container(self.call.account(), container, None, self.now()).await {
            Ok(_) => ErrorCode::ServerBusy.into(),
            Err(_) => error,
        }
    }

    const fn now(&self) -> Timestamp {
        self.call.now
    }
}

impl<E, B> fmt::Debug for BlobService<E, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobService").field("storage", &self.storage).finish_non_exhaustive()
    }
}
