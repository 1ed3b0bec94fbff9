//! Working with a space that was looked up by name, where the lookup may be outdated.
//!
//! Requests use [`Spaces::recent_space`], which costs no round trip but may be up to a second old on an engine that
//! several servers share. Two rules make that safe on every engine, and nothing above has to know which engine it is:
//! a request is refused only by the space as it is now ([`decide_on_space`]), and an operation that finds its space
//! gone is repeated once if the name belongs to another space by now ([`find_replacement`]).

use crate::contract::{Space, SpaceId, SpaceName, Spaces};
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

/// Finds the space to repeat an operation on, after the operation was refused because its space, `gone`, does not
/// exist. `None`: the name belongs to no other space, so the refusal stands.
///
/// The number of a dropped space is never used again, so an operation with an outdated number changes nothing and is
/// safe to repeat. Repeat it once: a second refusal is of a space that existed during the request.
///
/// ```
/// # use larimar_engine::{Engine, Fault, Space, SpaceName, ReadError, find_replacement};
/// # async fn run(engine: &impl Engine, name: SpaceName<'_>, space: Space) -> Result<(), ReadError> {
/// # async fn operation(engine: &impl Engine, space: &Space) -> Result<(), ReadError> { Ok(()) }
/// let mut done = operation(engine, &space).await;
/// if done == Err(ReadError::SpaceGone)
///     && let Some(replacement) = find_replacement(engine, name, space.id).await?
/// {
///     done = operation(engine, &replacement).await;
/// }
/// # done }
/// ```
///
/// # Errors
/// Faults of the engine.
pub async fn find_replacement(
    engine: &impl Spaces,
    name: SpaceName<'_>,
    gone: SpaceId,
) -> Result<Option<Space>, Fault> {
    Ok(engine.space(name).await?.filter(|space| space.id != gone))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryEngine, SpaceKind};

    #[tokio::test]
    async fn only_another_space_of_the_name_replaces_one_that_is_gone() {
        let engine = MemoryEngine::new();
        let name = SpaceName { account: "a", kind: SpaceKind::Table, name: "t" };
        let first = engine.create_space(name, b"").await.expect("no fault").expect("a space");
        assert_eq!(find_replacement(&engine, name, first).await, Ok(None));
        assert_eq!(engine.drop_space(name).await, Ok(true));
        assert_eq!(find_replacement(&engine, name, first).await, Ok(None));
        let second = engine.create_space(name, b"").await.expect("no fault").expect("a space");
        let found = find_replacement(&engine, name, first).await.expect("no fault");
        assert_eq!(found.map(|space| space.id), Some(second));
    }
}
