//! Which setting a misspelt name means, and which variables of the environment are none of ours.

use super::{Environment, Setting, SettingsError, all_settings};
use std::ffi::OsStr;

/// What to say of a name that no setting has.
pub(super) fn hint(name: &str) -> String {
    match similar_setting(name) {
        Some(setting) => format!("did you mean {}?", setting.name),
        None => format!("expected one of {}", super::names()),
    }
}

/// The setting that a name most likely means: one of the same letters but for a few, or one that begins with its words.
pub(crate) fn similar_setting(name: &str) -> Option<&'static Setting> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let letters = |name: &str| name.replace('_', "");
    let distances = all_settings().map(|setting| (distance(&letters(setting.name), &letters(&name)), setting));
    let nearest = distances.min_by_key(|(distance, _)| *distance);
    let near = nearest.filter(|(distance, _)| *distance <= 1 + letters(&name).len() / 6).map(|(_, setting)| setting);
    let begins = |setting: &&Setting| setting.name.strip_prefix(&name).is_some_and(|rest| rest.starts_with('_'));
    near.or_else(|| all_settings().find(begins))
}

/// Refuses variables that are misspelt settings; those that are not similar to any setting are returned.
pub(super) fn check_variables(environment: &Environment) -> Result<Vec<String>, SettingsError> {
    let refused = |variable: &str, reason: String| SettingsError::Variable { variable: variable.to_owned(), reason };
    if environment.get(OsStr::new("AZURITE_DB")).is_some_and(|value| !value.is_empty()) {
        let reason = "Larimar does not use Azurite's database; unset it, and for a shared database set LARIMAR_ENGINE \
                      to postgres://USER@HOST/DATABASE";
        return Err(refused("AZURITE_DB", reason.to_owned()));
    }
    let mut unknown = Vec::new();
    for (variable, value) in environment.iter().filter(|(_, value)| !value.is_empty()) {
        let variable = variable.to_string_lossy();
        let Some(name) = variable.strip_prefix("LARIMAR_") else { continue };
        let is_setting = all_settings().any(|setting| setting.variable() == variable);
        if is_setting || is_of_others(name, &value.to_string_lossy()) {
            continue;
        }
        if name == "PORT" {
            return Err(refused(&variable, format!("there is no such setting; {ONE_PORT_EACH}")));
        }
        if let Some(setting) = similar_setting(name) {
            return Err(refused(&variable, format!("there is no such setting; did you mean {}?", setting.variable())));
        }
        unknown.push(variable.into_owned());
    }
    Ok(unknown)
}

/// Whether a variable is known to be for something else: other commands, tests, clients, or Kubernetes' description of
/// a service.
fn is_of_others(name: &str, value: &str) -> bool {
    let is_of_kubernetes = value.starts_with("tcp://")
        || ["SERVICE_HOST", "SERVICE_PORT"].iter().any(|part| name.contains(part))
        || name.contains("_TCP");
    let is_of_commands = ["CONFIG", "FROM_PASSWORD", "TO_PASSWORD"].contains(&name);
    // Examples and suites name the client's account so; a server's accounts have keys, after a colon.
    let is_of_clients = name == "ACCOUNT" && !value.contains(':') || name.ends_with("_ENDPOINT");
    is_of_kubernetes || is_of_commands || is_of_clients || name.starts_with("TEST_")
}

/// How many letters have to be put in, taken out, changed or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    // Names are short; what is far longer than any of them is not a misspelling.
    if other.len() > NAME_BYTES_MAX {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i + j;
                continue;
            }
            let change = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

const NAME_BYTES_MAX: usize = 64;
/// What to set instead of one port for all services.
const ONE_PORT_EACH: &str = "did you mean LARIMAR_TABLE_PORT, LARIMAR_QUEUE_PORT or LARIMAR_BLOB_PORT?";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found_and_others_left_alone() {
        for (name, meant) in [
            ("tabel_port", Some("table_port")),
            ("DATADIR", Some("data_dir")),
            ("DATA", Some("data_dir")),
            ("LOG", Some("log_level")),
            ("LOGLEVEL", Some("log_level")),
            ("ACCOUNT", Some("accounts")),
            ("ACOUNTS", Some("accounts")),
            ("DURABILTY", Some("durability")),
            ("TLS_CERT", None),
            ("KEY", None),
            ("HOME", None),
            ("BIN", None),
            ("RESULTS", None),
            ("CONNECTION_STRING", None),
            ("limits", None),
        ] {
            assert_eq!(similar_setting(name).map(|setting| setting.name), meant, "{name}");
        }
    }
}
