//! The vocabulary of the Queue service.

mod name;
mod receipt;

pub use name::QueueName;
pub use receipt::{Receipt, ReceiptError};
