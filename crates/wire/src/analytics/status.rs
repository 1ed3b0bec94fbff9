//! How a request ended, in the words of logs and metrics.

use crate::error_code::ErrorCode;

/// How a request said who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// By a signature with the account's key.
    Key,
    /// Not at all.
    Anonymous,
    /// By a shared access signature.
    Sas,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the service's reference")]
pub enum Outcome {
    Success,
    ThrottlingError,
    ClientTimeoutError,
    ServerTimeoutError,
    ClientOtherError,
    ServerOtherError,
    AuthorizationError,
    NetworkError,
}

impl Authentication {
    /// Every way, in the order of the metrics' columns.
    pub const ALL: [Self; 3] = [Self::Key, Self::Anonymous, Self::Sas];

    /// The word of log entries. The reference writes `SAS`, the service `sas`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "authenticated",
            Self::Anonymous => "anonymous",
            Self::Sas => "sas",
        }
    }
}

impl Outcome {
    /// Every outcome, in the order of the metrics' columns.
    pub const ALL: [Self; 8] = [
        Self::Success,
        Self::ThrottlingError,
        Self::ClientTimeoutError,
        Self::ServerTimeoutError,
        Self::ClientOtherError,
        Self::ServerOtherError,
        Self::AuthorizationError,
        Self::NetworkError,
    ];

    /// The outcome of a request that was answered with this status, and this code if it failed.
    #[must_use]
    pub const fn of(status: u16, code: Option<ErrorCode>) -> Self {
        match (status, code) {
            (503, _) => Self::ThrottlingError,
            (408, _) => Self::ClientTimeoutError,
            (500, Some(ErrorCode::OperationTimedOut)) => Self::ServerTimeoutError,
            (401 | 403, _) => Self::AuthorizationError,
            (500.., _) => Self::ServerOtherError,
            (300..=499, _) => Self::ClientOtherError,
            _ => Self::Success,
        }
    }

    /// The name of this outcome for a request that said in this way who sends it.
    #[must_use]
    pub const fn name(self, authentication: Authentication) -> &'static str {
        NAMES[self as usize][authentication as usize]
    }

    /// Whether such a request is logged: of anonymous ones only those that the owner of the account can act on.
    #[must_use]
    pub const fn is_logged(self, authentication: Authentication, status: u16) -> bool {
        match authentication {
            Authentication::Key | Authentication::Sas => true,
            Authentication::Anonymous => match self {
                Self::Success | Self::ThrottlingError | Self::ServerOtherError => true,
                Self::ClientTimeoutError | Self::ServerTimeoutError => true,
                Self::ClientOtherError => status == 304,
                Self::AuthorizationError | Self::NetworkError => false,
            },
        }
    }

    /// Whether such a request is paid for in the original, and by that whether the service did its part.
    #[must_use]
    pub const fn is_billable(self, authentication: Authentication) -> bool {
        match self {
            Self::ThrottlingError | Self::ServerTimeoutError | Self::ServerOtherError => false,
            Self::AuthorizationError => !matches!(authentication, Authentication::Anonymous),
            Self::Success | Self::ClientTimeoutError | Self::ClientOtherError | Self::NetworkError => true,
        }
    }
}

/// By outcome, then by authentication, in the order of the two lists above.
const NAMES: [[&str; 3]; 8] = [
    ["Success", "AnonymousSuccess", "SASSuccess"],
    ["ThrottlingError", "AnonymousThrottlingError", "SASThrottlingError"],
    ["ClientTimeoutError", "AnonymousClientTimeoutError", "SASClientTimeoutError"],
    ["ServerTimeoutError", "AnonymousServerTimeoutError", "SASServerTimeoutError"],
    ["ClientOtherError", "AnonymousClientOtherError", "SASClientOtherError"],
    ["ServerOtherError", "AnonymousServerOtherError", "SASServerOtherError"],
    ["AuthorizationError", "AnonymousAuthorizationError", "SASAuthorizationError"],
    ["NetworkError", "AnonymousNetworkError", "SASNetworkError"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_follow_status_and_code() {
        for (status, code, outcome) in [
            (200, None, Outcome::Success),
            (202, None, Outcome::Success),
            (304, Some(ErrorCode::ConditionNotMet), Outcome::ClientOtherError),
            (404, Some(ErrorCode::ResourceNotFound), Outcome::ClientOtherError),
            (409, Some(ErrorCode::EntityAlreadyExists), Outcome::ClientOtherError),
            (401, Some(ErrorCode::NoAuthenticationInformation), Outcome::AuthorizationError),
            (403, Some(ErrorCode::AuthenticationFailed), Outcome::AuthorizationError),
            (408, Some(ErrorCode::OperationTimedOut), Outcome::ClientTimeoutError),
            (500, Some(ErrorCode::OperationTimedOut), Outcome::ServerTimeoutError),
            (500, Some(ErrorCode::InternalError), Outcome::ServerOtherError),
            (503, Some(ErrorCode::ServerBusy), Outcome::ThrottlingError),
        ] {
            assert_eq!(Outcome::of(status, code), outcome, "{status} {code:?}");
        }
    }

    #[test]
    fn names_are_the_outcome_behind_who_asked() {
        for outcome in Outcome::ALL {
            let plain = outcome.name(Authentication::Key);
            assert_eq!(plain, format!("{outcome:?}"));
            assert_eq!(outcome.name(Authentication::Anonymous), format!("Anonymous{plain}"));
            assert_eq!(outcome.name(Authentication::Sas), format!("SAS{plain}"));
        }
    }

    #[test]
    fn anonymous_mistakes_are_not_logged() {
        for (status, is_logged) in [(200, true), (304, true), (404, false), (401, false), (408, true), (503, true)] {
            let outcome = Outcome::of(status, None);
            assert_eq!(outcome.is_logged(Authentication::Anonymous, status), is_logged, "{status}");
            assert!(outcome.is_logged(Authentication::Key, status) && outcome.is_logged(Authentication::Sas, status));
        }
    }
}
