//! What may be derived from a primary.

use crate::Result;
use larimar_client::{BoxFuture, DynamicEntity};
use std::collections::BTreeSet;
use std::fmt;

/// Data that is derived from primaries and kept in places of its own.
pub(crate) trait Derived: Send + Sync + fmt::Debug {
    /// Its name in intents.
    fn name(&self) -> &str;

    fn create_if_missing(&self) -> BoxFuture<'_, Result<()>>;

    /// The places that a primary has, as this derived data writes them down.
    fn places(&self, primary: &DynamicEntity) -> Result<BTreeSet<String>>;

    /// Brings a place to what the primary says, unless it has got at least there; returns whether it changed anything.
    fn bring<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<bool>>;

    /// Removes what keeps late writes from bringing a place back.
    fn forget<'a>(&'a self, touch: Touch<'a>) -> BoxFuture<'a, Result<()>>;

    /// Whether places are made before the primary is written, so that an intent must clean up after a failed write.
    fn is_prepared(&self) -> bool {
        false
    }

    /// A page of all there is, from the start or from where the last one ended.
    fn scan<'a>(&'a self, from: Option<String>) -> BoxFuture<'a, Result<(Vec<Found>, Option<String>)>>;
}

/// A place that is brought to what a primary says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch<'a> {
    /// The primary's keys.
    pub(crate) partition: &'a str,
    pub(crate) row: &'a str,
    /// The primary's version.
    pub(crate) version: i64,
    /// The place.
    pub(crate) place: &'a str,
    /// The primary, if it has this place.
    pub(crate) primary: Option<&'a DynamicEntity>,
}

/// A place that a scan found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The primary's keys.
    pub(crate) partition: String,
    pub(crate) row: String,
    pub(crate) version: i64,
    pub(crate) is_dead: bool,
    pub(crate) place: String,
}
