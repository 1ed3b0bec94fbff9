//! Why a token, or an operation with it, is refused, and the answer to each.

use crate::error_body::{AUTHENTICATION_DETAIL, ErrorReply};
use crate::error_code::ErrorCode;
use std::net::IpAddr;

/// Why a token, or an operation with it, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SasError {
    /// A field that cannot be read, or does not go with the others.
    #[error("expected a well-formed {0} in the shared access signature")]
    Malformed(&'static str),
    /// A field that neither the token nor its policy has.
    #[error("expected {0} in the shared access signature or its policy")]
    Missing(&'static str),
    /// A token for a container, a blob or a snapshot on a request to something else.
    #[error("The specified signed resource is not allowed for this resource level")]
    ResourceLevel,
    /// A token signed with a user delegation key.
    #[error("expected a signature by an account key, not by a user delegation key")]
    UserDelegation,
    /// The signature fits none of the keys.
    #[error("expected a signature that one of the account's keys makes")]
    Signature,
    /// The token names a policy that its table, queue or container does not have.
    #[error("expected the name of a stored policy of the resource")]
    PolicyUnknown,
    /// The token and its policy both have the field.
    #[error("expected {0} in the shared access signature or in its policy, not in both")]
    PolicyOverlap(&'static str),
    /// The token's time has not begun.
    #[error("expected a shared access signature that is valid by now")]
    NotYetValid,
    /// The token's time is over.
    #[error("expected a shared access signature that has not expired")]
    Expired,
    /// The request comes from another address.
    #[error("expected a request from an allowed address, not from {0}")]
    SourceIp(IpAddr),
    /// The request came without TLS.
    #[error("expected a request over HTTPS")]
    Protocol,
    /// The token is for other services.
    #[error("expected a shared access signature for this service")]
    Service,
    /// The token is for other kinds of resources.
    #[error("expected a shared access signature for this kind of resource")]
    ResourceType,
    /// The token lacks the permission.
    #[error("expected a shared access signature with this permission")]
    Permission,
    /// The token is for another resource or other rows, or the operation needs an account key.
    #[error("expected a shared access signature for this operation and resource")]
    Scope,
    /// The token allows to make blobs but not to write in the place of one.
    #[error("expected a shared access signature that allows to overwrite blobs")]
    Overwrite,
    /// What older versions answer in the place of `Permission` and `Scope`.
    #[error("expected a shared access signature for this operation, by the rules before 2015-04-05")]
    Hidden,
}

impl SasError {
    /// The code to answer with.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Malformed(_)
            | Self::Missing(_)
            | Self::ResourceLevel
            | Self::UserDelegation
            | Self::Signature
            | Self::PolicyUnknown
            | Self::PolicyOverlap(_)
            | Self::NotYetValid
            | Self::Expired => ErrorCode::AuthenticationFailed,
            Self::SourceIp(_) => ErrorCode::AuthorizationSourceIPMismatch,
            Self::Protocol => ErrorCode::AuthorizationProtocolMismatch,
            Self::Service => ErrorCode::AuthorizationServiceMismatch,
            Self::ResourceType => ErrorCode::AuthorizationResourceTypeMismatch,
            Self::Permission => ErrorCode::AuthorizationPermissionMismatch,
            Self::Scope => ErrorCode::AuthorizationFailure,
            Self::Overwrite => ErrorCode::UnauthorizedBlobOverwrite,
            Self::Hidden => ErrorCode::ResourceNotFound,
        }
    }
}

impl From<SasError> for ErrorReply {
    fn from(error: SasError) -> Self {
        match error {
            SasError::SourceIp(address) => Self::with_message(
                error.code(),
                format!("This request is not authorized to perform this operation using this source IP {address}."),
            ),
            _ if error.code() == ErrorCode::AuthenticationFailed => {
                Self::new(error.code()).with_detail(AUTHENTICATION_DETAIL, &error.to_string())
            }
            _ => Self::new(error.code()),
        }
    }
}
