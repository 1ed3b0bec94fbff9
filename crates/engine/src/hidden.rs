//! Spaces that are being filled: they have names that no request can ask for, until they are whole.
//!
//! A hidden space is one of an account that no server can have, so it is in no list, and no request reaches it. Its meta
//! bytes are the time at which its filler was last seen. [`HiddenSpace::publish`] gives it its name in one commit. If the
//! filler dies, [`sweep_hidden`] of any server over the store drops the space.

use crate::contract::{Changed, Engine, Renamed, SpaceId, SpaceKind, SpaceName};
use crate::error::Fault;
use crate::queue::MessageIds;
use larimar_model::Timestamp;
use std::time::Duration;

/// A space that is being filled.
#[derive(Debug)]
pub struct HiddenSpace {
    kind: SpaceKind,
    name: String,
    /// Its number.
    pub id: SpaceId,
}

impl HiddenSpace {
    /// Creates one, of a name that was never used.
    ///
    /// # Errors
    /// Faults of the engine.
    pub async fn create(engine: &impl Engine, kind: SpaceKind, now: Timestamp) -> Result<Self, Fault> {
        let name = MessageIds::default().next(now).to_string();
        let seen = engine.now(now).await?.latest;
        let created = engine.create_space(hidden(kind, &name), &seen.ticks().to_be_bytes()).await?;
        let id = created.ok_or_else(|| Fault::Unavailable("the name of a hidden space is taken".to_owned()))?;
        Ok(Self { kind, name, id })
    }

    /// Notes that its filler is alive: more often than every minute, or other servers drop it.
    ///
    /// # Errors
    /// Faults of the engine, or the space was dropped.
    pub async fn keep(&self, engine: &impl Engine, now: Timestamp) -> Result<(), Fault> {
        let seen = engine.now(now).await?.latest.ticks().to_be_bytes();
        let name = hidden(self.kind, &self.name);
        let found = engine.space(name).await?;
        match found {
            Some(found) if engine.change_space(name, &found.meta, &seen).await? == Changed::Yes => Ok(()),
            _ => Err(gone()),
        }
    }

    /// Gives it its name and meta bytes in one commit; `false` if the name is taken.
    ///
    /// # Errors
    /// Faults of the engine, or the space was dropped.
    pub async fn publish(&self, engine: &impl Engine, to: SpaceName<'_>, meta: &[u8]) -> Result<bool, Fault> {
        match engine.rename_space(hidden(self.kind, &self.name), to, meta).await? {
            Renamed::Yes => Ok(true),
            Renamed::Taken => Ok(false),
            Renamed::Missing => Err(gone()),
        }
    }

    /// Drops it.
    ///
    /// # Errors
    /// Faults of the engine.
    pub async fn discard(&self, engine: &impl Engine) -> Result<(), Fault> {
        engine.drop_space(hidden(self.kind, &self.name)).await.map(drop)
    }
}

/// Drops hidden spaces whose filler was not seen for a while; returns their number.
///
/// # Errors
/// Faults of the engine.
pub async fn sweep_hidden(engine: &impl Engine, now: Timestamp) -> Result<u64, Fault> {
    let oldest = engine.now(now).await?.earliest.before(ABANDONED_AFTER);
    let mut dropped = 0;
    for kind in [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container] {
        for (name, space) in engine.list_spaces(hidden(kind, ""), SWEPT_MAX).await? {
            let seen = space.meta.first_chunk().map_or(0, |ticks| u64::from_be_bytes(*ticks));
            if seen < oldest.ticks() {
                let outcome = engine.drop_space_if(hidden(kind, &name), &space.meta).await?;
                dropped += u64::from(outcome == Changed::Yes);
            }
        }
    }
    Ok(dropped)
}

/// Whether an account is that of hidden spaces.
#[must_use]
pub fn is_hidden(account: &str) -> bool {
    account == ACCOUNT
}

/// Whether a container is hidden now.
pub(crate) async fn is_hidden_container(engine: &impl Engine, id: SpaceId) -> Result<bool, Fault> {
    let listed = engine.list_spaces(hidden(SpaceKind::Container, ""), usize::MAX >> 1).await?;
    Ok(listed.iter().any(|(_, space)| space.id == id))
}

fn hidden(kind: SpaceKind, name: &str) -> SpaceName<'_> {
    SpaceName { account: ACCOUNT, kind, name }
}

fn gone() -> Fault {
    Fault::Unavailable("the unfinished space was dropped, because its progress stopped for minutes".to_owned())
}

/// Not a name that an account can have.
const ACCOUNT: &str = "*unfinished";
const ABANDONED_AFTER: Duration = Duration::from_secs(5 * 60);
/// Spaces that are dropped by one sweep.
const SWEPT_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryEngine;
    use crate::contract::Spaces as _;

    const TO: SpaceName<'static> = SpaceName { account: "one", kind: SpaceKind::Table, name: "orders" };

    #[tokio::test]
    async fn a_space_is_hidden_until_it_is_published() {
        let (engine, now) = (MemoryEngine::new(), Timestamp::from_ticks(1 << 60));
        let space = HiddenSpace::create(&engine, SpaceKind::Table, now).await.expect("no fault");
        assert_eq!(engine.space(TO).await, Ok(None));
        assert_eq!(engine.list_spaces(SpaceName { name: "", ..TO }, 10).await, Ok(vec![]));
        space.keep(&engine, now).await.expect("it is there");
        assert_eq!(space.publish(&engine, TO, b"meta").await, Ok(true));
        let found = engine.space(TO).await.expect("no fault").expect("it has its name");
        assert_eq!((found.id, &*found.meta), (space.id, b"meta".as_slice()));
        assert_eq!(engine.accounts().await, Ok(vec!["one".to_owned()]));
        let second = HiddenSpace::create(&engine, SpaceKind::Table, now).await.expect("no fault");
        assert_eq!(second.publish(&engine, TO, b"other").await, Ok(false));
        second.discard(&engine).await.expect("no fault");
        assert_eq!(engine.accounts().await, Ok(vec!["one".to_owned()]));
        assert_eq!(engine.space(TO).await, Ok(Some(found)));
    }

    #[tokio::test]
    async fn a_sweep_drops_only_what_nobody_fills() {
        let (engine, now) = (MemoryEngine::new(), Timestamp::from_ticks(1 << 60));
        let minutes = |count: u64| now.after(Duration::from_secs(60 * count));
        let dead = HiddenSpace::create(&engine, SpaceKind::Queue, now).await.expect("no fault");
        let alive = HiddenSpace::create(&engine, SpaceKind::Container, now).await.expect("no fault");
        assert_eq!(sweep_hidden(&engine, minutes(5)).await, Ok(0));
        alive.keep(&engine, minutes(4)).await.expect("it is there");
        assert_eq!(sweep_hidden(&engine, minutes(6)).await, Ok(1));
        assert!(dead.keep(&engine, minutes(6)).await.is_err());
        assert!(dead.publish(&engine, SpaceName { kind: SpaceKind::Queue, ..TO }, b"").await.is_err());
        assert_eq!(is_hidden_container(&engine, alive.id).await, Ok(true));
        assert_eq!(is_hidden_container(&engine, dead.id).await, Ok(false));
    }
}
