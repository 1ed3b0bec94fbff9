//! Storage analytics: lines of request logs, rows of metrics, and the names under which both are found.
//!
//! Pure: `server/src/analytics` gathers what is written here and stores it.

mod log_entry;
mod names;
mod status;
mod totals;

pub use log_entry::{LogEntry, LogOf, mask_signature, mask_signatures_in, write_condition};
pub use names::{
    LOG_SERVICES, METRICS_ALL, Period, log_counter, log_hour_prefix, log_name, log_prefix, log_time, metrics_row,
};
pub use status::{Authentication, Outcome};
pub use totals::{Sample, Totals};
