//! Queues: the queues themselves ([`Queue`]), what an engine promises of their messages ([`Messages`]), and how one
//! that is a single process keeps messages as ordinary rows ([`RowQueues`]).

mod catalogue;
mod contract;
mod ids;
mod rows;

pub use catalogue::{
    Creation, Queue, create_queue, delete_queue, find_queue, find_queue_replacement, list_queues, read_queue,
    set_queue_acl, set_queue_metadata,
};
pub use contract::{Change, Message, MessageError, MessageHandle, Messages, NewMessage, Placed, Updated};
pub use ids::MessageIds;
pub use rows::RowQueues;
