//! How the server answered a query, as it says in headers of the answer.

use crate::pipeline::Reply;
use crate::{Error, Result};
use std::time::Duration;

/// How the server answered a query: see [`Query::explain`](crate::Query::explain).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// How the rows are found and in which ranges of keys, such as `row-range ["p"/"a" .. "p"/"b")`.
    pub plan: String,
    /// What of the filter is checked for each row that is read; long ones are cut.
    pub filter: Option<String>,
    /// Rows that were read for this page.
    pub rows_read: u64,
    /// Rows that are in this page.
    pub rows_returned: u64,
    /// How long the server worked on it.
    pub time: Duration,
}

impl Explanation {
    /// The explanation in an answer; none if the server does not explain.
    pub(super) fn of(reply: &Reply) -> Result<Option<Self>> {
        let Some(plan) = text(reply, "x-larimar-plan")? else { return Ok(None) };
        Ok(Some(Self {
            plan,
            filter: text(reply, "x-larimar-filter")?,
            rows_read: number(reply, "x-larimar-rows-read")?,
            rows_returned: number(reply, "x-larimar-rows-returned")?,
            time: Duration::from_micros(number(reply, "x-larimar-time-us")?),
        }))
    }
}

fn text(reply: &Reply, name: &str) -> Result<Option<String>> {
    let Some(value) = reply.headers.get(name) else { return Ok(None) };
    let decoded = value.to_str().ok().and_then(|text| larimar_wire::uri::decode_path(text).ok());
    let decoded = decoded.ok_or_else(|| Error::Answer(format!("'{name}' is not percent-encoded text")))?;
    Ok(Some(decoded.into_owned()))
}

fn number(reply: &Reply, name: &str) -> Result<u64> {
    let number = reply.headers.get(name).and_then(|value| value.to_str().ok()?.parse().ok());
    number.ok_or_else(|| Error::Answer(format!("'{name}' is not a number")))
}
