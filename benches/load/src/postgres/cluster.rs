//! The cluster of a run: its settings, what it is made of, its processor time, and pgbench's table in it.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use larimar_postgres_cluster::{Binaries, Cluster as Running, Options};

use crate::machine;
use crate::processes;

/// What differs from PostgreSQL's defaults. Syncing and synchronous commits are on there.
const SETTINGS: [(&str, &str); 8] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "512MB"),
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "15min"),
    ("random_page_cost", "1.1"),
    ("max_connections", "300"),
];
/// Not in every build of PostgreSQL.
const COMPRESSION: (&str, &str) = ("wal_compression", "lz4");

/// A running cluster.
pub(super) struct Cluster {
    running: Running,
    binaries: Binaries,
    settings: Vec<(&'static str, &'static str)>,
    postmaster: u32,
}

/// What a row takes on disk, on average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowSize {
    /// With the index.
    pub(super) row_bytes: f64,
    pub(super) index_bytes: f64,
}

impl Cluster {
    /// Starts a cluster in the folder for temporary files.
    pub(super) fn start() -> anyhow::Result<Self> {
        let binaries = Binaries::find().context("there is no PostgreSQL 15 or newer on this machine")?;
        ensure!(binaries.program("pgbench").is_file(), "there is no pgbench beside PostgreSQL's other programs");
        let mut settings = SETTINGS.to_vec();
        settings.push(COMPRESSION);
        let start = |settings: &[_]| Running::try_start(&binaries, &Options { settings, ..Options::default() });
        let running = match start(&settings) {
            Err(said) if said.contains(COMPRESSION.0) => {
                settings.pop();
                start(&settings)
            }
            started => started,
        };
        let running = running.map_err(|said| anyhow!("the cluster did not start: {said}"))?;
        let folder = running.try_sql("SHOW data_directory").map_err(|said| anyhow!(said))?;
        let pid = std::fs::read_to_string(format!("{folder}/postmaster.pid")).context("the number of the process")?;
        let postmaster = pid.lines().next().and_then(|line| line.trim().parse().ok()).context("a process number")?;
        Ok(Self { running, binaries, settings, postmaster })
    }

    pub(super) fn url(&self) -> &str {
        self.running.url()
    }

    /// A program of PostgreSQL's with no setting of another database in its environment.
    pub(super) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.binaries.program(name));
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("PG") {
                command.env_remove(variable);
            }
        }
        command
    }

    /// Version and settings, for the page.
    pub(super) fn facts(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let version = self.sql("SHOW server_version")?;
        let pgbench = machine::output(self.program("pgbench").arg("--version"));
        let settings: Vec<String> = self.settings.iter().map(|(name, value)| format!("`{name} = {value}`")).collect();
        Ok(vec![
            ("PostgreSQL", format!("{version}, on the same machine, over TCP; {}", settings.join(", "))),
            ("pgbench", pgbench),
        ])
    }

    /// Processor time of all its processes so far.
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        processes::family_time(self.postmaster)
    }

    /// Waits until it is idle: vacuum and checkpoints that a load left over are not what a measurement is about.
    pub(super) async fn settle(&self, longest: Duration) -> anyhow::Result<()> {
        processes::settle(longest, || self.processor_time()).await
    }

    /// What a row of Larimar's takes when it was only just loaded.
    pub(super) fn entity_size(&self, rows_expected: u64) -> anyhow::Result<RowSize> {
        self.sql("VACUUM ANALYZE larimar_entity")?;
        let sizes = self.sql(
            "SELECT count(*), pg_total_relation_size('larimar_entity'), pg_indexes_size('larimar_entity') \
             FROM larimar_entity",
        )?;
        let sizes: Vec<u64> = sizes.split('|').filter_map(|text| text.parse().ok()).collect();
        let [rows, total, index] = sizes[..] else { anyhow::bail!("three sizes") };
        ensure!(rows >= rows_expected, "{rows} rows in the database instead of {rows_expected}");
        Ok(RowSize { row_bytes: total as f64 / rows as f64, index_bytes: index as f64 / rows as f64 })
    }

    /// Makes pgbench's table: the columns, index, storage and bodies of Larimar's, under keys that pgbench can make,
    /// of the same lengths. Returns the average length of a body.
    pub(super) fn make_ceiling_table(&self) -> anyhow::Result<u64> {
        let options =
            self.sql("SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = 'larimar_entity'::regclass")?;
        ensure!(!options.is_empty(), "Larimar's table has storage options");
        let (pk, rk) = (super::pgbench::key("n / 1000"), super::pgbench::key("n % 1000"));
        self.sql(&format!("CREATE TABLE ceiling (LIKE larimar_entity INCLUDING ALL) WITH ({options})"))?;
        self.sql(&format!(
            "INSERT INTO ceiling SELECT {pk}, {rk}, ver, tok, body \
             FROM (SELECT row_number() OVER (ORDER BY pk, rk) - 1 AS n, * FROM larimar_entity) AS numbered"
        ))?;
        self.sql("VACUUM ANALYZE ceiling")?;
        self.sql("CHECKPOINT")?;
        let bytes = self.sql("SELECT avg(octet_length(body))::int8 FROM ceiling")?;
        bytes.parse().context("the length of a body")
    }

    fn sql(&self, statement: &str) -> anyhow::Result<String> {
        self.running.try_sql(statement).map_err(|said| anyhow!("{statement}: {said}"))
    }
}
