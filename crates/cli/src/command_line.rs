//! The command line. Each setting has a flag of the commands that use the settings, before or after the command; the
//! commands that work on data come from `larimar-tool` and have flags of their own.
//!
//! Azurite's flags are understood (`azurite.rs`); an unknown flag is refused with the one that may be meant
//! (`hints.rs`).

mod advise;
mod azurite;
mod backup;
mod help;
mod hints;
mod insights;

use crate::advise::Advise;
use crate::backup::{Backup, IntoServer, Restore};
use crate::insights::Insights;
use crate::migrate::{BlobStore, End, Migration, Place};
use crate::settings::value::StoreUrl;
use crate::settings::{ConfigFile, Environment, Group, Kind, Setting, Settings, SettingsError, all_settings};
use clap::builder::{EnumValueParser, OsStringValueParser, PathBufValueParser};
use clap::{Arg, ArgAction, ArgMatches};
use clap_complete::Shell;
use larimar_engine_postgres::Dialect;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Run the services; also without a subcommand.
    Serve,
    /// Print the effective settings.
    Config,
    /// Print a script that completes command lines in this shell.
    Completions(Shell),
    /// Print the manual page.
    Man,
    /// Repair a data directory that does not open.
    Repair {
        /// Whether what cannot be saved may be given up.
        force: bool,
        /// Whether to take back the clock of versions instead.
        reset_clock: bool,
    },
    /// Remove what nothing refers to, and give the room back.
    Compact,
    /// Take a backup, or look after backups.
    Backup(Backup),
    /// Build a data directory from a backup.
    Restore(Restore),
    /// Have the running server restore single tables, queues and containers.
    IntoServer(IntoServer),
    /// Show, or remove, what the server has observed of its tables.
    Insights(Insights),
    /// Show what is wrong with the design of tables.
    Advise(Advise),
    /// Copy everything into another store.
    Migrate(Box<Migration>),
    /// Work on the data of an account, over the protocol.
    Data(Box<ArgMatches>),
}

/// A command line that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) command: Command,
    pub(crate) flags: Vec<(&'static str, OsString)>,
    config: Option<PathBuf>,
}

impl CommandLine {
    /// Reads the command line of the process; ends it for `--help`, `--version` and wrong usage.
    pub(crate) fn parse() -> Self {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        // Azurite's flags are those of a server.
        if arguments.get(1).and_then(|first| first.to_str()).is_some_and(larimar_tool::is_command) {
            let matches = help::grouped(clap_command()).try_get_matches_from(arguments);
            return Self::from_matches(&matches.unwrap_or_else(|error| hints::explain_data(&error)));
        }
        let translated = azurite::translate(arguments).unwrap_or_else(|refusal| hints::refuse(&refusal));
        for note in translated.notes {
            eprintln!("larimar: {note}");
        }
        let matches = help::grouped(clap_command()).try_get_matches_from(translated.arguments);
        let matches = matches.unwrap_or_else(|error| hints::explain(&error));
        if let Some(refusal) = setting_of_another_command(&matches) {
            hints::refuse(&refusal);
        }
        Self::from_matches(&matches)
    }

    fn from_matches(all: &ArgMatches) -> Self {
        let (command, matches) = match all.subcommand() {
            Some(("config", matches)) => (Command::Config, Some(matches)),
            Some(("completions", matches)) => {
                let shell = matches.get_one::<Shell>(SHELL).copied().expect("the shell is required");
                (Command::Completions(shell), None)
            }
            Some(("man", _)) => (Command::Man, None),
            Some(("repair", matches)) => {
                let (force, reset_clock) = (matches.get_flag(FORCE), matches.get_flag(RESET_CLOCK));
                (Command::Repair { force, reset_clock }, Some(matches))
            }
            Some(("compact", matches)) => (Command::Compact, Some(matches)),
            Some(("backup", matches)) => {
                let (backup, matches) = backup::read(matches);
                (Command::Backup(backup), Some(matches))
            }
            Some(("restore", matches)) => {
                let (command, matches) = backup::read_restore(matches);
                (command, Some(matches))
            }
            Some(("insights", matches)) => (Command::Insights(insights::read(matches)), Some(matches)),
            Some(("advise", matches)) => (Command::Advise(advise::read(matches)), Some(matches)),
            Some(("migrate", matches)) => (Command::Migrate(Box::new(migration(matches))), Some(matches)),
            Some((name, _)) if larimar_tool::is_command(name) => (Command::Data(Box::new(all.clone())), None),
            Some((_, matches)) => (Command::Serve, Some(matches)),
            None => (Command::Serve, None),
        };
        // A flag after the command overrides one before it.
        let value = |name: &str| {
            let after = matches.and_then(|matches| matches.get_one::<OsString>(name));
            after.or_else(|| all.get_one::<OsString>(name)).cloned()
        };
        let flag = |setting: &Setting| Some((setting.name, value(setting.name)?));
        let flags = all_settings().filter(|setting| setting.kind != Kind::Secret).filter_map(flag).collect();
        Self { command, flags, config: value(CONFIG).map(PathBuf::from) }
    }

