//! What a run over PostgreSQL found out.

use std::time::Duration;

use super::cluster::RowSize;
use super::usage::{Commits, Cpu};
use crate::histogram::Histogram;
use crate::workload::Workload;

/// Who was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contestant {
    /// Larimar's server, asked over HTTP.
    Http,
    /// Larimar's engine in this process.
    Engine,
    Pgbench,
}

/// One turn of a measurement.
#[derive(Clone, Default)]
pub(super) struct Turn {
    /// Only what was answered well.
    pub(super) operations: u64,
    pub(super) elapsed: Duration,
    /// Empty for pgbench, which reports no percentiles.
    pub(super) latencies: Histogram,
    pub(super) cpu: Cpu,
    pub(super) commits: Commits,
    pub(super) errors: u64,
    pub(super) resets: u64,
    pub(super) first_error: Option<String>,
}

/// One workload of one contestant at a number of connections.
pub(super) struct Cell {
    pub(super) contestant: Contestant,
    pub(super) workload: Workload,
    pub(super) connections: u64,
    pub(super) turns: Vec<Turn>,
}

/// Rates of two contestants: all turns together, and the lowest and highest of the single rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) all: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
    /// The same per second of PostgreSQL's processor time; `None` if too little was used for a meaningful ratio.
    pub(super) database: Option<f64>,
}

/// Everything at one number of entities.
#[derive(Default)]
pub(super) struct Stage {
    pub(super) preload: u64,
    /// Entities in a second, by transactions of 100.
    pub(super) load_rate: f64,
    pub(super) size: RowSize,
    pub(super) body_bytes: u64,
    pub(super) cells: Vec<Cell>,
    pub(super) memory: u64,
    pub(super) memory_peak: u64,
}

/// Everything of one run.
#[derive(Default)]
pub(crate) struct Results {
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) stages: Vec<Stage>,
    pub(super) remarks: Vec<String>,
}

impl Contestant {
    /// The name in reports.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Http => "over HTTP",
            Self::Engine => "engine alone",
            Self::Pgbench => "pgbench",
        }
    }
}

impl Turn {
    fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Cell {
    pub(super) fn new(contestant: Contestant, workload: Workload, connections: u64) -> Self {
        Self { contestant, workload, connections, turns: Vec::new() }
    }

    /// All turns as one.
    pub(super) fn total(&self) -> Turn {
        let mut total = Turn::default();
        for turn in &self.turns {
            total.operations += turn.operations;
            total.elapsed += turn.elapsed;
            total.latencies.merge(&turn.latencies);
            total.cpu.add(turn.cpu);
            total.commits.add(turn.commits);
            total.errors += turn.errors;
            total.resets += turn.resets;
            total.first_error = total.first_error.or_else(|| turn.first_error.clone());
        }
        total
    }

    /// Operations in a second, if it is a figure to rely on: something was counted and nothing failed.
    pub(super) fn rate(&self) -> Option<f64> {
        let total = self.total();
        (total.operations > 0 && total.errors == 0).then(|| total.rate())
    }

    /// Operations in a second of PostgreSQL's processor time.
    fn database_rate(&self) -> Option<f64> {
        let total = self.total();
        (!total.cpu.database.is_zero()).then(|| total.operations as f64 / total.cpu.database.as_secs_f64())
    }
}

impl Stage {
    pub(super) fn cell(&self, contestant: Contestant, workload: Workload, connections: u64) -> Option<&Cell> {
        let wanted = (contestant, workload, connections);
        self.cells.iter().find(|cell| (cell.contestant, cell.workload, cell.connections) == wanted)
    }

    /// A contestant's rate as a multiple of pgbench's.
    pub(super) fn ratio(&self, contestant: Contestant, workload: Workload, connections: u64) -> Option<Ratio> {
        let larimar = self.cell(contestant, workload, connections)?;
        let pgbench = self.cell(Contestant::Pgbench, workload, connections)?;
        let rounds = larimar.turns.iter().zip(&pgbench.turns).map(|(ours, its)| ours.rate() / its.rate().max(1e-9));
        let (lowest, highest) =
            rounds.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ratio| (low.min(ratio), high.max(ratio)));
        let database = larimar.database_rate().zip(pgbench.database_rate()).map(|(ours, its)| ours / its);
        Some(Ratio { all: larimar.rate()? / pgbench.rate()?, lowest, highest, database })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(contestant: Contestant, operations: &[u64], errors: u64) -> Cell {
        let cpu = Cpu { database: Duration::from_secs(1), ..Cpu::default() };
        let elapsed = Duration::from_secs(1);
        let turn = |&operations: &u64| Turn { operations, elapsed, errors, cpu, ..Turn::default() };
        let turns = operations.iter().map(turn).collect();
        Cell { turns, ..Cell::new(contestant, Workload::PointGet, 64) }
    }

    #[test]
    fn a_ratio_is_of_all_turns_and_tells_how_rounds_differed() {
        let cells = vec![
            cell(Contestant::Http, &[30, 10], 0),
            cell(Contestant::Engine, &[40, 40], 0),
            cell(Contestant::Pgbench, &[10, 10], 0),
        ];
        let stage = Stage { cells, ..Stage::default() };
        assert_eq!(
            stage.ratio(Contestant::Http, Workload::PointGet, 64),
            Some(Ratio { all: 2.0, lowest: 1.0, highest: 3.0, database: Some(2.0) })
        );
        assert_eq!(stage.ratio(Contestant::Engine, Workload::PointGet, 64).map(|ratio| ratio.all), Some(4.0));
        assert_eq!(stage.ratio(Contestant::Http, Workload::PointGet, 16), None);
    }

    #[test]
    fn nothing_is_said_of_a_measurement_with_errors() {
        let cells = vec![cell(Contestant::Http, &[30], 1), cell(Contestant::Pgbench, &[10], 0)];
        let stage = Stage { cells, ..Stage::default() };
        assert_eq!(stage.ratio(Contestant::Http, Workload::PointGet, 64), None);
    }
}
