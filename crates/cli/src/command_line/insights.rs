//! The command line of `insights`.

use crate::insights::{Insights, Observed};
use crate::settings::value;
use clap::{Arg, ArgAction, ArgMatches};
use std::time::Duration;

/// `larimar insights`.
pub(super) fn command() -> clap::Command {
    let json = Arg::new(JSON).long(JSON).action(ArgAction::SetTrue).help("Print the server's answer, which is JSON");
    let erase = Arg::new(ERASE)
        .long(ERASE)
        .action(ArgAction::SetTrue)
        .conflicts_with_all([TABLE, SINCE, JSON])
        .help("Remove all insights of the account instead");
    clap::Command::new("insights")
        .about("Show what the traffic of tables looks like: operations, queries, partitions, keys")
        .after_help("The command finds the server as `larimar compact` does. docs/insights.md explains the figures.")
        .args(observed_args("Only this table, with the heat of its keys over time [default: all tables]"))
        .args([json, erase])
}

/// The arguments that say which figures a command is about.
pub(super) fn observed_args(table_help: &'static str) -> [Arg; 3] {
    let table = Arg::new(TABLE).value_name("TABLE").value_parser(read_name).help(table_help);
    let account = Arg::new(ACCOUNT)
        .long(ACCOUNT)
        .value_name("NAME")
        .value_parser(read_name)
        .help("The account; may be left out if the settings have only one");
    let since = Arg::new(SINCE)
        .long(SINCE)
        .value_name("SPAN")
        .value_parser(read_span)
        .help("How far back, such as 30m or 168h: up to an hour by minutes, up to a week by hours [default: 24h]");
    [table, account, since]
}

/// Reads [`observed_args`].
pub(super) fn read_observed(matches: &ArgMatches) -> Observed {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    Observed { table: text(TABLE), account: text(ACCOUNT), since: matches.get_one::<Duration>(SINCE).copied() }
}

/// What a command line of `insights` asks for.
pub(super) fn read(matches: &ArgMatches) -> Insights {
    Insights { of: read_observed(matches), is_json: matches.get_flag(JSON), is_erased: matches.get_flag(ERASE) }
}

/// A name of a table or an account, which needs no escapes in a query.
pub(super) fn read_name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"$-".contains(&byte));
    if is_name { Ok(text.to_owned()) } else { Err("expected letters and digits".to_owned()) }
}

fn read_span(text: &str) -> Result<Duration, String> {
    let span = value::span(text).filter(|span| *span <= WEEK && !span.is_zero());
    span.ok_or_else(|| "expected a span of time up to 168h, such as 30m or 24h".to_owned())
}

const TABLE: &str = "insights-table";
const ACCOUNT: &str = "account";
const SINCE: &str = "since";
const JSON: &str = "json";
const ERASE: &str = "erase";
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::super::{Command, CommandLine, clap_command};
    use super::*;

    fn read(line: &[&str]) -> Result<Command, clap::Error> {
        let line = ["larimar", "insights"].iter().chain(line);
        Ok(CommandLine::from_matches(&clap_command().try_get_matches_from(line)?).command)
    }

    #[test]
    fn a_table_an_account_and_a_span_may_be_named() {
        let none = Insights { of: Observed::default(), is_json: false, is_erased: false };
        let of = Observed::default;
        let day = Some(Duration::from_secs(24 * 3600));
        for (line, expected) in [
            (&[][..], none.clone()),
            (
                &["Orders", "--json"],
                Insights { of: Observed { table: Some("Orders".to_owned()), ..of() }, is_json: true, ..none.clone() },
            ),
            (&["--since", "24h", "--data-dir", "d"], Insights { of: Observed { since: day, ..of() }, ..none.clone() }),
            (
                &["--account", "one", "--erase"],
                Insights { of: Observed { account: Some("one".to_owned()), ..of() }, is_erased: true, ..none.clone() },
            ),
        ] {
            assert_eq!(read(line).expect("a good line"), Command::Insights(expected), "{line:?}");
        }
        for wrong in [
            &["a", "b"][..],
            &["a&account=b"],
            &[""],
            &["--since", "yesterday"],
            &["--since", "169h"],
            &["--erase", "a"],
            &["--erase", "--json"],
        ] {
            assert_eq!(read(wrong).expect_err("a bad line").exit_code(), 2, "{wrong:?}");
        }
    }
}
