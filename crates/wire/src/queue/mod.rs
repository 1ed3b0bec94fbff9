//! The Queue service's own wire format.
//!
//! A request becomes a [`QueueOperation`] (`request.rs`), the body of a message its text (`message_xml.rs`).
//! Answers are written by `message_xml.rs` and `list_xml.rs`.

mod list_xml;
mod message_xml;
mod request;

pub use list_xml::{ListedQueue, write_queue_list};
pub use message_xml::{MESSAGE_BODY_BYTES_MAX, MessageXml, parse_message, parse_message_update, write_messages};
pub use request::{ListQueues, QueueOperation};