    /// The configuration file, read: the one of the flag, or of the variable, or the usual one if it is there.
    pub(crate) fn config_file(&self, environment: &Environment) -> Result<Option<ConfigFile>, SettingsError> {
        let variable = environment.get(OsStr::new("LARIMAR_CONFIG")).filter(|path| !path.is_empty());
        let variable = || variable.map(PathBuf::from);
        let named = self.config.clone().or_else(variable);
        let path = named.as_deref().unwrap_or(Path::new(CONFIG_FILE)).to_owned();
        match read_config(&path) {
            Ok(text) => Ok(Some(ConfigFile { path, text })),
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SettingsError::Unreadable { path, reason: error.to_string() }),
        }
    }
}

/// Reads a configuration file. One that has no end, such as a device, is refused.
fn read_config(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let bytes = std::fs::File::open(path)?.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text)?;
    match bytes as u64 > CONFIG_BYTES_MAX {
        true => Err(std::io::Error::other("it is longer than 1 MiB")),
        false => Ok(text),
    }
}

/// The longest configuration file.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// Writes a script that completes command lines in a shell.
pub(crate) fn write_completions(shell: Shell, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut clap_command(), "larimar", &mut script);
    out.write_all(&script)
}

/// Writes the manual page: the flags of all commands, then what each command has of its own.
pub(crate) fn write_man(out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let command = clap_command();
    let page = clap_mangen::Man::new(command.clone());
    page.render_title(out)?;
    page.render_name_section(out)?;
    // The generated synopsis is a list of all flags.
    writeln!(out, ".SH SYNOPSIS\n\\fBlarimar\\fR [\\fICOMMAND\\fR] [\\fIFLAGS\\fR]")?;
    page.render_description_section(out)?;
    page.render_subcommands_section(out)?;
    page.render_options_section(out)?;
    for subcommand in command.get_subcommands() {
        write_flags(subcommand, subcommand.get_name(), out)?;
    }
    page.render_extra_section(out)?;
    page.render_version_section(out)
}

/// Writes the flags that a command has beside the settings, and those of its own commands.
fn write_flags(command: &clap::Command, name: &str, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    let is_setting =
        |argument: &Arg| argument.get_id() == CONFIG || all_settings().any(|it| argument.get_id() == it.name);
    let own: Vec<Arg> = command.get_arguments().filter(|argument| !is_setting(argument)).cloned().collect();
    if !own.is_empty() {
        writeln!(out, ".SH \"FLAGS OF {}\"", name.to_ascii_uppercase())?;
        let alone = clap::Command::new("larimar").disable_help_flag(true).args(own);
        let mut section = Vec::new();
        clap_mangen::Man::new(alone).render_options_section(&mut section)?;
        let section = String::from_utf8_lossy(&section).into_owned();
        out.write_all(section.replacen(".SH OPTIONS\n", "", 1).as_bytes())?;
    }
    for subcommand in command.get_subcommands() {
        write_flags(subcommand, &format!("{name} {}", subcommand.get_name()), out)?;
    }
    Ok(())
}

fn clap_command() -> clap::Command {
    let command = clap::Command::new("larimar")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Azure Table, Queue and Blob Storage that anyone can run")
        .after_help(AFTER_HELP)
        .max_term_width(HELP_COLUMNS);
    let serve = clap::Command::new("serve").about("Run the services; also without a command");
    let config = clap::Command::new("config").about("Print the effective settings as TOML, without secrets");
    let compact = clap::Command::new("compact").about("Give the room of deleted data back to the disk").long_about(
        "Remove what nothing refers to and give the room back to the disk, also while a server runs on the data directory",
    );
    let man = clap::Command::new("man").about("Print the manual page; read it with: larimar man | man -l -");
    let command = with_settings(command)
        .subcommand(with_settings(serve))
        .subcommand(with_settings(config))
        .subcommand(with_settings(repair_command()))
        .subcommand(with_settings(migrate_command()))
        .subcommand(with_settings(compact))
        .subcommand(backup::command())
        .subcommand(backup::with_key_file(with_settings(backup::restore_command())))
        .subcommand(with_settings(insights::command()))
        .subcommand(with_settings(advise::command()))
        .subcommand(completions_command())
        .subcommand(man);
    with_help_below_flags(larimar_tool::add_commands(command))
}

