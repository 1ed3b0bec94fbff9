//! The command lines of `backup` and `restore`.

use super::{Command, with_settings};
use crate::backup::{Backup, IntoServer, RemoveOptions, Restore, SingleRequest, read_time};
use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches};
use larimar_backup::{Moment, Rate};
use larimar_model::Timestamp;
use std::path::PathBuf;

/// `larimar backup`.
pub(super) fn command() -> clap::Command {
    let to = Arg::new(TO).value_name("TO").required(true).value_parser(read_place).help(
        "A directory on the server's machine, or s3://BUCKET/NAME, az://CONTAINER/NAME or gs://BUCKET/NAME; several \
         backups may be in one place",
    );
    let status = clap::Command::new("status").about("Show what the last backup of the server is doing, or did");
    let cancel = clap::Command::new("cancel").about("Cancel the backup that the server is taking");
    let verify = clap::Command::new("verify")
        .about("Read backups and the archive back, all of each, and name every file that is missing or damaged")
        .arg(from())
        .arg(generation("Only this backup [default: all of them]"))
        .arg(Arg::new(REMOVE_DAMAGED).long(REMOVE_DAMAGED).action(ArgAction::SetTrue).help(
            "Remove damaged chunks, so that the next backup stores them again if the server still has their data",
        ));
    let named = generation("A backup to remove; may be given several times").required(true).action(ArgAction::Append);
    let remove = clap::Command::new("remove")
        .about("Remove backups, and chunks that no other backup needs")
        .arg(from())
        .arg(named)
        .args(remove_options());
    let prune = clap::Command::new("prune")
        .about("Remove backups that are not kept any more, and chunks that no other backup needs")
        .after_help(PRUNE_HELP)
        .arg(from())
        .args(remove_options());
    let file = Arg::new(FILE).value_name("FILE").required(true).value_parser(PathBufValueParser::new());
    let key = clap::Command::new("key")
        .about("Make a key file for encrypted backups, which its owner alone can read")
        .arg(file.help("The file to make; one that exists is kept"));
    let list = clap::Command::new("list")
        .about("List the backups of a place, and the moments that can be restored")
        .arg(from());
    with_settings(clap::Command::new("backup"))
        .about("Back up the running server to a directory or an object store, without stopping it")
        .after_help(AFTER_HELP)
        .arg(to)
        .arg(rate())
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .subcommand(with_settings(status))
        .subcommand(with_settings(cancel))
        .subcommand(with_key_file(with_settings(verify)))
        .subcommand(with_key_file(with_settings(list)))
        .subcommand(with_key_file(with_settings(remove)))
        .subcommand(with_keep_rules(with_key_file(with_settings(prune))))
        .subcommand(with_settings(key))
}

fn remove_options() -> [Arg; 2] {
    [
        Arg::new(DRY_RUN).long(DRY_RUN).action(ArgAction::SetTrue).help("Only show what would be removed"),
        Arg::new(IDLE).long(IDLE).action(ArgAction::SetTrue).help(
            "No backup is being taken to the object store and nothing is archived there. A directory is locked instead; an \
             object store cannot be, and a backup that was taken meanwhile could miss chunks. Chunks of the last day stay",
        ),
    ]
}

/// Lets `prune` take short names of the settings that say what is kept.
fn with_keep_rules(command: clap::Command) -> clap::Command {
    command
        .mut_arg("backup_keep_time", |flag| flag.visible_alias("keep-time"))
        .mut_arg("backup_keep_count", |flag| flag.visible_alias("keep-count"))
}

/// Lets a command that reads backups take `--key-file` for the setting.
pub(super) fn with_key_file(command: clap::Command) -> clap::Command {
    command.mut_arg("backup_key_file", |flag| flag.visible_alias("key-file"))
}

/// `larimar restore`.
pub(super) fn restore_command() -> clap::Command {
    let data = Arg::new(DATA)
        .long(DATA)
        .value_name("DIR")
        .required_unless_present(INTO_SERVER)
        .conflicts_with(INTO_SERVER)
        .value_parser(PathBufValueParser::new())
        .help("The data directory to build: a new or an empty one");
    let to_time = Arg::new(TO_TIME).long(TO_TIME).value_name("TIME").value_parser(read_time).help(
        "Restore exactly the commits published at or before this time by the server's clock, such as \
         2026-11-16T17:00:00.25Z",
    );
    let to_sequence = Arg::new(TO_SEQUENCE)
        .long(TO_SEQUENCE)
        .value_name("N")
        .value_parser(clap::value_parser!(u64))
        .help("Restore the commits up to this number");
    clap::Command::new("restore")
        .about("Build a data directory from a backup and the archive, or restore single tables, queues and containers")
        .arg(from())
        .arg(data)
        .arg(generation("Restore this backup as it is, without the archive, as `larimar backup list` names it"))
        .arg(to_time.conflicts_with(INTO_SERVER))
        .arg(to_sequence.conflicts_with(INTO_SERVER))
        .group(ArgGroup::new("moment").args([GENERATION, TO_TIME, TO_SEQUENCE]))
        .after_help(RESTORE_AFTER_HELP)
        .args(into_server())
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .subcommand(with_settings(clap::Command::new("status")).about("Show the last restore into the running server"))
        .subcommand(with_settings(clap::Command::new("cancel")).about("Cancel the restore into the running server"))
}

