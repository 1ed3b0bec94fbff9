//! A progress bar on standard error: only on a terminal, and only for work that takes longer than a second.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::IsTerminal as _;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How far a command is. It disappears from the terminal when it is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    shower: Option<JoinHandle<()>>,
}

impl Progress {
    /// Counts things of this name, such as `entities`. Without a total the bar has no end and no remaining time.
    #[must_use]
    pub fn new(unit: &str, total: Option<u64>) -> Self {
        match total {
            Some(_) => Self::with_template(total, &format!("{{human_len}} {unit}, {{rate}}{{rest}}")),
            None => Self::with_template(total, &format!("{{human_pos}} {unit}, {{rate}}")),
        }
    }

    /// Counts bytes.
    #[must_use]
    pub fn bytes(total: Option<u64>) -> Self {
        match total {
            Some(_) => Self::with_template(total, "{total_bytes}, {bytes_per_sec}{rest}"),
            None => Self::with_template(total, "{bytes}, {bytes_per_sec}"),
        }
    }

    /// Counts rows without a bar: a server logs how far this work is, every few seconds.
    #[must_use]
    pub fn logged(work: String, total: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let counted = bar.clone();
        let shower = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOGGED_EVERY).await;
                tracing::info!(rows = counted.position(), total, "{work}");
            }
        });
        Self { bar, shower: Some(shower) }
    }

    /// With a total the template is what follows the percentage.
    fn with_template(total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let columns = terminal_size::terminal_size_of(std::io::stderr()).map_or(0, |(width, _)| width.0);
        let start = match total {
            Some(_) if columns < WIDE_COLUMNS => "{bar:8} {percent} % of ",
            Some(_) => "{bar:20} {percent} % of ",
            None => "{spinner} ",
        };
        let style = ProgressStyle::with_template(&format!("{start}{template}")).expect("the template is well-formed");
        bar.set_style(style.with_key("rate", rate).with_key("rest", rest));
        let shower = std::io::stderr().is_terminal().then(|| {
            let bar = bar.clone();
            tokio::spawn(async move {
                tokio::time::sleep(SHOWN_AFTER).await;
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(TICK);
            })
        });
        Self { bar, shower }
    }

    /// Counts more of what is done.
    pub fn add(&self, count: u64) {
        self.bar.inc(count);
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bar.position()
    }

    /// Prints a line on standard error, above the bar.
    pub fn note(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(shower) = &self.shower {
            shower.abort();
        }
        self.bar.finish_and_clear();
    }
}

fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    // What cannot be written is not shown.
    let _ = write!(out, "{:.0}/s", state.per_sec());
}

/// The remaining time, once anything is known about it.
fn rest(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.pos() > 0 {
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

/// A terminal of fewer columns has a shorter bar.
const WIDE_COLUMNS: u16 = 80;
/// Shorter work has no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// How often a line is logged.
const LOGGED_EVERY: Duration = Duration::from_secs(5);
/// How often the bar is drawn.
const TICK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_style_is_well_formed() {
        for total in [None, Some(10)] {
            let progress = Progress::new("entities", total);
            progress.add(3);
            assert_eq!(progress.count(), 3);
            drop(Progress::bytes(total));
        }
    }
}
