//! The advisor: from the traffic of tables ([`Report`]) to findings of the table design guide ([`Advice`]).
//!
//! [`advise`] is a pure function: the same report gives the same findings. Each rule (`rules/`) states the least evidence
//! that it needs; without it there is no finding. Keys and filters in findings are cut and have no control characters,
//! whatever the report holds, and the number of findings is bounded. `docs/advisor.md` has a section for each finding.

mod advice;
mod dismissal;
mod excerpt;
mod finding;
mod kind;
pub mod report;
mod rules;
mod show;

pub use advice::{Advice, FINDINGS_MAX, Options, advise};
pub use dismissal::{DISMISSALS_MAX, Dismissal, Dismissals, TooManyDismissals};
pub use finding::{Cost, Figure, Finding, Severity, Work};
pub use kind::{Code, FindingKind, Pattern};
pub use report::Report;
