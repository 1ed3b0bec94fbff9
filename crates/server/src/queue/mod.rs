//! The Queue service: what it makes of a request, and its handlers.

mod messages;
mod queues;

use crate::address::Address;
use crate::body::RequestBody;
use crate::call::Call;
use crate::error;
use crate::handler::{Handler, Peer};
use crate::head::Head;
use crate::http::{self, Protocol, Seen};
use crate::properties;
use crate::reply::{Reply, ResponseBody};
use crate::storage::Storage;
use hyper::body::Incoming;
use hyper::{Request, Response};
use larimar_engine::queue::{Queue, find_queue, read_queue};
use larimar_engine::{Engine, ReadError, WriteError};
use larimar_model::Timestamp;
use larimar_model::queue::QueueName;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::queue::{MESSAGE_BODY_BYTES_MAX, QueueOperation, QueueRequest};
use larimar_wire::sas::Service;
use larimar_wire::storage_head::StorageHead;
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
    const SERVICE: Service = Service::Queue;
    const SERVER: &'static str = "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0";
    const PREFLIGHT: &'static str = "QueuePreflightRequest";

    fn storage(&self) -> &Storage<E> {
        &self.storage
    }

    async fn run(&self, call: &Call<'_, E>, body: &mut RequestBody, seen: &mut Seen) -> Result<Reply, ErrorReply> {
        let head = call.head;
        let parsed = StorageHead::new(head.method, call.address.path, head.query, head.texts())?;
        let request = QueueRequest::parse(&parsed)?;
        seen.operation = request.operation.name();
        check_endpoint(&request.operation, call.address.is_secondary)?;
        let body = body.read(MESSAGE_BODY_BYTES_MAX).await?;
        call.throttle(None, 1)?;
        // As for tables: the lookup of a shared engine may be a moment old.
        let result = match run(call, &request.operation, &body).await {
            Err(error) if E::IS_SHARED && error.code == ErrorCode::QueueNotFound => {
                Box::pin(run(call, &request.operation, &body)).await
            }
            result => result,
        };
        // Recorded: whatever is read is not to be kept by caches.
        let cache = matches!(head.method, "GET" | "HEAD").then_some("no-cache");
        let result = result.map(|reply| reply.with_some("cache-control", cache));
        result.map(|reply| Reply { is_read: !request.operation.is_write(), ..reply })
    }

    fn operation(address: &Address<'_>, head: &Head<'_>) -> Option<&'static str> {
        let parsed = StorageHead::new(head.method, address.path, head.query, head.texts()).ok()?;
        QueueRequest::parse(&parsed).ok().map(|request| request.operation.name())
    }

    fn error_reply(error: &ErrorReply, _head: &Head<'_>, _seen: &Seen, request_id: &str, now: Timestamp) -> Reply {
        http::storage_error_reply(error, request_id, now)
    }
}

impl<E: Engine> Call<'_, E> {
    /// Finds a queue of the account.
    async fn queue(&self, name: &QueueName) -> Result<Queue, ErrorReply> {
        find_queue(self.engine(), self.account(), name).await.map_err(|error| error::engine_error(&error))
    }

    /// Reads a queue's metadata and list as they are now.
    async fn queue_settings(&self, name: &QueueName) -> Result<Queue, ErrorReply> {
        read_queue(self.engine(), self.account(), name).await.map_err(|error| error::engine_error(&error))
    }
}

/// The secondary is there to be read, and the only one that tells its stats.
fn check_endpoint(operation: &QueueOperation, is_secondary: bool) -> Result<(), ErrorReply> {
    match operation {
        QueueOperation::GetServiceStats if !is_secondary => Err(ErrorReply::new(ErrorCode::InvalidQueryParameterValue)),
        _ if is_secondary && operation.is_write() => Err(ErrorReply::new(ErrorCode::InsufficientAccountPermissions)),
        _ => Ok(()),
    }
}

/// Runs an operation. Those on messages are frequent and keep their state inline; the others are boxed.
async fn run<E: Engine>(call: &Call<'_, E>, operation: &QueueOperation, body: &[u8]) -> Result<Reply, ErrorReply> {
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
        QueueOperation::GetServiceStats => properties::stats(call),
    }
}

/// What a client is told of a read that failed.
fn read_error(error: &ReadError) -> ErrorReply {
    match error {
        ReadError::SpaceGone => ErrorReply::new(ErrorCode::QueueNotFound),
        ReadError::Fault(fault) => error::fault(fault),
    }
}

/// What a client is told of a write that failed.
fn write_error(error: &WriteError) -> ErrorReply {
    match error {
        WriteError::SpaceGone => ErrorReply::new(ErrorCode::QueueNotFound),
        WriteError::Fault(fault) => error::fault(fault),
        WriteError::Condition { .. } | WriteError::Refused { .. } => {
            tracing::error!(%error, "the engine refused what has no condition");
            ErrorReply::new(ErrorCode::InternalError)
        }
    }
}
