//! Why a command failed, and the exit code that it ends with.

use larimar_client::AccountError;
use std::fmt::Display;

/// The result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line, or a file that it names, asks for something that cannot be done.
    #[error("{0}")]
    Usage(String),
    /// The flags or variables that name the account are wrong.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// Nothing listens at the address of a server on this machine.
    #[error("no server listens at {address}; start one with `larimar`, or name another {how}")]
    NotRunning {
        /// The address.
        address: String,
        /// How the command takes another account: `with --endpoint`.
        how: &'static str,
    },
    /// What the command works on does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The service refused a request, or could not be reached.
    #[error("{}", explained(.0))]
    Client(#[from] larimar_client::Error),
    /// A file, or standard input or output.
    #[error("{what}: {source}")]
    Io {
        /// The file, or what was done with it.
        what: String,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The program that reads the output has closed it, as `head` does. This is not a failure.
    #[error("the reader of the output closed it")]
    OutputClosed,
    /// The command did its work, but for some rows of its input.
    #[error("{0}")]
    Refused(String),
    /// A signal ended the command.
    #[error("interrupted")]
    Interrupted,
    /// Another failure, described in full.
    #[error("{0}")]
    Failed(String),
}

impl Error {
    /// An error of reading or writing, with what was read or written.
    pub fn io(what: impl Display, source: std::io::Error) -> Self {
        Self::Io { what: what.to_string(), source }
    }

    /// An error of writing to standard output. A reader that is gone has an error of its own.
    pub(crate) fn output(source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::io("standard output", source),
        }
    }

    /// The exit code of the process (`docs/commands.md` lists them).
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Usage(_) | Self::Account(_) => 2,
            Self::NotFound(_) => 3,
            Self::Client(error) if error.is_not_found() => 3,
            Self::Client(error) if matches!(error.status(), Some(401 | 403)) => 4,
            Self::Client(larimar_client::Error::Credential(_)) => 4,
            Self::Refused(_) => 5,
            Self::Interrupted => 130,
            Self::NotRunning { .. } | Self::Client(_) | Self::Io { .. } | Self::Failed(_) => 1,
        }
    }
}

/// An error of the client, with what the user can do about it.
fn explained(error: &larimar_client::Error) -> String {
    let advice = match (error.status(), error.code()) {
        (Some(401), _) | (Some(403), Some("AuthenticationFailed")) => {
            "; check the account's name and key, or the signature"
        }
        _ => "",
    };
    format!("{error}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_not_a_failure() {
        let closed = Error::output(std::io::ErrorKind::BrokenPipe.into());
        assert_eq!((closed.exit_code(), matches!(closed, Error::OutputClosed)), (0, true));
        let full = Error::output(std::io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit_code(), 1);
        assert!(full.to_string().starts_with("standard output: "), "{full}");
    }

    #[test]
    fn wrong_usage_and_interrupts_have_codes_of_their_own() {
        assert_eq!(Error::Usage("x".into()).exit_code(), 2);
        assert_eq!(Error::Account(AccountError::NoCredential).exit_code(), 2);
        assert_eq!(Error::NotFound("x".into()).exit_code(), 3);
        assert_eq!(Error::Interrupted.exit_code(), 130);
    }
}
