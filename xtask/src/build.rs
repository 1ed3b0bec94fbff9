//! The one build of a test run: every test program, the server and the examples, compiled once with all features, and
//! linted on the way.
//!
//! `clippy-driver` is the compiler plus Clippy's lints, so it stands in for `rustc` here, for our own crates only.
//! `cargo clippy` in addition would compile every dependency a second time, because Cargo keeps the results of `check`
//! and of `build` apart. Lints are warnings in this build: one of them fails the step, but the tests still run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::say;
use crate::shell::{self, Repo, STEP_TIME_MAX};

/// Cargo's arguments for the build of everything. Not `--all-targets`: that builds the examples as tests.
const EVERYTHING: [&str; 3] = ["test", "--no-run", "--locked"];

/// What a build made.
#[derive(Debug, Default)]
pub(crate) struct Built {
    server: Option<PathBuf>,
    pub(crate) tests: Vec<TestProgram>,
    /// The program of each example, by its source file.
    pub(crate) examples: BTreeMap<PathBuf, PathBuf>,
    /// Warnings of the compiler and of Clippy.
    pub(crate) warnings: usize,
}

/// An executable with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestProgram {
    pub(crate) package: String,
    pub(crate) executable: PathBuf,
    /// The package's folder, in which its tests run.
    pub(crate) folder: PathBuf,
    /// Whether it holds the tests inside a library or binary; otherwise it holds integration tests.
    pub(crate) has_unit_tests: bool,
}

impl Built {
    /// Builds the packages and features that the arguments select.
    pub(crate) fn everything(repo: &Repo, selection: &[&str]) -> Result<Self> {
        Self::of(compile_like_tests(repo.cargo(&EVERYTHING).args(selection)))
    }

    /// Runs a Cargo command that builds.
    pub(crate) fn of(command: &mut Command) -> Result<Self> {
        let mut built = Self::default();
        let status = shell::run_lines(command.arg("--message-format=json"), STEP_TIME_MAX, |line| built.add(line))?;
        ensure!(status.success(), "the build ended with {status}");
        Ok(built)
    }

    pub(crate) fn server(&self) -> Result<&Path> {
        self.server.as_deref().context("the build made no `larimar` binary")
    }

    /// Reads one of Cargo's messages.
    fn add(&mut self, message: &str) {
        let Ok(message) = serde_json::from_str::<Value>(message) else { return };
        match message["reason"].as_str() {
            Some("compiler-message") => self.add_diagnostic(&message["message"]),
            Some("compiler-artifact") => {
                self.add_artifact(&message);
            }
            _ => {}
        }
    }

    fn add_diagnostic(&mut self, diagnostic: &Value) {
        say!("{}", diagnostic["rendered"].as_str().unwrap_or_default().trim_end());
        // The compiler ends with a summary, `3 warnings emitted`, which has no place in the code.
        let has_place = diagnostic["spans"].as_array().is_some_and(|spans| !spans.is_empty());
        if diagnostic["level"] == "warning" && has_place {
            self.warnings += 1;
        }
    }

    fn add_artifact(&mut self, message: &Value) -> Option<()> {
        let executable = PathBuf::from(message["executable"].as_str()?);
        let target = &message["target"];
        let is = |kind: &str| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|each| each == kind));
        if message["profile"]["test"] == true {
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
            let package = package_name(message["package_id"].as_str()?)?.to_owned();
            self.tests.push(TestProgram { package, executable, folder, has_unit_tests: !is("test") });
        } else if is("example") {
            self.examples.insert(PathBuf::from(target["src_path"].as_str()?), executable);
        } else if is("bin") && target["name"] == "larimar" {
            self.server = Some(executable);
        }
        Some(())
    }
}

/// The name in a package id: `path+file:///checkout/crates/cli#larimar@0.1.0`, or without the name if the folder has it.
fn package_name(id: &str) -> Option<&str> {
    let (path, fragment) = id.rsplit_once('#')?;
    fragment.split_once('@').map(|(name, _)| name).or_else(|| path.rsplit('/').next())
}

/// The settings of the one build, for every Cargo command that uses what it compiled: Clippy compiles our own crates (if
/// it is on the machine), and nothing is kept for a debugger or for an incremental build, which is faster from scratch.
pub(crate) fn compile_like_tests(command: &mut Command) -> &mut Command {
    if let Some(driver) = clippy_driver() {
        command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    }
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0")
}

/// Clippy's compiler in the pinned toolchain.
pub(crate) fn clippy_driver() -> Option<PathBuf> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?.stdout;
    let driver = Path::new(std::str::from_utf8(&sysroot).ok()?.trim()).join("bin/clippy-driver");
    driver.is_file().then_some(driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(name: &str, kind: &str, test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///c/crates/cli#larimar@0.1.0",
            "manifest_path": "/c/crates/cli/Cargo.toml",
            "target": { "name": name, "kind": [kind], "src_path": format!("/c/{name}.rs") },
            "profile": { "test": test },
            "executable": format!("/t/{name}"),
        })
        .to_string()
    }

    #[test]
    fn programs_are_found_among_the_messages_of_a_build() {
        let mut built = Built::default();
        for message in [
            artifact("larimar", "bin", true),
            artifact("larimar", "bin", false),
            artifact("xtask", "bin", false),
            artifact("suite", "test", true),
            artifact("series", "example", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "not json".to_owned(),
        ] {
            built.add(&message);
        }
        assert_eq!(built.server().expect("a server"), Path::new("/t/larimar"));
        let tests: Vec<_> = built.tests.iter().map(|test| (test.has_unit_tests, test.package.as_str())).collect();
        assert_eq!(tests, [(true, "larimar"), (false, "larimar")]);
        assert_eq!(built.tests[0].folder, Path::new("/c/crates/cli"));
        assert_eq!(built.examples[Path::new("/c/series.rs")], Path::new("/t/series"));
        assert!(Built::default().server().is_err());
    }

    #[test]
    fn a_warning_counts_once_however_the_compiler_sums_up() {
        let mut built = Built::default();
        let message = |level: &str, spans: &[u32]| {
            serde_json::json!({ "reason": "compiler-message",
                "message": { "level": level, "rendered": "text", "spans": spans } })
        };
        for message in [message("warning", &[1]), message("warning", &[]), message("failure-note", &[])] {
            built.add(&message.to_string());
        }
        assert_eq!(built.warnings, 1);
    }

    #[test]
    fn a_package_is_named_by_its_id() {
        assert_eq!(package_name("path+file:///c/crates/cli#larimar@0.1.0"), Some("larimar"));
        assert_eq!(package_name("path+file:///c/xtask#0.1.0"), Some("xtask"));
        assert_eq!(package_name("nonsense"), None);
    }
}
