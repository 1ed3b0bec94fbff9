//! How far a migration is: a bar on a terminal, otherwise a line every few seconds.

use larimar_engine::migration::{Progress, Stage};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shows progress on standard error.
pub(super) struct Display {
    is_terminal: bool,
    shown: Option<Instant>,
    /// When the stage began, and the items it began with.
    began: Option<(Stage, Instant, u64)>,
}

impl Display {
    pub(super) fn new() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), shown: None, began: None }
    }

    pub(super) const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows progress, unless it was shown just before.
    pub(super) fn show(&mut self, progress: Progress<'_>) {
        let now = Instant::now();
        let began = self.began.filter(|(stage, ..)| *stage == progress.stage);
        let is_new = began.is_none();
        let (_, since, items) = *self.began.insert(began.unwrap_or((progress.stage, now, progress.items)));
        let pause = if self.is_terminal { Duration::from_millis(100) } else { Duration::from_secs(3) };
        if !is_new && self.shown.is_some_and(|shown| now - shown < pause) {
            return;
        }
        self.shown = Some(now);
        let text =
            line(&progress, progress.items.saturating_sub(items) as f64 / (now - since).as_secs_f64().max(0.001));
        // Progress that cannot be printed does not stop the migration.
        let _ = match self.is_terminal {
            true => write!(std::io::stderr(), "\r\x1b[K{text:.width$}", width = columns().saturating_sub(1)),
            false => writeln!(std::io::stderr(), "{text}"),
        };
    }
}

/// Leaves the line of the bar, also when the migration is interrupted.
impl Drop for Display {
    fn drop(&mut self) {
        if self.is_terminal && self.shown.is_some() {
            eprintln!();
        }
    }
}

/// The width of the terminal: a bar that wraps cannot be drawn over.
fn columns() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr())
        && size.ws_col > 0
    {
        return usize::from(size.ws_col);
    }
    80
}

fn line(progress: &Progress<'_>, items_a_second: f64) -> String {
    let stage = match progress.stage {
        Stage::Count => "counting",
        Stage::Copy => "copying",
        Stage::Verify => "verifying",
    };
    let Progress { part, parts_done, parts_total, items, bytes, .. } = progress;
    let bar = progress.items_total.map(|total| bar(*items, total)).unwrap_or_default();
    let bytes = *bytes as f64 / f64::from(1 << 20);
    format!(
        "{stage:<9}{bar} {items} items, {bytes:.1} MiB, {items_a_second:.0} items/s, {}/{parts_total}: {part}",
        parts_done + 1
    )
}

fn bar(done: u64, total: u64) -> String {
    const WIDTH: usize = 24;
    let share = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    let full = (share * WIDTH as f64) as usize;
    format!(" [{}{}] {:3.0} %", "#".repeat(full), ".".repeat(WIDTH - full), share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_engine::SpaceKind;
    use larimar_engine::migration::Part;

    #[test]
    fn a_line_tells_stage_share_and_table() {
        let part = Part::Space { kind: SpaceKind::Table, account: "shop".into(), name: "orders".into() };
        let progress = Progress {
            stage: Stage::Copy,
            part: &part,
            parts_done: 1,
            parts_total: 3,
            items: 250,
            bytes: 3 << 20,
            items_total: Some(1000),
        };
        let expected =
            "copying   [######..................]  25 % 250 items, 3.0 MiB, 50 items/s, 2/3: table shop/orders";
        assert_eq!(line(&progress, 50.0), expected);
        let expected = "verifying 250 items, 3.0 MiB, 50 items/s, 2/3: table shop/orders";
        assert_eq!(line(&Progress { stage: Stage::Verify, items_total: None, ..progress }, 50.0), expected);
    }

    #[test]
    fn the_bar_is_full_at_the_end_and_never_fuller() {
        for (done, total, full) in [(0, 10, 0), (5, 10, 12), (10, 10, 24), (11, 10, 24), (0, 0, 24)] {
            assert_eq!(bar(done, total).matches('#').count(), full, "{done} of {total}");
        }
    }
}
