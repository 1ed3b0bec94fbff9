//! Containers: spaces whose meta bytes hold metadata, access and lease. They change by compare-and-swap.

mod meta;

use super::Blobs;
use super::access::Written;
use super::bytes::ByteStore;
use super::change::Attempts;
use super::conditions::{Purpose, check};
use super::lease::{Lease, Leased};
use super::reject::BlobReject;
use crate::contract::{Changed, Engine, Space, SpaceId, SpaceKind, SpaceName};
use crate::error::{EngineError, Fault};
use crate::lookup::decide_on_space;
use larimar_model::blob::{
    AccessConditions, BlobETag, Conditions, ContainerName, LeaseAction, LeaseId, LeaseView, PublicAccess,
};
use larimar_model::{Metadata, Timestamp, limits};
use meta::Meta;

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The number of the space that holds its blobs.
    pub id: SpaceId,
    /// Its name.
    pub name: String,
    /// When it was last changed, to the tick; [`Container::etag`] is another spelling of it.
    pub last_modified: Timestamp,
    /// What anonymous callers may read.
    pub public_access: PublicAccess,
    /// The pairs that its user keeps with it.
    pub metadata: Metadata,
    /// Its access control list in the protocol's XML; empty if none was set.
    pub acl: String,
    /// Its lease at the time of the request.
    pub lease: LeaseView,
}

impl Container {
    /// The etag.
    #[must_use]
    pub const fn etag(&self) -> BlobETag {
        BlobETag(self.last_modified)
    }
}

/// The settings of a new container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewContainer {
    /// The pairs that its user keeps with it.
    pub metadata: Metadata,
    /// What anonymous callers may read.
    pub public_access: PublicAccess,
}

/// The meta bytes of a copy of a container, without its lease.
///
/// # Errors
/// Bytes that cannot be read.
pub fn meta_without_lease(meta: &[u8]) -> Result<Vec<u8>, Fault> {
    Ok(Meta { lease: Lease::None, ..Meta::decode(meta)? }.encode())
}

/// Some containers of an account, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerPage {
    /// The containers.
    pub containers: Vec<Container>,
    /// The name of the next one, if there are more.
    pub next: Option<String>,
}

/// The access control list of a container, for checks of tokens. It may be a moment old ([`Spaces::recent_space`](crate::Spaces::recent_space)).
///
/// # Errors
/// [`BlobReject::ContainerNotFound`] if there is none of this name.
pub async fn find_container_acl(
    engine: &impl Engine,
    account: &str,
    name: &ContainerName,
) -> Result<String, EngineError> {
    let space = engine.recent_space(space_name(account, name.as_str())).await?;
    Ok(meta_of(space.as_ref())?.1.acl)
}

/// The access control list of a container as it is now.
///
/// # Errors
/// [`BlobReject::ContainerNotFound`] if there is none of this name.
pub async fn read_container_acl(
    engine: &impl Engine,
    account: &str,
    name: &ContainerName,
) -> Result<String, EngineError> {
    let space = engine.space(space_name(account, name.as_str())).await?;
    Ok(meta_of(space.as_ref())?.1.acl)
}

impl<E: Engine, B: ByteStore> Blobs<E, B> {
    /// Creates a container.
    ///
    /// # Errors
    /// [`BlobReject::ContainerExists`] if there is one of this name.
    pub async fn create_container(
        &self,
        account: &str,
        name: &ContainerName,
        new: &NewContainer,
        now: Timestamp,
    ) -> Result<Container, EngineError> {
        let now = self.now(now).await?;
        let meta = Meta {
            changed: now,
            public_access: new.public_access,
            lease: Lease::None,
            metadata: new.metadata.clone(),
            acl: String::new(),
        };
        let created = self.engine.create_space(space_name(account, name.as_str()), &meta.encode()).await?;
        let id = created.ok_or(BlobReject::ContainerExists)?;
        self.begin_tag_index(id, now).await;
        Ok(meta.into_container(id, name.as_str().to_owned(), now))
    }