/// The flags of a restore into a running server.
fn into_server() -> [Arg; 5] {
    let flag = |name: &'static str| Arg::new(name).long(name).conflicts_with(DATA);
    [
        Arg::new(WHAT)
            .value_name("WHAT")
            .num_args(1..)
            .conflicts_with(DATA)
            .value_parser(What::read)
            .help("With --into-server: table:NAME, queue:NAME or container:NAME; NAME=NEW gives it another name"),
        Arg::new(INTO_SERVER)
            .long(INTO_SERVER)
            .action(ArgAction::SetTrue)
            .requires(WHAT)
            .help("Restore WHAT into the running server, instead of building a data directory"),
        flag(ACCOUNT).value_name("NAME").help("The account in the backup [default: the server's, if it has only one]"),
        flag(TO_ACCOUNT).value_name("NAME").help("The account to restore into [default: the same]"),
        rate(),
    ]
}

/// Something to restore into a server.
#[derive(Clone, Debug)]
enum What {
    Table(String),
    Queue(String),
    Container(String),
}

impl What {
    fn read(text: &str) -> Result<Self, String> {
        let name = |name: &str| name.to_owned();
        match text.split_once(':') {
            Some(("table", rest)) if !rest.is_empty() => Ok(Self::Table(name(rest))),
            Some(("queue", rest)) if !rest.is_empty() => Ok(Self::Queue(name(rest))),
            Some(("container", rest)) if !rest.is_empty() => Ok(Self::Container(name(rest))),
            _ => Err(format!("expected table:NAME, queue:NAME or container:NAME, found '{text}'")),
        }
    }
}

/// The place of a backup. After a flag, `clap` takes the name of a command for it.
fn read_place(text: &str) -> Result<String, String> {
    match text {
        "status" | "cancel" | "verify" | "list" | "remove" | "prune" | "key" => Err(format!(
            "flags come after the command: 'larimar backup {text} …'; a directory of that name is ./{text}"
        )),
        place => Ok(place.to_owned()),
    }
}

/// What a command line of `backup` asks for, and where its settings are.
pub(super) fn read(matches: &ArgMatches) -> (Backup, &ArgMatches) {
    let text = |matches: &ArgMatches, name: &str| matches.get_one::<String>(name).cloned();
    match matches.subcommand() {
        Some(("status", own)) => (Backup::Status, own),
        Some(("cancel", own)) => (Backup::Cancel, own),
        Some(("remove", own)) => {
            let generations = own.get_many::<String>(GENERATION).into_iter().flatten().cloned().collect();
            let from = text(own, FROM).expect("it is required");
            (Backup::Remove { from, generations, options: read_options(own) }, own)
        }
        Some(("prune", own)) => {
            (Backup::Prune { from: text(own, FROM).expect("it is required"), options: read_options(own) }, own)
        }
        Some(("key", own)) => {
            (Backup::Key { file: own.get_one::<PathBuf>(FILE).cloned().expect("it is required") }, own)
        }
        Some(("list", own)) => (Backup::List { from: text(own, FROM).expect("it is required") }, own),
        Some((_, own)) => {
            let from = text(own, FROM).expect("it is required");
            let (generation, is_removing) = (text(own, GENERATION), own.get_flag(REMOVE_DAMAGED));
            (Backup::Verify { from, generation, is_removing }, own)
        }
        None => {
            let to = text(matches, TO).expect("it is required");
            (Backup::Take { to, rate: matches.get_one::<Rate>(RATE).copied().unwrap_or_default() }, matches)
        }
    }
}

fn read_options(matches: &ArgMatches) -> RemoveOptions {
    RemoveOptions { is_dry: matches.get_flag(DRY_RUN), is_idle: matches.get_flag(IDLE) }
}

