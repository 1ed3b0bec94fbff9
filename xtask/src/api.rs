//! The public interface of the crates that users depend on: listed in `docs/api/`, and free of our inner crates.
//!
//! Each also builds without its features, which users may turn off. rustdoc describes the items as JSON and `public-api`
//! lists them. A listing that changed shows in review what users will see, and is refused until it is blessed. A type of
//! an inner crate in a signature would tie that crate's versions to the public ones, so it is refused in any case.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::gate;
use crate::say;
use crate::shell::{self, Repo};
use crate::tally::Tally;

/// The libraries that users name in their manifests.
const LIBRARIES: [&str; 3] = ["larimar-client", "larimar-embedded", "larimar-patterns"];

/// The crates that no public signature may name.
const INNER: [&str; 4] = ["larimar_engine", "larimar_model", "larimar_server", "larimar_wire"];

const FOLDER: &str = "docs/api";
const BLESS_HINT: &str = "if users should see it so, run `cargo xtask api --bless` and commit it";

/// Compares every library's interface with its listing, or rewrites the listing.
pub(crate) fn check(repo: &Repo, bless: bool) -> Tally {
    let mut tally = Tally::default();
    gate::step(&mut tally, "larimar without features", || without_features(repo, "larimar"));
    for library in LIBRARIES {
        gate::step(&mut tally, &format!("{library} without features"), || without_features(repo, library));
        gate::step(&mut tally, &format!("public interface of {library}"), || one_library(repo, library, bless));
    }
    tally
}

fn without_features(repo: &Repo, library: &str) -> Result<()> {
    let mut clippy = repo.cargo(&["clippy", "--quiet", "--package", library, "--no-default-features"]);
    gate::succeeds(clippy.args(["--", "-D", "warnings"]))
}

fn one_library(repo: &Repo, library: &str, bless: bool) -> Result<()> {
    let json = describe(repo, library)?;
    let api = public_api::Builder::from_rustdoc_json(&json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .include_function_parameter_names(true)
        .build()
        .with_context(|| format!("list {}", json.display()))?;
    let listing: String = api.items().map(|item| format!("{item}\n")).collect();
    let described = fs::read_to_string(&json).with_context(|| format!("read {}", json.display()))?;
    let mut leaks: Vec<String> = listing.lines().filter(|line| names_inner(line)).map(str::to_owned).collect();
    leaks.extend(inner_exports(&serde_json::from_str(&described)?));
    ensure!(leaks.is_empty(), "inner crates show in it:\n{}", leaks.join("\n"));

    let page = repo.path(FOLDER).join(format!("{library}.txt"));
    if bless {
        fs::create_dir_all(repo.path(FOLDER)).with_context(|| format!("create {FOLDER}"))?;
        return fs::write(&page, listing).with_context(|| format!("write {}", page.display()));
    }
    compare(&fs::read_to_string(&page).unwrap_or_default(), &listing)
}

/// Has rustdoc describe a library with all its features, and returns where the description is.
fn describe(repo: &Repo, library: &str) -> Result<PathBuf> {
    let rustdoc = unlocked_rustdoc(&repo.path("target/api"))?;
    let mut command = repo.cargo(&["rustdoc", "--quiet", "--package", library, "--lib", "--all-features", "--"]);
    command.args(["-Zunstable-options", "--output-format=json", "--cap-lints=allow"]).env("RUSTDOC", rustdoc);
    gate::succeeds(&mut command)?;
    Ok(target_folder(repo)?.join("doc").join(format!("{}.json", library.replace('-', "_"))))
}

/// Where Cargo builds: `target/`, unless the machine's settings say otherwise.
fn target_folder(repo: &Repo) -> Result<PathBuf> {
    let metadata = shell::output_of(&mut repo.cargo(&["metadata", "--quiet", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_slice(&metadata).context("parse cargo metadata")?;
    metadata["target_directory"].as_str().map(PathBuf::from).context("cargo metadata names the target folder")
}

/// The pinned toolchain's rustdoc, allowed to write JSON. The permission is for that program alone: in Cargo's own
/// environment it would build every dependency again.
fn unlocked_rustdoc(folder: &Path) -> Result<PathBuf> {
    let script = folder.join("rustdoc");
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    fs::write(&script, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n").context("write a script")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).context("make the script executable")?;
    Ok(script)
}

/// Whether a line of a listing names an inner crate, as the beginning of a path.
fn names_inner(line: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    line.split(|c: char| !is_part(c)).any(|path| path.split("::").next().is_some_and(|first| INNER.contains(&first)))
}

/// What is exported of inner crates under a name of the library's own, which its listing does not show.
fn inner_exports(described: &Value) -> Vec<String> {
    let items = described.get("index").and_then(Value::as_object);
    let exports = items.into_iter().flat_map(|items| items.values());
    let sources = exports.filter_map(|item| item.get("inner")?.get("use")?.get("source")?.as_str());
    sources.filter(|source| names_inner(source)).map(|source| format!("pub use {source}")).collect()
}

fn compare(committed: &str, listing: &str) -> Result<()> {
    let (before, now): (Vec<&str>, Vec<&str>) = (committed.lines().collect(), listing.lines().collect());
    for line in before.iter().filter(|line| !now.contains(line)) {
        say!("-{line}");
    }
    for line in now.iter().filter(|line| !before.contains(line)) {
        say!("+{line}");
    }
    ensure!(committed == listing, "its listing in {FOLDER} is stale; {BLESS_HINT}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_crates_are_seen_wherever_a_signature_names_them() {
        for line in [
            "pub fn larimar_client::Table::get(&self, key: &larimar_model::EntityKey)",
            "impl core::convert::From<larimar_wire::Error> for larimar_client::Error",
            "pub fn larimar_client::all() -> alloc::vec::Vec<larimar_engine::Row>",
        ] {
            assert!(names_inner(line), "{line}");
        }
        for line in ["pub struct larimar_client::Table", "pub fn larimar_client::larimar_model::key()"] {
            assert!(!names_inner(line), "{line}");
        }
    }

    #[test]
    fn exports_of_inner_crates_are_seen() {
        let described = |source: &str| {
            let item = serde_json::json!({ "inner": { "use": { "source": source, "name": "Key" } } });
            serde_json::json!({ "index": { "7": item, "8": { "inner": { "struct": {} } } } })
        };
        assert_eq!(inner_exports(&described("larimar_model::Key")), ["pub use larimar_model::Key"]);
        assert!(inner_exports(&described("self::key::Key")).is_empty());
    }

    #[test]
    fn a_listing_that_differs_is_refused_with_a_hint() {
        assert!(compare("a\n", "a\n").is_ok());
        for (committed, listing) in [("", "a\n"), ("a\n", "a\nb\n"), ("b\na\n", "a\nb\n")] {
            assert!(compare(committed, listing).expect_err("differs").to_string().contains("--bless"));
        }
    }
}
