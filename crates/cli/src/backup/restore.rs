//! `larimar restore FROM --data DIR`: builds a data directory from a backup and the archive.

use super::{bytes, counted, end_line, print, readable_place, resolved_path, show};
use crate::logging;
use crate::settings::{Resolved, Source};
use crate::signals::{EXIT_INTERRUPTED, Runtime};
use anyhow::{Context, ensure};
use larimar_backup::{Moment, Place, Plan, Totals, restore_to};
use larimar_bytes::{Admission, FileBytes, FileSettings};
use larimar_engine_local::restoring::{Restoring, is_free, leftover_bytes};
use larimar_model::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to restore where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restore {
    pub(crate) from: String,
    pub(crate) moment: Moment,
    pub(crate) data: PathBuf,
}

impl Restore {
    /// Runs the command.
    pub(crate) fn run(&self, resolved: &Resolved, runtime: Runtime) -> anyhow::Result<()> {
        let mut settings = resolved.settings.clone();
        if resolved.source("log_level") == Source::Default {
            "warn".clone_into(&mut settings.logs.level);
        }
        logging::start(&settings)?;
        let shown = self.data.display();
        runtime.block_on(async |mut signals| {
            tokio::select! {
                done = self.restore(resolved) => done,
                _ = signals.end() => {
                    end_line();
                    eprintln!("larimar: interrupted; the same command begins again, or remove {shown}");
                    std::process::exit(EXIT_INTERRUPTED);
                }
            }
        })
    }

    async fn restore(&self, resolved: &Resolved) -> anyhow::Result<()> {
        let (place, shown) = (readable_place(resolved, &self.from)?, self.data.display());
        let is_free = is_free(&self.data).with_context(|| format!("cannot read {shown}"))?;
        ensure!(is_free, "{shown} is not empty: give a new directory; nothing was changed");
        if let Some(from) = place.as_directory() {
            let is_inside = is_inside(&self.data, from)?;
            ensure!(!is_inside, "{shown} is in {}, the place of the backup: give another directory", from.display());
        }
        let plan = Plan::make(&place, &self.moment).await?;
        end_line();
        let name = plan.generation().name();
        // What an unfinished restore left there is removed first.
        let left = leftover_bytes(&self.data).with_context(|| format!("cannot read {shown}"))?;
        let (needed, free) = (plan.room_needed(), free_bytes(&self.data)?.saturating_add(left));
        ensure!(
            free >= needed,
            "{name} needs {} on the disk of {shown}, and {} are free; nothing was changed",
            bytes(needed),
            bytes(free)
        );
        let restoring = Restoring::begin(&self.data).with_context(|| format!("cannot restore into {shown}"))?;
        let done = build(&place, &plan, &restoring, &self.data).await;
        end_line();
        let totals = done.with_context(|| format!("{name} was not restored, and {shown} is not a data directory"))?;
        restoring.finish().with_context(|| format!("cannot finish {shown}"))?;
        let (commits, last) = (plan.archived().commits, plan.last());
        let applied = if commits > 0 { format!("applied {commits} commits of the archive\n") } else { String::new() };
        print(&format!(
            "restored {name} into {shown}: {}\n{applied}the store is as it was after commit {} of {}\n",
            counted(&totals),
            last.sequence,
            last.time
        ))
    }
}

/// Builds the store and closes it.
async fn build(place: &Place, plan: &Plan, restoring: &Restoring, data: &Path) -> anyhow::Result<Totals> {
    let files = FileSettings {
        folder: data.join("blobs"),
        durability: larimar_bytes::Durability::Sync,
        grace: std::time::Duration::ZERO,
        admission: Admission::default(),
    };
    let open_bytes = || FileBytes::open(&files).map(Arc::new);
    let progress = |totals: &Totals| show(totals, "restored", totals.bytes());
    Ok(restore_to(place, plan, restoring, open_bytes, &progress).await?)
}

/// Whether a directory, which may not exist yet, is in another one.
fn is_inside(path: &Path, directory: &Path) -> anyhow::Result<bool> {
    let path = resolved_path(path)?;
    let there = path.ancestors().find_map(|part| part.canonicalize().ok());
    Ok(there.zip(directory.canonicalize().ok()).is_some_and(|(path, directory)| path.starts_with(directory)))
}

/// Reads a time with `Z` or its offset from UTC.
pub(crate) fn read_time(text: &str) -> Result<Timestamp, String> {
    let expected = "expected a time such as 2026-11-16T17:00:00Z or 2026-11-16T18:00:00.25+01:00, with Z or the offset \
                    from UTC and at most seven digits of a second";
    let (time, is_local) = match text.strip_suffix('Z') {
        Some(time) => (time, false),
        None => match text.len().checked_sub(6).and_then(|at| text.split_at_checked(at)) {
            Some((time, offset)) => (time, !offset.starts_with(['+', '-'])),
            None => return Err(expected.to_owned()),
        },
    };
    let has_date = time.len() >= 19 && time.as_bytes()[10] == b'T';
    let is_fine = time.split_once('.').is_none_or(|(_, digits)| (1..=7).contains(&digits.len()));
    match Timestamp::parse(text) {
        Ok(time) if has_date && is_fine && !is_local => Ok(time),
        _ => Err(expected.to_owned()),
    }
}

/// The bytes that are free where a directory is, or will be.
fn free_bytes(directory: &Path) -> anyhow::Result<u64> {
    let directory = std::path::absolute(directory)?;
    let there = directory.ancestors().find(|part| part.is_dir()).context("expected a path below a directory")?;
    let disk = rustix::fs::statvfs(there).with_context(|| format!("cannot read the room of {}", there.display()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_an_offset_and_up_to_seven_digits() {
        let noon = "2026-11-16T12:00:00Z";
        for text in [noon, "2026-11-16T12:00:00.0000000Z", "2026-11-16T13:30:00.0+01:30", "2026-11-16T04:00:00-08:00"] {
            assert_eq!(read_time(text), read_time(noon), "{text}");
        }
        assert_eq!(read_time("2026-11-16T12:00:00.0000001Z").expect("a time").ticks() % 10, 1);
        for text in [
            "",
            "Z",
            "yesterday",
            "2026-11-16",
            "2026-11-16Z",
            "2026-11-16T12:00Z",
            "2026-11-16T12:00:00",
            "2026-11-16 12:00:00Z",
            "2026-11-16T12:00:00.12345678Z",
            "2026-11-16T12:00:00.Z",
            "2026-13-16T12:00:00Z",
            "2026-11-16T12:00:00+1:00",
            "2026-11-16T12:00:00é1:00",
        ] {
            assert!(read_time(text).expect_err(text).contains("2026-11-16T17:00:00Z"), "{text}");
        }
    }
}
