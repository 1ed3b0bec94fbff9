//! The Table service above an engine: tables, writes and queries.

mod catalogue;
mod decide;
pub mod plan;
mod query;
mod region;
mod write;

pub use catalogue::{Table, create_table, delete_table, find_table, list_tables, meta_renamed, read_table, set_acl};
pub use plan::{Plan, QueryKind};
pub use query::{Page, PageLimits, SLICE_STEPS, query};
pub use region::PlanningWork;
pub use write::{transact, write};
