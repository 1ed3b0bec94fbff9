//! The examples of the crates that users take: all are built, and each runs to its end.
//!
//! An example starts a server of its own unless `LARIMAR_CONNECTION_STRING` names one, so it needs nothing here. Files
//! are found in the `examples` folders; one that Cargo did not build (its features are off) counts as failed, so none
//! is left out in silence.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::gate;
use crate::shell::{self, Repo, STEP_TIME_MAX};
use crate::tally::Tally;

/// The crates whose examples are for users, by their folders.
const CRATES: [&str; 3] = ["client", "embedded", "patterns"];

/// Cargo's arguments that build examples only.
const ALONE: [&str; 2] = ["build", "--examples"];

const CONNECTION_VARIABLE: &str = "LARIMAR_CONNECTION_STRING";
const EXAMPLE_TIME_MAX: Duration = Duration::from_secs(120);

/// `cargo xtask examples`.
pub(crate) fn command(repo: &Repo) -> Tally {
    let packages = CRATES.map(|name| format!("--package=larimar-{name}"));
    run(repo, &[&ALONE, packages.each_ref().map(String::as_str).as_slice()].concat())
}

/// Builds all examples by these Cargo arguments, and runs those for users.
pub(crate) fn run(repo: &Repo, build: &[&str]) -> Tally {
    run_those_of(&CRATES, repo, build, None)
}

/// Builds all examples by these Cargo arguments, and runs those of the patterns over another server, whose connection
/// string this is.
pub(crate) fn run_patterns_over(connection_string: &str, repo: &Repo, build: &[&str]) -> Tally {
    run_those_of(&["patterns"], repo, build, Some(connection_string))
}

fn run_those_of(crates: &[&str], repo: &Repo, build: &[&str], connection_string: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    let mut found = Vec::new();
    let mut built = BTreeMap::new();
    gate::step(&mut tally, "build of the examples", || {
        found = sources(repo, crates)?;
        built = executables(repo, build)?;
        Ok(())
    });
    if tally.failed() > 0 {
        return tally;
    }
    for source in found {
        let name = source.strip_prefix(&repo.root).unwrap_or(&source).display().to_string();
        gate::step(&mut tally, &name, || {
            let executable = built.get(&source).context("Cargo did not build it; are its features on?")?;
            let mut example = repo.command(executable, ".");
            match connection_string {
                Some(text) => example.env(CONNECTION_VARIABLE, text),
                None => example.env_remove(CONNECTION_VARIABLE),
            };
            let status = shell::run(&mut example, EXAMPLE_TIME_MAX)?;
            ensure!(status.success(), "ended with {status}");
            Ok(())
        });
    }
    tally
}

/// The files of the examples in order: `name.rs`, or `name/main.rs`.
fn sources(repo: &Repo, crates: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in crates {
        // A crate need not have any.
        let Ok(entries) = fs::read_dir(folder(repo, name)) else { continue };
        for entry in entries {
            let path = entry.with_context(|| format!("list the examples of {name}"))?.path();
            let main = path.join("main.rs");
            if main.is_file() {
                found.push(main);
            } else if path.extension() == Some(OsStr::new("rs")) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn folder(repo: &Repo, name: &str) -> PathBuf {
    repo.path("crates").join(name).join("examples")
}

/// Builds the examples and tells for each source where its program is.
fn executables(repo: &Repo, build: &[&str]) -> Result<BTreeMap<PathBuf, PathBuf>> {
    let mut command = repo.cargo(build);
    command.arg("--message-format=json-render-diagnostics");
    let mut built = BTreeMap::new();
    let status = shell::run_lines(&mut command, STEP_TIME_MAX, |line| built.extend(example(line)))?;
    ensure!(status.success(), "ended with {status}");
    Ok(built)
}

/// Source and program in the message that tells of an example; none in any other message.
fn example(message: &str) -> Option<(PathBuf, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let target = message.get("target")?;
    let is_example = target.get("kind")?.as_array()?.iter().any(|kind| kind == "example");
    let path = |value: &Value| Some(Path::new(value.as_str()?).to_owned());
    is_example.then_some((path(target.get("src_path")?)?, path(message.get("executable")?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_found_among_build_messages() {
        let message = |kind: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"name":"a","kind":["{kind}"],"src_path":"/c/examples/a.rs"}},
                "executable":{executable}}}"#
            )
        };
        let found = (PathBuf::from("/c/examples/a.rs"), PathBuf::from("/t/examples/a"));
        assert_eq!(example(&message("example", r#""/t/examples/a""#)), Some(found));
        assert_eq!(example(&message("bin", r#""/t/examples/a""#)), None);
        assert_eq!(example(&message("example", "null")), None);
        assert_eq!(example("not json"), None);
    }

    #[test]
    fn examples_are_files_or_folders_with_a_main_file() {
        let root = std::env::temp_dir().join(format!("larimar-xtask-examples-{}", std::process::id()));
        let repo = Repo { root: root.clone() };
        let folder = folder(&repo, CRATES[0]);
        fs::create_dir_all(folder.join("large")).expect("create");
        fs::create_dir_all(folder.join("shared")).expect("create");
        for file in ["small.rs", "large/main.rs", "large/part.rs", "shared/mod.rs", "notes.md"] {
            fs::write(folder.join(file), "").expect("write");
        }
        let found = sources(&repo, &CRATES).expect("lists");
        assert_eq!(found, [folder.join("large/main.rs"), folder.join("small.rs")]);
        fs::remove_dir_all(&root).expect("remove");
    }

    #[test]
    fn the_crates_for_users_are_where_the_step_looks() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout").to_owned();
        assert!(!sources(&Repo { root }, &CRATES).expect("lists").is_empty());
    }
}