/// What a command line of `restore` asks for, and where its settings are.
pub(super) fn read_restore(matches: &ArgMatches) -> (Command, &ArgMatches) {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let command = match matches.subcommand() {
        Some(("status", own)) => return (Command::IntoServer(IntoServer::Status), own),
        Some((_, own)) => return (Command::IntoServer(IntoServer::Cancel), own),
        None if matches.get_flag(INTO_SERVER) => {
            let mut request = SingleRequest {
                from: text(FROM).expect("it is required"),
                generation: text(GENERATION),
                account: text(ACCOUNT),
                to_account: text(TO_ACCOUNT),
                rate: matches.get_one::<Rate>(RATE).copied().unwrap_or_default(),
                ..SingleRequest::default()
            };
            for what in matches.get_many::<What>(WHAT).into_iter().flatten().cloned() {
                match what {
                    What::Table(name) => request.tables.push(name),
                    What::Queue(name) => request.queues.push(name),
                    What::Container(name) => request.containers.push(name),
                }
            }
            Command::IntoServer(IntoServer::Start(Box::new(request)))
        }
        None => Command::Restore(Restore {
            from: text(FROM).expect("it is required"),
            moment: moment(matches),
            data: matches.get_one::<PathBuf>(DATA).cloned().expect("it is required"),
        }),
    };
    (command, matches)
}

/// The moment that a data directory is restored to.
fn moment(matches: &ArgMatches) -> Moment {
    let time = matches.get_one::<Timestamp>(TO_TIME).copied().map(Moment::Time);
    let sequence = matches.get_one::<u64>(TO_SEQUENCE).copied().map(Moment::Sequence);
    let generation = matches.get_one::<String>(GENERATION).cloned().map(Moment::Generation);
    time.or(sequence).or(generation).unwrap_or(Moment::Latest)
}

fn from() -> Arg {
    Arg::new(FROM).value_name("FROM").required(true).help("The place of the backups, as `larimar backup` had it")
}

fn rate() -> Arg {
    // A negative number is a value that is refused, not another flag.
    let rate = Arg::new(RATE).long(RATE).value_name("RATE").allow_negative_numbers(true);
    rate.value_parser(|text: &str| text.parse::<Rate>()).help(
        "MiB a second at most, or max for as fast as it can; at most a quarter of the time otherwise [default: 16]",
    )
}

fn generation(help: &'static str) -> Arg {
    Arg::new(GENERATION).long(GENERATION).value_name("NAME").help(help)
}

const TO: &str = "backup-to";
const FROM: &str = "backup-from";
const FILE: &str = "key-path";
const DRY_RUN: &str = "dry-run";
const IDLE: &str = "idle";
const RATE: &str = "rate";
const REMOVE_DAMAGED: &str = "remove-damaged";
const DATA: &str = "data";
const GENERATION: &str = "generation";
const TO_TIME: &str = "to-time";
const TO_SEQUENCE: &str = "to-sequence";
const INTO_SERVER: &str = "into-server";
const WHAT: &str = "what";
const ACCOUNT: &str = "account";
const TO_ACCOUNT: &str = "to-account";
const RESTORE_AFTER_HELP: &str = "\
Without a moment: the latest backup, and all commits that the archive has after it; with --into-server, the latest backup.
With --into-server the running server restores, and goes on if this command ends. Nothing is overwritten: a name that \
exists is refused. The command finds the server as `larimar compact` does. Example: larimar restore /backups/larimar \
table:Orders=OrdersBefore container:photos --into-server";
const AFTER_HELP: &str = "\
The server takes the backup and goes on with it if this command ends. The command finds the server as `larimar compact` \
does: by the settings data_dir, admin_host and admin_port.";

const PRUNE_HELP: &str = "\
A backup is kept if --keep-time or --keep-count keeps it; the latest is always kept, and of those that are older than \
--keep-time the last, from which the archive continues. A server with these settings removes old backups itself after each \
backup; to a place that it archives to, no command can do that.";

#[cfg(test)]
mod tests {
    use super::super::{CommandLine, clap_command};
    use super::*;

    fn read(line: &[&str]) -> Result<Command, clap::Error> {
        let line = ["larimar"].iter().chain(line);
        Ok(CommandLine::from_matches(&clap_command().try_get_matches_from(line)?).command)
    }

