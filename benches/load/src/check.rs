//! Judges answers: status, keys, numbers of rows, and where a query goes on.
//!
//! These run for every answer of every measurement, so they search the bytes instead of parsing JSON.

use std::fmt::Write as _;

use anyhow::ensure;
use memchr::memmem;

use crate::http::Answer;

/// Checks the status; the error shows what the server answered instead.
pub(crate) fn expect_status(answer: &Answer<'_>, status: u16) -> anyhow::Result<()> {
    if answer.status == status {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&answer.body[..answer.body.len().min(300)]);
    anyhow::bail!("status {} instead of {status}: {body}", answer.status)
}

/// The body has a member of this name with exactly this text.
pub(crate) fn expect_text(answer: &Answer<'_>, name: &str, text: &str) -> anyhow::Result<()> {
    let found = memmem::find_iter(answer.body, name.as_bytes()).any(|at| {
        let quoted = at.checked_sub(1).is_some_and(|before| answer.body[before] == b'"');
        let rest = &answer.body[at + name.len()..];
        quoted
            && rest
                .strip_prefix(b"\":\"")
                .and_then(|rest| rest.strip_prefix(text.as_bytes()))
                .is_some_and(|rest| rest.first() == Some(&b'"'))
    });
    ensure!(found, "no {name} {text} in the answer");
    Ok(())
}

/// The body has this text so many times.
pub(crate) fn expect_count(answer: &Answer<'_>, text: &[u8], expected: u64) -> anyhow::Result<()> {
    let found = memmem::find_iter(answer.body, text).count() as u64;
    if found == expected {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&answer.body[..answer.body.len().min(1200)]);
    anyhow::bail!("{found} parts instead of {expected}: {body}")
}

/// How many entities a query answered.
pub(crate) fn count_rows(answer: &Answer<'_>) -> u64 {
    memmem::find_iter(answer.body, br#""RowKey":""#).count() as u64
}

/// Turns the continuation headers into the query string that asks for the next page; false at the end.
pub(crate) fn continuation(answer: &Answer<'_>, next: &mut String) -> bool {
    next.clear();
    let Some(partition) = answer.next_partition else { return false };
    next.push_str("&NextPartitionKey=");
    push_encoded(next, partition);
    if let Some(row) = answer.next_row {
        next.push_str("&NextRowKey=");
        push_encoded(next, row);
    }
    true
}

/// Appends bytes as they may stand in a query string.
pub(crate) fn push_encoded(out: &mut String, text: &[u8]) {
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-_.~!".contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// The text of the first element that starts with this tag. What we look for has nothing to unescape.
pub(crate) fn element<'a>(answer: &Answer<'a>, tag: &[u8]) -> Option<&'a str> {
    let start = memmem::find(answer.body, tag)? + tag.len();
    let length = memchr::memchr(b'<', &answer.body[start..])?;
    std::str::from_utf8(&answer.body[start..start + length]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &[u8]) -> Answer<'_> {
        Answer { status: 200, head: b"", body, next_partition: None, next_row: None }
    }

    #[test]
    fn a_wrong_key_in_the_body_is_noticed() {
        let body = answer(br#"{"PartitionKey":"p1","RowKey":"r10","XRowKey":"r1"}"#);
        assert!(expect_text(&body, "RowKey", "r10").is_ok());
        assert!(expect_text(&body, "RowKey", "r").is_err());
        assert!(expect_text(&body, "RowKey", "r1").is_err());
        assert!(expect_text(&body, "RowKey", "r2").is_err());
        assert!(expect_status(&body, 204).is_err());
    }

    #[test]
    fn continuation_headers_become_a_query_string() {
        let mut next = String::from("old");
        assert!(!continuation(&answer(b""), &mut next));
        assert_eq!(next, "");
        let more = Answer { next_partition: Some(b"1!4!cA=="), next_row: Some(b"r/1"), ..answer(b"") };
        assert!(continuation(&more, &mut next));
        assert_eq!(next, "&NextPartitionKey=1!4!cA%3D%3D&NextRowKey=r%2F1");
    }
}
