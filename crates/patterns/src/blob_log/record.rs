//! A record of a log, and how it stands in a blob: a line with its time in front.

use crate::{Error, Result};
use larimar_client::Timestamp;

/// A record of a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct LogRecord {
    /// When it happened.
    pub time: Timestamp,
    /// What happened.
    pub text: String,
}

impl LogRecord {
    /// Writes the record as a line. Line feeds in the text are escaped.
    pub(super) fn write(time: Timestamp, text: &str, line: &mut Vec<u8>) {
        line.extend(time.to_string().as_bytes());
        line.push(b'\t');
        for byte in text.bytes() {
            match byte {
                b'\\' => line.extend(b"\\\\"),
                b'\n' => line.extend(b"\\n"),
                b'\r' => line.extend(b"\\r"),
                byte => line.push(byte),
            }
        }
        line.push(b'\n');
    }

    fn read(line: &str) -> Option<Self> {
        let (time, escaped) = line.split_once('\t')?;
        let mut text = String::with_capacity(escaped.len());
        let mut rest = escaped.chars();
        while let Some(character) = rest.next() {
            text.push(match character {
                '\\' => match rest.next()? {
                    'n' => '\n',
                    'r' => '\r',
                    '\\' => '\\',
                    _ => return None,
                },
                other => other,
            });
        }
        Some(Self { time: time.parse().ok()?, text })
    }

    /// The records of a blob.
    pub(super) fn read_all(bytes: &[u8]) -> Result<Vec<Self>> {
        let text = std::str::from_utf8(bytes).map_err(|_| MALFORMED)?;
        let lines = text.split_terminator('\n');
        lines.map(|line| Self::read(line).ok_or(MALFORMED)).collect()
    }
}

const MALFORMED: Error = Error::Answer("a blob that is not a log");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn t13_records_are_read_as_they_were_written(texts in prop::collection::vec("(?s).{0,12}", 0..6), ticks in Timestamp::MIN.ticks()..=Timestamp::MAX.ticks()) {
            let time = Timestamp::from_ticks(ticks);
            let mut bytes = Vec::new();
            texts.iter().for_each(|text| LogRecord::write(time, text, &mut bytes));
            let records = LogRecord::read_all(&bytes).expect("a log");
            prop_assert_eq!(records, texts.into_iter().map(|text| LogRecord { time, text }).collect::<Vec<_>>());
        }
    }

    #[test]
    fn t13_what_is_no_log_is_refused() {
        for text in ["no time", "2014-07-31T18:00:00Z no tab", "2014-07-31T18:00:00Z\t\\x", "2014-07-31T18:00:00Z\t\\"]
        {
            assert!(LogRecord::read_all(text.as_bytes()).is_err(), "{text}");
        }
    }
}
