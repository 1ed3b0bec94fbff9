//! The project's performance targets, and whether a run meets them.

use crate::results::{Results, Stop};
use crate::target::Target;
use crate::workload::Workload;

/// The setting that most targets are about.
pub(crate) const PRELOAD: u64 = 100_000;
pub(crate) const CONNECTIONS: u64 = 16;
const PRELOAD_LARGE: u64 = 1_000_000;
const CONNECTIONS_MANY: u64 = 64;
const START_SECONDS_MAX: f64 = 0.2;

/// One target and what was measured.
pub(crate) struct Goal {
    pub(crate) what: String,
    pub(crate) needed: Needed,
    pub(crate) measured: Option<f64>,
}

/// The bound of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Needed {
    /// A multiple of another rate, at least this.
    Times(f64),
    /// A share of another rate, at least this.
    Share(f64),
    /// A time, below this.
    Seconds(f64),
}

impl Goal {
    /// Whether it is met; nothing if it was not measured.
    pub(crate) fn met(&self) -> Option<bool> {
        let measured = self.measured?;
        Some(match self.needed {
            Needed::Times(least) | Needed::Share(least) => measured >= least,
            Needed::Seconds(most) => measured < most,
        })
    }

    /// Target, measurement and verdict as people read them.
    pub(crate) fn columns(&self) -> [String; 4] {
        let needed = match self.needed {
            Needed::Times(least) => format!("≥ {least}×"),
            Needed::Share(least) => format!("≥ {least}"),
            Needed::Seconds(most) => format!("< {most} s"),
        };
        let measured = self.measured.map_or("–".into(), |measured| match self.needed {
            Needed::Times(_) => format!("{measured:.1}×"),
            Needed::Share(_) => format!("{measured:.2}"),
            Needed::Seconds(_) => format!("{measured:.3} s"),
        });
        let verdict = match self.met() {
            None => "not measured",
            Some(true) => "met",
            Some(false) => "**missed**",
        };
        [self.what.clone(), needed, measured, verdict.into()]
    }
}

/// What a workload has to reach against Azurite in the main setting, if anything.
pub(crate) fn needed(workload: Workload, connections: u64) -> Option<f64> {
    match (workload, connections) {
        (Workload::InsertHot | Workload::InsertSpread, CONNECTIONS_MANY) => Some(15.0),
        (_, connections) if connections != CONNECTIONS => None,
        (Workload::InsertHot | Workload::InsertSpread | Workload::Scan, _) => Some(10.0),
        (Workload::PointGet | Workload::Replace | Workload::Merge | Workload::Delete, _) => Some(20.0),
        (Workload::Range, _) => Some(50.0),
        (Workload::Transaction, _) => Some(25.0),
        (Workload::Page | Workload::Mixed, _) => None,
    }
}

/// Every target.
pub(crate) fn goals(results: &Results) -> Vec<Goal> {
    let mut goals = Vec::new();
    for connections in [CONNECTIONS, CONNECTIONS_MANY] {
        for workload in Workload::ALL {
            let Some(least) = needed(workload, connections) else { continue };
            goals.push(Goal {
                what: format!("{} against Azurite, 100,000 entities, {connections} connections", workload.title()),
                needed: Needed::Times(least),
                measured: results.ratio(Target::Larimar, Target::Azurite, workload, PRELOAD, connections),
            });
        }
    }
    for workload in [Workload::PointGet, Workload::InsertHot, Workload::InsertSpread] {
        for connections in [CONNECTIONS, CONNECTIONS_MANY] {
            goals.push(Goal {
                what: format!("{} at 1,000,000 entities against 0, {connections} connections", workload.title()),
                needed: Needed::Share(0.9),
                measured: results.ratio(Target::Larimar, Target::LarimarEmpty, workload, PRELOAD_LARGE, connections),
            });
        }
    }
    for connections in [CONNECTIONS, CONNECTIONS_MANY] {
        goals.push(Goal {
            what: format!("point get against the bare HTTP server, {connections} connections"),
            needed: Needed::Share(0.6),
            measured: results.ratio(Target::Larimar, Target::Bare, Workload::PointGet, PRELOAD, connections),
        });
    }
    for (stop, how) in [(Stop::Clean, "a clean stop"), (Stop::Killed, "kill -9 during inserts")] {
        let starts = results
            .starts
            .iter()
            .find(|starts| (starts.target, starts.preload, starts.stop) == (Target::Larimar, PRELOAD_LARGE, stop));
        goals.push(Goal {
            what: format!("start to first answer with 1,000,000 entities after {how}"),
            needed: Needed::Seconds(START_SECONDS_MAX),
            measured: starts.map(|starts| starts.median().as_secs_f64()),
        });
    }
    goals
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::Measurement;
    use crate::results::Cell;

    fn cell(target: Target, operations: u64, errors: u64) -> Cell {
        let mut measured = Measurement { elapsed: Duration::from_secs(2), errors, ..Measurement::default() };
        for _ in 0..operations {
            measured.latencies.record(Duration::from_millis(1));
        }
        Cell { target, workload: Workload::Range, preload: PRELOAD, connections: CONNECTIONS, measured }
    }

    fn verdict(cells: Vec<Cell>) -> Option<bool> {
        let results = Results { cells, ..Results::default() };
        let goals = goals(&results);
        let goal = goals.iter().find(|goal| goal.what.starts_with("range query")).expect("a goal for ranges");
        goal.met()
    }

    #[test]
    fn a_goal_is_met_from_its_bound_on() {
        assert_eq!(verdict(vec![cell(Target::Larimar, 1_000, 0), cell(Target::Azurite, 20, 0)]), Some(true));
        assert_eq!(verdict(vec![cell(Target::Larimar, 999, 0), cell(Target::Azurite, 20, 0)]), Some(false));
    }

    #[test]
    fn errors_and_missing_cells_give_no_verdict() {
        assert_eq!(verdict(vec![cell(Target::Larimar, 1_000, 1), cell(Target::Azurite, 20, 0)]), None);
        assert_eq!(verdict(vec![cell(Target::Larimar, 1_000, 0)]), None);
        assert_eq!(verdict(vec![cell(Target::Larimar, 1_000, 0), cell(Target::Azurite, 0, 0)]), None);
    }
}
