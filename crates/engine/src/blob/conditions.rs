//! Conditional headers: whether they hold, and the rejection if they do not.
//!
//! The rules are the service's ("Specifying conditional headers for Blob service operations"): a read needs `If-Match`,
//! `If-Unmodified-Since`, and one of `If-None-Match` and `If-Modified-Since`; for a write, an etag takes precedence
//! over a date.

use super::reject::{BlobReject, SourceCondition};
use larimar_model::Timestamp;
use larimar_model::blob::{BlobETag, Conditions, ETagCondition, TagCondition, Tags};

/// What the conditions apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A read: unchanged content is answered with 304.
    Read,
    /// A change of an existing blob or container.
    Write,
    /// A write that creates the blob if it does not exist.
    Create,
    /// The source of a copy.
    Source,
}

/// Checks conditions on something last changed at `changed`, or on something that does not exist.
pub(crate) fn check(conditions: &Conditions, changed: Option<Timestamp>, purpose: Purpose) -> Result<(), BlobReject> {
    let Some(changed) = changed else {
        // What does not exist has no etag and no time.
        return if conditions.if_match.is_some() { Err(unmet(purpose, SourceCondition::IfMatch)) } else { Ok(()) };
    };
    match purpose {
        Purpose::Read | Purpose::Source => check_read(conditions, changed, purpose),
        Purpose::Write | Purpose::Create => check_write(conditions, changed, purpose),
    }
}

/// Checks a condition on the tags of an existing blob. The error code is the same for reads, writes and sources
/// (recorded).
pub(crate) fn check_tags(condition: Option<&TagCondition>, tags: &Tags) -> Result<(), BlobReject> {
    match condition {
        Some(condition) if !condition.admits(tags) => Err(BlobReject::TagConditionNotMet),
        _ => Ok(()),
    }
}

fn check_read(conditions: &Conditions, changed: Timestamp, purpose: Purpose) -> Result<(), BlobReject> {
    let etag = BlobETag(changed);
    let is_other = conditions.if_match.is_some_and(|wanted| !wanted.matches(etag));
    let is_newer = conditions.if_unmodified_since.is_some_and(|since| second(changed) > since);
    if is_other {
        return Err(unmet(purpose, SourceCondition::IfMatch));
    }
    if is_newer {
        return Err(unmet(purpose, SourceCondition::IfUnmodifiedSince));
    }
    let is_new = conditions.if_none_match.map(|known| !known.matches(etag));
    let is_later = conditions.if_modified_since.map(|since| second(changed) > since);
    match (is_new, is_later) {
        (Some(false), Some(false) | None) | (None, Some(false)) if purpose == Purpose::Read => {
            Err(BlobReject::NotModified)
        }
        (Some(false), Some(false) | None) | (None, Some(false)) => Err(unmet(purpose, SourceCondition::NotModified)),
        _ => Ok(()),
    }
}

fn check_write(conditions: &Conditions, changed: Timestamp, purpose: Purpose) -> Result<(), BlobReject> {
    let etag = BlobETag(changed);
    match conditions.if_none_match {
        Some(ETagCondition::Any) if purpose == Purpose::Create => return Err(BlobReject::BlobExists),
        // The service ignores it for other writes, which need an existing blob anyway.
        Some(ETagCondition::Any) | None => {}
        Some(known) if known.matches(etag) => return Err(BlobReject::ConditionNotMet),
        Some(_) => {}
    }
    if conditions.if_match.is_some_and(|wanted| !wanted.matches(etag)) {
        return Err(BlobReject::ConditionNotMet);
    }
    let is_old = conditions.if_modified_since.is_some_and(|since| second(changed) <= since);
    let is_newer = conditions.if_unmodified_since.is_some_and(|since| second(changed) > since);
    if (is_old && conditions.if_none_match.is_none()) || (is_newer && conditions.if_match.is_none()) {
        return Err(BlobReject::ConditionNotMet);
    }
    Ok(())
}

const fn unmet(purpose: Purpose, condition: SourceCondition) -> BlobReject {
    match purpose {
        Purpose::Source => BlobReject::SourceConditionNotMet(condition),
        Purpose::Read | Purpose::Write | Purpose::Create => BlobReject::ConditionNotMet,
    }
}

