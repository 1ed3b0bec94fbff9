//! The spaces: found by name, created, changed and dropped. What was found is remembered for less than a second, for
//! requests that it allows; what is refused or told is looked up anew.
//!
//! Only spaces that exist are remembered, so one that was created on another server is found at once. One that was
//! dropped there is refused by the statement that meant to use it, and forgotten then.

use crate::core::{Core, token};
use crate::failure::Failure;
use crate::pool::Pool;
use crate::statements::spaces::{ChangeSpace, CreateSpace, DropSpace, FindSpace, ListAccounts, ListSpaces};
use larimar_engine::{Changed, Fault, Space, SpaceId, SpaceKind, SpaceName};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) struct Catalogue {
    core: Arc<Core>,
    pool: Arc<Pool>,
    known: Mutex<FxHashMap<Name, Known>>,
    /// Changes made or noticed here; what was asked before one is not remembered after it.
    changes: AtomicU64,
}

/// The name of a space, as the database stores it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    account: Vec<u8>,
    kind: i64,
    name: Vec<u8>,
}

struct Known {
    space: Space,
    asked: Instant,
    is_being_asked: bool,
}

impl Catalogue {
    pub(crate) fn new(core: Arc<Core>, pool: Arc<Pool>) -> Arc<Self> {
        Arc::new(Self { core, pool, known: Mutex::default(), changes: AtomicU64::new(0) })
    }

    /// Finds a space as it is now.
    pub(crate) async fn find(&self, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        self.ask(Name::new(name)).await
    }

    /// Finds a space, as it was less than a second ago. One in frequent use is asked for again in the background.
    pub(crate) async fn find_recent(self: &Arc<Self>, name: SpaceName<'_>) -> Result<Option<Space>, Fault> {
        let name = Name::new(name);
        if let Some(known) = self.known.lock().get_mut(&name) {
            let age = known.asked.elapsed();
            if age < KNOWN_FOR {
                if age > ASK_AGAIN_AFTER && !known.is_being_asked {
                    known.is_being_asked = true;
                    let (this, name) = (Arc::clone(self), name);
                    let space = known.space.clone();
                    tokio::spawn(async move { drop(this.ask(name).await) });
                    return Ok(Some(space));
                }
                return Ok(Some(known.space.clone()));
            }
        }
        self.ask(name).await
    }

    async fn ask(&self, name: Name) -> Result<Option<Space>, Fault> {
        let changes = self.changes.load(Ordering::Acquire);
        let asked = Instant::now();
        let space = self.look_up(&name).await.map(|found| found.map(|(space, _)| space));
        let mut known = self.known.lock();
        match &space {
            Ok(Some(space)) if self.changes.load(Ordering::Acquire) == changes => {
                if known.len() >= KNOWN_MAX {
                    known.retain(|_, known| known.asked.elapsed() < KNOWN_FOR);
                }
                // An answer that was overtaken by that of a later question is not remembered.
                if known.get(&name).is_none_or(|known| known.asked <= asked) {
                    known.insert(name, Known { space: space.clone(), asked, is_being_asked: false });
                }
            }
            _ => drop(known.remove(&name)),
        }
        drop(known);
        space
    }

    /// Forgets a number that the database refused, also if an earlier question is yet to be answered with it.
    pub(crate) fn forget(&self, id: SpaceId) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.known.lock().retain(|_, known| known.space.id != id);
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

    /// Creates a space; none if there is one of this name. If the answer is lost, the token in the row tells.
    pub(crate) async fn create(self: &Arc<Self>, name: SpaceName<'_>, meta: &[u8]) -> Result<Option<SpaceId>, Fault> {
        let (name, meta, token) = (Name::new(name), meta.to_vec(), token());
        self.change(name, async move |this, name| {
            let lent = this.pool.lend().await?;
            let Name { account, kind, name: of } = &name;
            let created = lent.query_first(&CreateSpace { account, kind: *kind, name: of, token, meta: &meta }).await;
            drop(lent);
            match created {
                Err(Failure::Broken(reason)) => match this.look_up(&name).await {
                    Ok(Some((space, found))) if found == token => Ok(Some(space.id)),
                    _ => Err(Fault::Ambiguous(reason)),
                },
                created => Ok(created?.map(|(id,)| SpaceId(id.cast_unsigned()))),
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
            let lent = this.pool.lend().await?;
            let Name { account, kind, name: of } = &name;
            let change = ChangeSpace { account, kind: *kind, name: of, meta: &meta, token, expected: &expected };
            let changed = lent.execute(&change).await;
            drop(lent);
            match changed {
                Err(Failure::Broken(reason)) => match this.look_up(&name).await {
                    Ok(Some((_, found))) if found == token => Ok(Changed::Yes),
                    _ => Err(Fault::Ambiguous(reason)),
                },
                Ok(0) => this.why_unchanged(&name).await,
                changed => Ok(changed.map(|_| Changed::Yes)?),
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
            let lent = this.pool.lend().await?;
            let Name { account, kind, name: of } = &name;
            let drop_space = DropSpace { account, kind: *kind, name: of, expected: expected.as_deref() };
            let dropped = lent.query_first(&drop_space).await;
            drop(lent);
            let dropped = dropped?;
            this.core.dropped_spaces.fetch_add(u64::from(dropped.is_some()), Ordering::Relaxed);
            match dropped {
                Some(_) => Ok(Changed::Yes),
                None if expected.is_none() => Ok(Changed::Missing),
                None => this.why_unchanged(&name).await,
            }
        })
        .await
    }

    /// Why a conditional change of a space was not made.
    async fn why_unchanged(&self, name: &Name) -> Result<Changed, Fault> {
        let found = self.look_up(name).await?;
        Ok(if found.is_some() { Changed::Other } else { Changed::Missing })
    }

    /// Makes a change in a task of its own, so that it ends even if the caller goes away, and forgets the space.
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
            this.known.lock().remove(&name);
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
        let kind = match name.kind {
            SpaceKind::Table => 1,
            SpaceKind::Queue => 2,
            SpaceKind::Container => 3,
        };
        Self { account: name.account.into(), kind, name: name.name.into() }
    }
}

fn space(id: i64, meta: &[u8]) -> Space {
    Space { id: SpaceId(id.cast_unsigned()), meta: meta.into() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Together less than the second within which other servers see a change.
const KNOWN_FOR: Duration = Duration::from_millis(800);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(400);
const KNOWN_MAX: usize = 10_000;
