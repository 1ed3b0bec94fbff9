//! Divides the memory the engine may use among the parts of the store.

use std::path::Path;

/// Memory for each part of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Blocks read from disk.
    pub cache_bytes: u64,
    /// Rows not yet in tables; up to three times as much while flushes are behind.
    pub memtable_bytes: u64,
}

impl MemoryBudget {
    /// Divides a number of bytes: a quarter for memtables and those on their way to disk, the rest for the cache.
    #[must_use]
    pub fn divide(bytes: u64) -> Self {
        let memtable_bytes = (bytes / 16).clamp(MEMTABLE_MIN, MEMTABLE_MAX);
        let cache_bytes = bytes.saturating_sub(4 * memtable_bytes).max(CACHE_MIN);
        Self { cache_bytes, memtable_bytes }
    }

    /// A quarter of the machine's memory for the cache, at most 1 GiB, and memtables on top.
    #[must_use]
    pub fn of_machine() -> Self {
        let machine = machine_bytes();
        Self {
            cache_bytes: (machine / 4).clamp(CACHE_MIN, CACHE_MAX),
            memtable_bytes: (machine / 32).clamp(MEMTABLE_MIN, MEMTABLE_MAX),
        }
    }

    /// As little as works.
    #[must_use]
    pub fn smallest() -> Self {
        Self { cache_bytes: CACHE_MIN, memtable_bytes: MEMTABLE_MIN }
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::of_machine()
    }
}

/// What the machine or its container has, or a modest guess.
#[must_use]
pub fn machine_bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).ok();
    let total = read("/proc/meminfo").and_then(|text| meminfo_total(&text)).unwrap_or(4 << 30);
    let limit = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    limit.map_or(total, |limit: u64| limit.min(total))
}

fn meminfo_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

const CACHE_MIN: u64 = 8 << 20;
const CACHE_MAX: u64 = 1 << 30;
const MEMTABLE_MIN: u64 = 4 << 20;
const MEMTABLE_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_divided_without_exceeding_it() {
        for mib in [64, 128, 512, 1024, 4096] {
            let budget = MemoryBudget::divide(mib << 20);
            assert!(budget.cache_bytes + 4 * budget.memtable_bytes <= mib << 20, "{mib} MiB");
        }
    }

    #[test]
    fn a_tiny_budget_still_works() {
        assert_eq!(MemoryBudget::divide(1), MemoryBudget::smallest());
    }

    #[test]
    fn total_memory_is_read_in_kib() {
        assert_eq!(meminfo_total("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
    }
}
