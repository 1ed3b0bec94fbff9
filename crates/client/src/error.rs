//! The errors of a call, grouped by who can act on them.

use crate::encryption_error::EncryptionError;
use crate::entity::EntityError;
use crate::table::TransactionError;
use crate::transport::TransportError;
use std::fmt;
use std::time::Duration;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The service refused the request.
    #[error(transparent)]
    Service(Box<ServiceError>),
    /// No answer came.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// No answer came in time. The service may have carried out a write all the same.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// A value cannot be converted to an entity, or an entity to the requested type.
    #[error(transparent)]
    Entity(#[from] EntityError),
    /// The request was not sent because the service would refuse it.
    #[error("{0}")]
    Invalid(String),
    /// A transaction was not sent because the service would refuse one of its operations.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// The answer is not one that this client understands.
    #[error("the answer is not understood: {0}")]
    Answer(String),
    /// The entity was not encrypted, or cannot be decrypted.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// There is no token or signature to send the request with.
    #[error("no credential: {0}")]
    Credential(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A refusal by the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceError {
    /// The HTTP status.
    pub status: u16,
    /// The service's code, such as `EntityAlreadyExists`; empty if it gave none.
    pub code: String,
    /// The service's words.
    pub message: String,
    /// The id under which the service logged the request.
    pub request_id: Option<String>,
    /// Which operation of a transaction failed, counted from 0.
    pub operation: Option<usize>,
    /// Whether the answer to an earlier attempt of the request was lost.
    after_lost_answer: bool,
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, code, message, request_id, operation, after_lost_answer: _ } = self;
        let name = http::StatusCode::from_u16(*status).ok().and_then(|status| status.canonical_reason());
        // A proxy gives no code.
        write!(f, "{status} {}", if code.is_empty() { name.unwrap_or("refused") } else { code })?;
        if let Some(operation) = operation {
            write!(f, " of operation {operation}")?;
        }
        // The rest of the message repeats request id and time.
        if let Some(line) = message.lines().next().filter(|line| !line.is_empty()) {
            write!(f, ": {line}")?;
        }
        request_id.as_ref().map_or(Ok(()), |id| write!(f, " (request {id})"))
    }
}

impl std::error::Error for ServiceError {}

impl Error {
    /// What the service said, if it said anything.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceError> {
        match self {
            Self::Service(error) => Some(error),
            _ => None,
        }
    }

    /// The HTTP status of a refusal.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.service().map(|error| error.status)
    }

    /// The service's code of a refusal, such as `EntityAlreadyExists`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.service().map(|error| error.code.as_str())
    }

    /// The id under which the service logged the refused request.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.service()?.request_id.as_deref()
    }

    /// Which operation of a transaction failed, counted from 0.
    #[must_use]
    pub fn operation(&self) -> Option<usize> {
        match self {
            Self::Transaction(refused) => Some(refused.operation),
            other => other.service()?.operation,
        }
    }

    /// Whether what was to be created exists already, or a condition on the version did not hold.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self.status(), Some(409 | 412))
    }

    /// Whether the entity changed since it had the ETag that the write named.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.status() == Some(412)
    }

    /// Whether the entity, table, queue or blob does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether the entity does not exist, but its table does.
    ///
    /// [`Error::is_not_found`] holds for both. Here a missing table is not a missing entity: what reads or deletes an entity
    /// that others may have deleted continues after this error, and stops at a table that was never created or is
    /// misspelt.
    /// [`Table::get`](crate::Table::get) makes the same distinction.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use larimar_client::{Account, IfMatch};
    /// # let server = larimar_embedded::Larimar::ephemeral().await?;
    /// # let account = Account::connect(&server.connection_string())?;
    /// let employees = account.table("Employees");
    /// let error = employees.delete("Sales", "000123", IfMatch::Any).await.unwrap_err();
    /// assert!(error.is_not_found() && !error.is_entity_not_found()); // there is no table
    ///
    /// employees.create().await?;
    /// let error = employees.delete("Sales", "000123", IfMatch::Any).await.unwrap_err();
    /// assert!(error.is_entity_not_found());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_entity_not_found(&self) -> bool {
        // Without a code it is not the service that speaks, but something on the way to it.
        self.is_not_found() && !matches!(self.code(), Some("TableNotFound" | "") | None)
    }

    /// Whether the service asks to slow down.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        matches!(self.status(), Some(429)) || (self.status() == Some(503) && self.code() != Some("ServiceUnavailable"))
    }

    /// Whether it is unknown if a write was applied: the request may have reached the service and no answer came back,
    /// or none that shows it.
    ///
    /// A refusal is ambiguous if the answer to an earlier attempt was lost and what is stored since is not what that
    /// attempt would have left: others may have changed it before it was read. So a conflict or a change
    /// ([`Error::is_conflict`], [`Error::is_changed`]) that is not ambiguous means that the write was not applied.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Self::Timeout(_) | Self::Answer(_) => true,
            Self::Transport(error) => error.may_have_been_sent(),
            Self::Service(error) => error.after_lost_answer || error.tells_nothing(),
            _ => false,
        }
    }

    /// This error of an attempt, after another one whose answer was lost: it does not prove that nothing was applied.
    pub(crate) fn after_lost_answer(self) -> Self {
        match self {
            Self::Service(mut error) => {
                error.after_lost_answer = true;
                Self::Service(error)
            }
            Self::Transport(error) => Self::Transport(error.into_lost()),
            other => other,
        }
    }
}

