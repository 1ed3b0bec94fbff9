//! Asks the owners of payloads to release those that no row points to.

use larimar_engine::blob::bytes::{Extent, Owner, Owners};
use larimar_engine::{Fault, SpaceId};

/// A payload that may be garbage.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) space: SpaceId,
    pub(crate) blob: String,
    pub(crate) extent: Extent,
}

/// The payloads that their owners release. Asks each owner once about all of its payloads.
pub(crate) async fn release_unowned(
    owners: &impl Owners,
    mut candidates: Vec<Candidate>,
) -> Result<Vec<Extent>, Fault> {
    candidates.sort_by(|a, b| (a.space, &a.blob, a.extent).cmp(&(b.space, &b.blob, b.extent)));
    let mut garbage = Vec::new();
    for group in candidates.chunk_by(|a, b| (a.space, &a.blob) == (b.space, &b.blob)) {
        let [first, ..] = group else { continue };
        let extents: Vec<_> = group.iter().map(|candidate| candidate.extent).collect();
        let released = owners.release(Owner { space: first.space, blob: &first.blob }, &extents).await?;
        // A payload without an answer is kept.
        garbage.extend(extents.into_iter().zip(released).filter(|(_, released)| *released).map(|(extent, _)| extent));
    }
    Ok(garbage)
}
