//! What a run over queues and blobs found out.

use std::time::Duration;

use super::task::Task;
use crate::measure::Measurement;
use crate::results::Footprint;
use crate::target::{Service, Target};

/// One task on one server in one setting.
pub(crate) struct Cell {
    pub(crate) target: Target,
    pub(crate) task: Task,
    /// Messages that stay in the queue, as asked for; 0 for blobs.
    pub(crate) backlog: u64,
    pub(crate) measured: Measurement,
}

/// How a server took what was there before the first measurement.
pub(crate) struct Filled {
    pub(crate) target: Target,
    pub(crate) backlog: u64,
    /// Messages there when the time was up.
    pub(crate) messages: u64,
    pub(crate) elapsed: Duration,
}

/// Everything of one run.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) cells: Vec<Cell>,
    pub(crate) filled: Vec<Filled>,
    /// Of a service: memory and disk after all measurements.
    pub(crate) footprints: Vec<(Service, Footprint)>,
    /// What was left out or went wrong, in words.
    pub(crate) remarks: Vec<String>,
}

impl Results {
    /// A measurement, if it was made.
    pub(crate) fn cell(&self, target: Target, task: Task, backlog: u64) -> Option<&Cell> {
        self.cells.iter().find(|cell| (cell.target, cell.task, cell.backlog) == (target, task, backlog))
    }

    /// Its rate, if it is one to rely on: something was counted and nothing failed.
    pub(crate) fn rate(&self, target: Target, task: Task, backlog: u64) -> Option<f64> {
        let measured = &self.cell(target, task, backlog)?.measured;
        (measured.errors == 0 && measured.latencies.total() > 0).then(|| measured.rate())
    }

    /// Larimar's rate as a multiple of another's.
    pub(crate) fn ratio(&self, to: Target, task: Task, backlog: u64) -> Option<f64> {
        let to = self.rate(to, task, backlog)?;
        Some(self.rate(Target::Larimar, task, backlog)? / to)
    }
}
