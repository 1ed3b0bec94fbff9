//! The project's performance targets for queues and blobs.

use super::results::Results;
use super::task::Task;
use crate::goals::{Goal, Needed};
use crate::report::grouped;
use crate::target::{Service, Target};

/// The numbers of messages that stay in the queue.
pub(crate) const BACKLOGS: [u64; 2] = [0, 100_000];

/// What a task has to reach against Azurite, if anything.
pub(crate) fn needed(task: Task) -> Option<f64> {
    match task {
        Task::QueueTake | Task::QueuePut => Some(10.0),
        Task::BlobGetSmall | Task::BlobPutSmall => Some(5.0),
        Task::BlobGetLarge | Task::BlobPutLarge => Some(3.0),
        Task::QueueTakeOne | Task::BlobList | Task::BlobGetMedium | Task::BlobPutMedium | Task::BlobPutBlocks => None,
    }
}

/// Every target of the services that were asked for.
pub(crate) fn goals(results: &Results, services: &[Service]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for backlog in BACKLOGS {
        for task in Task::ALL.into_iter().filter(|task| services.contains(&task.service())) {
            let Some(least) = needed(task) else { continue };
            let setting = match task.service() {
                Service::Queue => format!(", {} messages stay", grouped(backlog)),
                _ if backlog > 0 => continue,
                _ => String::new(),
            };
            goals.push(Goal {
                what: format!("{} against Azurite{setting}", task.title()),
                needed: Needed::Times(least),
                measured: results.ratio(Target::Azurite, task, backlog),
            });
        }
    }
    if services.contains(&Service::Blob) {
        goals.push(Goal {
            what: format!("{} against a bare file server", Task::BlobGetLarge.title()),
            needed: Needed::Share(0.5),
            measured: results.ratio(Target::Bare, Task::BlobGetLarge, 0),
        });
    }
    goals
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::results::Cell;
    use super::*;
    use crate::measure::Measurement;

    fn cell(target: Target, task: Task, operations: u64, errors: u64) -> Cell {
        let mut measured = Measurement { elapsed: Duration::from_secs(2), errors, ..Measurement::default() };
        for _ in 0..operations {
            measured.latencies.record(Duration::from_millis(1));
        }
        Cell { target, task, backlog: 0, measured }
    }

    fn verdicts(cells: Vec<Cell>) -> Vec<Option<bool>> {
        let results = Results { cells, ..Results::default() };
        goals(&results, &[Service::Blob]).iter().map(Goal::met).collect()
    }

    #[test]
    fn a_large_get_is_held_against_azurite_and_against_the_bare_server() {
        let large = |target, operations| cell(target, Task::BlobGetLarge, operations, 0);
        let cells = vec![large(Target::Larimar, 60), large(Target::Azurite, 20), large(Target::Bare, 121)];
        assert_eq!(verdicts(cells), [None, Some(true), None, None, Some(false)]);
    }

    #[test]
    fn errors_give_no_verdict_and_queues_have_goals_at_both_backlogs() {
        let cells =
            vec![cell(Target::Larimar, Task::BlobGetSmall, 50, 0), cell(Target::Azurite, Task::BlobGetSmall, 10, 1)];
        assert_eq!(verdicts(cells)[0], None);
        assert_eq!(goals(&Results::default(), &[Service::Queue]).len(), 4);
    }
}
