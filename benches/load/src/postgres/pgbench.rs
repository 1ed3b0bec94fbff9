//! pgbench, PostgreSQL's own load generator: what the database does when asked directly, without Larimar.
//!
//! Its statements do on a table of the same shape what a workload does through Larimar. They are prepared once and sent
//! over TCP; rows come back as text, since pgbench knows no other form.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, ensure};

use super::cluster::Cluster;
use crate::dataset::Random;
use crate::workload::Workload;

/// Threads of pgbench: as many as help on two cores.
const THREADS: u64 = 2;
/// Bytes before the number in a key. Larimar's keys here are 22 bytes: `be64(table)` and seven characters of UTF-16, or
/// eleven characters.
const KEY_PREFIX: &str = "0000000000000001007300300030";
/// One run's inserts have numbers of their own.
const RUN_ROWS: u64 = 1_000_000_000_000;

/// What pgbench does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ceiling {
    /// Inserts a row into one partition.
    InsertHot,
    /// Inserts a row into one of 1,000 partitions.
    InsertSpread,
    /// Reads a row by its keys.
    Get,
    /// Inserts 100 rows that the database makes itself.
    Bulk,
    /// Reads the 1,000 rows of a partition.
    Page,
}

/// One run of pgbench.
pub(super) struct Plan {
    pub(super) ceiling: Ceiling,
    pub(super) clients: u64,
    pub(super) seconds: u64,
    /// No two runs on a cluster have the same.
    pub(super) number: u64,
    pub(super) rows: u64,
    pub(super) body_bytes: u64,
}

/// What pgbench counted.
#[derive(Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) transactions: u64,
    pub(super) failed: u64,
    /// In a second, without the time to connect.
    pub(super) rate: f64,
}

impl Ceiling {
    /// The ceiling of a workload, where there is one.
    pub(super) fn of(workload: Workload) -> Option<Self> {
        match workload {
            Workload::InsertHot => Some(Self::InsertHot),
            Workload::InsertSpread => Some(Self::InsertSpread),
            Workload::PointGet => Some(Self::Get),
            Workload::Transaction => Some(Self::Bulk),
            Workload::Page => Some(Self::Page),
            _ => None,
        }
    }

    /// The script that every client repeats. A client counts in `n`, and all take about as many turns, so new rows go to
    /// the end of their partition, as they do in Larimar's workloads.
    pub(super) fn script(self) -> String {
        match self {
            Self::InsertHot | Self::InsertSpread => format!(
                "\\set n :n + 1\n\\set p random(1000001, {})\n\\set r :base + :n * 1000 + :client_id\n\
                 INSERT INTO ceiling (pk, rk, ver, tok, body) VALUES ({}, {}, 1, 1, :body::bytea);\n",
                if self == Self::InsertHot { 1_000_001 } else { 1_001_000 },
                key(":p::int8"),
                key(":r::int8")
            ),
            Self::Get => format!(
                "\\set n random(0, :rows - 1)\n\\set p :n / 1000\n\\set r :n % 1000\n\
                 SELECT ver, body FROM ceiling WHERE pk = {} AND rk = {};\n",
                key(":p::int8"),
                key(":r::int8")
            ),
            Self::Bulk => format!(
                "\\set n :n + 1\n\\set p 2000000 + :client_id\n\\set r :base + :n * 100\n\
                 INSERT INTO ceiling (pk, rk, ver, tok, body) \
                 SELECT {}, {}, 1, 1, :body::bytea FROM generate_series(0, 99) AS i;\n",
                key(":p::int8"),
                key(":r::int8 + i")
            ),
            Self::Page => format!(
                "\\set p random(0, :rows / 1000 - 1)\n\
                 SELECT pk, rk, ver, body FROM ceiling WHERE pk = {} AND rk >= {} ORDER BY pk, rk LIMIT 1000;\n",
                key(":p::int8"),
                key("0")
            ),
        }
    }
}

/// A key of 22 bytes, made of a number in SQL.
pub(super) fn key(number: &str) -> String {
    format!("'\\x{KEY_PREFIX}'::bytea || int8send({number})")
}

impl Plan {
    /// Runs pgbench to its end.
    pub(super) async fn run(&self, cluster: &Cluster) -> anyhow::Result<Counted> {
        let mut script = tempfile::NamedTempFile::new()?;
        script.write_all(self.ceiling.script().as_bytes())?;
        let mut command = cluster.program("pgbench");
        command.args(["--no-vacuum", "--protocol", "prepared", "--client", &self.clients.to_string()]);
        command.args(["--jobs", &THREADS.min(self.clients).to_string(), "--time", &self.seconds.to_string()]);
        command.args(["--define", "n=0", "--define", &format!("base={}", self.number * RUN_ROWS)]);
        command.args(["--define", &format!("rows={}", self.rows)]);
        command.args(["--define", &format!("body={}", body(self.body_bytes))]);
        command.arg("--file").arg(script.path()).arg(cluster.url());
        // What Larimar asks of its sessions, so that no statement is planned again.
        command.env("PGOPTIONS", "-c plan_cache_mode=force_generic_plan -c jit=off").stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await?.context("running pgbench")?;
        let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "pgbench ended with {}: {said}{wrong}", output.status);
        Counted::parse(&said).with_context(|| format!("what pgbench said: {said}"))
    }
}

impl Counted {
    fn parse(said: &str) -> anyhow::Result<Self> {
        let field = |name: &str| {
            let rest = said.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next().map(str::to_owned)
        };
        let transactions = field("number of transactions actually processed:").context("a number of transactions")?;
        let failed = field("number of failed transactions:").map_or(Ok(0), |failed| failed.parse())?;
        let rate: f64 = field("tps =").context("a rate")?.parse()?;
        Ok(Self { transactions: transactions.parse()?, failed, rate })
    }
}

/// A text of this length that compresses no better than an entity's.
fn body(bytes: u64) -> String {
    let mut random = Random::new(bytes);
    (0..bytes).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_read_from_what_pgbench_prints() {
        let said = "pgbench (15.14)\nnumber of clients: 64\nnumber of transactions actually processed: 12345\n\
                    number of failed transactions: 2 (0.016%)\nlatency average = 5.1 ms\n\
                    initial connection time = 80.1 ms\ntps = 4115.250000 (without initial connection time)\n";
        let counted = Counted { transactions: 12_345, failed: 2, rate: 4115.25 };
        assert_eq!(Counted::parse(said).expect("counts"), counted);
        assert!(Counted::parse("tps = 1").is_err());
    }

    #[test]
    fn keys_are_as_long_as_larimars() {
        assert_eq!(KEY_PREFIX.len() / 2 + 8, 22);
    }

    #[test]
    fn every_client_of_a_run_inserts_rows_of_its_own() {
        // `base + n * 1000 + client` for up to 1,000 clients; the next run begins after a thousand million turns.
        assert!(Ceiling::InsertSpread.script().contains(":base + :n * 1000 + :client_id"));
        assert!(Ceiling::Bulk.script().contains("2000000 + :client_id"));
    }
}
