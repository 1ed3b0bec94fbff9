//! Working with a space that was looked up by name, where the lookup may be outdated.
//!
//! Requests use [`Spaces::recent_space`], which costs no round trip but may be up to a second old on an engine that
//! several servers share. Two rules make that safe on every engine, and nothing above has to know which engine it is:
//! a request is refused only by the space as it is now ([`decide_on_space`]), and an operation that finds its space
//! gone is repeated once with a new lookup. The number of a dropped space is never used again, so the first attempt
//! changed nothing.

use crate::contract::{Space, SpaceName, Spaces};
use crate::error::Fault;

/// Decides on a request by the space it is for.
///
/// The remembered space ([`Spaces::recent_space`]) may allow the request, which then costs no further round trip. Only
/// the space as it is now may refuse it, so a change made by another server never causes a wrong refusal. `decide` may
/// run twice.
///
/// # Errors
/// Faults of the engine. The refusal is in the result inside.
pub async fn decide_on_space<E: Spaces, T, R>(
    engine: &E,
    name: SpaceName<'_>,
    decide: impl Fn(Option<&Space>) -> Result<T, R> + Send,
) -> Result<Result<T, R>, Fault> {
    let recent = engine.recent_space(name).await?;
    let decided = decide(recent.as_ref());
    // Only spaces that exist are remembered: one that was not found does not exist now.
    if recent.is_none() || decided.is_ok() {
        return Ok(decided);
    }
    drop(decided);
    let current = engine.space(name).await?;
    Ok(decide(current.as_ref()))
}
