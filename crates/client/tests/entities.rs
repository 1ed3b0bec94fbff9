//! Tables over a server of their own; `azurite.rs` has the same cases over Azurite.

mod suite;
#[path = "suite/tables.rs"]
mod tables;

use suite::over_larimar;

tables::table_cases!(over_larimar);
