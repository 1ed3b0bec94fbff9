//! Keys from columns: templates such as `{country}-{id:08}`.

use larimar_model::{PartitionKey, RowKey};
use std::borrow::Cow;
use std::str::FromStr;

/// A key's template: text, and columns in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Column {
        name: String,
        width: usize,
    },
    /// `{#}`: the number of the row within the file, from 1.
    Number {
        width: usize,
    },
}

/// The templates of both keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Of the PartitionKey.
    pub partition: Template,
    /// Of the RowKey.
    pub row: Template,
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a template such as '{{country}}' or '{{id:08}}' ({{{{ and }}}} for braces, {{#}} for the row's number): {0}"
)]
pub struct TemplateError(String);

impl Default for Keys {
    fn default() -> Self {
        Self { partition: Template::column("PartitionKey"), row: Template::column("RowKey") }
    }
}

impl Keys {
    /// The columns that the templates name.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.partition.columns().chain(self.row.columns())
    }

    /// The keys of a row: `text_of` gives the text of a column, `number` is the row's number.
    ///
    /// # Errors
    /// An absent column, or a key that the service would refuse.
    pub(crate) fn build<'a>(
        &self,
        number: u64,
        text_of: impl Fn(&str) -> Option<Cow<'a, str>>,
    ) -> Result<(String, String), String> {
        let partition = self.partition.fill(number, &text_of)?;
        let row = self.row.fill(number, &text_of)?;
        let refused = |key: &str, text: &str, error: larimar_model::KeyError| {
            format!("{key} '{}': {error}", text.chars().take(64).collect::<String>())
        };
        PartitionKey::new(partition.as_str()).map_err(|error| refused("PartitionKey", &partition, error))?;
        RowKey::new(row.as_str()).map_err(|error| refused("RowKey", &row, error))?;
        Ok((partition, row))
    }
}

impl Template {
    /// The template of a column as it is.
    #[must_use]
    pub fn column(name: &str) -> Self {
        Self(vec![Part::Column { name: name.to_owned(), width: 0 }])
    }

    fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Column { name, .. } => Some(name.as_str()),
            Part::Text(_) | Part::Number { .. } => None,
        })
    }

    fn fill<'a>(&self, number: u64, text_of: impl Fn(&str) -> Option<Cow<'a, str>>) -> Result<String, String> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Number { width } => filled.push_str(&format!("{number:0width$}")),
                Part::Column { name, width } => {
                    let text =
                        text_of(name).ok_or_else(|| format!("expected a value in '{name}', which the key needs"))?;
                    // Zeros before anything but digits would sort, and read, as another number.
                    if *width > 0 && (text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit())) {
                        return Err(format!(
                            "expected only digits in '{name}' for {{{name}:0{width}}}, found '{text}'"
                        ));
                    }
                    filled.push_str(&format!("{text:0>width$}"));
                }
            }
        }
        Ok(filled)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut chars = text.chars().peekable();
        while let Some(next) = chars.next() {
            match next {
                '{' | '}' if chars.next_if_eq(&next).is_some() => plain.push(next),
                '}' => return Err(TemplateError("a '}' without a '{'".to_owned())),
                '{' => {
                    let inside: String = chars.by_ref().take_while(|char| *char != '}').collect();
                    // What was taken includes the brace, unless the text ended first.
                    if !text.contains(&format!("{{{inside}}}")) {
                        return Err(TemplateError("a '{' without a '}'".to_owned()));
                    }
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(column(&inside)?);
                }
                other => plain.push(other),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        match parts.is_empty() {
            true => Err(TemplateError("it is empty".to_owned())),
            false => Ok(Self(parts)),
        }
    }
}

fn column(inside: &str) -> Result<Part, TemplateError> {
    let (name, width) = match inside.rsplit_once(':') {
        None => (inside, 0),
        Some((name, width)) => {
            let digits = width.strip_prefix('0').and_then(|digits| digits.parse().ok());
            let width = digits.filter(|width| (1..=64).contains(width));
            let wrong = || TemplateError(format!("'{inside}': expected a width from :01 to :064"));
            (name, width.ok_or_else(wrong)?)
        }
    };
    match name {
        "" => Err(TemplateError("a column without a name".to_owned())),
        "#" => Ok(Part::Number { width }),
        name => Ok(Part::Column { name: name.to_owned(), width }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> Result<String, String> {
        let template: Template = template.parse().map_err(|error: TemplateError| error.to_string())?;
        template.fill(7, |name| match name {
            "country" => Some(Cow::Borrowed("DE")),
            "id" => Some(Cow::Borrowed("42")),
            "debt" => Some(Cow::Borrowed("-42")),
            "a:b" => Some(Cow::Borrowed("colon")),
            _ => None,
        })
    }

    #[test]
    fn templates_are_filled() {
        for (template, filled) in [
            ("{country}", "DE"),
            ("{country}-{id:08}", "DE-00000042"),
            ("{id:01}", "42"),
            ("{{{id}}}", "{42}"),
            ("constant", "constant"),
            ("{#:05}", "00007"),
            ("{debt}", "-42"),
        ] {
            assert_eq!(fill(template).as_deref(), Ok(filled), "{template}");
        }
    }

    #[test]
    fn wrong_templates_are_refused() {
        for template in ["", "{", "}", "{id", "{}", "{id:8}", "{id:0}", "{id:099}", "{id:x}", "a}b"] {
            assert!(template.parse::<Template>().is_err(), "{template}");
        }
        assert!(fill("{none}").is_err());
        assert!(fill("{debt:08}").is_err());
        assert!(fill("{country:08}").is_err());
    }

    #[test]
    fn keys_that_the_service_refuses_are_refused() {
        let keys = |text: &'static str| Keys::default().build(1, |_| Some(Cow::Borrowed(text)));
        assert!(keys("a b'c%日本").is_ok());
        for text in ["a/b", "a\\b", "a#b", "a?b", "a\tb"] {
            assert!(keys(text).is_err_and(|reason| reason.starts_with("PartitionKey")), "{text}");
        }
        let long: &'static str = "x".repeat(513).leak();
        assert!(keys(long).is_err());
    }
}
