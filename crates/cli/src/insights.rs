//! `larimar insights`: asks the server of the settings for its insights, and shows them.

mod show;

use crate::own_server::OwnServer;
use crate::settings::Resolved;
use crate::signals::Runtime;
use crate::{logging, print};
use anyhow::{Context, bail};
use larimar_engine::{Clock as _, SystemClock};
use std::time::Duration;

/// What to show, or to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Insights {
    pub(crate) of: Observed,
    pub(crate) is_json: bool,
    pub(crate) is_erased: bool,
}

/// Which figures a command is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) table: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) since: Option<Duration>,
}

impl Insights {
    /// Asks the server and prints its answer.
    pub(crate) fn run(&self, resolved: &Resolved, runtime: Runtime) -> anyhow::Result<()> {
        logging::start(&resolved.settings)?;
        runtime.block_on(async |mut signals| {
            let text = tokio::select! {
                text = self.answer(resolved) => text?,
                _ = signals.end() => bail!("interrupted"),
            };
            print(|out| std::io::Write::write_all(out, text.as_bytes()))
        })
    }

    async fn answer(&self, resolved: &Resolved) -> anyhow::Result<String> {
        let server = OwnServer::find(resolved)?;
        let path = format!("/insights?{}", self.of.query(resolved)?);
        let answer = if self.is_erased { server.delete(&path).await } else { server.get(&path).await }?;
        match answer.status {
            200 if self.is_erased => Ok("removed\n".to_owned()),
            200 if self.is_json => Ok(answer.text),
            200 => show::report(&answer.text).context("the server's answer has another form than this command expects"),
            status => bail!("the server at {} answered {status}: {}", server.url(), answer.text.trim_end()),
        }
    }
}

impl Observed {
    /// The query of a request to the admin endpoint.
    pub(crate) fn query(&self, resolved: &Resolved) -> anyhow::Result<String> {
        let account = match (&self.account, &*resolved.settings.accounts) {
            (Some(account), _) => account,
            (None, [only]) => &only.name,
            (None, _) => bail!("the settings have several accounts: expected --account NAME"),
        };
        let mut query = format!("account={account}");
        if let Some(table) = &self.table {
            query = format!("{query}&table={table}");
        }
        if let Some(since) = self.since {
            let mut time = Vec::new();
            SystemClock.now().before(since).write_trimmed(&mut time);
            query = format!("{query}&since={}", String::from_utf8_lossy(&time));
        }
        Ok(query)
    }
}
