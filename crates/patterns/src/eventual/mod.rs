//! Work that completes eventually: a durable intent in a queue, idempotent steps, and workers that may crash (T3).
//!
//! A transaction covers one partition only. A change that concerns another partition, table, blob or service is queued
//! first: [`WorkQueue::submit`] puts an *intent* into a queue and returns when it is durable.
//! A [`Worker`] takes it, carries out the steps of a [`Work`] and deletes the message. A worker that crashes
//! has not deleted it, so the message becomes visible again and the steps are repeated.
//!
//! ```no_run
//! use larimar_client::Account;
//! use larimar_patterns::eventual::{Work, WorkError, WorkQueue, Worker};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Greet { name: String }
//!
//! struct Greeter;
//! impl Work for Greeter {
//!     type Intent = Greet;
//!     async fn perform(&self, intent: &Greet, _step: usize) -> Result<(), WorkError> {
//!         println!("hello {}", intent.name); // idempotent steps, in real life
//!         Ok(())
//!     }
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let account = Account::connect("UseDevelopmentStorage=true")?;
//! let queue = WorkQueue::new(&account, "greetings");
//! queue.create_if_missing().await?;
//! queue.submit(&Greet { name: "Don".to_owned() }).await?; // durable from here on
//! let stop = std::future::pending(); // or a signal
//! let stats = Worker::new(queue, Greeter).concurrency(8).run(stop).await;
//! println!("{} done", stats.done);
//! # Ok(())
//! # }
//! ```
//!
//! # What is guaranteed
//! - **Every submitted intent is carried out at least once**, regardless of how many workers crash, as long as one
//!   worker finally runs and its steps succeed. Messages never expire. A message is deleted after its last step, or
//!   after it was put into the poison queue; it is always in at least one of the two queues.
//! - **Possibly more than once, by several workers at a time, and in any order** with other intents. So steps have to
//!   be idempotent, and to hold their own against a later intent that overtook them. The patterns of this crate do
//!   both by *versions*: see [`EventualTable`](crate::eventual_table::EventualTable) and
//!   [`Mover`](crate::mover::Mover), and "Why it stays right" below.
//! - **A worker that lost its message stops.** Visibility is renewed while steps run; when it is lost, the running
//!   step is dropped and nothing is acknowledged.
//! - **A message that always fails ends in the queue `<name>-poison`** after a number of deliveries, with the last
//!   error in it. [`WorkQueue::poisoned`] lists them, [`WorkQueue::redrive`] moves them back.
//!
//! # Why it stays right
//! Three things may happen to a step: it is done again, it is done late (after another intent on the same data), and
//! its last request may arrive at the service after the worker is presumed dead. Steps that survive all three
//! follow one rule: *each place has the version of what was last written there, removals leave a tombstone with
//! a version, and every write is conditional* (insert if absent, or replace with the ETag that was read) *and goes from
//! a lower version to a higher one only*. Then a place is a register that takes the maximum: the order of writes
//! does not matter, repeated ones change nothing, and a request that comes late fails on its condition. Tombstones are
//! removed when no request can be under way any more, by a separate intent that stays hidden in the queue until then.
//!
//! What starts the work is *one* conditional write of one entity, made while the intent is already in the queue,
//! hidden ([`WorkQueue::submit_hidden`]): a caller that crashes before it has changed nothing, one that crashes after
//! it leaves the rest to the worker. A worker that finds the write missing raises the entity's version first, so that
//! the write can no longer succeed.

mod attempt;
mod envelope;
mod observe;
mod queue;
pub(crate) mod slot;
mod work;
mod worker;

pub use observe::{Event, Observer, WorkerStats};
pub use queue::{Poisoned, Submitted, WorkQueue};
pub use slot::Place;
pub use work::{Work, WorkError};
pub use worker::Worker;
