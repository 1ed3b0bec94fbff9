//! Leases of containers and blobs: a pure state machine, driven by actions and the time.
//!
//! The table is that of the service's reference ("Lease Blob"). A lease expires or breaks by the clock alone: nothing
//! is written when it does, and each request compares the stored times with its own.

use super::reject::LeaseReject;
use crate::contract::Moment;
use larimar_model::blob::{BreakPeriod, LeaseAction, LeaseDuration, LeaseId, LeaseState, LeaseView};
use larimar_model::{Guid, Timestamp};
use std::time::Duration;

/// A stored lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lease {
    /// There is none.
    #[default]
    None,
    /// Acquired: leased until some time, expired after it.
    Held {
        /// Its id.
        id: LeaseId,
        /// The duration that it was acquired for.
        duration: LeaseDuration,
        /// When it expires; `None` for an infinite lease.
        until: Option<Timestamp>,
    },
    /// Broken by a request: breaking until some time, broken after it.
    Broken {
        /// Its id.
        id: LeaseId,
        /// When it ends.
        until: Timestamp,
    },
}

/// The result of a lease operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The lease's id; none after a release.
    pub id: Option<LeaseId>,
    /// After a break: the seconds until the lease has ended.
    pub seconds_left: Option<u64>,
}

impl Lease {
    /// The state at a time.
    pub(crate) fn view(&self, now: Timestamp) -> LeaseView {
        let state = match self {
            Self::None => LeaseState::Available,
            Self::Held { until, .. } if until.is_none_or(|until| now < until) => LeaseState::Leased,
            Self::Held { .. } => LeaseState::Expired,
            Self::Broken { until, .. } if now < *until => LeaseState::Breaking,
            Self::Broken { .. } => LeaseState::Broken,
        };
        let duration = match self {
            Self::Held { duration, .. } if state == LeaseState::Leased => Some(*duration),
            _ => None,
        };
        LeaseView { state, duration }
    }

    /// Carries out a lease operation. `fresh` is the id of a new lease if none was proposed. If the time is not known
    /// exactly, no lease ends too early: existing leases are compared with the earliest possible time, and new ones
    /// start at the latest.
    pub(crate) fn act(self, action: LeaseAction, fresh: LeaseId, now: Moment) -> Result<(Self, Leased), LeaseReject> {
        match action {
            LeaseAction::Acquire { duration, proposed } => self.acquire(duration, proposed, fresh, now),
            LeaseAction::Renew { id } => self.renew(id, now),
            LeaseAction::Change { id, proposed } => self.change(id, proposed, now.earliest),
            LeaseAction::Release { id } => match self.id() {
                Some(own) if own == id => Ok((Self::None, Leased { id: None, seconds_left: None })),
                _ => Err(LeaseReject::IdMismatchWithLeaseOperation),
            },
            LeaseAction::Break { period } => self.end(period, now),
        }
    }

    /// Checks that a write is allowed. A write then removes a lease that has ended: [`Lease::after_write`].
    pub(crate) fn admit_write(&self, given: Option<LeaseId>, now: Timestamp) -> Result<(), LeaseReject> {
        match self.view(now).state {
            LeaseState::Leased | LeaseState::Breaking if given.is_none() => Err(LeaseReject::IdMissing),
            _ => self.admit_read(given, now),
        }
    }

    /// Checks that a read is allowed: it need not name the lease, but a named lease must be active.
    pub(crate) fn admit_read(&self, given: Option<LeaseId>, now: Timestamp) -> Result<(), LeaseReject> {
        let Some(given) = given else { return Ok(()) };
        match self.view(now).state {
            LeaseState::Available => Err(LeaseReject::NotPresent),
            LeaseState::Leased | LeaseState::Breaking if self.id() == Some(given) => Ok(()),
            LeaseState::Leased | LeaseState::Breaking => Err(LeaseReject::IdMismatch),
            LeaseState::Broken | LeaseState::Expired if self.id() == Some(given) => Err(LeaseReject::Lost),
            LeaseState::Broken | LeaseState::Expired => Err(LeaseReject::IdMismatch),
        }
    }

    /// The lease after a write: one that has ended cannot be renewed after another write.
    pub(crate) fn after_write(self, now: Timestamp) -> Self {
        match self.view(now).state {
            LeaseState::Broken | LeaseState::Expired => Self::None,
            LeaseState::Available | LeaseState::Leased | LeaseState::Breaking => self,
        }
    }

    fn id(&self) -> Option<LeaseId> {
        match self {
            Self::None => None,
            Self::Held { id, .. } | Self::Broken { id, .. } => Some(*id),
        }
    }

    fn acquire(
        self,
        duration: LeaseDuration,
        proposed: Option<LeaseId>,
        fresh: LeaseId,
        now: Moment,
    ) -> Result<(Self, Leased), LeaseReject> {
        let is_own = proposed.is_some() && proposed == self.id();
        match self.view(now.earliest).state {
            LeaseState::Leased if !is_own => return Err(LeaseReject::AlreadyPresent),
            LeaseState::Breaking if is_own => return Err(LeaseReject::BreakingAndCannotBeAcquired),
            LeaseState::Breaking => return Err(LeaseReject::AlreadyPresent),
            LeaseState::Available | LeaseState::Leased | LeaseState::Broken | LeaseState::Expired => {}
        }
        Ok(held(proposed.unwrap_or(fresh), duration, now.latest))
    }

