//! Queues: the queues themselves ([`Queue`]), the contract of their messages ([`Messages`]), and its implementation for
//! engines in one process, which store messages as ordinary rows ([`MessagesInRows`]).

mod catalogue;
mod ids;
mod rows;

pub use crate::contract::{
    Change, Message, MessageError, MessageHandle, MessagePlace, Messages, NewMessage, Placed, Updated,
};
pub use catalogue::{
    Creation, Queue, create_queue, delete_queue, find_queue, list_queues, read_queue, set_queue_acl, set_queue_metadata,
};
pub use ids::MessageIds;
pub use rows::{MessageRow, MessagesInRows, RowQueues, message_rows};
