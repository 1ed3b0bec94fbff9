//! The key designer: from a description of an entity, its volume, queries and writes to a few costed key designs.
//!
//! [`propose`] is a pure function: no clock, no randomness, no input or output, and a number of steps that is bounded
//! by [`limits`]. The same description always gives the same designs. `docs/designer.md` explains how costs are computed.
//!
//! The flow: `description.rs` is what users write, `text.rs` reads it, `sample.rs` adds properties to it, `model.rs` checks it and derives sizes, `candidates.rs` lists key
//! templates, `search.rs` combines them with the patterns into layouts, `access.rs`, `writes.rs` and `heat.rs` compute
//! what a layout costs, `choose.rs` keeps the Pareto-optimal ones, and `explain.rs` gives the reasons.

mod access;
mod candidates;
mod choose;
mod description;
mod error;
pub mod examples;
mod explain;
mod heat;
mod key;
mod layout;
pub mod limits;
mod model;
mod rate;
mod report;
mod sample;
mod search;
mod text;
pub mod trial;
mod value;
mod writes;

pub use access::{Access, Kind};
pub use description::{Description, Property, Query, RangeOf, Related, Volume, Write, WriteKind};
pub use error::DesignError;
pub use key::{Part, Period, Template};
pub use layout::{Layout, Placement, Role, Structure};
pub use rate::{Rate, Span};
pub use report::{Design, Pattern, Proposal, QueryCost, StructureReport, WriteCost};
pub use sample::Sample;
pub use writes::Consistency;

pub use larimar_model::{EdmType, Value};

use model::Model;

/// Proposes key designs for a description: at most [`limits::DESIGNS_MAX`], the best first.
///
/// ```
/// use larimar_design::{Description, examples};
/// let description = Description::from_toml(examples::find("employees").expect("an example").text)?;
/// let proposal = larimar_design::propose(&description)?;
/// assert!(!proposal.designs.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A description that contradicts itself, names something that it does not have, or exceeds a limit.
pub fn propose(description: &Description) -> Result<Proposal, DesignError> {
    let model = Model::new(description)?;
    let found = search::layouts(&model);
    let designs = choose::designs(&model, &found.layouts);
    Ok(Proposal { designs, evaluations: found.evaluations })
}

/// What a layout of the same properties, queries and writes costs under a description with other numbers.
///
/// # Errors
/// As [`propose`]; a layout that names properties or related records that the description does not have.
pub fn cost(description: &Description, layout: &Layout) -> Result<Design, DesignError> {
    let model = Model::new(description)?;
    let has = |part: &Part| part.property().is_none_or(|it| it == model::GENERATED || model.property(it).is_some());
    let parts = layout.structures.iter().flat_map(|it| it.template.partition.iter().chain(&it.template.row));
    if !parts.into_iter().all(has) || (!layout.is_in_blobs && layout.placements.len() != model.relations.len()) {
        return Err(DesignError::invalid("layout", "expected a layout of the same properties and related records"));
    }
    Ok(Design::new(&model, &heat::Costed::new(&model, layout.clone()), Vec::new()))
}
