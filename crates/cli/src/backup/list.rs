//! `larimar backup list`, and the archive's part of `larimar backup verify`.

use super::{complain, counted, end_line, escape, print, show};
use larimar_backup::{ArchiveLine, Generation, Moments, Place, Totals, archive_lines};
use std::sync::atomic::{AtomicU64, Ordering};

/// Prints the backups of a place, and the moments that its archive can restore.
pub(super) async fn list(place: &Place) -> anyhow::Result<()> {
    for name in Generation::list(place).await? {
        match Generation::read(place, &name).await {
            Ok(generation) => {
                let Generation { taken, sequence, totals, .. } = &generation;
                let taken = escape(taken);
                print(&format!("{name}: taken at {taken}, up to commit {sequence}; {}\n", counted(totals)))?;
            }
            Err(problem) => print(&format!("{name}: {}\n", escape(&problem.to_string())))?,
        }
    }
    for line in archive_lines(place, None).await? {
        print(&format!("{}\n", shown(&line)))?;
        complain(&line.name, &line.problems);
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
        print(&format!("{}; {state}\n", shown(&line)))?;
        complain(&line.name, &line.problems);
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
    let end = line.end.as_ref().map_or_else(String::new, |reason| format!("; it ended because {}", escape(reason)));
    format!("archive {}: {moments}; {} segments{end}", line.name, line.segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_an_end_sends_no_commands_to_a_terminal() {
        let end = Some("the spool\x1b[31m was\nfull".to_owned());
        let line = ArchiveLine { name: "LINE".to_owned(), moments: None, end, segments: 2, problems: Vec::new() };
        let shown = shown(&line);
        assert!(shown.ends_with(r"2 segments; it ended because the spool\u{1b}[31m was\nfull"), "{shown}");
    }
}
