//! Queues: the queues themselves ([`Queue`]).

mod catalogue;

pub use catalogue::{
    Creation, Queue, create_queue, delete_queue, find_queue, list_queues, set_queue_acl, set_queue_metadata,
};
