//! Directories for tests.

use tempfile::TempDir;

/// A new directory, in memory if the system has room there: for tests that are not about what a disk keeps, and would
/// mostly wait for its syncs. What a killed process wrote is there as on a disk.
///
/// # Panics
/// If there is no room for a directory at all.
#[must_use]
pub fn memory_directory() -> TempDir {
    let room = rustix::fs::statvfs(MEMORY).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let in_memory = if room >= ROOM_MIN { tempfile::tempdir_in(MEMORY).ok() } else { None };
    in_memory.unwrap_or_else(|| tempfile::tempdir().expect("a directory"))
}

const MEMORY: &str = "/dev/shm";
/// Many tests run at once. Containers often have 64 MiB only.
const ROOM_MIN: u64 = 2 << 30;
