//! Descriptors: connections and the store share what the system allows the process.

/// Raises the limit of open files as far as the system lets us, and returns it: the usual soft limit of 1,024 is
/// far below the hard one.
#[cfg(unix)]
pub(crate) fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(FILES_WANTED).min(FILES_WANTED);
    let current = limit.current?;
    if current >= wanted {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }) {
        Ok(()) => Some(wanted),
        Err(error) => {
            tracing::warn!(%error, "the limit of open files could not be raised");
            Some(current)
        }
    }
}

/// Systems without such a limit.
#[cfg(not(unix))]
pub(crate) fn raise() -> Option<u64> {
    None
}

/// How many connections fit beside the files of the store, which would take a lack of descriptors for a failing
/// disk.
pub(crate) fn fit_connections(connections_max: usize, files_max: Option<u64>) -> usize {
    let Some(files_max) = files_max else { return connections_max };
    let room = files_max.saturating_sub(FILES_OF_STORE).max(files_max / 2).max(1);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if room < connections_max {
        tracing::warn!(connections_max = room, files_max, "the limit of open files allows fewer connections");
    }
    connections_max.min(room)
}

/// Above any sensible number of connections.
#[cfg(unix)]
const FILES_WANTED: u64 = 1 << 20;

/// Kept for the files of the store and the listeners.
const FILES_OF_STORE: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_store() {
        for (wanted, files, expected) in [
            (10_000, None, 10_000),
            (10_000, Some(1 << 20), 10_000),
            (10_000, Some(4096), 3072),
            (10_000, Some(1024), 512),
            (100, Some(1024), 100),
            (10_000, Some(1), 1),
        ] {
            assert_eq!(fit_connections(wanted, files), expected, "{wanted} of {files:?}");
        }
    }
}
