//! What Larimar over PostgreSQL has to reach against pgbench on the same cluster: over HTTP, and the engine alone.

use super::results::{Contestant, Stage};
use crate::goals::{Goal, Needed};
use crate::workload::Workload;

/// Workload, number of connections (or tasks that call the engine, or clients of pgbench), and the multiple of pgbench's rate.
const GOALS: [(Workload, u64, f64); 7] = [
    (Workload::InsertHot, 64, 2.5),
    (Workload::InsertSpread, 64, 2.5),
    (Workload::PointGet, 64, 1.3),
    (Workload::Transaction, 8, 0.5),
    (Workload::Transaction, 64, 0.5),
    (Workload::Page, 4, 1.0),
    (Workload::Page, 64, 1.0),
];

/// The numbers of connections to measure a workload at: those asked for, and those that a goal is about.
pub(super) fn connections(workload: Workload, asked: &[u64]) -> Vec<u64> {
    let mut connections = asked.to_vec();
    connections.extend(GOALS.iter().filter(|goal| goal.0 == workload).map(|goal| goal.1));
    connections.sort_unstable();
    connections.dedup();
    connections
}

/// Every goal at one number of entities.
pub(super) fn goals(stage: &Stage) -> Vec<Goal> {
    let contestants = [(Contestant::Http, "connections"), (Contestant::Engine, "tasks")];
    contestants
        .into_iter()
        .flat_map(|(contestant, clients)| GOALS.map(|goal| (contestant, clients, goal)))
        .map(|(contestant, clients, (workload, connections, least))| Goal {
            what: format!("{}: {}, {connections} {clients}", contestant.title(), workload.title()),
            needed: Needed::Share(least),
            measured: stage.ratio(contestant, workload, connections).map(|ratio| ratio.all),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_is_measured_whatever_was_asked_for() {
        assert_eq!(connections(Workload::Transaction, &[16, 64]), [8, 16, 64]);
        assert_eq!(connections(Workload::Page, &[16]), [4, 16, 64]);
        assert_eq!(connections(Workload::Merge, &[16]), [16]);
    }

    #[test]
    fn both_ways_to_the_database_have_every_goal() {
        let goals = goals(&Stage::default());
        for way in ["over HTTP: ", "engine alone: "] {
            let named = goals.iter().filter(|goal| goal.what.starts_with(way));
            assert_eq!(named.count(), GOALS.len(), "{way}");
        }
        assert!(goals.iter().all(|goal| goal.met().is_none()), "nothing was measured");
    }
}
