//! Messages: what a queue hands out, and how they are read from XML.

use super::{Encoding, whole_seconds};
use crate::{Error, Result, Timestamp};
use larimar_wire::xml::{self, Element};
use std::time::Duration;

/// A message that is the caller's to delete or to update, until it is visible to others again.
///
/// The receipt proves it, and becomes invalid when another consumer receives the message. A call with a stale
/// receipt fails with the [code](Error::code) `PopReceiptMismatch` or `MessageNotFound`; a message that is gone, with
/// the latter. Either way the message no longer belongs to the caller, and there is nothing left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The message's id.
    pub id: String,
    /// What proves that the message is the caller's. An update replaces it.
    pub pop_receipt: String,
    /// The text.
    pub text: String,
    /// Whether the text is given as it came because it is not in base64, on a queue where it should be
    /// ([`Queue::with_base64`](crate::Queue::with_base64)).
    pub is_raw: bool,
    /// How often the message was received, this time included: a message that is delivered again and again is one that
    /// no consumer can work on.
    pub dequeue_count: u32,
    /// When it was put.
    pub inserted_on: Timestamp,
    /// When it will be gone; `None` for a message that stays.
    pub expires_on: Option<Timestamp>,
    /// Until when it is hidden from others.
    pub next_visible_on: Timestamp,
}

/// A message that was looked at and left in its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekedMessage {
    /// The message's id.
    pub id: String,
    /// The text.
    pub text: String,
    /// Whether the text is given as it came: see [`Message::is_raw`].
    pub is_raw: bool,
    /// How often the message was received.
    pub dequeue_count: u32,
    /// When it was put.
    pub inserted_on: Timestamp,
    /// When it will be gone; `None` for a message that stays.
    pub expires_on: Option<Timestamp>,
}

/// How a message is put.
///
/// ```
/// use larimar_client::PutOptions;
/// use std::time::Duration;
/// let in_a_minute = PutOptions::default().hidden_for(Duration::from_secs(60)).lives_forever();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct PutOptions {
    pub(super) hidden_for: Option<Duration>,
    pub(super) lives_for: Lifetime,
}

/// How long a message stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// As long as the service lets it: seven days.
    #[default]
    Usual,
    Span(Duration),
    Forever,
}

impl PutOptions {
    /// Hides the message at first, for at most seven days and less than it lives.
    pub const fn hidden_for(mut self, time: Duration) -> Self {
        self.hidden_for = Some(time);
        self
    }

    /// Lets the message expire after this time, a second at least (default: seven days).
    pub const fn lives_for(mut self, time: Duration) -> Self {
        self.lives_for = Lifetime::Span(time);
        self
    }

    /// Lets the message stay until it is deleted.
    pub const fn lives_forever(mut self) -> Self {
        self.lives_for = Lifetime::Forever;
        self
    }
}

impl Lifetime {
    /// The parameter of the request.
    pub(super) fn seconds(self) -> Result<Option<i64>> {
        match self {
            Self::Usual => Ok(None),
            Self::Forever => Ok(Some(-1)),
            Self::Span(span) => match i32::try_from(whole_seconds(span)) {
                Ok(seconds @ 1..) => Ok(Some(i64::from(seconds))),
                _ => Err(Error::Invalid("a message lives for a second at least, and at most for 68 years".to_owned())),
            },
        }
    }
}

/// The body of a request that puts or changes a text.
pub(super) fn body(text: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(text.len() + 80);
    xml::write_element(&mut body, "QueueMessage", |body| xml::write_text(body, "MessageText", text));
    body
}

/// The messages of an answer.
pub(super) fn read(body: &[u8]) -> Result<Vec<Answered>> {
    let list = Element::parse(body).map_err(|error| Error::Answer(error.to_string()))?;
    if list.name != "QueueMessagesList" {
        return Err(Error::Answer(format!("expected a list of messages, found <{}>", list.name)));
    }
    Ok(list.children.into_iter().map(Answered).collect())
}

/// A time in the service's spelling.
pub(super) fn time(text: &str) -> Result<Timestamp> {
    match httpdate::parse_http_date(text) {
        Ok(time) => Ok(time.into()),
        Err(_) => Err(Error::Answer(format!("expected a time, found '{}'", text.chars().take(64).collect::<String>()))),
    }
}

/// A message as it is in an answer.
pub(super) struct Answered(Element);

