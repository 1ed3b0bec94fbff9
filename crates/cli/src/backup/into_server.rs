//! `larimar restore FROM --into-server`: has the running server restore single tables, queues and containers.

use super::{Poll, bytes, encoded, end_line, escape, place, print, resolved_path, show};
use crate::own_server::OwnServer;
use crate::settings::Resolved;
use crate::signals::{EXIT_INTERRUPTED, Runtime};
use anyhow::{Context, bail};
use larimar_backup::{JobState, Rate, SingleStatus};
use larimar_tool::admin::AdminAnswer;

/// What the server is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IntoServer {
    /// Restore something.
    Start(Box<SingleRequest>),
    /// Show what the last restore is doing, or did.
    Status,
    /// Cancel the one that runs.
    Cancel,
}

/// What to restore into the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SingleRequest {
    pub(crate) from: String,
    /// The latest if there is none.
    pub(crate) generation: Option<String>,
    /// The account in the backup.
    pub(crate) account: Option<String>,
    pub(crate) to_account: Option<String>,
    /// `NAME` or `NAME=NEW`.
    pub(crate) tables: Vec<String>,
    pub(crate) queues: Vec<String>,
    pub(crate) containers: Vec<String>,
    pub(crate) rate: Rate,
}

impl IntoServer {
    /// Runs the command.
    pub(crate) fn run(&self, resolved: &Resolved, runtime: Runtime) -> anyhow::Result<()> {
        runtime.block_on(async |mut signals| {
            tokio::select! {
                done = self.run_one(resolved) => done,
                _ = signals.end() => {
                    end_line();
                    if matches!(self, Self::Start(_)) {
                        eprintln!(
                            "larimar: interrupted; the server goes on with the restore: `larimar restore status` shows \
                             it, `larimar restore cancel` ends it"
                        );
                    }
                    std::process::exit(EXIT_INTERRUPTED);
                }
            }
        })
    }

    async fn run_one(&self, resolved: &Resolved) -> anyhow::Result<()> {
        match self {
            Self::Start(request) => request.run(resolved).await,
            Self::Status => print(&shown(&read(&OwnServer::find(resolved)?.get("/restore").await?)?)),
            Self::Cancel => {
                let answer = OwnServer::find(resolved)?.delete("/restore").await?;
                if answer.status == 404 {
                    bail!("{}", answer.text.trim_end());
                }
                print(&shown(&read(&answer)?))
            }
        }
    }
}

impl SingleRequest {
    /// Has the server restore, and waits for it.
    async fn run(&self, resolved: &Resolved) -> anyhow::Result<()> {
        let from = place("FROM", &self.from)?;
        let from = match from.as_directory() {
            // The server runs in another directory.
            Some(path) => resolved_path(path)?.to_str().context("expected a path of UTF-8")?.to_owned(),
            None => from.to_string(),
        };
        let server = OwnServer::find(resolved)?;
        let started = read(&server.post(&format!("/restore?{}", self.query(&from))).await?)?;
        let mut status = started.clone();
        let mut poll = Poll::new();
        while status.state == JobState::Running {
            show(&status.totals, "restored", status.totals.bytes());
            poll.pause().await;
            status = read(&server.get("/restore").await.context("the restore was interrupted")?)?;
            if status.started != started.started {
                bail!("the server has begun another restore; this one has ended");
            }
        }
        end_line();
        match status.state {
            JobState::Done => print(&shown(&status)),
            JobState::Cancelled => bail!("the restore was cancelled; nothing was restored"),
            _ => bail!("{}", status.error.unwrap_or_else(|| "the restore failed".to_owned())),
        }
    }

    fn query(&self, from: &str) -> String {
        let one = |name: &'static str, value: &Option<String>| value.clone().map(|value| (name, value));
        let some = |name: &'static str, values: &[String]| values.iter().map(|value| (name, value.clone())).collect();
        let mut pairs = vec![("from", from.to_owned()), ("rate", self.rate.to_string())];
        pairs.extend(one("generation", &self.generation));
        pairs.extend(one("account", &self.account));
        pairs.extend(one("to-account", &self.to_account));
        for (name, values) in [("table", &self.tables), ("queue", &self.queues), ("container", &self.containers)] {
            let some: Vec<_> = some(name, values);
            pairs.extend(some);
        }
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        pairs.join("&")
    }
}

fn read(answer: &AdminAnswer) -> anyhow::Result<SingleStatus> {
    match answer.status {
        200 | 202 => serde_json::from_str(&answer.text).context("the server's answer cannot be read"),
        status => bail!("the server answered {status}: {}", answer.text.trim_end()),
    }
}

/// A status as lines.
fn shown(status: &SingleStatus) -> String {
    let SingleStatus { state, from, generation, spaces, started, ended, totals, error } = status;
    let state = match state {
        JobState::None => return "no restore into this server since it started\n".to_owned(),
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
    };
    let mut text = format!("{state}: restore from {from}\n");
    for space in spaces {
        text.push_str(&format!("restores: {space}\n"));
    }
    for (name, value) in [("generation", generation), ("started", started), ("ended", ended), ("error", error)] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {}\n", escape(value)));
        }
    }
    text.push_str(&format!(
        "stored: {} entities, messages and rows of blobs ({}), {} payloads of blobs ({})\n",
        totals.rows,
        bytes(totals.row_bytes),
        totals.payloads,
        bytes(totals.payload_bytes)
    ));
    text
}
