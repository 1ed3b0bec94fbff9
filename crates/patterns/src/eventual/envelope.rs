//! The text of a message: an intent, and what the engine has to know of it.

use crate::{Error, Result};
use larimar_client::{Guid, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An intent on its way, as it is written.
#[derive(Debug, Serialize)]
struct Written<'a, I> {
    #[serde(flatten)]
    head: &'a Head,
    intent: &'a I,
}

/// An intent as it is read.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<I> {
    #[serde(flatten)]
    pub(super) head: Head,
    pub(super) intent: I,
}

/// What the engine knows of an intent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// Names the intent in logs and over all its deliveries.
    pub(super) id: String,
    /// When it was submitted.
    pub(super) at: Timestamp,
    /// How many of its steps are done, as far as that was saved.
    #[serde(default)]
    pub(super) done: usize,
    /// Why it went to the poison queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Head {
    pub(super) fn new() -> Self {
        Self { id: Guid::random().to_string(), at: Timestamp::now(), done: 0, error: None }
    }

    /// This head with the reason of a failure, as much of it as there is room for.
    pub(super) fn failed(&self, reason: &str) -> Self {
        let mut error = String::new();
        for character in reason.chars() {
            // What XML does not have cannot stand in a message, and JSON writes six bytes for some others.
            let character = if character.is_control() || character >= '\u{FFFE}' { ' ' } else { character };
            if error.len() + character.len_utf8() > ERROR_BYTES_MAX {
                break;
            }
            error.push(character);
        }
        Self { error: Some(error), ..self.clone() }
    }
}

/// The text of a message; there is always room left for the reason of a failure.
pub(super) fn encode<I: Serialize>(head: &Head, intent: &I) -> Result<String> {
    let text = serde_json::to_string(&Written { head, intent }).map_err(Error::Intent)?;
    // Messages are XML, which has not got these two; in JSON they can only be in texts.
    let text = match text.contains(['\u{FFFE}', '\u{FFFF}']) {
        true => text.replace('\u{FFFE}', "\\ufffe").replace('\u{FFFF}', "\\uffff"),
        false => text,
    };
    let reserve = if head.error.is_some() { 0 } else { RESERVE_BYTES };
    match text.len() > MESSAGE_BYTES_MAX - reserve {
        true => Err(Error::IntentTooLarge { bytes: text.len(), bytes_max: MESSAGE_BYTES_MAX - RESERVE_BYTES }),
        false => Ok(text),
    }
}

pub(super) fn decode<I: DeserializeOwned>(text: &str) -> Result<Envelope<I>, serde_json::Error> {
    serde_json::from_str(text)
}

/// The service takes 64 KiB of text.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
const ERROR_BYTES_MAX: usize = 1024;
/// Room for the error, with every quote in it escaped, and for a longer count of steps.
const RESERVE_BYTES: usize = 2 * ERROR_BYTES_MAX + 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t3_an_intent_of_any_size_that_is_taken_has_room_for_its_error() {
        let head = Head::new();
        let longest = (0..MESSAGE_BYTES_MAX - RESERVE_BYTES).rev().find_map(|bytes| {
            let intent = "x".repeat(bytes);
            encode(&head, &intent).is_ok().then_some(intent)
        });
        let longest = longest.expect("some size is taken");
        let far = Head { done: 1000, ..head.clone() };
        for reason in ["\"".repeat(5000), "\u{1}".repeat(5000), "ü".repeat(5000)] {
            let text = encode(&far.failed(&reason), &longest).expect("there is room");
            assert!(text.len() <= MESSAGE_BYTES_MAX);
            let back: Envelope<String> = decode(&text).expect("it is read again");
            assert_eq!((back.intent == longest, back.head.done), (true, 1000));
        }
        let more = format!("{longest}x");
        assert!(matches!(encode(&head, &more), Err(Error::IntentTooLarge { .. })));
    }
}
