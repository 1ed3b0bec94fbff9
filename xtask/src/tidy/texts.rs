//! Texts that no file may hold: machine paths, registry hosts, secrets.

use serde::Deserialize;

use super::Problems;
use super::files::File;

/// The forbidden texts, from `tidy.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Texts {
    machine_paths: Vec<String>,
    registry_hosts: Vec<String>,
    secrets: Vec<String>,
    account_keys: Vec<String>,
    exempt: Vec<String>,
}

/// 64 bytes in base64, padding included.
const ACCOUNT_KEY_CHARS: usize = 88;

/// Looks through every text file, line by line.
pub(super) fn forbidden(files: &[File], texts: &Texts, problems: &mut Problems) {
    for file in files.iter().filter(|file| !texts.exempt.contains(&file.path)) {
        let Some(text) = file.text() else { continue };
        for (index, line) in text.lines().enumerate() {
            for complaint in complaints(&file.path, line, texts) {
                problems.add(&format!("{}:{}", file.path, index + 1), complaint);
            }
        }
    }
}

fn complaints(path: &str, line: &str, texts: &Texts) -> Vec<String> {
    let mut found = Vec::new();
    for machine_path in &texts.machine_paths {
        if starts_a_path(line, machine_path) {
            found.push(format!("names a folder of one machine ({machine_path})"));
        }
    }
    for host in &texts.registry_hosts {
        if line.contains(host.as_str()) {
            found.push(format!("names a package registry ({host})"));
        }
    }
    for secret in &texts.secrets {
        if line.contains(secret.as_str()) {
            found.push(format!("looks like a secret ({secret}…)"));
        }
    }
    if account_key(line).is_some_and(|key| !texts.account_keys.iter().any(|known| known == key)) {
        found.push("holds an account key other than the development one".to_owned());
    }
    if path.ends_with("package-lock.json") && line.contains("\"resolved\"") {
        found.push("pins a download address; install with --omit-lockfile-registry-resolved".to_owned());
    }
    found
}

/// Whether the name begins a path here, rather than continuing one (`target/work/`, `example.com/home/`).
fn starts_a_path(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"_-.}/~*$".contains(c))
    })
}

/// A run of exactly 88 base64 characters with the padding of 64 bytes; a checksum (`sha512-…`) is none.
fn account_key(line: &str) -> Option<&str> {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    line.split(|c: char| !is_base64(c) && c != '-')
        .map(|run| run.trim_start_matches("AccountKey="))
        .find(|run| run.len() == ACCOUNT_KEY_CHARS && run.ends_with("==") && run.chars().all(is_base64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 zero bytes.
    fn known() -> String {
        format!("{}==", "A".repeat(ACCOUNT_KEY_CHARS - 2))
    }

    fn texts() -> Texts {
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
        Texts {
            machine_paths: list(&["/attic/"]),
            registry_hosts: list(&["packages.example"]),
            secrets: list(&["hunter2_"]),
            account_keys: vec![known()],
            exempt: list(&["rules.toml"]),
        }
    }

    fn count(path: &str, line: &str) -> usize {
        let mut problems = Problems::default();
        forbidden(&[File::new(path, line)], &texts(), &mut problems);
        problems.len()
    }

    #[test]
    fn machine_paths_count_only_where_a_path_starts() {
        for line in ["/attic/x", "cd /attic/x", "\"/attic/x\"", "DIR=/attic/x", "file:/attic/x"] {
            assert_eq!(count("a.md", line), 1, "{line}");
        }
        for line in ["target/attic/x", "http://example.test/attic/", "$HOME/attic/", "attic/", "/attics/"] {
            assert_eq!(count("a.md", line), 0, "{line}");
        }
    }

    #[test]
    fn hosts_and_secrets_are_refused_anywhere() {
        assert_eq!(count("a.toml", "url = \"https://packages.example/x\""), 1);
        assert_eq!(count("a.toml", "token = \"hunter2_abc\""), 1);
        assert_eq!(count("rules.toml", "token = \"hunter2_abc\""), 0);
    }

    #[test]
    fn account_keys_other_than_the_known_one_are_refused() {
        let known = known();
        let other = known.replacen('A', "B", 1);
        assert_eq!(count("a.py", &format!("KEY = '{other}'")), 1);
        assert_eq!(count("a.py", &format!("AccountKey={other};TableEndpoint=x")), 1);
        assert_eq!(count("a.py", &format!("KEY = '{known}'")), 0);
        assert_eq!(count("a.json", &format!("\"integrity\": \"sha512-{other}\"")), 0);
        assert_eq!(count("a.py", "short = 'AAAA=='"), 0);
    }

    #[test]
    fn lock_files_name_no_download_address() {
        assert_eq!(count("x/package-lock.json", "  \"resolved\": \"somewhere\","), 1);
        assert_eq!(count("x/other.json", "  \"resolved\": \"somewhere\","), 0);
    }
}
