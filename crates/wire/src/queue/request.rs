//! Parses the head of a request into a typed operation. The body is read later.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::marker;
use crate::operation::{BodyLimit, Endpoint, Facts, Format, Operation};
use crate::queue::MESSAGE_BODY_BYTES_MAX;
use crate::request_head::{RequestHead, name_error, parameter_error};
use crate::sas::Need;
use crate::uri::decode_path;
use larimar_model::queue::QueueName;
use larimar_model::{Guid, Metadata, limits};
use std::borrow::Cow;
use std::time::Duration;

/// A request to the Queue service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the service's reference")]
pub enum QueueOperation {
    ListQueues(ListQueues),
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    CreateQueue(QueueName, Metadata),
    DeleteQueue(QueueName),
    GetMetadata(QueueName),
    SetMetadata(QueueName, Metadata),
    GetAcl(QueueName),
    SetAcl(QueueName),
    /// Without `lives_for` the message never expires.
    PutMessage {
        queue: QueueName,
        hidden_for: Duration,
        lives_for: Option<Duration>,
    },
    GetMessages {
        queue: QueueName,
        count: usize,
        hidden_for: Duration,
    },
    PeekMessages {
        queue: QueueName,
        count: usize,
    },
    ClearMessages(QueueName),
    /// The receipt is the text that the client sent. Without an id: what the client sent is the id of no message.
    DeleteMessage {
        queue: QueueName,
        id: Option<Guid>,
        receipt: String,
    },
    UpdateMessage {
        queue: QueueName,
        id: Option<Guid>,
        receipt: String,
        hidden_for: Duration,
    },
}

/// What List Queues is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQueues {
    /// Only queues whose names begin with this.
    pub prefix: Option<String>,
    /// The marker as it was sent, for the answer.
    pub marker: Option<String>,
    /// The name that the listing resumes at, decoded from the marker.
    pub from: Option<String>,
    /// How many at most, if the request says so.
    pub count_max: Option<usize>,
    /// Whether metadata is listed.
    pub metadata: bool,
}

impl ListQueues {
    /// How many queues a page holds at most.
    #[must_use]
    pub fn page(&self) -> usize {
        self.count_max.unwrap_or(limits::LIST_ITEMS_MAX)
    }
}

impl QueueOperation {
    /// Parses a request; `path` is the raw path below the account.
    ///
    /// # Errors
    /// The protocol's error for an invalid request.
    pub fn parse(head: &RequestHead<'_>, path: &str) -> Result<Self, ErrorReply> {
        head.check_query()?;
        head.number_parameter("timeout", 0..=i64::MAX)?;
        let mut segments = Vec::with_capacity(3);
        for raw in path.split('/').filter(|raw| !raw.is_empty()).take(4) {
            segments.push(decode_path(raw).map_err(|_| ErrorReply::new(ErrorCode::InvalidUri))?);
        }
        match segments.as_slice() {
            [] => service(head),
            [queue] => on_queue(head, queue_name(queue)?),
            [queue, messages] if messages == "messages" => on_messages(head, queue_name(queue)?),
            [queue, messages, id] if messages == "messages" => on_message(head, queue_name(queue)?, id),
            _ => Err(ErrorReply::new(ErrorCode::InvalidUri)),
        }
    }
}

