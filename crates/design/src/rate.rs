//! Rates such as `20/s` and spans of time such as `24h`, as users write them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// How often something happens, per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

impl Default for Rate {
    fn default() -> Self {
        Self(1.0)
    }
}

/// A span of time in days.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Span(pub f64);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a rate such as \"20/s\", \"5/min\", \"100/h\" or \"3/day\", found \"{text}\"");
        let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
        let number: f64 = number.trim().replace('_', "").parse().map_err(|_| wrong())?;
        let seconds = match unit.trim() {
            "s" | "sec" | "second" => 1.0,
            "m" | "min" | "minute" => 60.0,
            "h" | "hour" => 3600.0,
            "d" | "day" => 86_400.0,
            _ => return Err(wrong()),
        };
        finite(number / seconds).map(Self).ok_or_else(wrong)
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a span such as \"15min\", \"24h\", \"7d\" or \"3months\", found \"{text}\"");
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
        let days = match text[digits..].trim() {
            "s" => 1.0 / 86_400.0,
            "m" | "min" => 1.0 / 1440.0,
            "h" => 1.0 / 24.0,
            "d" | "day" | "days" => 1.0,
            "month" | "months" => 30.0,
            "y" | "year" | "years" => 365.0,
            _ => return Err(wrong()),
        };
        finite(number * days).filter(|days| *days > 0.0).map(Self).ok_or_else(wrong)
    }
}

fn finite(number: f64) -> Option<f64> {
    (number.is_finite() && (0.0..=1e12).contains(&number)).then_some(number)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => {
                finite(number).map(Self).ok_or_else(|| D::Error::custom("expected a rate of 0 or more"))
            }
            NumberOrText::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The longest unit of which it is a whole number.
        for (unit, days) in [("d", 1.0), ("h", 1.0 / 24.0), ("min", 1.0 / 1440.0), ("s", 1.0 / 86_400.0)] {
            let count = (self.0 / days).round();
            if count >= 1.0 && (count * days - self.0).abs() <= 1e-9 * self.0 {
                return write!(f, "{count}{unit}");
            }
        }
        write!(f, "{}d", self.0)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_spans_have_units() {
        for (text, per_second) in [("20/s", 20.0), ("6/min", 0.1), ("36/h", 0.01), ("864/day", 0.01), ("1_000/s", 1e3)]
        {
            assert_eq!(text.parse::<Rate>().map(|rate| rate.0), Ok(per_second), "{text}");
        }
        for (text, days) in [("24h", 1.0), ("7d", 7.0), ("15min", 1.0 / 96.0), ("2months", 60.0), ("36 h", 1.5)] {
            let span = text.parse::<Span>().expect(text).0;
            assert!((span - days).abs() < 1e-9, "{text}: {span}");
        }
        for text in ["24h", "7d", "15min", "90s", "0.25s", "1000000000000d"] {
            let span = text.parse::<Span>().expect(text);
            let again = span.to_string().parse::<Span>().expect(text);
            assert!((again.0 - span.0).abs() <= 1e-9 * span.0, "{text}: {span}");
        }
        assert_eq!("24h".parse::<Span>().map(|span| span.to_string()), Ok("1d".to_owned()));
        assert_eq!("15min".parse::<Span>().map(|span| span.to_string()), Ok("15min".to_owned()));
        for text in ["", "20", "/s", "x/s", "-1/s", "1/week", "1e400/s", "nan/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["", "h", "24", "0h", "-1d", "1fortnight"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