impl Answered {
    /// The answer to a put, which does not repeat the text.
    pub(super) fn put(self, text: String) -> Result<Message> {
        Ok(Message {
            id: self.text("MessageId")?.to_owned(),
            pop_receipt: self.text("PopReceipt")?.to_owned(),
            text,
            is_raw: false,
            dequeue_count: 0,
            inserted_on: self.time("InsertionTime")?,
            expires_on: self.expires_on()?,
            next_visible_on: self.time("TimeNextVisible")?,
        })
    }

    pub(super) fn received(mut self, encoding: Encoding) -> Result<Message> {
        let (text, is_raw) = self.take_text(encoding);
        let dequeue_count = self.dequeue_count()?;
        Ok(Message { is_raw, dequeue_count, ..self.put(text)? })
    }

    pub(super) fn peeked(mut self, encoding: Encoding) -> Result<PeekedMessage> {
        let (text, is_raw) = self.take_text(encoding);
        Ok(PeekedMessage {
            id: self.text("MessageId")?.to_owned(),
            text,
            is_raw,
            dequeue_count: self.dequeue_count()?,
            inserted_on: self.time("InsertionTime")?,
            expires_on: self.expires_on()?,
        })
    }

    fn text(&self, name: &str) -> Result<&str> {
        let text = self.0.child_text(name).ok().flatten();
        text.ok_or_else(|| Error::Answer(format!("expected a message with one <{name}>")))
    }

    fn time(&self, name: &str) -> Result<Timestamp> {
        time(self.text(name)?)
    }

    fn expires_on(&self) -> Result<Option<Timestamp>> {
        match self.text("ExpirationTime")? {
            NEVER => Ok(None),
            text => Ok(Some(time(text)?)),
        }
    }

    fn dequeue_count(&self) -> Result<u32> {
        let text = self.text("DequeueCount")?;
        text.parse().map_err(|_| Error::Answer("expected how often a message was received".to_owned()))
    }

    /// The text with all its white space, and whether it is raw.
    fn take_text(&mut self, encoding: Encoding) -> (String, bool) {
        let found = self.0.children.iter_mut().find(|child| child.name == "MessageText");
        let text = found.map(|child| std::mem::take(&mut child.text)).unwrap_or_default();
        match encoding.decode(text) {
            Ok(text) => (text, false),
            Err(raw) => (raw, true),
        }
    }
}

/// `ExpirationTime` of a message without a TTL.
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList><QueueMessage>\
        <MessageId>5974b586-0df3-4e2d-ad0c-18e3892bfca2</MessageId>\
        <InsertionTime>Fri, 09 Oct 2009 21:04:30 GMT</InsertionTime>\
        <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>\
        <PopReceipt>YzQ4Yzg1MDI+/=</PopReceipt><TimeNextVisible>Fri, 09 Oct 2009 23:29:20 GMT</TimeNextVisible>\
        <DequeueCount>3</DequeueCount><MessageText> a &lt;b&gt;&#xD;\n</MessageText></QueueMessage></QueueMessagesList>";

    #[test]
    fn x1_messages_are_read_as_the_service_writes_them() {
        let message = read(ANSWER.as_bytes()).expect("a list").pop().expect("a message");
        let message = message.received(Encoding::Plain).expect("whole");
        assert_eq!(message.text, " a <b>\r\n");
        assert_eq!((message.dequeue_count, message.expires_on), (3, None));
        assert_eq!(message.next_visible_on.to_string(), "2009-10-09T23:29:20Z");
        assert_eq!(message.pop_receipt, "YzQ4Yzg1MDI+/=");
        assert!(read(b"<QueueMessagesList />").expect("a list").is_empty());
    }

    #[test]
    fn x1_answers_that_lack_something_are_refused() {
        assert!(read(b"<html/>").is_err());
        assert!(read(b"").is_err());
        for name in ["MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible", "DequeueCount"] {
            let answer = ANSWER.replace(name, "Other");
            let message = read(answer.as_bytes()).expect("a list").pop().expect("a message");
            assert!(matches!(message.received(Encoding::Plain), Err(Error::Answer(_))), "{name}");
        }
        let late = ANSWER.replace("Fri, 09 Oct 2009 21:04:30 GMT", "yesterday");
        assert!(read(late.as_bytes()).expect("a list").pop().expect("a message").received(Encoding::Plain).is_err());
    }
}
