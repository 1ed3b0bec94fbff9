//! The vocabulary of the Queue service.

mod name;

pub use name::QueueName;
