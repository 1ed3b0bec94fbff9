//! `larimar advise`: asks the server of the settings what is wrong with the design of its tables.

mod dismissed;

use crate::insights::Observed;
use crate::own_server::OwnServer;
use crate::settings::Resolved;
use crate::signals::Runtime;
use crate::{logging, print};
use anyhow::{Context, bail};
use dismissed::Dismissed;
use larimar_advisor::{Advice, Dismissal, Finding, FindingKind, Severity};
use std::path::PathBuf;

/// What to ask for, and how to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advise {
    pub(crate) of: Observed,
    pub(crate) format: Format,
    /// What makes the command fail.
    pub(crate) fail_on: Vec<FailOn>,
    /// Findings to dismiss from now on.
    pub(crate) dismiss: Vec<Dismissal>,
    /// The file with what was dismissed.
    pub(crate) file: PathBuf,
    /// Whether every query that scans is a finding.
    pub(crate) every_scan: bool,
    /// Whether dismissed findings are shown, too.
    pub(crate) all: bool,
}

/// How findings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
    GitHub,
}

/// Findings that make the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailOn {
    /// Of this severity or a higher one.
    Severity(Severity),
    Kind(FindingKind),
}

/// The command has found what it was to fail on.
#[derive(Debug, thiserror::Error)]
#[error("findings that --fail-on names: {0}")]
pub(crate) struct Found(usize);

impl Advise {
    /// Asks the server and prints its findings.
    pub(crate) fn run(&self, resolved: &Resolved, runtime: Runtime) -> anyhow::Result<()> {
        logging::start(&resolved.settings)?;
        let mut dismissed = Dismissed::read(&self.file)?;
        dismissed.add(&self.dismiss)?;
        let advice = runtime.block_on(async |mut signals| {
            let mut advice = tokio::select! {
                advice = self.ask(resolved) => advice?,
                _ = signals.end() => bail!("interrupted"),
            };
            advice.dismiss(dismissed.all());
            if !self.all {
                advice.hide_dismissed();
            }
            Ok(advice)
        })?;
        let text = match self.format {
            Format::Text => advice.to_text(),
            Format::Json => serde_json::to_string(&advice)? + "\n",
            Format::GitHub => advice.to_annotations(),
        };
        print(|out| std::io::Write::write_all(out, text.as_bytes()))?;
        let is_failure =
            |finding: &&Finding| !finding.dismissed && self.fail_on.iter().any(|fail_on| fail_on.is(finding));
        match advice.findings.iter().filter(is_failure).count() {
            0 => Ok(()),
            count => Err(Found(count).into()),
        }
    }

    async fn ask(&self, resolved: &Resolved) -> anyhow::Result<Advice> {
        let server = OwnServer::find(resolved)?;
        let scans = if self.every_scan { "&scans=every" } else { "" };
        let answer = server.get(&format!("/advice?{}{scans}", self.of.query(resolved)?)).await?;
        match answer.status {
            200 => serde_json::from_str(&answer.text)
                .context("the server's answer has another form than this command expects"),
            status => bail!("the server at {} answered {status}: {}", server.url(), answer.text.trim_end()),
        }
    }
}

impl FailOn {
    fn is(self, finding: &Finding) -> bool {
        match self {
            Self::Severity(severity) => finding.severity >= severity,
            Self::Kind(kind) => finding.id == kind,
        }
    }
}
