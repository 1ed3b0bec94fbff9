//! `larimar restore FROM --data DIR`: builds a data directory from a backup.

use super::{bytes, counted, end_line, readable_place, show};
use crate::logging;
use crate::settings::{Resolved, Source};
use crate::signals::{EXIT_INTERRUPTED, Runtime};
use anyhow::{Context, ensure};
use larimar_backup::{Generation, Place, Totals, restore, room_needed};
use larimar_bytes::{Admission, FileBytes, FileSettings};
use larimar_engine_local::restoring::{Restoring, is_free};
use larimar_engine_local::{Durability, Settings};
use std::path::{Path, PathBuf};

/// What to restore where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Restore {
    pub(crate) from: String,
    /// The latest if there is none.
    pub(crate) generation: Option<String>,
    pub(crate) data: PathBuf,
}

impl Restore {
    /// Runs the command.
    pub(crate) fn run(&self, resolved: &Resolved, runtime: Runtime) -> anyhow::Result<()> {
        let mut settings = resolved.settings.clone();
        if resolved.source("log_level") == Source::Default {
            "warn".clone_into(&mut settings.log_level);
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
        let generation = Generation::find(&place, self.generation.as_deref()).await?;
        let name = generation.name();
        let (needed, free) = (room_needed(&generation), free_bytes(&self.data)?);
        ensure!(
            free >= needed,
            "{name} needs {} on the disk of {shown}, and {} are free; nothing was changed",
            bytes(needed),
            bytes(free)
        );
        let restoring = Restoring::begin(&self.data).with_context(|| format!("cannot restore into {shown}"))?;
        let done = build(&place, &generation, &restoring, &self.data).await;
        end_line();
        let totals = done.with_context(|| format!("{name} was not restored, and {shown} is not a data directory"))?;
        restoring.finish().with_context(|| format!("cannot finish {shown}"))?;
        println!("restored {name} into {shown}: {}", counted(&totals));
        Ok(())
    }
}

/// Builds the store and closes it.
async fn build(place: &Place, generation: &Generation, restoring: &Restoring, data: &Path) -> anyhow::Result<Totals> {
    let settings =
        Settings { folder: data.to_owned(), durability: Durability::Sync, memory_bytes: None, reserve_bytes: 0 };
    let engine = restoring.open(&settings)?;
    let files = match generation.totals.payloads {
        0 => None,
        _ => {
            let files = FileSettings {
                folder: data.join("blobs"),
                durability: larimar_bytes::Durability::Sync,
                grace: std::time::Duration::ZERO,
                admission: Admission::new(engine.admission()),
            };
            let opened = FileBytes::open(&files)?;
            engine.record_blobs()?;
            Some(opened)
        }
    };
    let progress = |totals: &Totals| show(totals, "restored", totals.bytes());
    let restored = restore(place, generation, &engine, files.as_ref(), &progress).await;
    // The bytes go first: they ask the engine whether there is room.
    drop(files);
    engine.close().context("the engine did not close cleanly")?;
    Ok(restored?)
}

/// The bytes that are free where a directory is, or will be.
fn free_bytes(directory: &Path) -> anyhow::Result<u64> {
    let directory = std::path::absolute(directory)?;
    let there = directory.ancestors().find(|part| part.is_dir()).context("expected a path below a directory")?;
    let disk = rustix::fs::statvfs(there).with_context(|| format!("cannot read the room of {}", there.display()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