    fn renew(self, id: LeaseId, now: Moment) -> Result<(Self, Leased), LeaseReject> {
        match self {
            Self::Held { id: own, duration, .. } if own == id => Ok(held(id, duration, now.latest)),
            Self::Broken { id: own, .. } if own == id => Err(LeaseReject::BrokenAndCannotBeRenewed),
            Self::None | Self::Held { .. } | Self::Broken { .. } => Err(LeaseReject::IdMismatchWithLeaseOperation),
        }
    }

    fn change(self, id: LeaseId, proposed: LeaseId, now: Timestamp) -> Result<(Self, Leased), LeaseReject> {
        match (self.view(now).state, self) {
            // A change that is sent again names an id that the lease has already.
            (LeaseState::Leased, Self::Held { id: own, duration, until }) if own == id || own == proposed => {
                let leased = Leased { id: Some(proposed), seconds_left: None };
                Ok((Self::Held { id: proposed, duration, until }, leased))
            }
            (LeaseState::Breaking, _) if self.id() == Some(id) => Err(LeaseReject::BreakingAndCannotBeChanged),
            (LeaseState::Leased | LeaseState::Breaking, _) => Err(LeaseReject::IdMismatchWithLeaseOperation),
            (LeaseState::Available | LeaseState::Broken | LeaseState::Expired, _) => {
                Err(LeaseReject::NotPresentWithLeaseOperation)
            }
        }
    }

    fn end(self, period: Option<BreakPeriod>, now: Moment) -> Result<(Self, Leased), LeaseReject> {
        let asked = period.map(|period| match period.as_duration() {
            Duration::ZERO => ENDED,
            span => now.latest.after(span),
        });
        let (id, until) = match (self.view(now.earliest).state, self) {
            (LeaseState::Available, _) | (_, Self::None) => return Err(LeaseReject::NotPresentWithLeaseOperation),
            (LeaseState::Leased, Self::Held { id, until, .. }) => {
                (id, [asked, until].into_iter().flatten().min().unwrap_or(ENDED))
            }
            (LeaseState::Breaking, Self::Broken { id, until }) => (id, asked.map_or(until, |asked| asked.min(until))),
            (_, Self::Held { id, .. } | Self::Broken { id, .. }) => (id, ENDED),
        };
        let left = Duration::from_nanos(until.ticks().saturating_sub(now.latest.ticks()).saturating_mul(100));
        // The time left is rounded up to whole seconds.
        let seconds_left = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        Ok((Self::Broken { id, until }, Leased { id: None, seconds_left: Some(seconds_left) }))
    }

    /// Appends the stored form: a tag, then the fields.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => out.push(0),
            Self::Held { id, duration, until } => {
                let seconds = match duration {
                    LeaseDuration::Infinite => 0,
                    LeaseDuration::Seconds(seconds) => *seconds,
                };
                out.extend_from_slice(&[1, seconds]);
                out.extend_from_slice(&id.0.0);
                out.extend_from_slice(&until.map_or(0, Timestamp::ticks).to_be_bytes());
            }
            Self::Broken { id, until } => {
                out.push(2);
                out.extend_from_slice(&id.0.0);
                out.extend_from_slice(&until.ticks().to_be_bytes());
            }
        }
    }

    /// Takes a stored lease off the front of bytes.
    pub(crate) fn decode(input: &mut &[u8]) -> Option<Self> {
        let mut take = |count: usize| {
            let (head, rest) = input.split_at_checked(count)?;
            *input = rest;
            Some(head)
        };
        let tag = *take(1)?.first()?;
        if tag == 0 {
            return Some(Self::None);
        }
        let seconds = if tag == 1 { *take(1)?.first()? } else { 0 };
        let id = LeaseId(Guid(take(16)?.try_into().ok()?));
        let until = Timestamp::from_ticks(u64::from_be_bytes(take(8)?.try_into().ok()?));
        match (tag, seconds) {
            (1, 0) => Some(Self::Held { id, duration: LeaseDuration::Infinite, until: None }),
            (1, _) => Some(Self::Held { id, duration: LeaseDuration::Seconds(seconds), until: Some(until) }),
            (2, _) => Some(Self::Broken { id, until }),
            _ => None,
        }
    }
}

/// The end of a lease that was broken at once: in the past for every server, whatever the error of its clock.
const ENDED: Timestamp = Timestamp::from_ticks(0);

fn held(id: LeaseId, duration: LeaseDuration, now: Timestamp) -> (Lease, Leased) {
    let until = match duration {
        LeaseDuration::Infinite => None,
        LeaseDuration::Seconds(seconds) => Some(now.after(Duration::from_secs(u64::from(seconds)))),
    };
    (Lease::Held { id, duration, until }, Leased { id: Some(id), seconds_left: None })
}

#[cfg(test)]
mod tests;
