//! The Queue service: what it makes of a request, and its handlers.

mod messages;
mod queues;

use crate::address::Address;
use crate::body::RequestBody;
use crate::call::Call;
use crate::error::Result;
use crate::handler::{Handler, Peer};
use crate::http::{self, Authorized, Protocol, RequestTrace};
use crate::properties;
use crate::reply::{Reply, ResponseBody};
use crate::storage::Storage;
use hyper::body::Incoming;
use hyper::{Request, Response};
use larimar_engine::Engine;
use larimar_engine::queue::{Queue, find_queue, read_queue};
use larimar_model::Timestamp;
use larimar_model::queue::QueueName;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::queue::QueueOperation;
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use std::sync::Arc;

/// Answers requests of the Queue protocol.
#[derive(Debug)]
pub struct QueueService<E> {
    storage: Arc<Storage<E>>,
}

impl<E: Engine> QueueService<E> {
    /// The queues of these accounts.
    #[must_use]
    pub const fn new(storage: Arc<Storage<E>>) -> Self {
        Self { storage }
    }
}

impl<E: Engine> Handler for QueueService<E> {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
        http::serve(self, request, peer).await
    }
}

impl<E: Engine> Protocol for QueueService<E> {
    type Engine = E;
    type Request = QueueOperation;
    const SERVICE: Service = Service::Queue;
    const SERVER: &'static str = "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0";
    const PREFLIGHT: &'static str = "QueuePreflightRequest";

    fn storage(&self) -> &Storage<E> {
        &self.storage
    }

    fn parse(head: &RequestHead<'_>, address: &Address<'_>) -> std::result::Result<QueueOperation, ErrorReply> {
        QueueOperation::parse(head, address.path)
    }

    async fn run(
        &self,
        call: &Call<'_, E>,
        operation: Authorized<'_, QueueOperation>,
        body: &mut RequestBody,
    ) -> Result<Reply> {
        let reply = run(call, operation.operation(), &body.whole()).await?;
        // Recorded: caches must not keep what is read.
        Ok(reply.with_some("cache-control", matches!(call.head.method, "GET" | "HEAD").then_some("no-cache")))
    }

    fn error_reply(
        error: &ErrorReply,
        _head: &RequestHead<'_>,
        _trace: &RequestTrace,
        request_id: &str,
        now: Timestamp,
    ) -> Reply {
        http::storage_error_reply(error, request_id, now)
    }
}

impl<E: Engine> Call<'_, E> {
    /// Finds a queue of the account.
    async fn queue(&self, name: &QueueName) -> Result<Queue> {
        Ok(self.lookups.found(find_queue(self.engine(), self.account(), name).await?))
    }

    /// Reads a queue's metadata and list as they are now.
    async fn queue_settings(&self, name: &QueueName) -> Result<Queue> {
        Ok(self.lookups.found(read_queue(self.engine(), self.account(), name).await?))
    }
}

/// Runs an operation. Those on messages are frequent and keep their state inline; the others are boxed.
async fn run<E: Engine>(call: &Call<'_, E>, operation: &QueueOperation, body: &[u8]) -> Result<Reply> {
    match operation {
        QueueOperation::PutMessage { queue, hidden_for, lives_for } => {
            messages::put(call, queue, *hidden_for, *lives_for, body).await
        }
        QueueOperation::GetMessages { queue, count, hidden_for } => {
            messages::get(call, queue, *count, *hidden_for).await
        }
        QueueOperation::PeekMessages { queue, count } => messages::peek(call, queue, *count).await,
        QueueOperation::DeleteMessage { queue, id, receipt } => messages::delete(call, queue, *id, receipt).await,
        QueueOperation::UpdateMessage { queue, id, receipt, hidden_for } => {
            messages::update(call, queue, *id, receipt, *hidden_for, body).await
        }
        QueueOperation::ClearMessages(queue) => Box::pin(messages::clear(call, queue)).await,
        QueueOperation::ListQueues(options) => Box::pin(queues::list(call, options)).await,
        QueueOperation::CreateQueue(queue, metadata) => Box::pin(queues::create(call, queue, metadata)).await,
        QueueOperation::DeleteQueue(queue) => Box::pin(queues::delete(call, queue)).await,
        QueueOperation::GetMetadata(queue) => Box::pin(queues::get_metadata(call, queue)).await,
        QueueOperation::SetMetadata(queue, metadata) => Box::pin(queues::set_metadata(call, queue, metadata)).await,
        QueueOperation::GetAcl(queue) => Box::pin(queues::get_acl(call, queue)).await,
        QueueOperation::SetAcl(queue) => Box::pin(queues::set_acl(call, queue, body)).await,
        QueueOperation::GetServiceProperties => Box::pin(properties::get(call)).await,
        QueueOperation::SetServiceProperties => Box::pin(properties::set(call, body)).await,
        QueueOperation::GetServiceStats => Ok(properties::stats(call)),
    }
}