    /// Finds a container to work with its blobs. Its settings may be a moment old ([`Spaces::recent_space`](crate::Spaces::recent_space)).
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`] if there is none of this name.
    pub async fn find_container(
        &self,
        account: &str,
        name: &ContainerName,
        now: Timestamp,
    ) -> Result<Container, EngineError> {
        self.admit_to_container(account, name, now, Ok::<_, EngineError>).await?
    }

    /// Finds a container to work with its blobs, if `admit` allows it by the container's settings. What refuses is a
    /// container as it is now.
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`] if there is none of this name. The refusal of `admit` is in the result inside.
    pub async fn admit_to_container<T: Send, R: Send>(
        &self,
        account: &str,
        name: &ContainerName,
        now: Timestamp,
        admit: impl Fn(Container) -> Result<T, R> + Send + Sync,
    ) -> Result<Result<T, R>, EngineError> {
        let now = self.now(now).await?;
        let decided = decide_on_space(&*self.engine, space_name(account, name.as_str()), |space| {
            let (id, meta) = meta_of(space).map_err(Err)?;
            admit(meta.into_container(id, name.as_str().to_owned(), now)).map_err(Ok)
        });
        match decided.await? {
            Ok(admitted) => Ok(Ok(admitted)),
            Err(Ok(refusal)) => Ok(Err(refusal)),
            Err(Err(error)) => Err(error),
        }
    }

    /// Reads a container's properties, metadata and ACL as they are now, if the lease that is named is its own.
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`], and the lease.
    pub async fn read_container(
        &self,
        account: &str,
        name: &ContainerName,
        lease: Option<LeaseId>,
        now: Timestamp,
    ) -> Result<Container, EngineError> {
        let now = self.now(now).await?;
        let space = self.engine.space(space_name(account, name.as_str())).await?;
        let (id, meta) = meta_of(space.as_ref())?;
        meta.lease.admit_read(lease, now).map_err(BlobReject::ContainerLease)?;
        Ok(meta.into_container(id, name.as_str().to_owned(), now))
    }

    /// Lists the containers whose names begin with `prefix`, from a name on, at most `max`. That of storage analytics'
    /// logs is listed only among the system's.
    ///
    /// # Errors
    /// Faults of the engine.
    pub async fn list_containers(
        &self,
        account: &str,
        (prefix, from): (&str, &str),
        max: usize,
        with_system: bool,
        now: Timestamp,
    ) -> Result<ContainerPage, EngineError> {
        let now = self.now(now).await?;
        // One more to know what is next, and one that may be left out.
        let spaces = self.engine.list_spaces(space_name(account, prefix.max(from)), max.saturating_add(2)).await?;
        let (mut page, mut bytes) = (ContainerPage::default(), 0);
        for (name, space) in spaces {
            if !name.starts_with(prefix) {
                break;
            }
            if name == ContainerName::LOGS && !with_system {
                continue;
            }
            if page.containers.len() == max || bytes > limits::LIST_BYTES_MAX {
                page.next = Some(name);
                break;
            }
            let meta = Meta::decode(&space.meta)?;
            bytes += limits::LIST_ITEM_BYTES + name.len() + space.meta.len();
            page.containers.push(meta.into_container(space.id, name, now));
        }
        Ok(page)
    }

    /// Deletes a container with all its blobs, however many. Their bytes are removed by a [`super::Reclaimer`].
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`], conditions, the lease.
    pub async fn delete_container(
        &self,
        account: &str,
        name: &ContainerName,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let now = self.now(now).await?;
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let admit = |meta: Meta| {
                check(&access.conditions, Some(meta.changed), Purpose::Write)?;
                meta.lease.admit_write(access.lease, now).map_err(BlobReject::ContainerLease)
            };
            let (space, ()) = self.decide_on_container(account, name, admit).await?;
            match self.engine.drop_space_if(space_name(account, name.as_str()), &space.meta).await? {
                Changed::Yes => return Ok(()),
                Changed::Missing => return Err(BlobReject::ContainerNotFound.into()),
                // The settings changed meanwhile; a lease may have been acquired, so decide again.
                Changed::Other => {}
            }
        }
    }

    /// Replaces a container's metadata.
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`], conditions, the lease if one is named.
    pub async fn set_container_metadata(
        &self,
        account: &str,
        name: &ContainerName,
        metadata: &Metadata,
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        let now = self.now(now).await?;
        self.change_container(account, name, |meta| {
            let meta = meta.admitted(access, now)?;
            let written = Written { last_modified: meta.changed };
            Ok((Meta { metadata: metadata.clone(), ..meta }, written))
        })
        .await
    }

    /// Replaces a container's access control list and what anonymous callers may do.
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`], conditions, the lease if one is named.
    pub async fn set_container_acl(
        &self,
        account: &str,
        name: &ContainerName,
        (public_access, acl): (PublicAccess, &str),
        access: &AccessConditions,
        now: Timestamp,
    ) -> Result<Written, EngineError> {
        let now = self.now(now).await?;
        self.change_container(account, name, |meta| {
            let meta = meta.admitted(access, now)?;
            let written = Written { last_modified: meta.changed };
            Ok((Meta { public_access, acl: acl.to_owned(), ..meta }, written))
        })
        .await
    }

    /// Carries out a lease operation on a container. `fresh` is the id of a new lease for which none is proposed.
    ///
    /// # Errors
    /// [`BlobReject::ContainerNotFound`], conditions, and what the lease's state does not allow.
    pub async fn lease_container(
        &self,
        account: &str,
        name: &ContainerName,
        (action, fresh): (LeaseAction, LeaseId),
        conditions: &Conditions,
        now: Timestamp,
    ) -> Result<(Written, Leased), EngineError> {
        let now = self.engine.now(now).await?;
        self.change_container(account, name, |meta| {
            check(conditions, Some(meta.changed), Purpose::Write)?;
            let (lease, leased) = meta.lease.act(action, fresh, now).map_err(BlobReject::ContainerLease)?;
            let written = Written { last_modified: meta.changed };
            Ok((Meta { lease, ..meta }, (written, leased)))
        })
        .await
    }

    /// Runs a decision on a container's settings; returns the space that they were read from, too.
    async fn decide_on_container<T>(
        &self,
        account: &str,
        name: &ContainerName,
        decide: impl Fn(Meta) -> Result<T, BlobReject> + Send + Sync,
    ) -> Result<(Space, T), EngineError> {
        let decided = decide_on_space(&*self.engine, space_name(account, name.as_str()), |space| {
            let decided = decide(meta_of(space)?.1)?;
            Ok((space.cloned().ok_or(BlobReject::ContainerNotFound)?, decided))
        });
        decided.await?
    }

    async fn change_container<T>(
        &self,
        account: &str,
        name: &ContainerName,
        decide: impl Fn(Meta) -> Result<(Meta, T), BlobReject> + Send + Sync,
    ) -> Result<T, EngineError> {
        let mut attempts = Attempts::default();
        loop {
            attempts.next()?;
            let (space, (meta, value)) = self.decide_on_container(account, name, &decide).await?;
            let (name, new) = (space_name(account, name.as_str()), meta.encode());
            match self.engine.change_space(name, &space.meta, &new).await? {
                Changed::Yes => return Ok(value),
                Changed::Missing => return Err(BlobReject::ContainerNotFound.into()),
                Changed::Other => {}
            }
        }
    }
}

/// Creates the container of storage analytics' logs, unless it is there already.
///
/// # Errors
/// Faults of the engine.
pub async fn create_logs(engine: &impl Engine, account: &str, now: Timestamp) -> Result<(), Fault> {
    let meta = Meta {
        changed: engine.now(now).await?.earliest,
        public_access: PublicAccess::None,
        lease: Lease::None,
        metadata: Metadata::default(),
        acl: String::new(),
    };
    let name = space_name(account, ContainerName::LOGS);
    match engine.space(name).await? {
        Some(_) => Ok(()),
        // Another server may have created it meanwhile.
        None => engine.create_space(name, &meta.encode()).await.map(drop),
    }
}

const fn space_name<'a>(account: &'a str, name: &'a str) -> SpaceName<'a> {
    SpaceName { account, kind: SpaceKind::Container, name }
}

/// The number and the settings of a container that was looked up.
fn meta_of(space: Option<&Space>) -> Result<(SpaceId, Meta), EngineError> {
    let space = space.ok_or(BlobReject::ContainerNotFound)?;
    Ok((space.id, Meta::decode(&space.meta)?))
}
