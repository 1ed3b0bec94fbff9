//! The command line of `advise`.

use super::insights::{observed_args, read_name, read_observed};
use crate::advise::{Advise, FailOn, Format};
use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches};
use larimar_advisor::{Dismissal, FindingKind, Severity};
use std::path::PathBuf;

/// `larimar advise`.
pub(super) fn command() -> clap::Command {
    let format = PossibleValuesParser::new(["text", "json", "github"]).map(|text| match &*text {
        "json" => Format::Json,
        "github" => Format::GitHub,
        _ => Format::Text,
    });
    let format = Arg::new(FORMAT)
        .long(FORMAT)
        .value_name("FORMAT")
        .default_value("text")
        .value_parser(format)
        .help("text for people, json with code of the patterns, or github for annotations of a CI run");
    let fail_on = Arg::new(FAIL_ON)
        .long(FAIL_ON)
        .value_name("WHAT")
        .action(ArgAction::Append)
        .value_delimiter(',')
        .value_parser(read_fail_on)
        .help("End with exit code 6 if there are such findings: notice (all), warning, or ids such as table-scan");
    let dismiss = Arg::new(DISMISS)
        .long(DISMISS)
        .value_name("ID[:TABLE]")
        .action(ArgAction::Append)
        .value_parser(read_dismissal)
        .help("Do not show this finding again, for one table or for all; it is added to the file of --dismissed");
    let dismissed = Arg::new(DISMISSED)
        .long(DISMISSED)
        .value_name("FILE")
        .default_value("advise.toml")
        .value_parser(PathBufValueParser::new())
        .help("File with the findings that were dismissed, to keep beside the code; it may be missing");
    let every_scan = Arg::new(EVERY_SCAN)
        .long(EVERY_SCAN)
        .action(ArgAction::SetTrue)
        .help("Show every query that scans, also if it read few rows: for test runs, which have little data");
    let all = Arg::new(ALL)
        .long(ALL)
        .action(ArgAction::SetTrue)
        .help("Show dismissed findings, too; they are marked, and --fail-on does not count them");
    clap::Command::new("advise")
        .about("Show what is wrong with the design of tables, and the pattern that solves it")
        .after_help("The command finds the server as `larimar compact` does. docs/advisor.md explains each finding.")
        .args(observed_args("Only this table [default: all tables]"))
        .args([format, fail_on, dismiss, dismissed, every_scan, all])
}

/// What a command line of `advise` asks for.
pub(super) fn read(matches: &ArgMatches) -> Advise {
    Advise {
        of: read_observed(matches),
        format: matches.get_one(FORMAT).copied().expect("it has a default"),
        fail_on: matches.get_many::<FailOn>(FAIL_ON).into_iter().flatten().copied().collect(),
        dismiss: matches.get_many::<Dismissal>(DISMISS).into_iter().flatten().cloned().collect(),
        file: matches.get_one::<PathBuf>(DISMISSED).cloned().expect("it has a default"),
        every_scan: matches.get_flag(EVERY_SCAN),
        all: matches.get_flag(ALL),
    }
}

fn read_fail_on(text: &str) -> Result<FailOn, String> {
    match text {
        "notice" => Ok(FailOn::Severity(Severity::Notice)),
        "warning" => Ok(FailOn::Severity(Severity::Warning)),
        _ => text.parse().map(FailOn::Kind).map_err(|_| {
            format!("expected notice, warning or one of {}", FindingKind::ALL.map(FindingKind::id).join(", "))
        }),
    }
}

fn read_dismissal(text: &str) -> Result<Dismissal, String> {
    let (kind, table) = match text.split_once(':') {
        Some((kind, table)) => (kind, Some(read_name(table)?)),
        None => (text, None),
    };
    let kind = kind.parse::<FindingKind>().map_err(|error| error.to_string())?;
    Ok(Dismissal::new(kind, table))
}

const FORMAT: &str = "format";
const FAIL_ON: &str = "fail-on";
const DISMISS: &str = "dismiss";
const DISMISSED: &str = "dismissed";
const EVERY_SCAN: &str = "every-scan";
const ALL: &str = "all";

#[cfg(test)]
mod tests {
    use super::super::{Command, CommandLine, clap_command};
    use super::*;
    use crate::insights::Observed;

    fn read(line: &[&str]) -> Result<Command, clap::Error> {
        let line = ["larimar", "advise"].iter().chain(line);
        Ok(CommandLine::from_matches(&clap_command().try_get_matches_from(line)?).command)
    }

    #[test]
    fn formats_failures_and_dismissals_may_be_named() {
        let none = Advise {
            of: Observed::default(),
            format: Format::Text,
            fail_on: Vec::new(),
            dismiss: Vec::new(),
            file: "advise.toml".into(),
            every_scan: false,
            all: false,
        };
        let scan = FindingKind::TableScan;
        let fail_on = vec![FailOn::Severity(Severity::Warning), FailOn::Kind(scan), FailOn::Kind(FindingKind::LogData)];
        let dismiss =
            vec![Dismissal::new(scan, Some("Orders".to_owned())), Dismissal::new(FindingKind::RowByRow, None)];
        for (line, expected) in [
            (&[][..], none.clone()),
            (&["--all"], Advise { all: true, ..none.clone() }),
            (&["--format", "json"], Advise { format: Format::Json, ..none.clone() }),
            (
                &["--format=github", "--fail-on", "warning,table-scan", "--fail-on=log-data"],
                Advise { format: Format::GitHub, fail_on, ..none.clone() },
            ),
            (
                &["Orders", "--dismiss", "table-scan:Orders", "--dismiss", "row-by-row"],
                Advise {
                    of: Observed { table: Some("Orders".to_owned()), ..Observed::default() },
                    dismiss,
                    ..none.clone()
                },
            ),
            (
                &["--dismissed", "ci/a.toml", "--every-scan", "--data-dir", "d"],
                Advise { file: "ci/a.toml".into(), every_scan: true, ..none.clone() },
            ),
        ] {
            assert_eq!(read(line).expect("a good line"), Command::Advise(expected), "{line:?}");
        }
        for wrong in [
            &["a", "b"][..],
            &["a&scans=every"],
            &["--format", "xml"],
            &["--fail-on", "error"],
            &["--fail-on", ""],
            &["--dismiss", "nonsense"],
            &["--dismiss", "table-scan:"],
            &["--dismiss", "table-scan:a\"b"],
        ] {
            assert_eq!(read(wrong).expect_err("a bad line").exit_code(), 2, "{wrong:?}");
        }
    }
}
