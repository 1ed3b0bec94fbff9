//! `larimar backup list`, and the archive's part of `larimar backup verify`.

use super::{counted, end_line, show};
use larimar_backup::{ArchiveLine, Generation, Moments, Place, Totals, archive_lines};
use std::sync::atomic::{AtomicU64, Ordering};

/// Prints the backups of a place, and the moments that its archive can restore.
pub(super) async fn list(place: &Place) -> anyhow::Result<()> {
    for name in Generation::list(place).await? {
        match Generation::read(place, &name).await {
            Ok(generation) => {
                let Generation { taken, sequence, totals, .. } = &generation;
                println!("{name}: taken at {taken}, up to commit {sequence}; {}", counted(totals));
            }
            Err(problem) => println!("{name}: {problem}"),
        }
    }
    for line in archive_lines(place, None).await? {
        println!("{}", shown(&line));
        line.problems.iter().for_each(|problem| eprintln!("larimar: {}: {problem}", line.name));
    }
    Ok(())
}

/// Reads the archive back and prints its lines; returns how many are damaged.
pub(super) async fn verify_lines(place: &Place) -> anyhow::Result<usize> {
    let read = AtomicU64::new(0);
    let progress = |bytes: u64| {
        let so_far = read.fetch_add(bytes, Ordering::Relaxed) + bytes;
        show(&Totals::default(), "read", so_far);
    };
    let lines = archive_lines(place, Some(&progress)).await;
    end_line();
    let mut damaged = 0;
    for line in lines? {
        let state = if line.problems.is_empty() { "whole" } else { "damaged" };
        println!("{}; {state}", shown(&line));
        line.problems.iter().for_each(|problem| eprintln!("larimar: {}: {problem}", line.name));
        damaged += usize::from(!line.problems.is_empty());
    }
    Ok(damaged)
}

/// A line and what can be restored from it.
fn shown(line: &ArchiveLine) -> String {
    let moments = match line.moments {
        Some(Moments { first, first_sequence, last, last_sequence }) => {
            format!("any moment from {first} to {last} can be restored (commits {first_sequence} to {last_sequence})")
        }
        None => "no moment can be restored without a backup of it".to_owned(),
    };
    let end = line.end.as_ref().map_or_else(String::new, |reason| format!("; it ended because {reason}"));
    format!("archive {}: {moments}; {} segments{end}", line.name, line.segments)
}
