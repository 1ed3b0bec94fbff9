//! The spaces: found by name, created, changed and dropped.
//!
//! Spaces that were found are cached for less than a second, to allow requests; before a request is refused, or when a
//! space itself is returned, it is looked up again. Only spaces that exist are cached, so a space that another server
//! created is found at once. If another server dropped one, the statement that uses it fails, and it is removed from
//! the cache.

use crate::core::{Core, token};
use crate::pool::{Pool, SendError};
use crate::statements::spaces::{
    ChangeSpace, CreateSpace, DropSpace, FindSpace, ListAccounts, ListSpaces, RenameSpace,
};
use larimar_engine::{Changed, Fault, Renamed, Space, SpaceId, SpaceKind, SpaceName};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct Catalogue {
    core: Arc<Core>,
    pool: Arc<Pool>,
    cached: Mutex<FxHashMap<Name, CachedSpace>>,
    /// Changes that were made or noticed here. A lookup that began before a change is not cached after it.
    changes: AtomicU64,
}

/// The name of a space, as the database stores it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    account: Vec<u8>,
    kind: i64,
    name: Vec<u8>,
}

struct CachedSpace {
    space: Space,
    asked: Instant,
    is_being_looked_up: bool,
}

impl Catalogue {
    pub(crate) fn new(core: Arc<Core>, pool: Arc<Pool>) -> Arc<Self> {
        Arc::new(Self { core, pool, cached: Mutex::default(), changes: AtomicU64::new(0) })
    }

    /// Finds a space as it is now.
    pub(crate) async fn find(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        self.ask(Name::new(name)).await
    }

    /// Finds a space as it was less than a second ago. One in frequent use is looked up again in the background.
    pub(crate) async fn find_recent(self: &Arc<Self>, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        let name = Name::new(name);
        if let Some(cached) = self.cached.lock().get_mut(&name) {
            let age = cached.asked.elapsed();
            if age < CACHED_FOR {
                if age > REFRESH_AFTER && !cached.is_being_looked_up {
                    cached.is_being_looked_up = true;
                    let (this, name) = (Arc::clone(self), name);
                    let space = cached.space.clone();
                    tokio::spawn(async move { drop(this.ask(name).await) });
                    return Ok(Some(space));
                }
                return Ok(Some(cached.space.clone()));
            }
        }
        self.ask(name).await
    }

    async fn ask(&self, name: Name) -> Result<Option<Space>, Fault> {
        let changes = self.changes.load(Ordering::Acquire);
        let asked = Instant::now();
        let space = self.look_up(&name).await.map(|found| found.map(|(space, _)| space));
        let mut cached = self.cached.lock();
        match &space {
            Ok(Some(space)) if self.changes.load(Ordering::Acquire) == changes => {
                if cached.len() >= CACHED_MAX {
                    cached.retain(|_, cached| cached.asked.elapsed() < CACHED_FOR);
                }
                // The result of an earlier lookup does not replace that of a later one.
                if cached.get(&name).is_none_or(|cached| cached.asked <= asked) {
                    cached.insert(name, CachedSpace { space: space.clone(), asked, is_being_looked_up: false });
                }
            }
            _ => drop(cached.remove(&name)),
        }
        drop(cached);
        space
    }

