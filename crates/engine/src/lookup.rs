//! Decisions on what is known of a space, which may be a moment old where several servers share a store.

use crate::contract::{Engine, Space, SpaceName};
use crate::error::Fault;

/// Decides on a space: whether a request is allowed, and what it is to do.
///
/// A request is allowed by what is remembered of the space ([`Engine::recent_space`]) and refused only by what the
/// store says of it now. So another server's change never causes a wrong refusal, and an allowed request costs no
/// further round trip.
///
/// # Errors
/// Faults of the engine. The refusal is in the result inside.
pub async fn decide_on_space<E: Engine, T, R>(
    engine: &E,
    name: SpaceName<'_>,
    decide: impl Fn(Option<&Space>) -> Result<T, R> + Send,
) -> Result<Result<T, R>, Fault> {
    let recent = engine.recent_space(name).await?;
    let decided = decide(recent.as_ref());
    // A space that is not found is not remembered so: it is not there now.
    if !E::IS_SHARED || recent.is_none() || decided.is_ok() {
        return Ok(decided);
    }
    drop(decided);
    let now = engine.space(name).await?;
    Ok(decide(now.as_ref()))
}
