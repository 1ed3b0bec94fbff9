//! Leases: their ids, lengths, actions, and how they look from outside.

use crate::{Guid, limits};
use std::fmt;
use std::time::Duration;

/// The id of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId(pub Guid);

impl LeaseId {
    /// Reads a Guid in one of the forms the service takes: with or without dashes, and with dashes in braces
    /// or parentheses.
    ///
    /// # Errors
    /// Refuses any other text.
    pub fn parse(text: &str) -> Result<Self, LeaseError> {
        let inner = [('{', '}'), ('(', ')')]
            .into_iter()
            .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
            .unwrap_or(text);
        let is_plain = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let guid = if is_plain {
            let (a, b, c, d, e) = (&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]);
            Guid::parse(&format!("{a}-{b}-{c}-{d}-{e}"))
        } else {
            Guid::parse(inner)
        };
        guid.map(Self).ok_or(LeaseError::Id)
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a part of a lease operation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The text is not a Guid.
    #[error("expected a Guid")]
    Id,
    /// The number of seconds is out of range.
    #[error("expected -1 or 15 to 60 seconds")]
    Duration,
    /// The number of seconds is out of range.
    #[error("expected 0 to 60 seconds")]
    BreakPeriod,
}

/// How long a lease lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseDuration {
    /// Until it is released or broken.
    Infinite,
    /// So many seconds, 15 to 60.
    Seconds(u8),
}

impl LeaseDuration {
    /// Takes `-1` or 15 to 60 seconds.
    ///
    /// # Errors
    /// Refuses any other number.
    pub fn new(seconds: i64) -> Result<Self, LeaseError> {
        match u8::try_from(seconds) {
            _ if seconds == -1 => Ok(Self::Infinite),
            Ok(seconds) if limits::LEASE_SECONDS.contains(&seconds) => Ok(Self::Seconds(seconds)),
            _ => Err(LeaseError::Duration),
        }
    }

    /// `infinite` or `fixed`, as `x-ms-lease-duration` has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Infinite => "infinite",
            Self::Seconds(_) => "fixed",
        }
    }
}

/// How long a broken lease goes on at most, 0 to 60 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BreakPeriod(u8);

impl BreakPeriod {
    /// Takes 0 to 60 seconds.
    ///
    /// # Errors
    /// Refuses any other number.
    pub fn new(seconds: i64) -> Result<Self, LeaseError> {
        match u8::try_from(seconds) {
            Ok(seconds) if seconds <= limits::LEASE_BREAK_SECONDS_MAX => Ok(Self(seconds)),
            _ => Err(LeaseError::BreakPeriod),
        }
    }

    /// The span.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

/// An operation on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Takes the lease.
    Acquire {
        /// For how long.
        duration: LeaseDuration,
        /// Under this id, or one that the service makes up.
        proposed: Option<LeaseId>,
    },
    /// Restarts the lease's time.
    Renew {
        /// The lease's id.
        id: LeaseId,
    },
    /// Gives the lease another id.
    Change {
        /// The lease's id.
        id: LeaseId,
        /// The id it gets.
        proposed: LeaseId,
    },
    /// Ends the lease; another may begin at once.
    Release {
        /// The lease's id.
        id: LeaseId,
    },
    /// Ends the lease without its id, perhaps after some time.
    Break {
        /// How long it goes on at most; without, until it would have ended, and an infinite lease ends at once.
        period: Option<BreakPeriod>,
    },
}

/// Where a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// There is none, and one may be acquired.
    Available,
    /// There is one.
    Leased,
    /// There is one that was broken and goes on for a while.
    Breaking,
    /// It was broken and has ended.
    Broken,
    /// Its time is over.
    Expired,
}

impl LeaseState {
    /// The protocol's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Leased => "leased",
            Self::Breaking => "breaking",
            Self::Broken => "broken",
            Self::Expired => "expired",
        }
    }

    /// Whether writes need the lease's id.
    #[must_use]
    pub const fn status(self) -> LeaseStatus {
        match self {
            Self::Leased | Self::Breaking => LeaseStatus::Locked,
            Self::Available | Self::Broken | Self::Expired => LeaseStatus::Unlocked,
        }
    }
}

/// Whether writes need a lease's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStatus {
    /// They do.
    Locked,
    /// They do not.
    Unlocked,
}

impl LeaseStatus {
    /// The protocol's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Unlocked => "unlocked",
        }
    }
}

/// The visible state of a lease at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// Where it stands; its status follows.
    pub state: LeaseState,
    /// How long it was taken for; only while it is leased.
    pub duration: Option<LeaseDuration>,
}

impl LeaseView {
    /// How something without a lease looks.
    pub const AVAILABLE: Self = Self { state: LeaseState::Available, duration: None };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_in_every_form_and_written_in_one() {
        for text in [
            "c9da6455-213d-42c9-9a79-3e9149a57833",
            "C9DA6455-213D-42C9-9A79-3E9149A57833",
            "c9da6455213d42c99a793e9149a57833",
            "{c9da6455-213d-42c9-9a79-3e9149a57833}",
            "(c9da6455-213d-42c9-9a79-3e9149a57833)",
        ] {
            let id = LeaseId::parse(text).map(|id| id.to_string());
            assert_eq!(id.as_deref(), Ok("c9da6455-213d-42c9-9a79-3e9149a57833"), "{text}");
        }
        for text in ["", "x", "{c9da6455-213d-42c9-9a79-3e9149a57833)", "äääääääääääääääää", "{}"] {
            assert_eq!(LeaseId::parse(text), Err(LeaseError::Id), "{text}");
        }
    }

    #[test]
    fn durations_and_break_periods_at_and_past_their_limits() {
        assert_eq!(LeaseDuration::new(-1), Ok(LeaseDuration::Infinite));
        assert_eq!(LeaseDuration::new(15), Ok(LeaseDuration::Seconds(15)));
        assert_eq!(LeaseDuration::new(60), Ok(LeaseDuration::Seconds(60)));
        for seconds in [-2, 0, 14, 61, 271, i64::MAX] {
            assert_eq!(LeaseDuration::new(seconds), Err(LeaseError::Duration), "{seconds}");
        }
        assert_eq!(BreakPeriod::new(60).map(BreakPeriod::as_duration), Ok(Duration::from_secs(60)));
        assert_eq!(BreakPeriod::new(0).map(BreakPeriod::as_duration), Ok(Duration::ZERO));
        for seconds in [-1, 61, 256] {
            assert_eq!(BreakPeriod::new(seconds), Err(LeaseError::BreakPeriod), "{seconds}");
        }
    }
}
