//! How a query was answered, for clients that ask for it with `x-larimar-explain`: the plan, the rows and the time, as
//! headers of the answer.
//!
//! A plan has only ranges that the caller may read, so neither the plan nor the counts say anything about other rows.

use crate::call::Call;
use crate::reply::Reply;
use larimar_engine::table::{Plan, QueryKind};
use larimar_engine::{Engine, KeyRange, Position};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::uri::encode;
use std::time::Instant;

/// What a client asks for besides the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Explain {
    /// Nothing.
    No,
    /// To run the query and explain it.
    Run,
    /// To explain the query without running it.
    PlanOnly,
}

impl Explain {
    /// What a request asks for. A strict server ignores the header, as the service does.
    pub(super) fn of<E: Engine>(call: &Call<'_, E>) -> Result<Self, ErrorReply> {
        match call.head.raw_header(REQUEST_HEADER) {
            Some(value) if call.storage.strict.is_none() => Self::parse(value)
                .ok_or_else(|| ErrorReply::of_header(ErrorCode::InvalidHeaderValue, REQUEST_HEADER, value)),
            _ => Ok(Self::No),
        }
    }

    fn parse(value: &str) -> Option<Self> {
        [("true", Self::Run), ("plan", Self::PlanOnly), ("false", Self::No)]
            .into_iter()
            .find_map(|(text, explain)| value.eq_ignore_ascii_case(text).then_some(explain))
    }
}

/// An explanation that is being made.
#[derive(Debug)]
pub(super) struct Explanation {
    plan: String,
    filter: Option<String>,
    started: Instant,
}

impl Explanation {
    /// The explanation of a query with this plan.
    pub(super) fn of_plan(plan: &Plan, started: Instant) -> Self {
        let filter = plan.residual.as_ref().map(|residual| cut(&residual.to_string(), FILTER_BYTES_MAX));
        Self { plan: shown(access(plan), &plan.ranges), filter, started }
    }

    /// The explanation of a read by both keys.
    pub(super) fn of_point(partition: &str, row: &str, started: Instant) -> Self {
        let plan = shown(QueryKind::Point.name(), &[KeyRange::point(partition, row)]);
        Self { plan, filter: None, started }
    }

    /// Adds the explanation to the answer.
    pub(super) fn add_to(self, reply: Reply, rows_read: u64, rows_returned: u64) -> Reply {
        reply
            .with("x-larimar-plan", self.plan)
            .with_some("x-larimar-filter", self.filter)
            .with("x-larimar-rows-read", rows_read)
            .with("x-larimar-rows-returned", rows_returned)
            .with("x-larimar-time-us", u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// How the rows are found.
fn access(plan: &Plan) -> &'static str {
    match plan.kind {
        _ if plan.ranges.is_empty() => QueryKind::Nothing.name(),
        QueryKind::Range => "row-range",
        QueryKind::Ranges => "row-ranges",
        QueryKind::TableScan if plan.ranges != [KeyRange::all()] => "partition-range",
        kind => kind.name(),
    }
}

/// The plan as text, percent-encoded: as many ranges as there is room for.
fn shown(access: &str, ranges: &[KeyRange]) -> String {
    let mut text = access.to_owned();
    for (number, range) in ranges.iter().enumerate() {
        let mut next = String::new();
        escape(&mut next, &shown_range(range));
        if text.len() + next.len() > PLAN_BYTES_MAX {
            escape(&mut text, &format!(" and {} more", ranges.len() - number));
            break;
        }
        text.push_str(&next);
    }
    text
}

/// A range: `["p"/"a" .. "p"/"b")` from the first row up to, but without, the last; a row alone is `"p"/"a"`.
fn shown_range(range: &KeyRange) -> String {
    let place = |position: &Position| format!("{}/{}", shown_key(&position.partition), shown_key(&position.row));
    match (range.as_point(), &range.end) {
        (Some(_), _) => format!(" {}", place(&range.start)),
        (None, Some(end)) => format!(" [{} .. {})", place(&range.start), place(end)),
        (None, None) => format!(" [{} ..)", place(&range.start)),
    }
}

fn shown_key(key: &str) -> String {
    match key.char_indices().nth(KEY_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &key[..end]),
        None => format!("{key:?}"),
    }
}

/// A text, percent-encoded and cut.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    let mut buffer = [0; 4];
    for c in text.chars() {
        if out.len() + ENCODED_CHAR_BYTES_MAX > bytes_max {
            escape(&mut out, "…");
            break;
        }
        escape(&mut out, c.encode_utf8(&mut buffer));
    }
    out
}

