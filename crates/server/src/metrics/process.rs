//! Figures of the process, under the names that other programs use: memory, open files and their limit.
//!
//! They come from `/proc`. On systems without it the page has no such lines.

use super::page::Page;
use std::fs;

/// Adds the figures that the system has.
pub(super) fn render(page: &mut Page) {
    let figures = [
        ("process_resident_memory_bytes", "Bytes of memory that the process takes.", resident_bytes()),
        ("process_open_fds", "Files and sockets that the process has open.", open_files()),
        ("process_max_fds", "Files and sockets that it may have open.", open_files_max()),
    ];
    for (name, help, figure) in figures {
        if let Some(figure) = figure {
            page.single(name, "gauge", help, figure);
        }
    }
}

fn resident_bytes() -> Option<u64> {
    resident_bytes_in(&fs::read_to_string("/proc/self/status").ok()?)
}

fn resident_bytes_in(status: &str) -> Option<u64> {
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    kilobytes.parse::<u64>().ok()?.checked_mul(1024)
}

fn open_files() -> Option<u64> {
    // Since Linux 6.2 this is the number; to count a hundred thousand of them takes a while.
    match fs::metadata(OPEN_FILES).ok()?.len() {
        0 => counted_files(),
        files => Some(files),
    }
}

fn counted_files() -> Option<u64> {
    // One of them is the directory itself.
    (fs::read_dir(OPEN_FILES).ok()?.count() as u64).checked_sub(1)
}

fn open_files_max() -> Option<u64> {
    open_files_max_in(&fs::read_to_string("/proc/self/limits").ok()?)
}

/// The soft limit, unless there is none.
fn open_files_max_in(limits: &str) -> Option<u64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    limit.split_whitespace().next()?.parse().ok()
}

const OPEN_FILES: &str = "/proc/self/fd";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_read() {
        let status = "Name:\tlarimar\nVmPeak:\t  999 kB\nVmRSS:\t   20480 kB\nThreads:\t9\n";
        assert_eq!(resident_bytes_in(status), Some(20 << 20));
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max processes             95523                95523                processes \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(open_files_max_in(limits), Some(1024));
        assert_eq!(open_files_max_in("Max open files   unlimited   unlimited   files\n"), None);
        for text in ["", "VmRSS:\n", "VmRSS: x kB\n", "VmRSS:\t99999999999999999999 kB\n", "Max open files\n"] {
            assert_eq!((resident_bytes_in(text), open_files_max_in(text)), (None, None), "{text}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_has_memory_and_open_files() {
        let files: Vec<_> = (0..100).map(|_| fs::File::open("/proc/self/status").expect("a file")).collect();
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
        for open in [open_files(), counted_files()] {
            assert!(open.is_some_and(|open| open >= files.len() as u64), "{open:?}");
        }
        assert!(open_files_max() >= open_files());
    }
}
