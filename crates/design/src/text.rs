//! Descriptions as text: TOML and JSON. A refusal has the line, and its message is short whatever the text is.

use crate::description::Description;
use crate::error::DesignError;
use crate::limits::TEXT_BYTES_MAX;

impl Description {
    /// Reads a description in TOML.
    ///
    /// # Errors
    /// A text of more than [`TEXT_BYTES_MAX`], or one that is not a description in TOML.
    pub fn from_toml(text: &str) -> Result<Self, DesignError> {
        check_size(text)?;
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| line_at(text, span.start));
            DesignError::Syntax { line, reason: short(error.message()) }
        })
    }

    /// Reads a description in JSON, with the names that it has in TOML.
    ///
    /// # Errors
    /// A text of more than [`TEXT_BYTES_MAX`], or one that is not a description in JSON.
    pub fn from_json(text: &str) -> Result<Self, DesignError> {
        check_size(text)?;
        serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
            DesignError::Syntax { line: error.line().max(1), reason: short(reason) }
        })
    }

    /// The description in TOML, without comments.
    ///
    /// # Errors
    /// A number that TOML cannot have: more than 2^63 - 1.
    pub fn to_toml(&self) -> Result<String, DesignError> {
        toml::to_string(self).map_err(|error| DesignError::invalid("description", short(&error.to_string())))
    }
}

impl DesignError {
    /// The line of the description's text that the error is about, counted from 1, if it can be found.
    #[must_use]
    pub fn line(&self, text: &str) -> Option<usize> {
        let place = match self {
            Self::Syntax { line, .. } => return Some(*line),
            Self::Unknown { place, .. } | Self::Invalid { place, .. } => place.as_str(),
            Self::TooMany { .. } | Self::TooLong { .. } => return None,
        };
        let index = match place.split('\'').nth(1) {
            Some(name) => text.lines().position(|line| is_name(line, name)),
            None => text.lines().position(|line| !place.is_empty() && line.trim_start_matches('[').starts_with(place)),
        };
        index.map(|index| index + 1)
    }
}

/// Whether a line gives this name to something.
fn is_name(line: &str, name: &str) -> bool {
    let key = line.trim_start().trim_start_matches(['"', '{', ' ']);
    let rest = key.strip_prefix("name").map(|rest| rest.trim_start_matches(['"', ' ', '=', ':', '\'']));
    rest.is_some_and(|rest| rest.strip_prefix(name).is_some_and(|end| end.starts_with(['"', '\''])))
}

/// The line of a byte, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

pub(crate) const fn check_size(text: &str) -> Result<(), DesignError> {
    match text.len() > TEXT_BYTES_MAX {
        true => Err(DesignError::TooLong { bytes: text.len() }),
        false => Ok(()),
    }
}

/// A message on one line, without control characters: it may quote the text.
pub(crate) fn short(message: &str) -> String {
    let mut line: String =
        larimar_model::escape(message.replace('\n', " ").trim()).chars().take(MESSAGE_CHARS_MAX).collect();
    if line.chars().count() == MESSAGE_CHARS_MAX {
        line.push('…');
    }
    line
}

const MESSAGE_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{examples, propose};

    fn refusal(text: &str) -> (Option<usize>, String) {
        let read = Description::from_toml(text);
        let error = match read {
            Err(error) => error,
            Ok(description) => propose(&description).expect_err(text),
        };
        (error.line(text), error.to_string())
    }

    #[test]
    fn a_refusal_has_the_line() {
        let head = "entity = 'E'\n[volume]\nentities = 9\n";
        for (rest, line, start) in [
            ("[[query]]\nname = 'q'\nequal = ['A']", 6, "unknown field `equal`"),
            ("[[query]]\nname = 'p'\n[[query]]\nname = 'q'\nequals = ['A']", 7, "query 'q': unknown property 'A'"),
            ("[[query]]\nname = 'q'\nrate = 'x'", 6, "expected a rate"),
            ("[[query", 4, ""),
        ] {
            let (found, message) = refusal(&format!("{head}{rest}"));
            assert_eq!(found, Some(line), "{rest}: {message}");
            assert!(message.starts_with(start), "{rest}: {message}");
        }
        let (line, message) = refusal("entity = 'E'\n\n[volume]\nentities = 0\n");
        assert!(line == Some(3) && message.starts_with("volume"), "the line of a table: {line:?} {message}");
        let error = Description::from_json("{\n \"entity\": 3}").expect_err("a number");
        assert_eq!(error.line(""), Some(2));
        assert!(error.to_string().starts_with("invalid type"), "{error}");
    }

    #[test]
    fn a_description_is_read_back_from_its_own_text() {
        for example in examples::ALL {
            let description = Description::from_toml(example.text).expect(example.name);
            let toml = description.to_toml().expect(example.name);
            let json = serde_json::to_string(&description).expect(example.name);
            let from_toml = Description::from_toml(&toml).unwrap_or_else(|error| panic!("{error}: {toml}"));
            let from_json = Description::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
            let all = [&description, &from_toml, &from_json].map(|it| format!("{:?}", propose(it)));
            assert!(all[0] == all[1] && all[0] == all[2], "{}: {toml}", example.name);
        }
    }

    #[test]
    fn hostile_texts_are_refused_in_a_few_words() {
        let long = "x".repeat(TEXT_BYTES_MAX / 2);
        let head = "entity = 'E'\n[volume]\nentities = 9\n";
        for text in [
            "x".repeat(TEXT_BYTES_MAX + 1),
            format!("{head}[[query]]\nname = 'q'\nrate = '{long}'"),
            format!("{head}[[query]]\nname = 'q'\nequals = ['{long}']"),
            format!("{head}[[query]]\nname = '{long}'"),
            format!("{head}{long} = 1"),
            format!("a = {}", "[".repeat(400_000)),
            format!("a = {}", "{a=".repeat(200_000)),
            format!("{}a = 1", "a.".repeat(400_000)),
            format!("[{}a]", "a.".repeat(400_000)),
            "entity = '\u{1b}[31m'".to_owned(),
            format!("{head}[[property]]\nname = 'a\\u001b'\ntype = 'string'"),
            "\0".to_owned(),
            String::new(),
        ] {
            let (_, message) = refusal(&text);
            assert!(message.len() < 2_000 && !message.contains('\u{1b}'), "{}", &message[..200]);
        }
        for text in ["[".repeat(TEXT_BYTES_MAX), "{\"a\":".repeat(200_000), format!("{{\"entity\":\"{long}\"}}")] {
            let error = Description::from_json(&text).expect_err("a refusal").to_string();
            assert!(error.len() < 2_000, "{error}");
        }
    }
}
