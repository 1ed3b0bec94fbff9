//! The examples of the crates that users depend on: each must run to its end.
//!
//! An example starts a server of its own unless `LARIMAR_CONNECTION_STRING` names one. The list of examples comes from
//! the `examples` folders, so one that Cargo did not build (its features are off) counts as failed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::build::Built;
use crate::gate;
use crate::sdk::{Server, ServerOptions, WorkFolder};
use crate::shell::{self, Repo};
use crate::tally::Tally;

/// The crates whose examples are for users, by their folders.
const CRATES: [&str; 3] = ["client", "embedded", "patterns"];

const CONNECTION_VARIABLE: &str = "LARIMAR_CONNECTION_STRING";
const EXAMPLE_TIME_MAX: Duration = Duration::from_secs(120);

/// `cargo xtask examples`.
pub(crate) fn command(repo: &Repo) -> Result<Tally> {
    let mut build = repo.cargo(&["build", "--examples", "--bins", "--package=larimar"]);
    build.args(CRATES.map(|name| format!("--package=larimar-{name}")));
    let built = Built::of(&mut build)?;
    let mut tally = run(repo, &built);
    tally += advise_on_patterns(repo, &built, built.server()?);
    Ok(tally)
}

/// Runs the examples of the crates for users.
pub(crate) fn run(repo: &Repo, built: &Built) -> Tally {
    run_those_of(&CRATES, repo, built, None)
}

/// Runs the examples of the patterns over another server.
pub(crate) fn run_patterns_over(connection_string: &str, repo: &Repo, built: &Built) -> Tally {
    run_those_of(&["patterns"], repo, built, Some(connection_string))
}

/// Runs the examples of the patterns on one server and asks the advisor about their traffic, with every query that scans:
/// what shows a pattern has no fault that the advisor finds.
pub(crate) fn advise_on_patterns(repo: &Repo, built: &Built, binary: &Path) -> Tally {
    let mut tally = Tally::default();
    let mut of_examples = Tally::default();
    gate::step(&mut tally, "larimar advise on the examples of the patterns", || {
        let work = WorkFolder::create("advise")?;
        Server::run(binary, &work.0, &ServerOptions::default(), |endpoints| {
            of_examples = run_those_of(&["patterns"], repo, built, Some(endpoints.connection_string()));
            let log = fs::read_to_string(work.0.join("server.log")).context("read the server's log")?;
            let mut command = Command::new(binary);
            command.args(["advise", "--every-scan", "--fail-on", "notice", "--data-dir"]).arg(work.0.join("data"));
            command.args(["--admin-port", admin_port(&log)?]).current_dir(&work.0);
            let status = shell::run(&mut command, EXAMPLE_TIME_MAX)?;
            ensure!(status.success(), "the advisor has findings about the examples: it ended with {status}");
            Ok(true)
        })
    });
    tally += of_examples.on("one server");
    tally
}

/// The port of the admin endpoint in a server's banner.
fn admin_port(banner: &str) -> Result<&str> {
    let rest = banner.split("admin endpoint").nth(1).and_then(|line| line.split("127.0.0.1:").nth(1));
    let port = rest.and_then(|rest| rest.split(|sign: char| !sign.is_ascii_digit()).next());
    port.filter(|port| !port.is_empty()).context("the banner names no admin endpoint")
}

fn run_those_of(crates: &[&str], repo: &Repo, built: &Built, connection_string: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    let found = match sources(repo, crates) {
        Ok(found) => found,
        Err(error) => {
            tally.fail(format!("examples: {error:#}"));
            return tally;
        }
    };
    for source in found {
        let name = source.strip_prefix(&repo.root).unwrap_or(&source).display().to_string();
        gate::step(&mut tally, &name, || {
            let executable = built.examples.get(&source).context("Cargo did not build it; are its features on?")?;
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

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
