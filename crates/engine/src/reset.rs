//! Removes everything that an account has: its settings, tables, queues and containers.
//!
//! Requests go on meanwhile. Each table, queue and container is removed in one commit, so a request sees it either as
//! it was or not at all. Everything that existed before the call is gone when it returns; what other requests create
//! during the call may stay. After a crash in between, what was removed stays removed, and the rest is untouched.

use crate::contract::{Act, Budget, Engine, Expect, Flow, KeyRange, Op, SpaceId, SpaceKind, SpaceName};
use crate::error::{Fault, ReadError, WriteError};
use futures_util::future::try_join_all;
use larimar_model::Timestamp;
use std::time::{Duration, Instant};

/// What a reset removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Tables, with those of storage analytics.
    pub tables: u64,
    /// Queues.
    pub queues: u64,
    /// Containers, with that of storage analytics' logs.
    pub containers: u64,
}

/// Removes everything that an account has. The storage is reclaimed later.
///
/// # Errors
/// Faults of the engine. Call it again to remove the rest.
pub async fn reset_account(engine: &impl Engine, account: &str, now: Timestamp) -> Result<Removed, Fault> {
    // First, so that nothing that depends on them, such as storage analytics, writes to what is removed next.
    remove_settings(engine, account, now).await?;
    Ok(Removed {
        tables: remove_spaces(engine, account, SpaceKind::Table).await?,
        queues: remove_spaces(engine, account, SpaceKind::Queue).await?,
        containers: remove_spaces(engine, account, SpaceKind::Container).await?,
    })
}

/// Removes the settings of an account, such as its service properties.
async fn remove_settings(engine: &impl Engine, account: &str, now: Timestamp) -> Result<(), Fault> {
    let mut range = KeyRange::partition(account);
    loop {
        let budget = Budget { rows_max: SETTINGS_MAX, deadline: Instant::now() + SCAN_TIME_MAX };
        let mut names = Vec::new();
        let scan = engine.scan(SpaceId::SYSTEM, &range, budget, |row| {
            names.push(row.row.to_owned());
            Flow::Continue
        });
        let next = scan.await.map_err(|error| match error {
            ReadError::Fault(fault) => fault,
            ReadError::SpaceGone => Fault::Damaged("the system's space is not there".to_owned()),
        })?;
        let ops: Vec<_> = names.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Delete }).collect();
        if !ops.is_empty() {
            engine.apply(SpaceId::SYSTEM, account, &ops, now).await.map_err(|error| match error {
                WriteError::Fault(fault) => fault,
                other => Fault::Damaged(format!("an unconditional write was refused: {other}")),
            })?;
        }
        match next {
            Some(next) => range.start = next,
            None => return Ok(()),
        }
    }
}

/// Removes the spaces of a kind, and counts those that this call removed.
async fn remove_spaces(engine: &impl Engine, account: &str, kind: SpaceKind) -> Result<u64, Fault> {
    let (mut from, mut removed) = (String::new(), 0);
    loop {
        let spaces = engine.list_spaces(SpaceName { account, kind, name: &from }, LISTED_MAX).await?;
        let Some((last, _)) = spaces.last() else { return Ok(removed) };
        let next = crate::contract::successor(last);
        let is_last = spaces.len() < LISTED_MAX;
        for some in spaces.chunks(DROPS_AT_ONCE) {
            // Several at once share the syncs of an embedded engine and the connections of a database.
            let mut drops = Vec::with_capacity(some.len());
            for (name, _) in some {
                drops.push(engine.drop_space(SpaceName { account, kind, name }));
            }
            removed += try_join_all(drops).await?.into_iter().map(u64::from).sum::<u64>();
        }
        if is_last {
            return Ok(removed);
        }
        from = next;
    }
}

/// Spaces that are listed at once.
const LISTED_MAX: usize = 1000;
const DROPS_AT_ONCE: usize = 32;
/// Settings that are removed in one commit.
const SETTINGS_MAX: usize = 100;
const SCAN_TIME_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{load_setting, store_setting};
    use crate::{MemoryEngine, Spaces as _};

    const NOW: Timestamp = Timestamp::EDM_MIN;

    async fn fill(engine: &MemoryEngine, account: &str, spaces: usize) {
        for kind in [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container] {
            for number in 0..spaces {
                let name = format!("n{number:05}");
                engine.create_space(SpaceName { account, kind, name: &name }, b"").await.expect("no fault");
            }
        }
        for number in 0..250 {
            let name = format!("setting-{number:03}");
            store_setting(engine, account, &name, b"<xml/>", NOW).await.expect("no fault");
        }
    }

    async fn listed(engine: &MemoryEngine, account: &str, kind: SpaceKind) -> usize {
        engine.list_spaces(SpaceName { account, kind, name: "" }, 10_000).await.expect("no fault").len()
    }

    #[tokio::test]
    async fn everything_of_the_account_goes_and_nothing_of_another() {
        let engine = MemoryEngine::new();
        let spaces = 2 * LISTED_MAX + 1;
        fill(&engine, "one", spaces).await;
        fill(&engine, "one2", 3).await;
        let removed = reset_account(&engine, "one", NOW).await.expect("no fault");
        let count = spaces as u64;
        assert_eq!(removed, Removed { tables: count, queues: count, containers: count });
        for kind in [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container] {
            assert_eq!((listed(&engine, "one", kind).await, listed(&engine, "one2", kind).await), (0, 3));
        }
        for (account, expected) in [("one", None), ("one2", Some(b"<xml/>".to_vec()))] {
            for name in ["setting-000", "setting-249"] {
                assert_eq!(load_setting(&engine, account, name).await, Ok(expected.clone()), "{account} {name}");
            }
        }
        assert_eq!(reset_account(&engine, "one", NOW).await, Ok(Removed::default()));
    }
}
