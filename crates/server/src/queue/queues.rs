//! Queues: create, list, delete; their metadata and access control lists.

use crate::acl;
use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;
use larimar_engine::queue::{self, Creation};
use larimar_engine::{Engine, EngineError, Reject};
use larimar_model::queue::QueueName;
use larimar_model::{Metadata, limits};
use larimar_wire::acl::QUEUE_PERMISSIONS;
use larimar_wire::queue::{ListQueues, ListedQueue, write_queue_list};

pub(super) async fn create<E: Engine>(call: &Call<'_, E>, name: &QueueName, metadata: &Metadata) -> Result<Reply> {
    call.check_free(name.as_str())?;
    match queue::create_queue(call.engine(), call.account(), name, metadata).await? {
        Creation::New => Ok(Reply::empty(201)),
        Creation::Same => Ok(Reply::empty(204)),
    }
}

pub(super) async fn delete<E: Engine>(call: &Call<'_, E>, name: &QueueName) -> Result<Reply> {
    match queue::delete_queue(call.engine(), call.account(), name).await {
        Ok(()) => call.note_deleted(name.as_str()),
        Err(EngineError::Reject(Reject::QueueNotFound)) if call.is_being_deleted(name.as_str()) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(Reply::empty(204))
}

pub(super) async fn get_metadata<E: Engine>(call: &Call<'_, E>, name: &QueueName) -> Result<Reply> {
    let queue = call.queue_settings(name).await?;
    let count = call.engine().count_messages(queue.id, call.now).await?;
    let reply = Reply::empty(200).with("x-ms-approximate-messages-count", count);
    Ok(reply.with_metadata(&queue.metadata))
}

pub(super) async fn set_metadata<E: Engine>(
    call: &Call<'_, E>,
    name: &QueueName,
    metadata: &Metadata,
) -> Result<Reply> {
    queue::set_queue_metadata(call.engine(), call.account(), name, metadata).await?;
    Ok(Reply::empty(204))
}

pub(super) async fn get_acl<E: Engine>(call: &Call<'_, E>, name: &QueueName) -> Result<Reply> {
    let queue = call.queue_settings(name).await?;
    Ok(acl::reply(&queue.acl, QUEUE_PERMISSIONS)?)
}

pub(super) async fn set_acl<E: Engine>(call: &Call<'_, E>, name: &QueueName, body: &[u8]) -> Result<Reply> {
    let text = acl::to_stored(body, QUEUE_PERMISSIONS)?;
    queue::set_queue_acl(call.engine(), call.account(), name, &text).await?;
    Ok(Reply::empty(204))
}

pub(super) async fn list<E: Engine>(call: &Call<'_, E>, options: &ListQueues) -> Result<Reply> {
    let prefix = options.prefix.as_deref().unwrap_or("");
    let from = options.from.as_deref().unwrap_or("").max(prefix);
    let max = options.page();
    let mut listed = queue::list_queues(call.engine(), call.account(), from, max + 1).await?;
    listed.retain(|(name, _)| name.starts_with(prefix));
    let mut bytes = 0;
    let fitting = listed.iter().take_while(|(name, queue)| {
        let is_fitting = bytes <= limits::LIST_BYTES_MAX;
        bytes += limits::LIST_ITEM_BYTES + name.len() + queue.metadata.bytes();
        is_fitting
    });
    let count = fitting.take(max).count();
    let rest = listed.split_off(count);
    let next = rest.first().map(|(name, _)| name.as_str());
    let queues = listed.iter().map(|(name, queue)| ListedQueue { name, metadata: &queue.metadata });
    let mut xml = Vec::with_capacity(256 + 64 * listed.len());
    write_queue_list(&mut xml, &format!("{}/", call.base), options, queues, next);
    Ok(Reply::xml(200, xml))
}
