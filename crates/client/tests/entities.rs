//! Tables over a server of their own; `azurite.rs` has the same cases over Azurite.

use crate::suite::{over_larimar, tables};

tables::table_cases!(over_larimar);