    /// Removes a space that does not exist any more from the cache, also if a lookup under way still returns it.
    pub(crate) fn forget(&self, id: SpaceId) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cached.lock().retain(|_, cached| cached.space.id != id);
    }

    pub(crate) async fn list(&self, from: SpaceName<'_>, max: usize) -> Result<Vec<(String, Space)>, Fault> {
        let Name { account, kind, name } = Name::new(from);
        let count = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = self.pool.ask(&ListSpaces { account: &account, kind, first: &name, count }).await?;
        Ok(rows.into_iter().map(|(name, id, meta)| (text(&name), space(id, &meta))).collect())
    }

    pub(crate) async fn accounts(&self) -> Result<Vec<String>, Fault> {
        let rows = self.pool.ask(&ListAccounts {}).await?;
        Ok(rows.iter().map(|(account,)| text(account)).collect())
    }

    /// Creates a space; `None` if the name is taken. If the answer is lost, the token in the row shows who created it.
    pub(crate) async fn create(self: &Arc<Self>, name: SpaceName<'_>, meta: &[u8]) -> Result<Option<SpaceId>, Fault> {
        let (name, meta, token) = (Name::new(name), meta.to_vec(), token());
        self.change(name, async move |this, name| {
            let Name { account, kind, name: of } = &name;
            match this.pool.send(&CreateSpace { account, kind: *kind, name: of, token, meta: &meta }).await {
                Err(SendError::Unknown(reason)) => match this.look_up(&name).await {
                    Ok(Some((space, found))) if found == token => Ok(Some(space.id)),
                    _ => Err(Fault::Ambiguous(reason)),
                },
                created => Ok(created?.first().map(|(id,)| SpaceId(id.cast_unsigned()))),
            }
        })
        .await
    }

    pub(crate) async fn change_meta(
        self: &Arc<Self>,
        name: SpaceName<'_>,
        expected: &[u8],
        meta: &[u8],
    ) -> Result<Changed, Fault> {
        let (name, expected, meta, token) = (Name::new(name), expected.to_vec(), meta.to_vec(), token());
        self.change(name, async move |this, name| {
            let Name { account, kind, name: of } = &name;
            let change = ChangeSpace { account, kind: *kind, name: of, meta: &meta, token, expected: &expected };
            let changed = match this.pool.send(&change).await {
                Err(SendError::Unknown(reason)) => {
                    return match this.look_up(&name).await {
                        Ok(Some((_, found))) if found == token => Ok(Changed::Yes),
                        _ => Err(Fault::Ambiguous(reason)),
                    };
                }
                sent => sent?,
            };
            if changed.is_empty() { this.why_unchanged(&name).await } else { Ok(Changed::Yes) }
        })
        .await
    }

    /// Gives a space another name. If the answer is lost, the token in the row shows who renamed it.
    pub(crate) async fn rename(
        self: &Arc<Self>,
        from: SpaceName<'_>,
        to: SpaceName<'_>,
        meta: &[u8],
    ) -> Result<Renamed, Fault> {
        let (from, to, meta, token) = (Name::new(from), Name::new(to), meta.to_vec(), token());
        self.change(from, async move |this, from| {
            let Name { account, kind, name } = &from;
            let (new_account, new_name) = (&to.account, &to.name);
            let rename = RenameSpace { account, kind: *kind, name, new_account, new_name, meta: &meta, token };
            let sent = this.pool.send(&rename).await;
            if let Ok(renamed) = &sent
                && !renamed.is_empty()
            {
                return Ok(Renamed::Yes);
            }
            match (this.look_up(&to).await?, sent) {
                (Some((_, found)), Err(SendError::Unknown(_))) if found == token => Ok(Renamed::Yes),
                (_, Err(SendError::Unknown(reason))) => Err(Fault::Ambiguous(reason)),
                // Also if the name was taken while the statement ran.
                (Some(_), _) => Ok(Renamed::Taken),
                (None, Err(SendError::NotDone(fault))) => Err(fault),
                (None, Ok(_)) => Ok(Renamed::Missing),
            }
        })
        .await
    }

    /// Drops a space, if its meta bytes are the expected ones or none are expected.
    pub(crate) async fn drop_space(
        self: &Arc<Self>,
        name: SpaceName<'_>,
        expected: Option<&[u8]>,
    ) -> Result<Changed, Fault> {
        let expected = expected.map(<[u8]>::to_vec);
        self.change(Name::new(name), async move |this, name| {
            let Name { account, kind, name: of } = &name;
            let drop_space = DropSpace { account, kind: *kind, name: of, expected: expected.as_deref() };
            let is_dropped = !this.pool.send(&drop_space).await?.is_empty();
            this.core.dropped_spaces.fetch_add(u64::from(is_dropped), Ordering::Relaxed);
            match (is_dropped, &expected) {
                (true, _) => Ok(Changed::Yes),
                (false, None) => Ok(Changed::Missing),
                (false, Some(_)) => this.why_unchanged(&name).await,
            }
        })
        .await
    }

    /// Why a conditional change of a space was not made.
    async fn why_unchanged(&self, name: &Name) -> Result<Changed, Fault> {
        let found = self.look_up(name).await?;
        Ok(if found.is_some() { Changed::Other } else { Changed::Missing })
    }

    /// Makes a change in a task of its own, so that it is finished even if the caller is dropped, and removes the space
    /// from the cache.
    async fn change<T: Send + 'static, F>(
        self: &Arc<Self>,
        name: Name,
        work: impl FnOnce(Arc<Self>, Name) -> F + Send + 'static,
    ) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>> + Send,
    {
        let this = Arc::clone(self);
        let task = tokio::spawn(async move {
            let outcome = work(Arc::clone(&this), name.clone()).await;
            this.changes.fetch_add(1, Ordering::AcqRel);
            this.cached.lock().remove(&name);
            outcome
        });
        task.await.unwrap_or_else(|_| Err(Fault::Unavailable("the engine is closed".to_owned())))
    }

    /// A space as it is now, and the token of its last change.
    async fn look_up(&self, name: &Name) -> Result<Option<(Space, i64)>, Fault> {
        let Name { account, kind, name } = name;
        let rows = self.pool.ask(&FindSpace { account, kind: *kind, name }).await?;
        Ok(rows.into_iter().next().map(|(id, meta, token)| (space(id, &meta), token)))
    }
}

impl Name {
    fn new(name: SpaceName<'_>) -> Self {
        Self { account: name.account.into(), kind: kind_number(name.kind), name: name.name.into() }
    }
}

/// A kind of space as the database stores it.
pub(crate) const fn kind_number(kind: SpaceKind) -> i64 {
    match kind {
        SpaceKind::Table => 1,
        SpaceKind::Queue => 2,
        SpaceKind::Container => 3,
    }
}

fn space(id: i64, meta: &[u8]) -> Space {
    Space { id: SpaceId(id.cast_unsigned()), meta: meta.into() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Less than the second within which other servers see a change.
const CACHED_FOR: Duration = Duration::from_millis(800);
const REFRESH_AFTER: Duration = Duration::from_millis(400);
const CACHED_MAX: usize = 10_000;