impl Operation for QueueOperation {
    fn facts(&self) -> Facts<'_> {
        let body = BodyLimit::Bytes(MESSAGE_BODY_BYTES_MAX);
        match self {
            Self::ListQueues(_) => Facts::read("ListQueues", Need::LIST_QUEUES).answers(Format::Xml),
            Self::GetServiceProperties => {
                Facts::read("GetQueueServiceProperties", Need::READ_SERVICE).answers(Format::Xml)
            }
            Self::SetServiceProperties => Facts::write("SetQueueServiceProperties", Need::WRITE_SERVICE).body(body),
            Self::GetServiceStats => {
                Facts::read("GetQueueServiceStats", Need::READ_SERVICE).on(Endpoint::Secondary).answers(Format::Xml)
            }
            Self::CreateQueue(..) => Facts::write("CreateQueue", Need::CREATE_QUEUE),
            Self::DeleteQueue(_) => Facts::delete("DeleteQueue", Need::DELETE_QUEUE),
            Self::GetMetadata(queue) => Facts::read("GetQueueMetadata", Need::get_queue_metadata(queue.as_str())),
            Self::SetMetadata(..) => Facts::write("SetQueueMetadata", Need::SET_QUEUE_METADATA),
            Self::GetAcl(_) => Facts::read("GetQueueACL", Need::ACL).answers(Format::Xml),
            Self::SetAcl(_) => Facts::write("SetQueueACL", Need::ACL).body(body),
            Self::PutMessage { queue, .. } => {
                Facts::write("PutMessage", Need::put_message(queue.as_str())).body(body).answers(Format::Xml)
            }
            // Storage analytics count it as a read, but it hides the messages that it returns.
            Self::GetMessages { queue, .. } => Facts::read("GetMessages", Need::process_messages(queue.as_str()))
                .on(Endpoint::Primary)
                .answers(Format::Xml),
            Self::PeekMessages { queue, .. } => {
                Facts::read("PeekMessages", Need::peek_messages(queue.as_str())).answers(Format::Xml)
            }
            Self::ClearMessages(_) => Facts::delete("ClearMessages", Need::CLEAR_MESSAGES),
            Self::DeleteMessage { queue, .. } => Facts::delete("DeleteMessage", Need::process_messages(queue.as_str())),
            Self::UpdateMessage { queue, .. } => {
                Facts::write("UpdateMessage", Need::update_message(queue.as_str())).body(body)
            }
        }
    }
}

fn service(head: &RequestHead<'_>) -> Result<QueueOperation, ErrorReply> {
    match (head.parameter("restype").as_deref(), head.parameter("comp").as_deref(), head.method) {
        (Some("service"), Some("properties"), "GET") => Ok(QueueOperation::GetServiceProperties),
        (Some("service"), Some("properties"), "PUT") => Ok(QueueOperation::SetServiceProperties),
        (Some("service"), Some("stats"), "GET") => Ok(QueueOperation::GetServiceStats),
        (None, Some("list"), "GET") => list_queues(head),
        (Some("service"), Some("properties" | "stats"), _) | (None, Some("list"), _) => Err(unsupported_verb()),
        (_, comp, _) => Err(unknown_component(comp)),
    }
}

fn list_queues(head: &RequestHead<'_>) -> Result<QueueOperation, ErrorReply> {
    let count_max = head.number_parameter("maxresults", 1..=limits::LIST_ITEMS_MAX as i64)?;
    let metadata = match head.parameter("include").as_deref() {
        None => false,
        Some(include) if include.eq_ignore_ascii_case("metadata") => true,
        Some(other) => return Err(parameter_error("include", other, "expected metadata")),
    };
    Ok(QueueOperation::ListQueues(ListQueues {
        prefix: head.parameter("prefix").map(Cow::into_owned),
        marker: head.parameter("marker").map(Cow::into_owned),
        from: head.parameter("marker").as_deref().map(marker::decode).transpose()?,
        count_max: count_max.and_then(|count| usize::try_from(count).ok()),
        metadata,
    }))
}

fn on_queue(head: &RequestHead<'_>, queue: QueueName) -> Result<QueueOperation, ErrorReply> {
    match (head.parameter("comp").as_deref(), head.method) {
        (None, "PUT") => Ok(QueueOperation::CreateQueue(queue, head.metadata()?)),
        (None, "DELETE") => Ok(QueueOperation::DeleteQueue(queue)),
        (Some("metadata"), "GET" | "HEAD") => Ok(QueueOperation::GetMetadata(queue)),
        (Some("metadata"), "PUT") => Ok(QueueOperation::SetMetadata(queue, head.metadata()?)),
        (Some("acl"), "GET" | "HEAD") => Ok(QueueOperation::GetAcl(queue)),
        (Some("acl"), "PUT") => Ok(QueueOperation::SetAcl(queue)),
        (None, "GET" | "HEAD") => Err(unknown_component(None)),
        (None | Some("metadata" | "acl"), _) => Err(unsupported_verb()),
        (comp, _) => Err(unknown_component(comp)),
    }
}