/// Puts the help of a flag below it. In a list of commands, name and help stay on one line.
fn with_help_below_flags(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| argument.next_line_help(true)).mut_subcommands(with_help_below_flags)
}

/// The command with a flag for each setting, and for the configuration file.
fn with_settings(command: clap::Command) -> clap::Command {
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .value_parser(OsStringValueParser::new())
        .help("Configuration file in TOML [env: LARIMAR_CONFIG] [default: larimar.toml if it is there]")
        // After the flags that a command has of its own.
        .display_order(900);
    let defaults = Settings::default();
    let of_group = |group: Group| all_settings().filter(move |setting| setting.group == group);
    let settings = GROUPS.into_iter().flat_map(of_group).filter(|setting| setting.kind != Kind::Secret);
    command.args_override_self(true).arg(config).args(settings.map(|setting| flag(setting, &defaults)))
}

/// The refusal of a setting before a command that has no settings.
fn setting_of_another_command(matches: &ArgMatches) -> Option<String> {
    let (command, own) = matches.subcommand()?;
    let settings = all_settings().filter(|setting| setting.kind != Kind::Secret);
    let given = settings.map(|setting| (setting.name, setting.flag())).chain([(CONFIG, CONFIG.to_owned())]);
    let takes_settings = own.try_contains_id(CONFIG).is_ok();
    let mut refused = given.filter(|(name, _)| matches.contains_id(name)).filter(|_| !takes_settings);
    let (_, flag) = refused.next()?;
    Some(format!("--{flag} is a setting of the server; 'larimar {command}' has flags of its own"))
}

fn completions_command() -> clap::Command {
    let shell = Arg::new(SHELL)
        .value_name("SHELL")
        .required(true)
        .value_parser(EnumValueParser::<Shell>::new())
        .help("The shell to complete command lines in");
    clap::Command::new("completions").about("Print a script that completes command lines of larimar").arg(shell)
}

fn repair_command() -> clap::Command {
    let force = Arg::new(FORCE)
        .long(FORCE)
        .action(ArgAction::SetTrue)
        .help("Give up what is missing or damaged and keep the rest; the damaged store is kept beside it");
    let reset_clock = Arg::new(RESET_CLOCK).long(RESET_CLOCK).action(ArgAction::SetTrue).conflicts_with(FORCE).help(
        "After the machine's clock was wrong: let Timestamps of entities continue at the present time; entities with \
         later ones keep them",
    );
    clap::Command::new("repair")
        .about("Show and repair damage in a data directory; stop the server first")
        .long_about("Show what is damaged in the data directory and repair it, keeping a copy; the server must not run")
        .arg(force)
        .arg(reset_clock)
}

fn migrate_command() -> clap::Command {
    let end = |side: &'static str, help: &'static str| {
        Arg::new(side).long(side).value_name("STORE").required(true).help(help)
    };
    let password_file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(PathBufValueParser::new()).help(help)
    };
    let dialect = |name: &'static str, help: &'static str| {
        let dialect = |text: &str| text.parse::<Dialect>();
        Arg::new(name).long(name).value_name("DIALECT").default_value("postgres").value_parser(dialect).help(help)
    };
    let blob_store = |name: &'static str, help: &'static str| Arg::new(name).long(name).value_name("URL").help(help);
    let switch =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    clap::Command::new("migrate")
        .about("Copy everything into another store and verify the copy")
        .long_about("Copy settings, tables, queues and blobs into another store, and verify the copy")
        .after_help(AFTER_MIGRATE_HELP)
        .arg(end(FROM, "The store to copy: local:PATH (a data directory), a path, or postgres://USER@HOST/DATABASE"))
        .arg(end(TO, "The store to copy into, spelled likewise"))
        .arg(password_file(FROM_PASSWORD, "File with the password of --from [or env: LARIMAR_FROM_PASSWORD]"))
        .arg(password_file(TO_PASSWORD, "File with the password of --to [or env: LARIMAR_TO_PASSWORD]"))
        .arg(dialect(FROM_DIALECT, "Which database --from is: postgres, cockroach or yugabyte"))
        .arg(dialect(TO_DIALECT, "Which database --to is"))
        .arg(blob_store(FROM_BLOB_STORE, "Where the bytes of blobs of --from are, as in the setting blob_store"))
        .arg(blob_store(TO_BLOB_STORE, "Where the bytes of blobs of --to go, spelled likewise"))
        .arg(switch(VERIFY_ONLY, "Compare the stores and copy nothing").conflicts_with(RESTART))
        .arg(switch(RESTART, "Drop what an unfinished migration has copied, and begin anew"))
}

