//! What is said about a command line that is refused: which flag may be meant, and no secret.

use super::super::settings::{Kind, all_settings, similar_setting};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Ends the process for a command line that `clap` refuses, or for `--help` and `--version`.
pub(super) fn explain(error: &clap::Error) -> ! {
    let found = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter().find_map(|kind| error.get(kind));
    let similar = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names.first().map(String::as_str),
        _ => None,
    };
    match (error.kind(), found) {
        (ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => {
            refuse(&unknown(word, similar))
        }
        _ => error.exit(),
    }
}

/// Ends the process for a command on data that `clap` refuses. Its words are shown, unless they hold a secret.
pub(super) fn explain_data(error: &clap::Error) -> ! {
    let text = error.to_string();
    match error.use_stderr() && ["AccountKey=", "sig="].iter().any(|secret| text.contains(secret)) {
        true => refuse("unexpected argument (not shown, since it holds a secret)"),
        false => error.exit(),
    }
}

/// Ends the process with a refusal.
pub(super) fn refuse(reason: &str) -> ! {
    eprintln!("larimar: {reason}\n\nFor all flags, try 'larimar --help'.");
    std::process::exit(i32::from(crate::EXIT_REFUSED))
}

/// What to say of a word that is neither a flag nor a command; a command may be similar.
fn unknown(word: &str, similar: Option<&str>) -> String {
    let name = word.split('=').next().unwrap_or_default();
    match name.strip_prefix("--") {
        Some(flag) => match instead(flag) {
            Some(ours) => format!("there is no flag --{flag}; use {ours}"),
            None => format!("there is no flag --{flag}"),
        },
        None if ["true", "false", "on", "off", "yes", "no"].contains(&word) => {
            format!("unexpected {word:?}: the value of a switch follows an equals sign, as in --table={word}")
        }
        // Addresses of databases hold passwords.
        None if word.contains(['/', ':', '=', '@']) => {
            "unexpected argument (not shown): values follow a flag, such as --data-dir PATH or --engine URL".to_owned()
        }
        None => match similar {
            Some(command) => format!("there is no command {word:?}; use {command}"),
            None => format!("there is no command {word:?}; expected {}", super::help::names().join(", ")),
        },
    }
}

/// The flag to use instead of one that there is not.
fn instead(flag: &str) -> Option<String> {
    let plain = flag.to_ascii_lowercase().replace('_', "-");
    if let Some((_, ours)) = OTHER_WORDS.iter().find(|(words, _)| words.contains(&plain.as_str())) {
        return Some((*ours).to_owned());
    }
    let switch = plain.strip_prefix("no-").or_else(|| plain.strip_prefix("disable-"));
    let is_switch = |name: &&str| all_settings().any(|setting| setting.kind == Kind::Switch && setting.name == *name);
    if let Some(name) = switch.filter(is_switch) {
        return Some(format!("--{name}=false"));
    }
    let setting = similar_setting(&plain)?;
    Some(match setting.kind {
        Kind::Secret => format!("the variable {}, since command lines can be read by others", setting.variable()),
        Kind::Value | Kind::Path | Kind::Private | Kind::Switch => format!("--{}", setting.flag()),
    })
}

/// What other programs call what our flags do.
const OTHER_WORDS: &[(&[&str], &str)] = &[
    (&["in-memory", "inmemory", "memory-only", "ephemeral", "in-memory-persistence"], "--durability memory"),
    (&["port"], "--blob-port, --queue-port and --table-port"),
    (&["data", "datadir", "data-directory", "data-folder", "directory", "dir", "path", "folder"], "--data-dir"),
    (&["bind", "listen", "address", "bind-address"], "--host"),
    (&["verbose", "debug", "loglevel", "log"], "--log-level debug"),
    (&["quiet", "silent"], "--log-level warn"),
    (
        &["account", "accounts", "account-key", "account-name"],
        "the variable LARIMAR_ACCOUNTS=name:key, or [[accounts]] in the configuration file",
    ),
    (
        &["password", "database-password", "db-password"],
        "the variable LARIMAR_DATABASE_PASSWORD, or --database-password-file",
    ),
    (&["cert", "certificate", "tls-cert", "tls"], "--tls-certificate and --tls-key"),
    (&["database", "db", "postgres", "database-url"], "--engine postgres://USER@HOST/DATABASE"),
    (&["skip-api-version-check", "loose"], "nothing: unknown versions are accepted unless --strict is given"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_what_is_meant_and_nothing_misleading() {
        for (word, said) in [
            ("--in-memory", "there is no flag --in-memory; use --durability memory"),
            ("--tabel-port=1", "there is no flag --tabel-port; use --table-port"),
            ("--tablePort", "there is no flag --tablePort; use --table-port"),
            ("--no-blob", "there is no flag --no-blob; use --blob=false"),
            ("--no-such-flag", "there is no flag --no-such-flag"),
            ("false", "unexpected \"false\": the value of a switch follows an equals sign, as in --table=false"),
        ] {
            assert_eq!(unknown(word, None), said);
        }
        assert_eq!(unknown("tabel", Some("table")), "there is no command \"tabel\"; use table");
        let said = unknown("start", None);
        assert!(said.starts_with("there is no command \"start\"; expected serve, config, repair, migrate, "), "{said}");
        for secret in ["postgres://u:sesame@h/d", "host=h password=sesame", "--engin=postgres://u:sesame@h/d"] {
            assert!(!unknown(secret, None).contains("sesame"), "{}", unknown(secret, None));
        }
    }
}
