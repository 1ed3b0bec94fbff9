//! Which crate of ours may depend on which, read from the manifests.
//!
//! `tidy.toml` lists for each crate what it may name; what those may name is allowed too. Tests (dev-dependencies)
//! may also use the test kit and what it stands on.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Table;

use super::Problems;
use super::files::File;

/// The allowed directions, from `tidy.toml`.
#[derive(Deserialize)]
pub(super) struct Directions {
    direction: BTreeMap<String, Vec<String>>,
    tests: TestCrates,
    only: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestCrates {
    dev: Vec<String>,
}

impl Directions {
    /// Everything a crate may reach from these starting points.
    fn reach<'a>(&'a self, starts: impl IntoIterator<Item = &'a String>) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&str> = starts.into_iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            if reached.insert(name) {
                open.extend(self.direction.get(name).into_iter().flatten().map(String::as_str));
            }
        }
        reached
    }
}

/// Checks every package manifest among the files.
pub(super) fn directions(files: &[File], rules: &Directions, problems: &mut Problems) {
    for file in files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        match file.text().unwrap_or_default().parse::<Table>() {
            Ok(manifest) if manifest.contains_key("package") => one_manifest(&file.path, &manifest, rules, problems),
            Ok(_) => {}
            Err(error) => problems.add(&file.path, error.message()),
        }
    }
}

fn one_manifest(path: &str, manifest: &Table, rules: &Directions, problems: &mut Problems) {
    let name = manifest["package"].get("name").and_then(|name| name.as_str()).unwrap_or_default();
    let Some(allowed) = rules.direction.get(name) else {
        problems.add(path, format!("crate {name} has no line in xtask/tidy.toml [direction]"));
        return;
    };
    let takes_lints = manifest.get("lints").is_some_and(|lints| lints.get("workspace").is_some());
    if !takes_lints && !is_workspace(manifest) {
        problems.add(path, "does not take the workspace's lints");
    }
    let normal = rules.reach(allowed);
    let mut testing = rules.reach(allowed.iter().chain(&rules.tests.dev));
    testing.insert(name);
    for (section, table) in dependency_sections(manifest) {
        let reach = if section == "dev-dependencies" { &testing } else { &normal };
        for (key, value) in table {
            let dependency = value.get("package").and_then(|package| package.as_str()).unwrap_or(key);
            one_dependency(path, name, dependency, reach, rules, problems);
        }
    }
}

fn one_dependency(
    path: &str,
    name: &str,
    dependency: &str,
    reach: &BTreeSet<&str>,
    rules: &Directions,
    problems: &mut Problems,
) {
    if rules.direction.contains_key(dependency) && !reach.contains(dependency) {
        problems.add(path, format!("{name} may not depend on {dependency}"));
    }
    if let Some(users) = rules.only.get(dependency)
        && !users.iter().any(|user| user == name)
    {
        problems.add(path, format!("{dependency} is for {} only, not {name}", users.join(", ")));
    }
}

/// A crate that is a workspace of its own (the fuzz targets) cannot inherit lints.
fn is_workspace(manifest: &Table) -> bool {
    manifest.contains_key("workspace")
}

/// All dependency tables, those under `[target.'…']` included.
fn dependency_sections(manifest: &Table) -> Vec<(&str, &Table)> {
    const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let targets = manifest.get("target").and_then(|targets| targets.as_table());
    let targets = targets.into_iter().flat_map(|targets| targets.values()).filter_map(|target| target.as_table());
    let tables = std::iter::once(manifest).chain(targets);
    tables
        .flat_map(|table| SECTIONS.map(|section| (section, table.get(section).and_then(|value| value.as_table()))))
        .filter_map(|(section, table)| Some((section, table?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "
        [direction]
        model = []
        wire = ['model']
        engine = ['model']
        server = ['engine', 'wire']
        kit = ['server']
        app = ['server']
        [tests]
        dev = ['kit']
        [only]
        anyhow = ['app']
    ";

    fn complaints(package: &str, rest: &str) -> String {
        let rules = toml::from_str(RULES).expect("rules parse");
        let manifest = format!("[package]\nname = '{package}'\n[lints]\nworkspace = true\n{rest}");
        let mut problems = Problems::default();
        directions(&[File::new("crates/x/Cargo.toml", &manifest)], &rules, &mut problems);
        problems.to_string()
    }

    #[test]
    fn dependencies_point_one_way() {
        assert_eq!(complaints("server", "[dependencies]\nwire.workspace = true\nmodel.workspace = true"), "");
        assert!(complaints("wire", "[dependencies]\nengine.workspace = true").contains("may not depend on engine"));
        assert!(complaints("model", "[dependencies]\nwire.workspace = true").contains("may not depend on wire"));
        assert!(complaints("engine", "[build-dependencies]\nwire = '1'").contains("may not depend on wire"));
        assert!(complaints("engine", "[target.'cfg(unix)'.dependencies]\nwire = '1'").contains("may not depend"));
        assert!(complaints("engine", "[dependencies]\nw = { package = 'wire' }").contains("may not depend on wire"));
    }

    #[test]
    fn tests_may_use_the_kit_and_what_it_stands_on() {
        assert_eq!(complaints("model", "[dev-dependencies]\nkit.workspace = true\nserver.workspace = true"), "");
        assert!(complaints("model", "[dependencies]\nkit.workspace = true").contains("may not depend on kit"));
        assert!(complaints("model", "[dev-dependencies]\napp.workspace = true").contains("may not depend on app"));
    }

    #[test]
    fn some_outside_crates_are_for_some_of_ours() {
        assert_eq!(complaints("app", "[dependencies]\nanyhow = '1'"), "");
        assert!(complaints("wire", "[dependencies]\nanyhow = '1'").contains("anyhow is for app only"));
    }

    #[test]
    fn a_crate_without_a_rule_is_refused() {
        assert!(complaints("stranger", "").contains("no line in"));
    }

    #[test]
    fn every_crate_takes_the_lints() {
        let rules = toml::from_str(RULES).expect("rules parse");
        let mut problems = Problems::default();
        let files = [
            File::new("a/Cargo.toml", "[package]\nname = 'model'\n"),
            File::new("b/Cargo.toml", "[workspace]\nmembers = []\n"),
            File::new("c/Cargo.toml", "[package]\nname = 'model'\n[workspace]\n"),
        ];
        directions(&files, &rules, &mut problems);
        assert_eq!(problems.to_string(), "a/Cargo.toml: does not take the workspace's lints\n");
    }
}
