//! A progress bar on standard error: only on a terminal, and only for work that takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
        Self::with_style(total, &format!("{{human_pos}}{{total}} {unit}, {{per_sec}}{{rest}}"))
    }

    /// Counts bytes.
    #[must_use]
    pub fn bytes(total: Option<u64>) -> Self {
        Self::with_style(total, "{bytes}{total}, {bytes_per_sec}{rest}")
    }

    fn with_style(total: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let (start, of, rest) = match total {
            Some(_) => ("{bar:20} {percent} % ", " of {human_len}", ", {eta} left"),
            None => ("{spinner} ", "", ""),
        };
        let of = if template.starts_with("{bytes}") && total.is_some() { " of {total_bytes}" } else { of };
        let template = format!("{start}{}", template.replace("{total}", of).replace("{rest}", rest));
        bar.set_style(ProgressStyle::with_template(&template).expect("the template is well-formed"));
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

/// Shorter work has no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
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
