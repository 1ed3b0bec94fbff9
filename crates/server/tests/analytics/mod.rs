//! Storage analytics of servers whose clock and whose writer the test turns.

mod fixture;
mod logs;
mod metrics;
mod moody;
mod shared;