impl From<ServiceError> for Error {
    fn from(error: ServiceError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl ServiceError {
    /// Reads a refusal, whichever way the service wrote it.
    pub(crate) fn read(status: u16, headers: &http::HeaderMap, body: &[u8]) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        // A transport of the user's own may hand on more than an error has.
        let body = if body.len() > ERROR_BYTES_MAX { &[] } else { body };
        let (code, message) = from_json(body).or_else(|| from_xml(body)).unwrap_or_default();
        let code = if code.is_empty() { header("x-ms-error-code").unwrap_or_default() } else { code };
        let request_id = header("x-ms-request-id");
        Self { status, code, message, request_id, operation: None, after_lost_answer: false }
    }

    /// Whether the request may have been carried out all the same: the service gave up on it, or a proxy on the
    /// service.
    fn tells_nothing(&self) -> bool {
        match self.status {
            408 | 500 | 502 | 504 => true,
            503 => self.code != "ServerBusy",
            _ => false,
        }
    }

    /// Takes the index of the failed operation off the front of the message, where transactions have it.
    pub(crate) fn with_operation(mut self) -> Self {
        if let Some((index, rest)) = self.message.split_once(':')
            && let Ok(index) = index.parse()
        {
            self.operation = Some(index);
            self.message = rest.to_owned();
        }
        self
    }
}

fn from_json(body: &[u8]) -> Option<(String, String)> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    // Cosmos DB nests as OData 4 does, and its gateway does not nest.
    let error = body.get("odata.error").or_else(|| body.get("error")).unwrap_or(&body);
    let text =
        |value: Option<&serde_json::Value>| value.and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    let message = error.get("message").map(|message| message.get("value").unwrap_or(message));
    Some((text(error.get("code")), text(message)))
}

fn from_xml(body: &[u8]) -> Option<(String, String)> {
    let root = larimar_wire::xml::Element::parse(body).ok()?;
    let text = |name: &str| root.child_text(name).ok().flatten().unwrap_or_default().to_owned();
    let code = text("Code");
    if code.is_empty() {
        return Some((text("code"), text("message")));
    }
    Some((code, text("Message")))
}

/// Far more bytes than the body of an error has. It is read into memory and parsed whole.
pub(crate) const ERROR_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> ServiceError {
        ServiceError::read(409, &http::HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn c5_errors_are_read_in_every_spelling() {
        let json = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"3:It exists.\nRequestId:x"}}}"#;
        let error = read(json).with_operation();
        assert_eq!((error.code.as_str(), error.operation), ("EntityAlreadyExists", Some(3)));
        assert_eq!(error.to_string(), "409 EntityAlreadyExists of operation 3: It exists.");
        let table_xml = r#"<?xml version="1.0" encoding="utf-8"?><m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><m:code>TableAlreadyExists</m:code><m:message xml:lang="en-US">It exists.</m:message></m:error>"#;
        assert_eq!(read(table_xml).code, "TableAlreadyExists");
        let storage_xml = "<?xml version=\"1.0\"?><Error><Code>QueueNotFound</Code><Message>No.</Message></Error>";
        assert_eq!((read(storage_xml).code.as_str(), read(storage_xml).message.as_str()), ("QueueNotFound", "No."));
        assert_eq!((read("<html>").code.as_str(), read("<html>").to_string().as_str()), ("", "409 Conflict"));
        let gateway = r#"{"code":"Unauthorized","message":"No.\r\nActivityId: 1"}"#;
        assert_eq!(read(gateway).to_string(), "409 Unauthorized: No.");
        let terse = r#"{"odata.error":{"code":"ConditionNotMet"}}"#;
        assert_eq!(read(terse).to_string(), "409 ConditionNotMet");
        for other in ["", "null", "7", "[]", "\"text\"", "{}", "<a/>", "\u{FEFF}"] {
            assert_eq!(read(other).to_string(), "409 Conflict", "{other}");
        }
    }
}
