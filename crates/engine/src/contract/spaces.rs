//! Spaces: named sets of rows, each with a number that is never used again and a few bytes for the service.

use super::rows::{Position, RowRef};
use crate::error::{Fault, ReadError};
use std::future::Future;
use std::sync::Arc;

/// The spaces of a store.
pub trait Spaces: Send + Sync + 'static {
    /// The accounts that have a space, in order.
    fn accounts(&self) -> impl Future<Output = Result<Vec<String>, Fault>> + Send;

    /// Creates a space; `None` if the name is taken. The number of the new space was never used before.
    fn create_space(
        &self,
        name: SpaceName<'_>,
        meta: &[u8],
    ) -> impl Future<Output = Result<Option<SpaceId>, Fault>> + Send;

    /// Looks a space up as it is now: every change that was acknowledged before the call is visible.
    fn space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<Option<Space>, Fault>> + Send;

    /// Looks a space up as it was at most a second ago, usually without a round trip. `None` is current: the space does
    /// not exist now. The answer may allow a request, but not refuse one ([`decide_on_space`](crate::decide_on_space)),
    /// and an operation that finds the space gone is repeated with a new lookup.
    fn recent_space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<Option<Space>, Fault>> + Send {
        self.space(name)
    }

    /// Lists spaces of an account and kind in the order of their names, starting at `from`, at most `max`.
    fn list_spaces(
        &self,
        from: SpaceName<'_>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<(String, Space)>, Fault>> + Send;

    /// Replaces a space's meta bytes if they are the expected ones.
    fn change_space(
        &self,
        name: SpaceName<'_>,
        expected: &[u8],
        meta: &[u8],
    ) -> impl Future<Output = Result<Changed, Fault>> + Send;

    /// Gives a space another name and other meta bytes, in one commit. Its number and rows stay; both names have its kind.
    fn rename_space(
        &self,
        from: SpaceName<'_>,
        to: SpaceName<'_>,
        meta: &[u8],
    ) -> impl Future<Output = Result<Renamed, Fault>> + Send;

    /// Drops a space with all its rows, at a cost that does not depend on their number; `false` if it does not exist.
    /// No write to its number succeeds after the acknowledgement. The storage is reclaimed later; that of a container
    /// only after [`Spaces::forget_dropped`], because its rows refer to bytes outside the engine.
    fn drop_space(&self, name: SpaceName<'_>) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// As [`Spaces::drop_space`], if the space's meta bytes are the expected ones.
    fn drop_space_if(
        &self,
        name: SpaceName<'_>,
        expected: &[u8],
    ) -> impl Future<Output = Result<Changed, Fault>> + Send;

    /// Claims the first dropped container after a number, for one minute; each [`Spaces::read_dropped`] extends the claim
    /// by a minute. `None` if there is no other one, or other servers have claimed all of them.
    fn claim_dropped(&self, after: SpaceId) -> impl Future<Output = Result<Option<SpaceId>, Fault>> + Send;

    /// Passes a bounded number of rows of a dropped container to `visit`, in key order, starting at `from`. Returns where to
    /// continue, or `None` at the end; [`ReadError::SpaceGone`] if the caller has not claimed the container.
    fn read_dropped(
        &self,
        space: SpaceId,
        from: &Position,
        visit: impl FnMut(RowRef<'_>) + Send,
    ) -> impl Future<Output = Result<Option<Position>, ReadError>> + Send;

    /// Gives up the rows of a dropped container that the caller has claimed: they refer to nothing any more.
    fn forget_dropped(&self, space: SpaceId) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// The number of a space. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u64);

impl SpaceId {
    /// The space of the service's own rows. It always exists.
    pub const SYSTEM: Self = Self(0);
}

/// What a space is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceKind {
    /// A table of the Table service.
    Table,
    /// A queue of the Queue service.
    Queue,
    /// A container of the Blob service.
    Container,
}

/// The outcome of a conditional change to a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The change was made.
    Yes,
    /// The meta bytes are not the expected ones; the next lookup finds the new ones.
    Other,
    /// The space does not exist.
    Missing,
}

/// The outcome of [`Spaces::rename_space`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// The space has its new name.
    Yes,
    /// The new name is taken; nothing was changed.
    Taken,
    /// The space does not exist.
    Missing,
}

/// The name of a space within an account. Names are compared byte by byte: fold case first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceName<'a> {
    /// The account.
    pub account: &'a str,
    /// What the space is used for.
    pub kind: SpaceKind,
    /// Its name among those of its kind.
    pub name: &'a str,
}

/// A space that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Its number.
    pub id: SpaceId,
    /// Bytes that the service stores with it.
    pub meta: Arc<[u8]>,
}
