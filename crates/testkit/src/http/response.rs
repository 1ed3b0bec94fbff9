//! An answer: status, headers as they came, body.

use serde_json::Value;
use std::fmt;

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The reason phrase of the status line.
    pub reason: String,
    /// The headers in the order they came, names as spelled.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of the first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// The code of an error, from its JSON or XML body.
    #[must_use]
    pub fn code(&self) -> String {
        if let Ok(value) = serde_json::from_slice::<Value>(&self.body) {
            return value["odata.error"]["code"].as_str().unwrap_or_default().to_owned();
        }
        let in_body = |start, end| between(self.text(), start, end).map(str::to_owned);
        in_body("<m:code>", "</m:code>")
            .or_else(|| in_body("<Code>", "</Code>"))
            // The answer to a HEAD has no body.
            .or_else(|| self.header("x-ms-error-code").filter(|_| self.body.is_empty()).map(str::to_owned))
            .unwrap_or_default()
    }

    /// The message of an error without its lines of request id and time.
    #[must_use]
    pub fn message(&self) -> String {
        let value = self.json()["odata.error"]["message"]["value"].as_str().unwrap_or_default().to_owned();
        value.split("\nRequestId:").next().unwrap_or_default().to_owned()
    }

    /// The text of the first element of this name in an XML body, as it is escaped there.
    #[must_use]
    pub fn element(&self, name: &str) -> Option<&str> {
        between(self.text(), &format!("<{name}>"), &format!("</{name}>"))
    }

    /// The texts of all elements of this name in an XML body.
    #[must_use]
    pub fn elements(&self, name: &str) -> Vec<&str> {
        let (start, end) = (format!("<{name}>"), format!("</{name}>"));
        let (mut rest, mut found) = (self.text(), Vec::new());
        while let Some((_, after)) = rest.split_once(start.as_str()) {
            let Some((inside, after)) = after.split_once(end.as_str()) else { break };
            found.push(inside);
            rest = after;
        }
        found
    }

    /// The entities of a page.
    #[must_use]
    pub fn values(&self) -> Vec<Value> {
        self.json()["value"].as_array().unwrap_or_else(|| panic!("no page: {self}")).clone()
    }

    /// The values of one property, entity by entity, as text.
    #[must_use]
    pub fn column(&self, property: &str) -> Vec<String> {
        self.values().iter().map(|entity| entity[property].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Panics unless this is an error of this status and code.
    #[track_caller]
    pub fn is_error(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{self}");
    }

    /// Panics unless this has that status.
    #[track_caller]
    pub fn is_status(&self, status: u16) {
        assert_eq!(self.status, status, "{self}");
    }
}

impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        let text = String::from_utf8_lossy(&self.body);
        let shown: String = text.chars().take(2000).collect();
        write!(f, "\n{shown}")
    }
}

/// What stands between two texts, the first time.
pub(super) fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inside, _)| inside)
}