fn migration(matches: &ArgMatches) -> Migration {
    let end = |side, dialect, password, blobs| End {
        // Not refused here: the message of `clap` would show a password.
        place: matches.get_one::<String>(side).and_then(|text| Place::parse(text)),
        dialect: matches.get_one::<Dialect>(dialect).copied().unwrap_or_default(),
        password_file: matches.get_one::<PathBuf>(password).cloned(),
        blobs: match matches.get_one::<String>(blobs).map(|url| StoreUrl::parse(url)) {
            None => BlobStore::Default,
            Some(Some(url)) => BlobStore::At(url),
            Some(None) => BlobStore::Wrong,
        },
    };
    Migration {
        from: end(FROM, FROM_DIALECT, FROM_PASSWORD, FROM_BLOB_STORE),
        to: end(TO, TO_DIALECT, TO_PASSWORD, TO_BLOB_STORE),
        verify_only: matches.get_flag(VERIFY_ONLY),
        restart: matches.get_flag(RESTART),
    }
}

fn flag(setting: &'static Setting, defaults: &Settings) -> Arg {
    let default = setting.shown(defaults).map(|value| format!(" [default: {}]", plain(&value))).unwrap_or_default();
    let arg = Arg::new(setting.name)
        .long(setting.flag())
        .help(format!("{}{default}", setting.help))
        .help_heading(setting.group.heading())
        .value_name(value_name(setting.name))
        .value_parser(OsStringValueParser::new())
        .action(ArgAction::Set);
    match setting.kind {
        // `--strict` alone means true; a value needs `=`, so that a following word is not taken for it.
        Kind::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL"),
        Kind::Value | Kind::Path | Kind::Private | Kind::Secret => arg,
    }
}

/// The last word of a setting's name says what its value is.
fn value_name(name: &'static str) -> String {
    let words: Vec<&str> = name.split('_').filter(|word| *word != "max").collect();
    words.last().copied().unwrap_or(name).to_ascii_uppercase()
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) if items.is_empty() => "none".to_owned(),
        other => other.to_string(),
    }
}

const CONFIG: &str = "config";
const FORCE: &str = "force";
const RESET_CLOCK: &str = "reset-clock";
const FROM: &str = "from";
const TO: &str = "to";
const FROM_PASSWORD: &str = "from-password-file";
const TO_PASSWORD: &str = "to-password-file";
const FROM_DIALECT: &str = "from-dialect";
const TO_DIALECT: &str = "to-dialect";
const FROM_BLOB_STORE: &str = "from-blob-store";
const TO_BLOB_STORE: &str = "to-blob-store";
const VERIFY_ONLY: &str = "verify-only";
const RESTART: &str = "restart";
const CONFIG_FILE: &str = "larimar.toml";
const SHELL: &str = "shell";
/// Columns of the terminals that the help is made for.
const HELP_COLUMNS: usize = 80;
/// The order of the help.
const GROUPS: [Group; 6] =
    [Group::Services, Group::Accounts, Group::Data, Group::Database, Group::Diagnostics, Group::Limits];
const AFTER_HELP: &str = "\
Every flag is also an environment variable and a key of the configuration file: --table-port is LARIMAR_TABLE_PORT and \
table_port. Flags override the environment, the environment overrides the file. SIGHUP reloads accounts, log level \
and certificates.

Accounts come from LARIMAR_ACCOUNTS or AZURITE_ACCOUNTS (name:key[:key2];…) or from the file ([[accounts]] with name, \
key, key2); the default is devstoreaccount1 with its well-known key. The password of a database comes from \
LARIMAR_DATABASE_PASSWORD or from the file.";
const AFTER_MIGRATE_HELP: &str = "\
Entities, messages and blobs keep everything: etags, timestamps, message ids, pop receipts, leases, snapshots, \
uncommitted blocks. Stop the servers of the source first, and do not use the destination until the end. An interrupted \
run continues when the same command is given again. A table, queue or container that the destination already has is \
refused before anything is written.