fn escape(out: &mut String, text: &str) {
    encode(out, text, |byte| byte.is_ascii_graphic() && byte != b'%');
}

const REQUEST_HEADER: &str = "x-larimar-explain";
/// Bytes of the plan and of the filter; with the names of the headers and the counts all are less than 4 KiB.
const PLAN_BYTES_MAX: usize = 2800;
const FILTER_BYTES_MAX: usize = 900;
/// Four keys of so many characters fit, whatever the characters are.
const KEY_CHARS_MAX: usize = 48;
const ENCODED_CHAR_BYTES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::Filter;
    use larimar_wire::uri::decode_path;

    fn explained(filter: &str) -> Reply {
        let filter = (!filter.is_empty()).then(|| Filter::parse(filter).expect("a filter"));
        let plan = Plan::new(filter.as_ref());
        Explanation::of_plan(&plan, Instant::now()).add_to(Reply::empty(200), u64::MAX, u64::MAX)
    }

    fn header(reply: &Reply, name: &str) -> Option<String> {
        let value = reply.headers.get(name)?.to_str().expect("ASCII");
        Some(decode_path(value).expect("percent-encoded").into_owned())
    }

    #[test]
    fn every_access_has_a_name_and_its_ranges() {
        for (filter, plan, residual) in [
            ("", r#"table-scan [""/"" ..)"#, None),
            ("PartitionKey eq 'p' and RowKey eq 'ü%'", r#"point "p"/"ü%""#, None),
            ("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')", r#"points "p"/"a" "p"/"b""#, None),
            ("PartitionKey eq 'p' and RowKey ge 'a' and RowKey lt 'b'", r#"row-range ["p"/"a" .. "p"/"b")"#, None),
            ("PartitionKey eq 'p' and Age gt 3", r#"partition-scan ["p"/"" .. "p\0"/"")"#, Some("Age gt 3")),
            ("PartitionKey ge 'a' and PartitionKey lt 'b'", r#"partition-range ["a"/"" .. "b"/"")"#, None),
            ("Age gt 3", r#"table-scan [""/"" ..)"#, Some("Age gt 3")),
            (
                "PartitionKey eq 'a' and PartitionKey eq 'b'",
                "nothing",
                Some("PartitionKey eq 'a' and PartitionKey eq 'b'"),
            ),
        ] {
            let reply = explained(filter);
            assert_eq!(header(&reply, "x-larimar-plan").as_deref(), Some(plan), "{filter}");
            if plan != "nothing" {
                assert_eq!(header(&reply, "x-larimar-filter").as_deref(), residual, "{filter}");
            }
        }
    }

    #[test]
    fn all_headers_together_are_less_than_4_kib() {
        let long: String = "\u{10ffff}".repeat(255);
        let wide: String = "\u{1f600}".repeat(255);
        let keys: Vec<_> = (0..200).map(|number| format!("RowKey eq '{number}{wide}'")).collect();
        for filter in [
            format!("PartitionKey ge '{long}' and PartitionKey lt '{long}\u{10ffff}' and Name eq '{long}'"),
            format!("PartitionKey eq '{wide}' and RowKey gt '{wide}' and Name eq '{wide}'"),
            format!("PartitionKey eq 'p' and ({})", keys.join(" or ")),
        ] {
            let reply = explained(&filter);
            let bytes: usize = reply.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
            assert!(bytes < 4096, "{bytes}");
            let plan = header(&reply, "x-larimar-plan").expect("a plan");
            assert!(plan.contains('/'), "one range at least: {plan}");
        }
        let many = header(&explained(&format!("PartitionKey eq 'p' and ({})", keys.join(" or "))), "x-larimar-plan");
        assert!(many.as_deref().is_some_and(|plan| plan.ends_with(" more")), "{many:?}");
    }

    #[test]
    fn the_header_has_three_values() {
        for (value, expected) in [
            ("true", Some(Explain::Run)),
            ("True", Some(Explain::Run)),
            ("plan", Some(Explain::PlanOnly)),
            ("false", Some(Explain::No)),
            ("", None),
            ("1", None),
        ] {
            assert_eq!(Explain::parse(value), expected, "{value}");
        }
    }
}
