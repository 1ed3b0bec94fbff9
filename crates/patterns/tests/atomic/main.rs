//! The patterns that finish with the call: each over a server of its own, with its requests counted, and tried hard.

mod compound_key;
mod fixture;
mod log_tail;
mod period_tables;
mod series;
mod spread_key;