The bytes of blobs of a data directory are in its directory blobs, unless its servers have the setting blob_store. With \
PostgreSQL they are in an object store, which has to be named.";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<CommandLine, clap::Error> {
        let line = std::iter::once("larimar").chain(arguments.iter().copied());
        Ok(CommandLine::from_matches(&clap_command().try_get_matches_from(line)?))
    }

    fn variable(path: &str) -> Environment {
        [(OsString::from("LARIMAR_CONFIG"), OsString::from(path))].into()
    }

    #[test]
    fn the_definition_is_sound() {
        clap_command().debug_assert();
        help::grouped(clap_command()).debug_assert();
    }

    #[test]
    fn commands_on_data_have_no_settings() {
        for arguments in [&["table", "list", "--table-port", "1"][..], &["table", "--strict", "list"]] {
            assert_eq!(read(arguments).expect_err("a bad line").exit_code(), 2, "{arguments:?}");
        }
        let matches = |line: &[&str]| clap_command().try_get_matches_from(line).expect("a good line");
        let refused = setting_of_another_command(&matches(&["larimar", "--strict", "table", "list"]));
        let expected = "--strict is a setting of the server; 'larimar table' has flags of its own";
        assert_eq!(refused.as_deref(), Some(expected));
        for line in [&["larimar", "--strict", "config"][..], &["larimar", "table", "list"], &["larimar", "--strict"]] {
            assert_eq!(setting_of_another_command(&matches(line)), None, "{line:?}");
        }
        assert!(matches!(read(&["table", "list"]).expect("a good line").command, Command::Data(_)));
    }

    #[test]
    fn flags_may_stand_before_or_after_the_command_or_without_one() {
        let expected = vec![("table_port", OsString::from("0")), ("strict", OsString::from("true"))];
        for arguments in [
            &["--table-port", "0", "--strict"][..],
            &["serve", "--table-port", "0", "--strict"],
            &["--strict=true", "serve", "--table-port=0"],
        ] {
            let line = read(arguments).expect("a good line");
            assert_eq!((line.command, line.flags), (Command::Serve, expected.clone()), "{arguments:?}");
        }
        assert_eq!(read(&["config"]).expect("a good line").command, Command::Config);
        for (arguments, force, reset_clock) in [
            (&["repair"][..], false, false),
            (&["repair", "--force"], true, false),
            (&["repair", "--reset-clock"], false, true),
        ] {
            let line = read(arguments).expect("a good line");
            assert_eq!(line.command, Command::Repair { force, reset_clock });
        }
        assert_eq!(read(&[]).expect("a good line").command, Command::Serve);
    }

    #[test]
    fn a_migration_names_two_stores() {
        let line = read(&["migrate", "--from", "here", "--to", "postgres://u@h/d", "--to-dialect=yugabyte"]);
        let Command::Migrate(migration) = line.expect("a good line").command else { panic!("another command") };
        assert_eq!(migration.from.place, Some(Place::Local("here".into())));
        assert_eq!(migration.to.place, Place::parse("postgres://u@h/d"));
        assert_eq!((migration.from.dialect, migration.to.dialect), (Dialect::Postgres, Dialect::Yugabyte));
        assert!(!migration.verify_only && !migration.restart);
        for arguments in [
            &["migrate", "--from", "here"][..],
            &["migrate", "--from", "here", "--to", "there", "--to-dialect", "mysql"],
            &["migrate", "--from", "here", "--to", "there", "--verify-only", "--restart"],
        ] {
            assert_eq!(read(arguments).expect_err("a bad line").exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn the_last_of_several_equal_flags_counts() {
        let line = read(&["serve", "--table-port", "1", "--table-port", "2"]).expect("a good line");
        assert_eq!(line.flags, [("table_port", OsString::from("2"))]);
    }

    #[test]
    fn wrong_usage_is_refused() {
        for arguments in [
            &["sevre"][..],
            &["--tabel-port", "1"],
            &["--accounts", "a:a"],
            &["--table-port"],
            &["serve", "x"],
            &["--force"],
            &["repair", "--force", "--reset-clock"],
        ] {
            assert_eq!(read(arguments).expect_err("a bad line").exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn a_file_is_named_by_flag_or_variable_and_must_then_be_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("some.toml");
        std::fs::write(&path, "strict = true").expect("a file");
        let path = path.to_str().expect("text");
        let text = |file: Option<ConfigFile>| file.map(|file| file.text);
        let named = read(&["--config", path]).expect("a good line");
        assert_eq!(text(named.config_file(&variable("/other")).expect("a file")).as_deref(), Some("strict = true"));
        let by_variable = read(&[]).expect("a good line");
        assert_eq!(text(by_variable.config_file(&variable(path)).expect("a file")).as_deref(), Some("strict = true"));
        let missing = format!("{path}.missing");
        let error =
            read(&["--config", &missing]).expect("a good line").config_file(&Environment::new()).expect_err("no file");
        assert!(error.to_string().contains(&missing), "{error}");
    }
}
