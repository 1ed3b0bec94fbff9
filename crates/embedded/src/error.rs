//! Why a server did not start.

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No port could be had on the loopback address.
    #[error("expected a free port on the loopback address")]
    Socket(#[source] std::io::Error),
    /// The name of the account cannot be part of an address.
    #[error("expected an account name of 1 to 63 ASCII letters, digits, '-' or '_', not {0:?}")]
    AccountName(String),
    /// The key of the account is not Base64, or empty.
    #[error("expected an account key in Base64")]
    AccountKey,
}