/// A time cut to whole seconds, the precision of headers.
const fn second(time: Timestamp) -> Timestamp {
    Timestamp::from_ticks(time.ticks() - time.ticks() % 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn changed() -> Timestamp {
        Timestamp::EDM_MIN.after(Duration::from_millis(10_500))
    }

    fn at(seconds: u64) -> Option<Timestamp> {
        Some(Timestamp::EDM_MIN.after(Duration::from_secs(seconds)))
    }

    fn judged(conditions: Conditions) -> [Result<(), BlobReject>; 4] {
        [Purpose::Read, Purpose::Write, Purpose::Create, Purpose::Source]
            .map(|purpose| check(&conditions, Some(changed()), purpose))
    }

    const UNMET: Result<(), BlobReject> = Err(BlobReject::ConditionNotMet);
    const OTHER: Result<(), BlobReject> = Err(BlobReject::SourceConditionNotMet(SourceCondition::IfMatch));
    const NEWER: Result<(), BlobReject> = Err(BlobReject::SourceConditionNotMet(SourceCondition::IfUnmodifiedSince));
    const SOURCE: Result<(), BlobReject> = Err(BlobReject::SourceConditionNotMet(SourceCondition::NotModified));
    const SAME: Result<(), BlobReject> = Err(BlobReject::NotModified);
    const GOOD: Result<(), BlobReject> = Ok(());

    #[test]
    fn each_condition_alone() {
        let own = Some(ETagCondition::Is(BlobETag(changed())));
        let other = Some(ETagCondition::Foreign);
        let any = Some(ETagCondition::Any);
        let none = Conditions::NONE;
        for (conditions, outcomes) in [
            (none, [GOOD; 4]),
            (Conditions { if_match: own, ..none }, [GOOD; 4]),
            (Conditions { if_match: any, ..none }, [GOOD; 4]),
            (Conditions { if_match: other, ..none }, [UNMET, UNMET, UNMET, OTHER]),
            (Conditions { if_none_match: own, ..none }, [SAME, UNMET, UNMET, SOURCE]),
            (Conditions { if_none_match: other, ..none }, [GOOD; 4]),
            (Conditions { if_none_match: any, ..none }, [SAME, GOOD, Err(BlobReject::BlobExists), SOURCE]),
            (Conditions { if_modified_since: at(9), ..none }, [GOOD; 4]),
            (Conditions { if_modified_since: at(10), ..none }, [SAME, UNMET, UNMET, SOURCE]),
            (Conditions { if_unmodified_since: at(10), ..none }, [GOOD; 4]),
            (Conditions { if_unmodified_since: at(9), ..none }, [UNMET, UNMET, UNMET, NEWER]),
        ] {
            assert_eq!(judged(conditions), outcomes, "{conditions:?}");
        }
    }

    #[test]
    fn etags_go_before_dates() {
        let own = Some(ETagCondition::Is(BlobETag(changed())));
        let other = Some(ETagCondition::Foreign);
        let none = Conditions::NONE;
        let new_but_old = Conditions { if_none_match: other, if_modified_since: at(10), ..none };
        assert_eq!(judged(new_but_old), [GOOD; 4]);
        let known_but_later = Conditions { if_none_match: own, if_modified_since: at(9), ..none };
        assert_eq!(judged(known_but_later), [GOOD, UNMET, UNMET, GOOD]);
        let own_but_newer = Conditions { if_match: own, if_unmodified_since: at(9), ..none };
        assert_eq!(judged(own_but_newer), [UNMET, GOOD, GOOD, NEWER]);
    }

    #[test]
    fn nothing_matches_no_etag() {
        let none = Conditions::NONE;
        for conditions in [none, Conditions { if_none_match: Some(ETagCondition::Any), ..none }] {
            assert_eq!(check(&conditions, None, Purpose::Create), GOOD);
        }
        let any = Conditions { if_match: Some(ETagCondition::Any), ..none };
        assert_eq!(check(&any, None, Purpose::Create), UNMET);
    }
}
