//! What a measurement used: processor time on each side, commits of the database.

use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use larimar_engine::Statistics;

use super::cluster::Cluster;
use crate::http::Connection;
use crate::processes;
use crate::target::Server;

/// Processor time by side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    pub(super) larimar: Duration,
    /// All processes of PostgreSQL.
    pub(super) database: Duration,
    /// This program, in which the engine alone also runs, or pgbench, which it started.
    pub(super) client: Duration,
}

impl Cpu {
    pub(super) fn now(server: &Server, cluster: &Cluster) -> anyhow::Result<Self> {
        Ok(Self {
            larimar: server.processor_time()?,
            database: cluster.processor_time()?,
            client: processes::time_with_ended_children(std::process::id())?,
        })
    }

    pub(super) fn share(self, share: f64) -> Self {
        let of = |time: Duration| time.mul_f64(share.clamp(0.0, 1.0));
        Self { larimar: of(self.larimar), database: of(self.database), client: of(self.client) }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.larimar += other.larimar;
        self.database += other.database;
        self.client += other.client;
    }
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            larimar: self.larimar.saturating_sub(before.larimar),
            database: self.database.saturating_sub(before.database),
            client: self.client.saturating_sub(before.client),
        }
    }
}

/// Commits that Larimar or the engine alone asked the database for, from its figures.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Commits {
    pub(super) count: f64,
    pub(super) writes: f64,
    pub(super) seconds: f64,
}

impl Commits {
    /// Asks Larimar for its figures.
    pub(super) async fn read(port: u16) -> anyhow::Result<Self> {
        let mut connection = Connection::open(port).await.context("the port for figures")?;
        let answer = connection.exchange(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await?;
        ensure!(answer.status == 200, "the figures gave {}", answer.status);
        Self::parse(&String::from_utf8_lossy(answer.body))
    }

    /// From the figures of an engine in this process.
    pub(super) fn of(figures: &Statistics) -> Self {
        let count: u64 = figures.commit_writes.counts.iter().sum();
        Self { count: count as f64, writes: figures.commit_writes.sum, seconds: figures.sync_seconds.sum }
    }

    fn parse(page: &str) -> anyhow::Result<Self> {
        let figure = |name: &str| -> anyhow::Result<f64> {
            let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.with_context(|| format!("no {name} among the figures"))?.trim().parse().context("a number")
        };
        Ok(Self {
            count: figure("larimar_commit_writes_count")?,
            writes: figure("larimar_commit_writes_sum")?,
            seconds: figure("larimar_sync_seconds_sum")?,
        })
    }

    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.writes += other.writes;
        self.seconds += other.seconds;
    }
}

impl Sub for Commits {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            count: self.count - before.count,
            writes: self.writes - before.writes,
            seconds: self.seconds - before.seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_read_by_the_whole_name() {
        let page = "# TYPE larimar_commit_writes histogram\nlarimar_commit_writes_bucket{le=\"1\"} 7\n\
                    larimar_commit_writes_sum 40\nlarimar_commit_writes_count 8\nlarimar_sync_seconds_sum 0.5\n";
        let commits = Commits::parse(page).expect("figures");
        assert_eq!([commits.count, commits.writes, commits.seconds], [8.0, 40.0, 0.5]);
        assert!(Commits::parse("larimar_commit_writes_sum 40\n").is_err());
    }
}
