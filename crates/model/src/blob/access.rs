//! What a request requires of a blob or container before it is read or changed.

use super::conditions::Conditions;
use super::lease::LeaseId;
use super::tag_filter::TagCondition;

/// The conditions of a request: conditional headers, lease id, condition on tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConditions {
    /// The conditional headers.
    pub conditions: Conditions,
    /// `x-ms-lease-id`.
    pub lease: Option<LeaseId>,
    /// `x-ms-if-tags`.
    pub if_tags: Option<TagCondition>,
    /// Conditions on the time at which the tier was set; only times are compared.
    pub tier: Conditions,
}
