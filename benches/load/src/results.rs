//! What a run found out: the numbers that `goals.rs` judges and `report.rs` prints.

use std::time::Duration;

use crate::measure::Measurement;
use crate::target::Target;
use crate::workload::Workload;

/// One workload on one server in one setting.
pub(crate) struct Cell {
    pub(crate) target: Target,
    pub(crate) workload: Workload,
    pub(crate) preload: u64,
    pub(crate) connections: u64,
    pub(crate) measured: Measurement,
}

/// How a server took its preload.
pub(crate) struct Loaded {
    pub(crate) target: Target,
    pub(crate) preload: u64,
    /// Rows asked for, and rows there when the time was up.
    pub(crate) rows_wanted: u64,
    pub(crate) rows: u64,
    pub(crate) elapsed: Duration,
}

/// What a server used after all measurements of one preload.
pub(crate) struct Footprint {
    pub(crate) target: Target,
    pub(crate) preload: u64,
    pub(crate) memory: u64,
    pub(crate) memory_peak: u64,
    /// After a clean stop.
    pub(crate) disk: u64,
}

/// How a server was stopped before a start was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Clean,
    Killed,
}

/// Times from the start of the process to the first point get answered.
pub(crate) struct Starts {
    pub(crate) target: Target,
    pub(crate) preload: u64,
    pub(crate) stop: Stop,
    pub(crate) times: Vec<Duration>,
}

impl Starts {
    /// The middle one.
    pub(crate) fn median(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// Everything of one run.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) cells: Vec<Cell>,
    pub(crate) loaded: Vec<Loaded>,
    pub(crate) footprints: Vec<Footprint>,
    pub(crate) starts: Vec<Starts>,
    /// What was left out or went wrong, in words.
    pub(crate) remarks: Vec<String>,
}

impl Results {
    /// A measurement, if it was made.
    pub(crate) fn cell(&self, target: Target, workload: Workload, preload: u64, connections: u64) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            (cell.target, cell.workload, cell.preload, cell.connections) == (target, workload, preload, connections)
        })
    }

    /// Its rate, if it is one to rely on: something was counted and nothing failed.
    pub(crate) fn rate(&self, target: Target, workload: Workload, preload: u64, connections: u64) -> Option<f64> {
        let measured = &self.cell(target, workload, preload, connections)?.measured;
        (measured.errors == 0 && measured.latencies.total() > 0).then(|| measured.rate())
    }

    /// The rate of one server as a multiple of another's.
    pub(crate) fn ratio(
        &self,
        of: Target,
        to: Target,
        workload: Workload,
        preload: u64,
        connections: u64,
    ) -> Option<f64> {
        let to = self.rate(to, workload, preload, connections)?;
        Some(self.rate(of, workload, preload, connections)? / to)
    }
}