fn on_messages(head: &RequestHead<'_>, queue: QueueName) -> Result<QueueOperation, ErrorReply> {
    if let Some(comp) = head.parameter("comp") {
        return Err(unknown_component(Some(&comp)));
    }
    match head.method {
        "POST" => put_message(head, queue),
        "GET" => {
            let count = head.number_parameter("numofmessages", limits::MESSAGES_OF_A_GET)?.unwrap_or(1);
            let count = usize::try_from(count).unwrap_or(1);
            match head.parameter("peekonly").as_deref() {
                Some(word) if word.eq_ignore_ascii_case("true") => Ok(QueueOperation::PeekMessages { queue, count }),
                Some(word) if !word.eq_ignore_ascii_case("false") => {
                    Err(parameter_error("peekonly", word, "expected true or false"))
                }
                _ => {
                    let hidden_for = hidden_for(head, 1)?.unwrap_or(HIDDEN_BY_GET);
                    Ok(QueueOperation::GetMessages { queue, count, hidden_for })
                }
            }
        }
        "DELETE" => Ok(QueueOperation::ClearMessages(queue)),
        _ => Err(unsupported_verb()),
    }
}

fn put_message(head: &RequestHead<'_>, queue: QueueName) -> Result<QueueOperation, ErrorReply> {
    let hidden_for = hidden_for(head, 0)?.unwrap_or(Duration::ZERO);
    // Since 2017-07-29 messages may live for any time, also for ever.
    let (min, max) = if head.is_since("2017-07-29") { (-1, i64::MAX) } else { (1, WEEK_SECONDS) };
    let lives_for = match head.number_parameter("messagettl", min..=max)? {
        None => Some(Duration::from_secs(WEEK_SECONDS.unsigned_abs())),
        Some(-1) | Some(FOR_EVER_SECONDS..) => None,
        Some(0) => {
            let reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL.";
            return Err(parameter_error("messagettl", "0", reason));
        }
        Some(seconds) => Some(Duration::from_secs(seconds.unsigned_abs())),
    };
    if let Some(given) = head.parameter("visibilitytimeout")
        && !hidden_for.is_zero()
        && lives_for.is_some_and(|lives_for| hidden_for >= lives_for)
    {
        return Err(parameter_error("visibilitytimeout", &given, "messagettl must be greater than visibilitytimeout"));
    }
    Ok(QueueOperation::PutMessage { queue, hidden_for, lives_for })
}

fn on_message(head: &RequestHead<'_>, queue: QueueName, id: &str) -> Result<QueueOperation, ErrorReply> {
    if !matches!(head.method, "PUT" | "DELETE") {
        return Err(unsupported_verb());
    }
    // A plus that was not escaped has been read as a space, and no receipt has spaces.
    let receipt = head.required_parameter("popreceipt")?.replace(' ', "+");
    if head.method == "DELETE" {
        return Ok(QueueOperation::DeleteMessage { queue, id: Guid::parse(id), receipt });
    }
    head.required_parameter("visibilitytimeout")?;
    let hidden_for = hidden_for(head, 0)?.unwrap_or(Duration::ZERO);
    Ok(QueueOperation::UpdateMessage { queue, id: Guid::parse(id), receipt, hidden_for })
}

fn hidden_for(head: &RequestHead<'_>, min: i64) -> Result<Option<Duration>, ErrorReply> {
    let seconds = head.number_parameter("visibilitytimeout", min..=WEEK_SECONDS)?;
    Ok(seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
}

fn queue_name(text: &str) -> Result<QueueName, ErrorReply> {
    text.parse().map_err(name_error)
}

fn unknown_component(comp: Option<&str>) -> ErrorReply {
    match comp {
        Some(comp) => ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, "comp", comp),
        None => ErrorReply::new(ErrorCode::MissingRequiredQueryParameter).with_detail("QueryParameterName", "comp"),
    }
}

fn unsupported_verb() -> ErrorReply {
    ErrorReply::new(ErrorCode::UnsupportedHttpVerb)
}

const WEEK_SECONDS: i64 = limits::MESSAGE_SECONDS_MAX as i64;
/// 7,900 years: the message would live beyond the year 9999, the last of the service.
const FOR_EVER_SECONDS: i64 = 7_900 * 365 * 24 * 60 * 60;
const HIDDEN_BY_GET: Duration = Duration::from_secs(limits::MESSAGE_HIDDEN_SECONDS);

#[cfg(test)]
mod tests;