    #[test]
    fn a_backup_is_taken_shown_cancelled_or_verified() {
        let take = |rate| Command::Backup(Backup::Take { to: "there".to_owned(), rate });
        let verify = |generation: Option<&str>, is_removing| {
            let generation = generation.map(str::to_owned);
            Command::Backup(Backup::Verify { from: "there".to_owned(), generation, is_removing })
        };
        let options = |is_dry| RemoveOptions { is_dry, is_idle: !is_dry };
        let generations = vec!["a".to_owned(), "b".to_owned()];
        let remove = Command::Backup(Backup::Remove { from: "there".to_owned(), generations, options: options(true) });
        let prune = Command::Backup(Backup::Prune { from: "there".to_owned(), options: options(false) });
        for (line, expected) in [
            (&["backup", "there"][..], take(Rate::Gentle)),
            (&["backup", "there", "--rate", "max"], take(Rate::Max)),
            (&["backup", "--rate=3", "there", "--data-dir", "d"], take(Rate::Bytes(3 << 20))),
            (&["backup", "status"], Command::Backup(Backup::Status)),
            (&["backup", "cancel", "--data-dir", "d"], Command::Backup(Backup::Cancel)),
            (&["backup", "list", "there"], Command::Backup(Backup::List { from: "there".to_owned() })),
            (&["backup", "verify", "there"], verify(None, false)),
            (&["backup", "verify", "there", "--key-file", "k"], verify(None, false)),
            (&["backup", "verify", "there", "--remove-damaged"], verify(None, true)),
            (&["backup", "remove", "there", "--generation", "a", "--generation", "b", "--dry-run"], remove),
            (&["backup", "prune", "there", "--keep-time", "30d", "--keep-count=7", "--idle"], prune),
            (&["backup", "key", "k"], Command::Backup(Backup::Key { file: "k".into() })),
            (&["backup", "verify", "there", "--generation", "g"], verify(Some("g"), false)),
        ] {
            assert_eq!(read(line).expect("a good line"), expected, "{line:?}");
        }
        let noon = Timestamp::parse("2026-11-16T12:00:00Z").expect("a time");
        for (flags, moment) in [
            (&[][..], Moment::Latest),
            (&["--to-time", "2026-11-16T12:00:00Z"], Moment::Time(noon)),
            (&["--to-sequence", "7"], Moment::Sequence(7)),
            (&["--generation", "g"], Moment::Generation("g".to_owned())),
        ] {
            let line = [&["restore", "there", "--data", "new"], flags].concat();
            let restore = Restore { from: "there".to_owned(), moment, data: "new".into() };
            assert_eq!(read(&line).expect("a good line"), Command::Restore(restore));
        }
        let negative = read(&["backup", "there", "--rate", "-1"]).expect_err("no rate").to_string();
        assert!(negative.contains("expected max, or MiB a second such as 20, found '-1'"), "{negative}");
        for wrong in [
            &["backup"][..],
            &["backup", "there", "here"],
            &["backup", "there", "--rate", "fast"],
            &["backup", "--rate", "max", "status"],
            &["backup", "--data-dir", "d", "status"],
            &["backup", "verify"],
            &["backup", "key"],
            &["backup", "remove", "there"],
            &["backup", "prune"],
            &["restore", "there"],
            &["restore", "--data", "new"],
            &["restore", "there", "--data", "new", "--to-time", "noon"],
            &["restore", "there", "--data", "new", "--to-sequence", "-1"],
            &["restore", "there", "--data", "new", "--to-sequence", "1", "--generation", "g"],
        ] {
            assert_eq!(read(wrong).expect_err("a bad line").exit_code(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn single_spaces_are_restored_into_the_server_and_never_into_a_directory() {
        let single = SingleRequest {
            from: "there".to_owned(),
            to_account: Some("other".to_owned()),
            tables: vec!["Orders=Old".to_owned(), "two".to_owned()],
            containers: vec!["photos".to_owned()],
            ..SingleRequest::default()
        };
        let line = ["restore", "there", "table:Orders=Old", "container:photos", "table:two", "--into-server"];
        let line = [&line[..], &["--to-account", "other", "--data-dir", "d"]].concat();
        let started = Command::IntoServer(IntoServer::Start(Box::new(single)));
        assert_eq!(read(&line).expect("a good line"), started);
        assert_eq!(read(&["restore", "status"]).expect("a good line"), Command::IntoServer(IntoServer::Status));
        for wrong in [
            &["restore", "there", "--into-server"][..],
            &["restore", "there", "table:x"],
            &["restore", "there", "table:x", "--data", "new"],
            &["restore", "there", "table:x", "--data", "new", "--into-server"],
            &["restore", "there", "--data", "new", "--to-account", "other"],
            &["restore", "there", "orders", "--into-server"],
            &["restore", "there", "table:", "--into-server"],
            &["restore", "there", "table:x", "--into-server", "--to-sequence", "7"],
        ] {
            assert_eq!(read(wrong).expect_err("a bad line").exit_code(), 2, "{wrong:?}");
        }
    }
}
